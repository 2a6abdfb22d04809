//===- own.h - memory that a thread shares with nobody
//---------------------===//
//
// Purpose: a thread's own variables, its copies of threadprivate ones, what it
// allocates in the region, and what its variables point to of these (flang's
// descriptors of a reduction's arrays). There is nothing to place.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_OWN_H
#define DOMICILE_SUMMARY_OWN_H

#include "llvm/IR/Value.h"

namespace domicile {

/// Whether \p Pointer is an address of such memory.
bool isOwn(const llvm::Value *Pointer);

} // namespace domicile

#endif
