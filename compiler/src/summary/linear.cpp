//===- linear.cpp - an address as a sum of loop counters
//-------------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/linear.h"
#include "summary/hoist.h"
#include "summary/names.h"
#include "summary/own.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace domicile {

namespace {

class Parts {
public:
  Parts(ScalarEvolution &Evolution, Linear &Result)
      : SE(Evolution), Result(Result) {
    Word = Type::getInt64Ty(SE.getContext());
  }

  bool take(const SCEV *S, const SCEV *Scale) {
    if (isKnownBefore(S)) {
      addOffset(SE.getTruncateOrSignExtend(S, Word), Scale);
      return true;
    }
    if (auto *R = dyn_cast<SCEVAddRecExpr>(S))
      return takeCounter(R, Scale);
    if (auto *Sum = dyn_cast<SCEVAddExpr>(S))
      return all_of(Sum->operands(),
                    [&](const SCEV *Part) { return take(Part, Scale); });
    if (auto *Product = dyn_cast<SCEVMulExpr>(S))
      return takeProduct(Product, Scale);
    if (auto *Wide = dyn_cast<SCEVIntegralCastExpr>(S)) {
      // An index that does not fit into what it is computed in is no index.
      if (isa<SCEVTruncateExpr>(Wide))
        return take(Wide->getOperand(), Scale);
      if (auto *U = dyn_cast<SCEVUnknown>(Wide->getOperand()))
        return takeValue(U->getValue(), Scale);
      const SCEV *Widened =
          widen(Wide->getOperand(), isa<SCEVSignExtendExpr>(Wide));
      if (!Widened)
        return false;
      if (Widened == S)
        return refuse("its index is not linear in the loop counters");
      return take(Widened, Scale);
    }
    if (auto *U = dyn_cast<SCEVUnknown>(S))
      return takeValue(U->getValue(), Scale);
    return refuse("its index is not linear in the loop counters");
  }

  /// Puts quotients and remainders of one number together again: with collapse,
  /// `i = c / m` and `j = c % m`, and `m * i + j` is the counter c itself.
  bool finish() {
    while (!Divided.empty()) {
      auto Deepest = Divided.begin();
      for (auto It = Divided.begin(); It != Divided.end(); ++It)
        if (depth(It->first.first) > depth(Deepest->first.first))
          Deepest = It;
      auto [Operands, Parts] = *Deepest;
      Divided.erase(Deepest);
      if (!together(Operands.first, Operands.second, Parts))
        return false;
    }
    return true;
  }

private:
  ScalarEvolution &SE;
  Linear &Result;
  Type *Word;

  /// Scales of `a / b` and `a % b`.
  struct Shares {
    const SCEV *Quotient = nullptr, *Remainder = nullptr;
  };
  MapVector<std::pair<Value *, Value *>, Shares> Divided;

  static unsigned depth(Value *V) {
    unsigned Depth = 0;
    while (auto *I = dyn_cast<Instruction>(V)) {
      if (calls(I, QuotientName))
        ++Depth;
      else if (!isa<CastInst>(I))
        break;
      V = I->getOperand(0);
    }
    return Depth;
  }

  bool together(Value *A, Value *B, const Shares &Of) {
    if (!Of.Quotient || Of.Quotient->isZero())
      return !Of.Remainder || Of.Remainder->isZero() ||
             takeRemainder(A, B, Of.Remainder);
    const SCEV *M = SE.getSCEV(B);
    const StringRef No =
        "it walks through a part of the array by a quotient of "
        "a loop counter (collapse)";
    const SCEV *Row = SE.getZero(Word);
    if (Of.Remainder)
      Row = SE.getMulExpr(Of.Remainder, SE.getTruncateOrSignExtend(M, Word));
    if (!isKnownBefore(Of.Quotient) || !isKnownBefore(Row))
      return refuse(No);
    if (Of.Quotient != Row) {
      if (isa<SCEVConstant>(SE.getMinusSCEV(Of.Quotient, Row)))
        return refuse(No);
      Result.Equal.push_back({Of.Quotient, Row});
    }
    return !Of.Remainder || take(SE.getSCEV(A), Of.Remainder);
  }

  bool share(const SCEV *Shares::*Part, Value *V, const SCEV *Scale) {
    auto *Call = cast<CallBase>(V);
    const SCEV *&Sum =
        Divided[{Call->getArgOperand(0), Call->getArgOperand(1)}].*Part;
    Sum = Sum ? SE.getAddExpr(Sum, Scale) : Scale;
    return true;
  }

  bool refuse(StringRef Why) {
    if (Result.Refused.empty())
      Result.Refused = Why.str();
    return false;
  }

  void addOffset(const SCEV *S, const SCEV *Scale) {
    Result.Offset = SE.getAddExpr(Result.Offset, SE.getMulExpr(Scale, S));
  }

