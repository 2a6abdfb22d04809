//===- emit.h - summaries as calls of the run-time library
//-----------------===//
//
// Purpose: writes what the study of a region found into the program. Every loop
// is told right before its fork, when something that it depends on (a base
// address, a bound, an offset, the threads) is new:
//
//   if (what is known of this fork != these values)   // loads and compares
//     domicile.tell(these values);                    // cold
//
// Loops that are all constants are told before the program begins, too, by a
// constructor of the module: their pages can have their colors from the start.
// The library passes over what it knows already; a team of another size than it
// then expected is new.
//
// The cold function remembers the last eight signatures, so that arrays that a
// program swaps from step to step are not told again and again. Its memory is
// read and written by single words: two threads that fork at once at worst
// tell a loop twice or, having mixed their words, once too few.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_EMIT_H
#define DOMICILE_SUMMARY_EMIT_H

#include "summary/fork.h"
#include "summary/study.h"

namespace domicile {

/// Tells a refusal or a recognised use: where, what.
using Say = llvm::function_ref<void(bool Recognised, llvm::DebugLoc Where,
                                    const llvm::Twine &What)>;

/// How much of what was studied is told in the end.
struct Told {
  unsigned Loops = 0, Accesses = 0;
};

Told emit(llvm::CallBase &Call, const Study &Found, Fork &At, Say Tell);

} // namespace domicile

#endif
