//===- linear.h - an address as a sum of loop counters
//---------------------===//
//
// Purpose: takes an address that ScalarEvolution knows apart into a base (what
// the array is), an invariant distance from it, and how far each loop around
// moves it from one iteration to the next. What depends on anything else is
// refused with the reason.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_LINEAR_H
#define DOMICILE_SUMMARY_LINEAR_H

#include "summary/known.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include <optional>
#include <string>

namespace domicile {

/// Base + Offset + sum of Steps[L] * counter of L (all in bytes, 64 bits), with
/// one counter rotated if there is Turn.
struct Linear {
  /// `(i + By) mod Of`, i being the counter of loop L, times Step.
  struct Turn {
    const llvm::Loop *L;
    const llvm::SCEV *Step;
    const llvm::SCEV *Of;
    int64_t By;
  };

  llvm::Value *Base = nullptr;
  const llvm::SCEV *Offset = nullptr;
  llvm::MapVector<const llvm::Loop *, const llvm::SCEV *> Steps;
  std::optional<Turn> Rotated;
  /// What has to be equal at run time for all of this to be so: the rows of a
  /// collapsed nest of loops and those of the array.
  llvm::SmallVector<std::pair<const llvm::SCEV *, const llvm::SCEV *>, 1> Equal;
  /// Empty, or why the address is not of this form.
  std::string Refused;
};

/// \p Scope is the innermost loop around \p User (null: none): what the counter
/// of a loop that has ended before came to is its last value.
Linear linear(llvm::Value *Address, const llvm::Instruction &User,
              const llvm::Loop *Scope, llvm::ScalarEvolution &Evolution);

} // namespace domicile

#endif
