//===- hoist.h - what a region captures and never changes
//------------------===//
//
// Purpose: loads of captured variables, of members of what they point to, and
// of Fortran's array descriptors stand wherever the program uses them. Where
// the region does not store to them, one load at its entry takes their place:
// ScalarEvolution then sees bounds and base addresses as invariant, and the
// same load can be done before the fork.
//
// A load that the region might not execute (a loop of no iterations, a
// condition) leaves a call domicile.here(address) where it stood, so that it is
// not done before the fork under other conditions.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_HOIST_H
#define DOMICILE_SUMMARY_HOIST_H

#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

namespace domicile {

/// \p Fortran: callees of other files leave what they are given as it is.
void hoistCaptured(llvm::Function &Region, bool Fortran);

/// Remembers which loads take base addresses out of Fortran's descriptors, as
/// long as the types still show it.
void markDescriptors(llvm::Function &Region);

/// \p Address as a constant distance from an argument, a global or a hoisted
/// load; null if it is not that.
const llvm::Value *capturedRoot(const llvm::Value *Address, int64_t &Offset,
                                const llvm::DataLayout &Layout);

/// Whether \p V is a load that hoistCaptured() moved to the region's entry: its
/// value is the same before the region as all through it.
bool isHoisted(const llvm::Value *V);

/// Whether every run of the region does that load.
bool isAlwaysLoaded(const llvm::LoadInst &Load);

/// If \p Load takes the base address out of a Fortran array descriptor: the
/// array's rank; 0 otherwise.
unsigned descriptorRank(const llvm::LoadInst &Load);

} // namespace domicile

#endif
