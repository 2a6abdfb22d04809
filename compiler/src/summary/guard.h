//===- guard.h - describing again only what is new
//----------------------------===//
//
// Purpose: writes the frame around a fork's calls of the library: the compare
// of the signature before the fork, the cold function behind it, or the
// module's constructor for what there is nothing to compare of.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_GUARD_H
#define DOMICILE_SUMMARY_GUARD_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"
#include <memory>

namespace domicile {

class Guard {
public:
  /// Before \p Fork, where \p Here writes, if one of \p Inputs is new.
  Guard(llvm::CallBase &Fork, llvm::IRBuilder<> &Here,
        llvm::ArrayRef<llvm::Value *> Inputs);
  /// Once, before the program begins.
  explicit Guard(llvm::Module &M);

  /// Writes where the summaries are described.
  llvm::IRBuilder<> &cold() { return *To; }

  /// What \p V, one of the inputs or a constant, is called there.
  llvm::Value *input(llvm::Value *V) const;

private:
  std::unique_ptr<llvm::IRBuilder<>> To;
  llvm::DenseMap<llvm::Value *, llvm::Value *> Names;
};

/// The size of the team that a fork without a clause for it gets.
llvm::Value *usualThreads(llvm::IRBuilder<> &Here);

} // namespace domicile

#endif
