//===- control.h - when, and how often, a block of a region runs
//-----------===//
//
// Purpose: predictions are to be exact, so an access counts only if it runs in
// every iteration of every loop around it, or under conditions that are the
// same all through the region and can be looked at before it.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_CONTROL_H
#define DOMICILE_SUMMARY_CONTROL_H

#include "summary/uses.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"

namespace domicile {

struct Control {
  llvm::DominatorTree &Dominators;
  llvm::PostDominatorTree &After;
  llvm::LoopInfo &Loops;
  llvm::ScalarEvolution &Evolution;

  /// Adds the conditions under which \p Block runs, given that \p Within's
  /// header does (null: the region). Returns why they cannot be known, or
  /// nothing. \p MayEnd: loops around it may be left before they are done (time
  /// steps that converge), if not in their first turn.
  std::string conditions(llvm::BasicBlock *Block, const llvm::Loop *Within,
                         Conditions &When, bool MayEnd = false) const;

  /// The block that always leads through one of \p Blocks: there what they have
  /// in common is done in any case. Null if there is a way around them.
  llvm::BasicBlock *common(llvm::ArrayRef<llvm::BasicBlock *> Blocks) const;

  /// How often \p Block runs each time that \p L is entered (64 bits); null,
  /// and \p Why, if that cannot be known before the region.
  const llvm::SCEV *count(const llvm::Loop *L, const llvm::BasicBlock *Block,
                          std::string &Why) const;

  /// Whether \p Block runs whenever \p L is entered.
  bool runsOnce(const llvm::Loop *L, const llvm::BasicBlock *Block) const;
};

} // namespace domicile

#endif
