//===- serial.h - a parallel region as one thread would run all of it
//------===//
//
// Purpose: makes the clone of an outlined region easy to read for
// ScalarEvolution. Calls are inlined, each work-shared loop goes over all of
// its iterations (the call that would deal them out becomes a marker), what the
// region captures and never changes is loaded once at its entry. Runs on a
// clone only: the result computes nothing that anybody runs.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_SERIAL_H
#define DOMICILE_SUMMARY_SERIAL_H

#include "llvm/IR/Function.h"
#include "llvm/IR/PassManager.h"

namespace domicile {

/// Prepares \p Region. \p Fortran: integer arithmetic never wraps, whatever the
/// instructions say (flang does not mark it).
void serialise(llvm::Function &Region, bool Fortran,
               llvm::FunctionAnalysisManager &Analyses);

} // namespace domicile

#endif
