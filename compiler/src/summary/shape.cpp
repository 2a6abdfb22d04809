//===- shape.cpp - fewer summaries that say the same
//-----------------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/uses.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include <algorithm>

using namespace llvm;

namespace domicile {

/// Farther than so many iterations nobody calls the neighbourhood.
static constexpr int64_t FarthestNeighbour = 8;

void require(Conditions &All, const Condition &One) {
  if (One.Is == Condition::Kind::Positive)
    if (auto *C = dyn_cast<SCEVConstant>(One.Left))
      if (C->getAPInt().isStrictlyPositive())
        return;
  if (One.Is == Condition::Kind::Equal && One.Left == One.Right)
    return;
  if (!is_contained(All, One))
    All.push_back(One);
}

static const APInt *constant(const SCEV *S) {
  auto *C = dyn_cast<SCEVConstant>(S);
  return C ? &C->getAPInt() : nullptr;
}

/// Whether both go the same ways, from wherever they begin.
static bool alike(const Use &A, const Use &B) {
  return A.Base == B.Base && A.Unit == B.Unit && A.Inners == B.Inners &&
         A.Communication == B.Communication && A.Distance == B.Distance;
}

/// Whether \p A says all that \p B says, and whenever it does.
static bool covers(const Use &A, const Use &B) {
  return A.Offset == B.Offset && A.Span == B.Span && A.Reads >= B.Reads &&
         A.Writes >= B.Writes && all_of(A.When, [&](const Condition &One) {
           return is_contained(B.When, One);
         });
}

/// Makes \p A stand for \p B too, if one piece holds exactly what both touch.
static bool join(Use &A, const Use &B, ScalarEvolution &SE) {
  if (!alike(A, B))
    return false;
  if (covers(A, B) || covers(B, A)) {
    unsigned Accesses = A.Accesses + B.Accesses;
    if (!covers(A, B))
      A = Use(B);
    A.Accesses = Accesses;
    return true;
  }
  if (A.When != B.When)
    return false;
  bool Same = A.Offset == B.Offset && A.Span == B.Span;
  if (!Same && (A.Reads != B.Reads || A.Writes != B.Writes))
    return false;
  if (!Same) {
    const SCEV *Ahead = SE.getMinusSCEV(B.Offset, A.Offset);
    const APInt *D = constant(Ahead);
    if (!D)
      return false;
    const Use &Low = D->isNegative() ? B : A, &High = D->isNegative() ? A : B;
    const SCEV *Gap = SE.getConstant(D->abs());
    const APInt *Known = constant(Low.Span);
    uint64_t Least = Known ? Known->getZExtValue() : Low.Element;
    if (D->abs().ugt(Least))
      return false;
    const SCEV *LowEnd = Low.Span, *HighEnd = SE.getAddExpr(Gap, High.Span);
    const APInt *Beyond = constant(SE.getMinusSCEV(HighEnd, LowEnd));
    if (!Beyond)
      return false;
    const SCEV *Span = Beyond->isNegative() ? LowEnd : HighEnd;
    A.Offset = Low.Offset;
    A.Span = Span;
    A.Element = std::max(A.Element, B.Element);
  }
  A.Reads |= B.Reads;
  A.Writes |= B.Writes;
  A.Accesses += B.Accesses;
  return true;
}

static void joinAll(std::vector<Use> &Uses, ScalarEvolution &SE) {
  bool Changed = true;
  while (Changed) {
    Changed = false;
    for (size_t A = 0; A < Uses.size(); ++A)
      for (size_t B = Uses.size() - 1; B > A; --B)
        if (join(Uses[A], Uses[B], SE)) {
          Uses.erase(Uses.begin() + B);
          Changed = true;
        }
  }
}

/// How many iterations \p Far lies from \p Home, to the nearest; 0 if that
/// cannot be known.
static int64_t iterationsApart(const SCEV *Far, const Use &Home,
                               ScalarEvolution &SE) {
  const SCEV *Apart = SE.getMinusSCEV(Far, Home.Offset);
  const APInt *Unit = constant(Home.Unit);
  const APInt *D = constant(Apart);
  if (Unit && D) {
    int64_t U = Unit->getSExtValue(), Bytes = D->getSExtValue();
    int64_t Half = std::abs(U) / 2, Sign = (Bytes < 0) != (U < 0) ? -1 : 1;
    int64_t Times = (std::abs(Bytes) + Half) / std::abs(U) * Sign;
    return std::abs(Times) <= FarthestNeighbour ? Times : 0;
  }
  if (D)
    return 0;
  for (int64_t Times = 1; Times <= FarthestNeighbour; ++Times)
    for (int64_t Signed : {Times, -Times}) {
      const SCEV *Moved =
          SE.getMulExpr(Home.Unit, SE.getConstant(Home.Unit->getType(), Signed,
                                                  /*isSigned=*/true));
      if (constant(SE.getMinusSCEV(Apart, Moved)))
        return Signed;
    }
  return 0;
}

/// The use whose part of the array a thread owns: what it writes, else what is
/// used most.
static const Use *homeOf(const Use &One, const std::vector<Use> &Uses) {
  const Use *Home = nullptr;
  for (const Use &Other : Uses) {
    if (Other.Base != One.Base || Other.Unit != One.Unit ||
        Other.Communication != Use::Talk::None)
      continue;
    if (!Home || Other.Writes > Home->Writes ||
        (Other.Writes == Home->Writes && Other.Accesses > Home->Accesses))
      Home = &Other;
  }
  return Home;
}

void shape(std::vector<Use> &Uses, ScalarEvolution &SE) {
  joinAll(Uses, SE);
  const std::vector<Use> Before = Uses;
  for (Use &One : Uses) {
    if (One.Writes || One.Unit->isZero() ||
        One.Communication != Use::Talk::None)
      continue;
    const Use *Home = homeOf(One, Before);
    if (!Home)
      continue;
    int64_t Times = iterationsApart(One.Offset, *Home, SE);
    if (Times == 0)
      continue;
    One.Communication = Use::Talk::Shift;
    One.Distance =
        SE.getMulExpr(One.Unit, SE.getConstant(One.Unit->getType(), Times,
                                               /*isSigned=*/true));
    One.Offset = SE.getMinusSCEV(One.Offset, One.Distance);
  }
}

} // namespace domicile