  bool takeCounter(const SCEVAddRecExpr *R, const SCEV *Scale) {
    if (!R->isAffine())
      return refuse("its index is not linear in the loop counters");
    const SCEV *Step = R->getStepRecurrence(SE);
    if (!isKnownBefore(Step))
      return refuse("its stride changes within the region");
    Step = SE.getMulExpr(Scale, SE.getTruncateOrSignExtend(Step, Word));
    const SCEV *&Sum = Result.Steps[R->getLoop()];
    Sum = Sum ? SE.getAddExpr(Sum, Step) : Step;
    return take(R->getStart(), Scale);
  }

  bool takeProduct(const SCEVMulExpr *Product, const SCEV *Scale) {
    const SCEV *Varies = nullptr;
    for (const SCEV *Factor : Product->operands()) {
      if (isKnownBefore(Factor)) {
        Scale = SE.getMulExpr(Scale, SE.getTruncateOrSignExtend(Factor, Word));
        continue;
      }
      if (Varies)
        return refuse("its index is a product of loop counters");
      Varies = Factor;
    }
    return take(Varies, Scale);
  }

  /// The same in 64 bits. Signed arithmetic of indices is taken not to wrap:
  /// where the language allows it to, nobody indexes arrays with what results.
  const SCEV *widen(const SCEV *S, bool Signed) {
    if (S->getType() == Word)
      return S;
    if (auto *Nested = dyn_cast<SCEVIntegralCastExpr>(S))
      return widen(Nested->getOperand(), !isa<SCEVZeroExtendExpr>(S));
    if (isKnownBefore(S) || isa<SCEVUnknown>(S))
      return Signed ? SE.getTruncateOrSignExtend(S, Word)
                    : SE.getTruncateOrZeroExtend(S, Word);
    if (!Signed) {
      // What could wrap in earnest is a difference (`i - 1` of an unsigned i).
      auto *R = dyn_cast<SCEVNAryExpr>(S);
      bool Differs = any_of(S->operands(), [](const SCEV *Part) {
        auto *C = dyn_cast<SCEVConstant>(Part);
        return C && C->getAPInt().isNegative();
      });
      if (Differs && !(R && R->hasNoUnsignedWrap()) &&
          !SE.isKnownNonNegative(S)) {
        refuse("its unsigned index may wrap");
        return nullptr;
      }
      // Nothing below zero, nothing that wraps: both ways of widening agree.
      Signed = SE.isKnownNonNegative(S);
    }
    SmallVector<const SCEV *, 4> Wide;
    if (!isa<SCEVAddRecExpr, SCEVAddExpr, SCEVMulExpr>(S)) {
      refuse("its index is not linear in the loop counters");
      return nullptr;
    }
    for (const SCEV *Part : S->operands()) {
      const SCEV *W = widen(Part, Signed || isa<SCEVConstant>(Part));
      if (!W)
        return nullptr;
      Wide.push_back(W);
    }
    if (auto *R = dyn_cast<SCEVAddRecExpr>(S))
      return SE.getAddRecExpr(Wide, R->getLoop(), SCEV::FlagAnyWrap);
    return isa<SCEVAddExpr>(S) ? SE.getAddExpr(Wide) : SE.getMulExpr(Wide);
  }

  bool takeValue(Value *V, const SCEV *Scale) {
    while (isa<SExtInst>(V) || isa<ZExtInst>(V) || isa<FreezeInst>(V))
      V = cast<Instruction>(V)->getOperand(0);
    if (calls(V, RemainderName))
      return share(&Shares::Remainder, V, Scale);
    if (calls(V, QuotientName))
      return share(&Shares::Quotient, V, Scale);
    if (auto *Choice = dyn_cast<SelectInst>(V))
      return takeChoice(*Choice, Scale);
    if (isa<LoadInst>(V))
      return refuse("its index is read from memory that the region changes or "
                    "walks through (a gather or an array of pointers)");
    if (isa<PHINode>(V))
      return refuse("its index is carried from iteration to iteration, and not "
                    "in equal steps");
    if (isa<CallBase>(V))
      return refuse("its index comes from a call");
    return refuse("its index is not linear in the loop counters");
  }

  bool turn(const Loop *L, const SCEV *Of, int64_t By, const SCEV *Scale) {
    if (Result.Rotated)
      return refuse("two of its indices are rotated");
    Result.Rotated = Linear::Turn{L, Scale, Of, By};
    return true;
  }

  /// The counter and its start, if \p S is `counter + constant + n * {0, 1}`.
  bool counterPlus(const SCEV *S, const SCEV *N, const Loop *&L, int64_t &By) {
    while (auto *Wide = dyn_cast<SCEVIntegralCastExpr>(S))
      S = Wide->getOperand();
    auto *R = dyn_cast<SCEVAddRecExpr>(S);
    if (!R || !R->isAffine() || !R->getStepRecurrence(SE)->isOne())
      return false;
    L = R->getLoop();
    const SCEV *Start = R->getStart();
    if (auto *C = dyn_cast<SCEVConstant>(Start)) {
      By = C->getAPInt().getSExtValue();
      return true;
    }
    if (Start->getType() != N->getType())
      return false;
    auto *Rest = dyn_cast<SCEVConstant>(SE.getMinusSCEV(Start, N));
    if (!Rest)
      return false;
    By = Rest->getAPInt().getSExtValue();
    return true;
  }

