//===- access.h - one access of a parallel loop
//----------------------------===//
//
// Purpose: what one instruction touches, and that as a use of an array: the
// partition unit from the parallel loop, pieces from the loops within.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_ACCESS_H
#define DOMICILE_SUMMARY_ACCESS_H

#include "summary/control.h"
#include "summary/linear.h"
#include "summary/uses.h"
#include "llvm/Analysis/TargetLibraryInfo.h"

namespace domicile {

/// Memory that an instruction reads or writes.
struct Touch {
  llvm::Value *Address;
  uint64_t Bytes; ///< 0: as many as Length says
  llvm::Value *Length = nullptr;
  bool Writes;
  std::string Unknown; ///< why it is not known at all, or empty
};

llvm::SmallVector<Touch, 2>
touchesOf(llvm::Instruction &I, const llvm::TargetLibraryInfo &Library);

/// \p One of instruction \p I as a use of an array, done whenever \p Block
/// runs;
/// \p Dealt is the loop that threads share (null: every thread does it).
/// Returns why that cannot be, or nothing.
std::string makeUse(llvm::Instruction &I, llvm::BasicBlock *Block,
                    const Touch &One, const Linear &Form,
                    const ParallelLoop &Owner, const llvm::Loop *Dealt,
                    const Control &Shape, Use &Made);

/// A global's name as the programmer wrote it.
std::string plainName(llvm::StringRef Name);

} // namespace domicile

#endif
