//===- prefetch/locality.h - which references are likely to miss -----------===//
//
// Purpose: the locality analysis of Mowry, Lam and Gupta, "Design and
// Evaluation of a Compiler Algorithm for Prefetching" (ASPLOS 1992), section
// 2.2, on loads and stores as scalar evolution sees them:
//
//   temporal   the address does not change in a loop: no prefetch for it there
//   spatial    the address moves by less than a line: one prefetch a line
//   group      several references follow each other through the same data: a
//              prefetch for the one that comes there first
//
// Reuse counts only where the data between two uses fits the cache, that is
// within the localized loops. How much that is comes from trip counts; a loop
// that has none that is known is taken to run `AssumedTrips` times.
//
// Use: `Locality(LI, SE).misses(L)` for each innermost loop L of a function.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_PREFETCH_LOCALITY_H
#define DOMICILE_PREFETCH_LOCALITY_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <string>
#include <vector>

namespace llvm {
class DominatorTree;
class Instruction;
class Loop;
class LoopInfo;
class SCEV;
class ScalarEvolution;
class Value;
} // namespace llvm

namespace domicile {

/// A reference whose data is likely not to be in the cache: the leading one of
/// its group.
struct Miss {
  llvm::Instruction *Access;
  llvm::Value *Pointer;
  /// Bytes to what the next iteration touches; 0: known at run time only.
  int64_t Stride;
  /// The same, for all strides.
  const llvm::SCEV *Step;
  /// Whether one of the group writes.
  bool Write;
};

/// A reference that no prefetch is made for although it may miss, and why.
struct Refused {
  llvm::Instruction *Access;
  const char *Reason;
};

class Locality {
public:
  /// Looks at all innermost loops, because how much data an outer loop's
  /// iteration touches is the sum over those in it.
  Locality(llvm::LoopInfo &LI, llvm::ScalarEvolution &SE,
           llvm::DominatorTree &DT);

  struct Found {
    std::vector<Miss> Misses;
    std::vector<Refused> Refusals;
    /// References, and those of them that hit by the analysis.
    unsigned References = 0;
    unsigned Hits = 0;
  };
  Found misses(llvm::Loop *L) const;

private:
  struct Reference {
    llvm::Instruction *Access;
    llvm::Value *Pointer;
    const llvm::SCEV *Address;
    /// Steps from the innermost loop outwards; null: not known.
    llvm::SmallVector<const llvm::SCEV *, 4> Steps;
    bool Write;
    bool Always;
  };
  struct Innermost {
    llvm::Loop *L;
    std::vector<Reference> References;
    std::vector<Refused> Refusals;
    unsigned Hits = 0;
  };
  struct Group;

  void collect(Innermost &Nest);
  double trips(llvm::Loop *L) const;
  double footprint(const Innermost &Nest, const Reference &R,
                   llvm::Loop *Within) const;
  double iterationBytes(llvm::Loop *L) const;
  unsigned localized(llvm::Loop *L) const;
  bool fits(double Bytes) const;
  bool smallObject(const Reference &R) const;
  bool ahead(const Reference &A, const Reference &B, unsigned Levels,
             llvm::SmallVectorImpl<int64_t> &Lead) const;
  std::vector<Group> groups(const Innermost &Nest, unsigned Levels) const;

  llvm::ScalarEvolution &SE;
  llvm::DominatorTree &DT;
  std::vector<Innermost> Nests;
};

} // namespace domicile

#endif
