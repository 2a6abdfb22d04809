//===- align/pass.h - where large static arrays begin ----------------------===//
//
// Purpose: section 5.4 of Bugnion and others, "Compiler-Directed Page Coloring
// for Multiprocessors" (ASPLOS 1996). Data that is page-sized or larger begins
// on a cache line, so that two arrays never share one; and no two arrays of a
// module begin at the same place of the on-chip cache, so that element i of
// one does not displace element i of the other. Page colors can do neither:
// on-chip caches are indexed by virtual addresses.
//
// Use: `domicile-align` in a list of passes of opt; at the end of clang's and
// flang's pipeline by itself. DOMICILE_COMPILER: `align=off` switches all of
// it off, `pad=off` only the places; line=, way= and page= are the machine's.
//
// How: an array `a` that gets a pad becomes the second field of a private
// object {pad, array} that begins on a multiple of the way, and `a` an alias
// for the field. So its symbol keeps name, size, linkage and visibility, and
// begins at its first element; debug information follows; and where the
// linker puts the object decides nothing. The whole module's places are
// spread evenly over the way.
//
// What keeps its place, and why, is said in a remark (-Rpass-missed=domicile):
// what another definition may replace when the program is linked or loaded
// (weak, linkonce, interposable), what lies in a section that someone named,
// thread-local data, and what llvm.used names. A Fortran COMMON, or a
// tentative definition under -fcommon, is one object that the linker lays
// out: it is aligned, but has no pad.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_ALIGN_PASS_H
#define DOMICILE_ALIGN_PASS_H

#include "llvm/IR/PassManager.h"

namespace domicile {

class AlignPass : public llvm::PassInfoMixin<AlignPass> {
public:
  llvm::PreservedAnalyses run(llvm::Module &M,
                              llvm::ModuleAnalysisManager &Analyses);
  /// Without optimisation as well: where an array lies is no optimisation.
  static bool isRequired() { return true; }
};

} // namespace domicile

#endif
