//===- arithmetic.h - numbers that are easy to follow
//----------------------===//
//
// Purpose: small changes to a region's clone that let ScalarEvolution follow
// indices and counters. They take for granted what programs rely on, though the
// instructions do not say so; at worst a prediction is wrong.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_ARITHMETIC_H
#define DOMICILE_SUMMARY_ARITHMETIC_H

#include "llvm/IR/Function.h"
#include "llvm/IR/PassManager.h"

namespace domicile {

/// A function of \p Arity integers that simplifications know nothing of.
llvm::Function *opaque(llvm::Module &M, const llvm::Twine &Name, llvm::Type *Ty,
                       unsigned Arity);

/// Fortran's integers do not overflow.
void neverWraps(llvm::Function &Region);
/// Fortran's functions of other files leave the numbers they get as they are.
void passValues(llvm::Function &Region);
/// Callees of other files leave the counters of loops around the call alone.
void copyCounters(llvm::Function &Region);
/// Quotients and remainders stay whole (linear.h puts them together).
void keepDivisions(llvm::Function &Region);
/// What is not negative is extended with its sign.
void extendSigned(llvm::Function &Region);
/// Counters do not run past the end of their type.
void countersEnd(llvm::Function &Region,
                 llvm::FunctionAnalysisManager &Analyses);

} // namespace domicile

#endif
