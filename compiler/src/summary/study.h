//===- study.h - the parallel loops of one region, and what they touch
//-----===//
//
// Purpose: reads a serialised region (serial.h): finds the loops that were
// dealt to the threads, and for each access in them which part of which array
// an iteration touches. What cannot be described exactly is refused, with its line
// and the reason, and does not spoil the rest.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_STUDY_H
#define DOMICILE_SUMMARY_STUDY_H

#include "summary/uses.h"
#include "llvm/IR/PassManager.h"

namespace domicile {

struct Study {
  std::vector<ParallelLoop> Loops;
  std::vector<Refusal> Refusals;
};

Study study(llvm::Function &Region, llvm::FunctionAnalysisManager &Analyses);

} // namespace domicile

#endif
