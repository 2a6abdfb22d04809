//===- record.h - domicile_loop and domicile_summary as LLVM types
//---------===//
//
// Purpose: the one place of the plugin that knows the layout of
// domicile/summary.h.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_RECORD_H
#define DOMICILE_SUMMARY_RECORD_H

#include "llvm/IR/IRBuilder.h"

namespace domicile {

/// Members of domicile_summary in their order.
struct SummaryRecord {
  static constexpr unsigned Inner = 3;
  llvm::Value *Name, *Start, *Bytes, *Offset, *Unit, *Span;
  llvm::Value *Strides[Inner], *Counts[Inner];
  llvm::Value *Distance, *Communication, *Access;
  /// Whether the access runs at all (i1).
  llvm::Value *Present;
};

/// Members of domicile_loop that vary.
struct LoopRecord {
  llvm::Value *Place, *Iterations, *Chunk, *Schedule, *Threads;
  llvm::Value *Present;
};

/// Writes the call for one loop where \p To stands: from constant data if all
/// is constant, else from the stack.
void writeCall(llvm::IRBuilder<> &To, const LoopRecord &Loop,
               llvm::ArrayRef<SummaryRecord> Summaries);

/// The library's entry. Weak: a program that is linked without the library runs
/// without it.
llvm::Function *sayFunction(llvm::Module &M);

} // namespace domicile

#endif
