//===- prefetch/locality.cpp - which references are likely to miss ---------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "prefetch/locality.h"
#include "machine.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace domicile {

namespace {
/// How often a loop runs whose trip count is not known before run time: the
/// side of a matrix.
constexpr double AssumedTrips = 512;
/// How many iterations of a loop around lie between two references that are
/// still looked upon as following each other: stencils have one or two.
constexpr int64_t OuterLead = 4;
/// How many lines, in the innermost loop.
constexpr int64_t InnerLines = 64;
/// References of one loop that are compared with each other; all further ones
/// are passed over, because comparing takes the square of their number.
constexpr size_t MostReferences = 256;
} // namespace

struct Locality::Group {
  Reference Leader;
  bool Write;
};

static std::optional<int64_t> constant(const SCEV *S) {
  if (const auto *C = dyn_cast_or_null<SCEVConstant>(S))
    if (C->getAPInt().getSignificantBits() <= 62)
      return C->getAPInt().getSExtValue();
  return std::nullopt;
}

namespace {
/// Takes 32-bit counters for 64-bit ones that do not wrap: `sext {a,+,s}` for
/// `{sext a,+,s}`. Where one does wrap, a prefetch goes astray, and no harm is
/// done; where it is not known not to, as for OpenMP's loops under flang,
/// nothing would be seen of the loops around.
class Widen : public SCEVRewriteVisitor<Widen> {
public:
  explicit Widen(ScalarEvolution &SE) : SCEVRewriteVisitor(SE) {}
  const SCEV *visitSignExtendExpr(const SCEVSignExtendExpr *E) {
    return extend(visit(E->getOperand()), E->getType(), /*Signed=*/true);
  }
  const SCEV *visitZeroExtendExpr(const SCEVZeroExtendExpr *E) {
    return extend(visit(E->getOperand()), E->getType(), /*Signed=*/false);
  }

private:
  const SCEV *extend(const SCEV *S, Type *To, bool Signed) {
    if (const auto *Moving = dyn_cast<SCEVAddRecExpr>(S);
        Moving && Moving->isAffine())
      return SE.getAddRecExpr(extend(Moving->getStart(), To, Signed),
                              extend(Moving->getStepRecurrence(SE), To, true),
                              Moving->getLoop(), SCEV::FlagAnyWrap);
    if (const auto *Sum = dyn_cast<SCEVAddExpr>(S)) {
      SmallVector<const SCEV *, 4> Terms;
      for (const SCEV *Term : Sum->operands())
        Terms.push_back(extend(Term, To, Signed));
      return SE.getAddExpr(Terms);
    }
    // A constant in a sum is what is taken off as often as what is added.
    return Signed || isa<SCEVConstant>(S) ? SE.getSignExtendExpr(S, To)
                                          : SE.getZeroExtendExpr(S, To);
  }
};
} // namespace

static Value *pointerOf(Instruction &I, bool &Write) {
  if (auto *Load = dyn_cast<LoadInst>(&I)) {
    Write = false;
    return Load->isSimple() ? Load->getPointerOperand() : nullptr;
  }
  if (auto *Store = dyn_cast<StoreInst>(&I)) {
    Write = true;
    return Store->isSimple() ? Store->getPointerOperand() : nullptr;
  }
  return nullptr;
}

/// Whether an address is computed from what the loop itself loads.
static bool dependsOnLoad(const SCEV *Address, const Loop *L) {
  return SCEVExprContains(Address, [L](const SCEV *S) {
    const auto *Unknown = dyn_cast<SCEVUnknown>(S);
    const auto *I = Unknown ? dyn_cast<Instruction>(Unknown->getValue()) : nullptr;
    return I && isa<LoadInst>(I) && L->contains(I);
  });
}

Locality::Locality(LoopInfo &LI, ScalarEvolution &SE, DominatorTree &DT)
    : SE(SE), DT(DT) {
  for (Loop *L : LI.getLoopsInPreorder())
    if (L->isInnermost()) {
      Nests.push_back({L, {}, {}, 0});
      collect(Nests.back());
    }
}

