//===- pass.h - summaries of statically scheduled parallel loops
//-----------===//
//
// Purpose: describes to the run-time library which part of which array each thread of
// a parallel loop touches (domicile/summary.h), by calls of
// domicile_parallel_loop() that it puts into the module. The program's own code
// stays as it was.
//
// Use: opt -load-pass-plugin=libdomicile_compiler.so -passes=domicile-summary
// Remarks: -Rpass=domicile, -Rpass-missed=domicile (clang, flang),
//          -pass-remarks=domicile, -pass-remarks-missed=domicile (opt)
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_PASS_H
#define DOMICILE_SUMMARY_PASS_H

#include "llvm/IR/PassManager.h"

namespace domicile {

class SummaryPass : public llvm::PassInfoMixin<SummaryPass> {
public:
  enum class When { Start, End };

  explicit SummaryPass(When At) : At(At) {}
  llvm::PreservedAnalyses run(llvm::Module &Module,
                              llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }

private:
  When At;
};

} // namespace domicile

#endif
