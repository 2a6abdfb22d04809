//===- prefetch/pass.h - fetch lines before they are needed ----------------===//
//
// Purpose: section 6.2 of Bugnion and others, "Compiler-Directed Page Coloring
// for Multiprocessors" (ASPLOS 1996), after Mowry, Lam and Gupta, "Design and
// Evaluation of a Compiler Algorithm for Prefetching" (ASPLOS 1992). In
// innermost loops, what locality.h says is likely to miss is prefetched as
// many iterations ahead as the machine's latency has shortest passes through
// the body, and once for each line.
//
// Use: `domicile-prefetch` in a list of passes of opt; in clang's and flang's
// pipeline with DOMICILE_COMPILER=prefetch=on, from -O1. line=, cache=, chip=,
// clock=, latency= and issue= are the machine's. -Rpass=domicile says what is
// prefetched, -Rpass-missed=domicile what is not and why.
//
// How one prefetch a line comes about: a small body is unrolled until a pass
// covers a line, and all copies of a prefetch but the first are taken out; a
// large one is left as it is, and its prefetches stand behind a test of the
// iteration count in every so many iterations. LLVM's own LoopDataPrefetch
// does not serve here: it issues each prefetch in every iteration, knows one
// line size for each processor type, and judges neither reuse by loops around
// nor volume.
//
// What this leaves out of Mowry's scheme: no prolog fetches the lines that the
// first iterations use, so a loop that is entered anew at an unrelated place
// misses on as many lines as the prefetches run ahead; and a first iteration
// that misses where the following hit is not peeled.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_PREFETCH_PASS_H
#define DOMICILE_PREFETCH_PASS_H

#include "llvm/IR/PassManager.h"

namespace domicile {

class PrefetchPass : public llvm::PassInfoMixin<PrefetchPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &F,
                              llvm::FunctionAnalysisManager &Analyses);
};

/// The pass, what it needs before it, and what cleans unrolled bodies up.
void addPrefetchPasses(llvm::ModulePassManager &Passes);

} // namespace domicile

#endif