  bool takeRemainder(Value *Of, Value *By, const SCEV *Scale) {
    const SCEV *N = SE.getSCEV(By);
    const Loop *L;
    int64_t Distance;
    if (!isKnownBefore(N) || !counterPlus(SE.getSCEV(Of), N, L, Distance))
      return refuse("its index is a remainder of what is not a loop counter");
    // `(i + n - 1) % n` with a constant n is a distance of n - 1: one back.
    if (auto *C = dyn_cast<SCEVConstant>(N)) {
      int64_t Modulus = C->getAPInt().getSExtValue();
      if (Modulus > 0 && Distance > Modulus / 2)
        Distance -= Modulus;
    }
    return turn(L, N, Distance, Scale);
  }

  /// `i == 0 ? n - 1 : i - 1`, `i == n - 1 ? 0 : i + 1`.
  bool takeChoice(SelectInst &Choice, const SCEV *Scale) {
    CmpInst::Predicate Is;
    Value *Left, *Right;
    const StringRef No = "its index is chosen by a condition";
    if (!match(Choice.getCondition(),
               m_ICmp(Is, m_Value(Left), m_Value(Right))))
      return refuse(No);
    Value *Edge = Choice.getTrueValue(), *Else = Choice.getFalseValue();
    if (Is == CmpInst::ICMP_NE)
      std::swap(Edge, Else);
    else if (Is != CmpInst::ICMP_EQ)
      return refuse(No);
    auto *Usual = dyn_cast<SCEVAddRecExpr>(SE.getSCEV(Else));
    auto *Counter = dyn_cast<SCEVAddRecExpr>(SE.getSCEV(Left));
    const SCEV *At = SE.getSCEV(Right), *Wrapped = SE.getSCEV(Edge);
    if (!Usual || !Counter || Usual->getLoop() != Counter->getLoop() ||
        !Usual->isAffine() || !Counter->isAffine() ||
        !Usual->getStepRecurrence(SE)->isOne() ||
        !Counter->getStepRecurrence(SE)->isOne() || !isKnownBefore(Wrapped) ||
        !isKnownBefore(At))
      return refuse(No);
    // Its counter begins at 0; usually the index is `i + Start`.
    if (!Counter->getStart()->isZero() || !isKnownBefore(Usual->getStart()))
      return refuse(No);
    auto Wide = [&](const SCEV *S) {
      return SE.getTruncateOrSignExtend(S, Word);
    };
    const SCEV *One = SE.getOne(Word), *Start = Wide(Usual->getStart());
    if (At->isZero()) {
      // One back: at first the last of all, Edge = Start + n.
      addOffset(SE.getAddExpr(Start, One), Scale);
      return turn(Usual->getLoop(), SE.getMinusSCEV(Wide(Wrapped), Start), -1,
                  Scale);
    }
    const SCEV *First = SE.getMinusSCEV(Start, One);
    if (SE.getMinusSCEV(Wide(Wrapped), First)->isZero()) {
      // One ahead: at last the first of all.
      addOffset(First, Scale);
      return turn(Usual->getLoop(), SE.getAddExpr(Wide(At), One), 1, Scale);
    }
    return refuse(No);
  }
};

} // namespace

/// Why \p Base is no array that threads share, or nothing.
static std::string refusedBase(Value *Base) {
  if (auto *A = dyn_cast<Argument>(Base))
    if (A->getArgNo() < 2)
      return "private"; // the thread's number
  if (isOwn(Base))
    return "private";
  if (isKnownBefore(Base))
    return "";
  if (isa<CallBase>(Base))
    return "its address comes from a call";
  if (isa<LoadInst>(Base))
    return "its address is read from memory that the region changes or walks "
           "through (an array of pointers)";
  return "its address changes within the region";
}

Linear linear(Value *Address, const Instruction &User, const Loop *Scope,
              ScalarEvolution &Evolution) {
  Linear Result;
  Type *Word = Type::getInt64Ty(User.getContext());
  Result.Offset = Evolution.getZero(Word);
  const SCEV *Whole =
      Evolution.getSCEVAtScope(Evolution.getSCEV(Address), Scope);
  const SCEV *Pointer = Evolution.getPointerBase(Whole);
  auto *Unknown = dyn_cast<SCEVUnknown>(Pointer);
  if (!Unknown) {
    Result.Refused = "its address is not known";
    return Result;
  }
  Result.Base = Unknown->getValue();
  Result.Refused = refusedBase(Result.Base);
  if (!Result.Refused.empty())
    return Result;
  Parts Taken(Evolution, Result);
  if (Taken.take(Evolution.removePointerBase(Whole), Evolution.getOne(Word)))
    Taken.finish();
  // Loops that do not move it after all.
  Result.Steps.remove_if([](auto &Entry) { return Entry.second->isZero(); });
  return Result;
}

} // namespace domicile
