//===- deadend.h - ways through a region that end the program
//-------------===//
//
// Purpose: a check that fails ends in abort(), exit() or std::terminate(), and
// in C++ each call may throw out of the region, which ends the program too. A
// run that goes on takes none of these ways. Without them, what stands behind
// a check or a call is seen to run in any case.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_DEADEND_H
#define DOMICILE_SUMMARY_DEADEND_H

#include "llvm/IR/Function.h"

namespace domicile {

/// Takes the ways out of \p Region that never come to its end.
void dropDeadEnds(llvm::Function &Region);

} // namespace domicile

#endif
