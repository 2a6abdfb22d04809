//===- names.h - calls by which the analysis remembers things
//--------------===//
//
// Purpose: in the clone that is analysed, some calls stand for what was there:
// they survive the simplifications between, and are found again after them.
// None of them ever reaches the program.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_NAMES_H
#define DOMICILE_SUMMARY_NAMES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace domicile {

/// begin(i32 schedule, i64 chunk): where a loop was dealt to the threads.
constexpr llvm::StringLiteral BeginName = "domicile.begin";
/// end(): where it ended.
constexpr llvm::StringLiteral EndName = "domicile.end";
/// here(ptr load's address): where a hoisted load stood.
constexpr llvm::StringLiteral HereName = "domicile.here";
/// rem.s32(a, b), div.u64(a, b)...: kept from ScalarEvolution, which would take
/// them apart.
constexpr llvm::StringLiteral RemainderName = "domicile.rem";
constexpr llvm::StringLiteral QuotientName = "domicile.div";
/// checked.*(x): what a check that ends the program looks at.
constexpr llvm::StringLiteral CheckedName = "domicile.checked";
/// bound.*(x): the last iteration that is dealt, kept from being folded into
/// the loop's condition. Taken out again before ScalarEvolution looks.
constexpr llvm::StringLiteral BoundName = "domicile.bound";
/// The entry of the run-time library.
constexpr llvm::StringLiteral SayName = "domicile_parallel_loop";

/// Name of the function that \p Call calls; empty if it is not known.
inline llvm::StringRef calleeName(const llvm::CallBase &Call) {
  const auto *Callee = llvm::dyn_cast<llvm::Function>(
      Call.getCalledOperand()->stripPointerCasts());
  return Callee ? Callee->getName() : llvm::StringRef();
}

inline bool calls(const llvm::Value *V, llvm::StringRef Name) {
  const auto *Call = llvm::dyn_cast<llvm::CallBase>(V);
  return Call && calleeName(*Call).starts_with(Name);
}

} // namespace domicile

#endif
