//===- emit.h - summaries as calls of the run-time library
//-----------------===//
//
// Purpose: writes what the study of a region found into the program. Every loop
// is described right before its fork, when something that it depends on (a base
// address, a bound, an offset, the threads) is new:
//
//   if (what is known of this fork != these values)   // loads and compares
//     domicile.describe(these values);                // cold
//
// Loops that are all constants are described before the program begins, too, by a
// constructor of the module: their pages can have their colors from the start.
// The library passes over what it knows already; a team of another size than it
// then expected is new.
//
// The cold function remembers the last eight signatures, so that arrays that a
// program swaps from step to step are not described again and again. Its memory is
// read and written by single words: two threads that fork at once at worst
// describe a loop twice or, having mixed their words, once too few.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_EMIT_H
#define DOMICILE_SUMMARY_EMIT_H

#include "summary/fork.h"
#include "summary/study.h"

namespace domicile {

/// Reports a refusal or a recognised use: where, what.
using Report = llvm::function_ref<void(bool Recognised, llvm::DebugLoc Where,
                                       const llvm::Twine &What)>;

/// How much of what was studied is described in the end.
struct DescribedCount {
  unsigned Loops = 0, Accesses = 0;
};

DescribedCount emit(llvm::CallBase &Call, const Study &Found, Fork &At,
                    Report Remark);

} // namespace domicile

#endif
