//===- uses.h - how parallel loops use arrays, before it is code
//-----------===//
//
// Purpose: the words that the analysis and the emission share. Everything here
// is an expression over what is known before the region (isKnownBefore): its
// arguments, loads hoisted to its entry, globals, constants.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_SUMMARY_USES_H
#define DOMICILE_SUMMARY_USES_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/DebugLoc.h"
#include <string>
#include <vector>

namespace domicile {

/// What has to hold for a loop or an access to run at all.
struct Condition {
  enum class Kind { Holds, Fails, Positive, Equal } Is;
  llvm::Value *Bool = nullptr;      ///< Holds, Fails
  const llvm::SCEV *Left = nullptr; ///< Positive, Equal
  const llvm::SCEV *Right = nullptr;

  bool operator==(const Condition &Other) const {
    return Is == Other.Is && Bool == Other.Bool && Left == Other.Left &&
           Right == Other.Right;
  }
};
using Conditions = llvm::SmallVector<Condition, 4>;

/// Adds what is not there already, and not always so.
void require(Conditions &All, const Condition &One);

/// A loop within the parallel one: bytes from one iteration to the next, how
/// many iterations. 64 bits.
struct Inner {
  const llvm::SCEV *Stride, *Count;
  bool operator==(const Inner &Other) const {
    return Stride == Other.Stride && Count == Other.Count;
  }
};

/// One way of using one array: what domicile_summary says. 64 bits, bytes.
struct Use {
  enum class Talk { None, Shift, Rotate };
  llvm::Value *Base;
  const llvm::SCEV *Offset, *Unit, *Span;
  /// Least that Span can be if the access runs at all.
  uint64_t Element;
  llvm::SmallVector<Inner, 3> Inners;
  Talk Communication = Talk::None;
  const llvm::SCEV *Distance = nullptr;
  bool Reads = false, Writes = false;
  Conditions When;
  /// Accesses of the program that it stands for.
  unsigned Accesses = 1;
  llvm::DebugLoc Where;
  /// The array's name as the access knows it (Fortran's dummy arguments).
  std::string Name;
};

/// One work-shared loop, or what all threads of a region do besides.
struct ParallelLoop {
  /// Iterations of the stand-in for what every thread does: dealt one by one,
  /// so many that each thread of any team has one.
  static constexpr unsigned Everyone = 128;

  bool Shared = true; ///< false: what every thread does
  bool Chunked = false;
  const llvm::SCEV *Chunk = nullptr, *Iterations = nullptr;
  Conditions When;
  std::vector<Use> Uses;
  unsigned Accesses = 0, Recognised = 0;
  llvm::DebugLoc Where;
  /// Empty, or why the loop as a whole is not summarised.
  std::string Refused;
};

struct Refusal {
  llvm::DebugLoc Where;
  std::string Why;
};

/// Joins uses that touch the same and what lies next to each other, and says
/// of the rest how it is shifted against what the loop writes. What threads
/// touch stays exactly the same.
void shape(std::vector<Use> &Uses, llvm::ScalarEvolution &Evolution);

} // namespace domicile

#endif
