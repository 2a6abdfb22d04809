//===- fork.h - the values of a region where it is forked
//------------------===//
//
// Purpose: what a region will read at its entry, read before the fork in the
// function that forks it: arguments are the call's operands, hoisted loads are
// done there. A load that the region might not do is done only if the region
// would, so that the program never faults where it did not before. Also: which
// object an array is, how large, and its name.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_FORK_H
#define DOMICILE_SUMMARY_FORK_H

#include "summary/control.h"
#include "summary/translate.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

namespace domicile {

/// An array where it is forked.
struct Object {
  llvm::Value *Start = nullptr; ///< a global of the program, or a value there
  llvm::Value *Bytes = nullptr; ///< null: not known
  int64_t Ahead = 0;            ///< the base lies so far behind the start
  std::string Name;
};

class Fork {
public:
  /// \p Call forks in the program; \p Region is the serialised clone of what it
  /// calls; \p Globals gives the program's global for the clone's.
  Fork(llvm::CallBase &Call, llvm::Function &Region, const Control &Shape,
       const llvm::DenseMap<llvm::Value *, llvm::Value *> &Globals);

  /// The program's value for \p V, an argument, hoisted load or global of the
  /// clone; null if it cannot be had before the fork.
  llvm::Value *leaf(llvm::Value *V);

  /// The array that \p Base points into; Start is null if leaf(Base) is.
  Object object(llvm::Value *Base);

  /// Threads that a num_threads clause asks for; null without.
  llvm::Value *threads() const;

  llvm::IRBuilder<> &builder() { return To; }

private:
  llvm::CallBase &Call;
  llvm::Function &Region;
  const Control &Shape;
  const llvm::DenseMap<llvm::Value *, llvm::Value *> &Globals;
  llvm::IRBuilder<> To;
  llvm::DenseMap<llvm::Value *, llvm::Value *> Known;
  llvm::SmallPtrSet<llvm::Value *, 8> Busy;

  llvm::Value *find(llvm::Value *V);
  llvm::Value *load(llvm::LoadInst &Load);
  llvm::Value *guard(llvm::LoadInst &Load);
  bool isReadable(llvm::Value *Root, llvm::Value *There, int64_t Bytes) const;
  llvm::Value *addressOf(llvm::LoadInst &Load, int64_t Beyond);
  llvm::Value *sizeByDescriptor(llvm::LoadInst &Load, unsigned Rank);
  void describe(llvm::Value *There, Object &Found);
};

} // namespace domicile

#endif
