//===- guard.h - telling again only what is new ----------------------------===//
//
// Purpose: writes the frame around a fork's calls of the library: the compare
// of the signature before the fork, the cold function behind it, or the
// module's constructor if there is nothing to compare.
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
  /// Before \p Fork, where \p Here writes, if one of \p Inputs is new. Without
  /// inputs: once, before the program begins.
  Guard(llvm::CallBase &Fork, llvm::IRBuilder<> &Here,
        llvm::ArrayRef<llvm::Value *> Inputs);

  /// Writes where the summaries are told.
  llvm::IRBuilder<> &cold() { return *To; }

  /// What \p V, one of the inputs or a constant, is called there.
  llvm::Value *input(llvm::Value *V) const;

private:
  std::unique_ptr<llvm::IRBuilder<>> To;
  llvm::DenseMap<llvm::Value *, llvm::Value *> Names;

  void inConstructor(llvm::Module &M);
  void atFork(llvm::CallBase &Fork, llvm::IRBuilder<> &Here,
              llvm::ArrayRef<llvm::Value *> Inputs);
};

/// How often the program has changed the size of its teams
/// (omp_set_num_threads), if this module does so; null otherwise. The first
/// call makes the module count.
llvm::Value *teams(llvm::Module &M, llvm::IRBuilder<> &Here);

} // namespace domicile

#endif
