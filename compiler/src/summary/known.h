//===- known.h - what can be computed before a region
//----------------------===//
//
// Purpose: summaries are given before the fork, so that all they are made of has
// to be known there: constants, the region's arguments, loads hoisted to its
// entry (hoist.h), addresses of globals, and arithmetic on these.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_KNOWN_H
#define DOMICILE_SUMMARY_KNOWN_H

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ScalarEvolution.h"

namespace domicile {

/// Whether \p S can be computed before the region: it is made of constants,
/// arguments of the region, hoisted loads and addresses of globals.
bool isKnownBefore(const llvm::SCEV *S);
bool isKnownBefore(const llvm::Value *V);

/// The arguments and hoisted loads that \p S and \p V are made of, added to
/// \p Leaves.
void leavesOf(const llvm::SCEV *S,
              llvm::SmallSetVector<llvm::Value *, 16> &Leaves);
void leavesOf(llvm::Value *V, llvm::SmallSetVector<llvm::Value *, 16> &Leaves);

} // namespace domicile

#endif
