//===- translate.h - what the analysis knows, as instructions
//--------------===//
//
// Purpose: writes an expression of the analysed clone as instructions of the
// program. Nothing written here can trap or be undefined, whatever the values:
// it runs where the program perhaps would not have computed it.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_TRANSLATE_H
#define DOMICILE_SUMMARY_TRANSLATE_H

#include "summary/uses.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"
#include <functional>

namespace domicile {

class Translator {
public:
  /// \p Leaf gives the program's value for an argument or hoisted load of the
  /// clone (never null), or for a global of it.
  Translator(llvm::IRBuilder<> &To,
             std::function<llvm::Value *(llvm::Value *)> Leaf)
      : To(To), Leaf(std::move(Leaf)) {}

  /// \p S is to be known before the region.
  llvm::Value *write(const llvm::SCEV *S);
  llvm::Value *write(llvm::Value *V);
  /// Whether all of \p All hold (i1).
  llvm::Value *write(const Conditions &All);

private:
  llvm::IRBuilder<> &To;
  std::function<llvm::Value *(llvm::Value *)> Leaf;
  llvm::DenseMap<const llvm::SCEV *, llvm::Value *> Written;
  llvm::DenseMap<llvm::Value *, llvm::Value *> Copied;

  llvm::Value *make(const llvm::SCEV *S);
  llvm::Value *copy(llvm::Instruction &I);
  llvm::Value *fold(const llvm::SCEV *S, llvm::CmpInst::Predicate Keep);
  llvm::Value *divide(llvm::Value *A, llvm::Value *B, bool Signed,
                      bool Remainder);
};

} // namespace domicile

#endif