void Locality::collect(Innermost &Nest) {
  Loop *L = Nest.L;
  BasicBlock *Latch = L->getLoopLatch();
  for (BasicBlock *Block : L->blocks())
    for (Instruction &I : *Block) {
      bool Write = false;
      Value *Pointer = pointerOf(I, Write);
      if (!Pointer || Pointer->getType()->getPointerAddressSpace() != 0)
        continue;
      const SCEV *Address = Widen(SE).visit(SE.getSCEV(Pointer));
      if (SE.isLoopInvariant(Address, L)) {
        ++Nest.Hits; // Temporal reuse in this very loop.
        continue;
      }
      const auto *Moving = dyn_cast<SCEVAddRecExpr>(Address);
      if (!Moving || Moving->getLoop() != L || !Moving->isAffine()) {
        Nest.Refusals.push_back(
            {&I, dependsOnLoad(Address, L)
                     ? "its address is loaded in the loop (gather or scatter)"
                     : "its address does not move evenly"});
        continue;
      }
      if (Nest.References.size() == MostReferences) {
        Nest.Refusals.push_back({&I, "the loop has too many references"});
        continue;
      }
      Reference R{&I, Pointer, Address, {}, Write,
                  Latch && DT.dominates(Block, Latch)};
      const SCEV *Rest = Address;
      for (Loop *K = L; K; K = K->getParentLoop()) {
        const auto *Step = dyn_cast_or_null<SCEVAddRecExpr>(Rest);
        if (Step && Step->getLoop() == K && Step->isAffine()) {
          R.Steps.push_back(Step->getStepRecurrence(SE));
          Rest = Step->getStart();
        } else if (Rest && SE.isLoopInvariant(Rest, K)) {
          R.Steps.push_back(SE.getZero(SE.getEffectiveSCEVType(Pointer->getType())));
        } else {
          R.Steps.push_back(nullptr);
          Rest = nullptr;
        }
      }
      Nest.References.push_back(std::move(R));
    }
}

double Locality::trips(Loop *L) const {
  if (unsigned Exact = SE.getSmallConstantTripCount(L))
    return Exact;
  unsigned Most = SE.getSmallConstantMaxTripCount(L);
  return Most && Most < AssumedTrips ? Most : AssumedTrips;
}

/// Bytes of the object that is referenced; 0: not known.
static uint64_t objectBytes(const Instruction *Access, const Value *Pointer) {
  const DataLayout &Data = Access->getDataLayout();
  const Value *Object = getUnderlyingObject(Pointer);
  if (const auto *Array = dyn_cast<GlobalVariable>(Object))
    return Data.getTypeAllocSize(Array->getValueType());
  if (const auto *Local = dyn_cast<AllocaInst>(Object))
    if (auto Size = Local->getAllocationSize(Data))
      return Size->isScalable() ? 0 : Size->getFixedValue();
  return 0;
}

/// Bytes of lines that R touches in one iteration of Within, a loop around its own.
double Locality::footprint(const Innermost &Nest, const Reference &R,
                           Loop *Within) const {
  const double Line = Machine::get().Line;
  std::optional<int64_t> Stride = constant(R.Steps[0]);
  double Each = Stride ? std::min<double>(std::abs(*Stride), Line) : Line;
  double Bytes = std::max(Line, Each * trips(Nest.L));
  unsigned Level = 1;
  for (Loop *K = Nest.L->getParentLoop(); K && K != Within;
       K = K->getParentLoop(), ++Level)
    if (!R.Steps[Level] || !R.Steps[Level]->isZero())
      Bytes *= trips(K);
  uint64_t Object = objectBytes(R.Access, R.Pointer);
  return Object ? std::min<double>(Bytes, Object) : Bytes;
}

double Locality::iterationBytes(Loop *L) const {
  double Bytes = 0;
  for (const Innermost &Nest : Nests)
    if (L->contains(Nest.L))
      for (const Group &G : groups(Nest, 1))
        Bytes += footprint(Nest, G.Leader, L);
  return Bytes;
}

/// Other data and conflicts take their part of a cache; half of it is counted on.
bool Locality::fits(double Bytes) const {
  return Bytes <= static_cast<double>(Machine::get().Cache) / 2;
}

/// How many loops, from the innermost, have their data in the cache from one
/// of their iterations to the next.
unsigned Locality::localized(Loop *L) const {
  unsigned Levels = 1;
  for (Loop *K = L->getParentLoop(); K && fits(iterationBytes(K));
       K = K->getParentLoop())
    ++Levels;
  return Levels;
}

/// What is no larger than the on-chip cache is taken to stay there.
bool Locality::smallObject(const Reference &R) const {
  uint64_t Bytes = objectBytes(R.Access, R.Pointer);
  return Bytes && Bytes <= Machine::get().Chip;
}

