//===- callee.h - calls that touch no array of the program
//-----------------===//
//
// Purpose: a function without a body here may touch anything, unless what it is
// says otherwise: the runtimes' own functions, functions of numbers, the C
// library's and flang's that print, take the time or end the program. Those
// touch what they are given, and nothing else that the program has.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_CALLEE_H
#define DOMICILE_SUMMARY_CALLEE_H

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/InstrTypes.h"

namespace domicile {

/// Whether \p Call touches no array that threads share.
bool touchesNoArray(const llvm::CallBase &Call,
                    const llvm::TargetLibraryInfo &Library);

} // namespace domicile

#endif
