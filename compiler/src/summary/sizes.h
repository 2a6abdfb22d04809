//===- sizes.h - what a function put where before it forks
//-----------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_SIZES_H
#define DOMICILE_SUMMARY_SIZES_H

#include "llvm/IR/InstrTypes.h"

namespace domicile {

/// The value at \p Offset of \p Holder when \p Fork runs, if \p Holder is a
/// structure that serves to pass values to the region and nothing else (flang,
/// Polly); null otherwise.
llvm::Value *storedBefore(llvm::Value *Holder, int64_t Offset,
                          llvm::CallBase &Fork);

/// Bytes of the block that the pointer variable \p Variable points to when
/// \p Fork runs: all that is ever stored there is the result of one allocation
/// in this function. Null if it is not so. May write instructions before
/// \p Fork.
llvm::Value *allocatedBytes(llvm::Value *Variable, llvm::CallBase &Fork);

} // namespace domicile

#endif