/// How many steps make up Distance but for a constant that is less than half a
/// step, where that is known; takes them off.
static int64_t takeSteps(ScalarEvolution &SE, const SCEV *&Distance,
                         const SCEV *Step) {
  std::optional<int64_t> D = constant(Distance), S = constant(Step);
  if (D && S) {
    int64_t N = std::llround(static_cast<double>(*D) / static_cast<double>(*S));
    if (std::abs(N) > OuterLead)
      return 0;
    Distance = SE.getConstant(Distance->getType(), *D - N * *S, true);
    return N;
  }
  if (D)
    return 0;
  for (int64_t N = -OuterLead; N <= OuterLead; ++N) {
    const SCEV *Steps =
        SE.getMulExpr(SE.getConstant(Distance->getType(), N, true),
                      SE.getTruncateOrSignExtend(Step, Distance->getType()));
    const SCEV *Rest = SE.getMinusSCEV(Distance, Steps);
    if (N != 0 && isa<SCEVConstant>(Rest)) {
      Distance = Rest;
      return N;
    }
  }
  return 0;
}

/// Whether A and B follow each other through the same data. Lead says by how
/// much A comes first: iterations of the loops around, outermost first, then
/// bytes in the innermost.
bool Locality::ahead(const Reference &A, const Reference &B, unsigned Levels,
                     SmallVectorImpl<int64_t> &Lead) const {
  Lead.clear();
  if (A.Steps != B.Steps)
    return false;
  const SCEV *Distance = SE.getMinusSCEV(A.Address, B.Address);
  if (isa<SCEVCouldNotCompute>(Distance))
    return false;
  for (unsigned Level = std::min<size_t>(Levels, A.Steps.size()); Level-- > 1;) {
    const SCEV *Step = A.Steps[Level];
    Lead.push_back(!Step || Step->isZero() ? 0 : takeSteps(SE, Distance, Step));
  }
  const int64_t Line = static_cast<int64_t>(Machine::get().Line);
  std::optional<int64_t> Stride = constant(A.Steps[0]);
  int64_t Iterations = 0;
  if (!Stride || std::abs(*Stride) >= Line)
    Iterations = takeSteps(SE, Distance, A.Steps[0]);
  std::optional<int64_t> Rest = constant(Distance);
  if (!Rest)
    return false;
  Lead.push_back(Iterations);
  Lead.push_back(Stride && *Stride < 0 ? -*Rest : *Rest);
  return std::abs(*Rest) <
         (Stride && std::abs(*Stride) < Line ? InnerLines * Line : Line);
}

std::vector<Locality::Group> Locality::groups(const Innermost &Nest,
                                              unsigned Levels) const {
  std::vector<Group> All;
  SmallVector<int64_t, 6> Lead;
  for (const Reference &R : Nest.References) {
    auto Same = find_if(All, [&](const Group &G) {
      return ahead(R, G.Leader, Levels, Lead);
    });
    if (Same == All.end()) {
      All.push_back({R, R.Write});
      continue;
    }
    Same->Write |= R.Write;
    auto First = find_if(Lead, [](int64_t By) { return By != 0; });
    // One that each iteration reaches leads rather than one that some do.
    bool Leads = First != Lead.end() && *First > 0;
    if ((Leads && (R.Always || !Same->Leader.Always)) ||
        (R.Always && !Same->Leader.Always))
      Same->Leader = R;
  }
  return All;
}

Locality::Found Locality::misses(Loop *L) const {
  Found All;
  auto Nest = find_if(Nests, [L](const Innermost &N) { return N.L == L; });
  if (Nest == Nests.end())
    return All;
  All.Refusals = Nest->Refusals;
  All.References =
      Nest->Hits + Nest->References.size() + Nest->Refusals.size();
  const unsigned Levels = localized(L);
  for (const Group &G : groups(*Nest, Levels)) {
    const Reference &R = G.Leader;
    // Brought by an iteration of a loop around, and still there in its next.
    bool Stays = false;
    for (unsigned Level = 1; Level < Levels; ++Level)
      Stays |= R.Steps[Level] && R.Steps[Level]->isZero();
    if (Stays || smallObject(R))
      continue;
    if (!R.Always) {
      All.Refusals.push_back({R.Access, "only some iterations reach it"});
      continue;
    }
    All.Misses.push_back({R.Access, R.Pointer, constant(R.Steps[0]).value_or(0),
                          R.Steps[0], G.Write});
  }
  All.Hits = All.References - All.Misses.size() - All.Refusals.size();
  return All;
}

} // namespace domicile
