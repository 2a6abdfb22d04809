//===- access.cpp - one access of a parallel loop
//--------------------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/access.h"
#include "summary/callee.h"
#include "summary/hoist.h"
#include "summary/names.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace domicile {

/// Inner loops that a domicile_summary has.
static constexpr unsigned MostInner = 3;

SmallVector<Touch, 2> touchesOf(Instruction &I,
                                const TargetLibraryInfo &Library) {
  const DataLayout &Layout = I.getModule()->getDataLayout();
  auto Bytes = [&](Type *Ty) {
    return Layout.getTypeStoreSize(Ty).getKnownMinValue();
  };
  if (auto *Load = dyn_cast<LoadInst>(&I)) {
    if (isHoisted(Load))
      return {};
    return {{Load->getPointerOperand(), Bytes(Load->getType()), nullptr, false,
             ""}};
  }
  if (auto *Store = dyn_cast<StoreInst>(&I))
    return {{Store->getPointerOperand(),
             Bytes(Store->getValueOperand()->getType()), nullptr, true, ""}};
  if (auto *Update = dyn_cast<AtomicRMWInst>(&I)) {
    uint64_t Size = Bytes(Update->getType());
    return {{Update->getPointerOperand(), Size, nullptr, false, ""},
            {Update->getPointerOperand(), Size, nullptr, true, ""}};
  }
  if (auto *Swap = dyn_cast<AtomicCmpXchgInst>(&I)) {
    uint64_t Size = Bytes(Swap->getCompareOperand()->getType());
    return {{Swap->getPointerOperand(), Size, nullptr, false, ""},
            {Swap->getPointerOperand(), Size, nullptr, true, ""}};
  }
  if (auto *Copy = dyn_cast<MemTransferInst>(&I))
    return {{Copy->getRawSource(), 0, Copy->getLength(), false, ""},
            {Copy->getRawDest(), 0, Copy->getLength(), true, ""}};
  if (auto *Fill = dyn_cast<MemSetInst>(&I))
    return {{Fill->getRawDest(), 0, Fill->getLength(), true, ""}};
  if (auto *Call = dyn_cast<CallBase>(&I))
    if (!touchesNoArray(*Call, Library)) {
      StringRef Name = calleeName(*Call);
      return {{nullptr, 0, nullptr, false,
               "call of " + (Name.empty() ? "a pointer" : plainName(Name)) +
                   ": what it touches is not known"}};
    }
  return {};
}

/// Pieces that lie next to each other, or overlap, are one longer piece.
static void collapse(Use &Made, ScalarEvolution &SE) {
  Type *Word = Made.Span->getType();
  const SCEV *One = SE.getOne(Word);
  auto Constant = [](const SCEV *S) -> const APInt * {
    auto *C = dyn_cast<SCEVConstant>(S);
    return C ? &C->getAPInt() : nullptr;
  };
  // Downwards from the end is upwards from the other end.
  for (Inner &Loop : Made.Inners)
    if (const APInt *Stride = Constant(Loop.Stride))
      if (Stride->isNegative()) {
        const SCEV *Last = SE.getMinusSCEV(Loop.Count, One);
        Made.Offset =
            SE.getAddExpr(Made.Offset, SE.getMulExpr(Loop.Stride, Last));
        Loop.Stride = SE.getNegativeSCEV(Loop.Stride);
      }
  // Narrow strides first, unknown ones last; a handful at most.
  auto Before = [&](const Inner &A, const Inner &B) {
    const APInt *SA = Constant(A.Stride), *SB = Constant(B.Stride);
    return SA && (!SB || SA->slt(*SB));
  };
  for (size_t N = 1; N < Made.Inners.size(); ++N)
    for (size_t At = N; At && Before(Made.Inners[At], Made.Inners[At - 1]);
         --At)
      std::swap(Made.Inners[At], Made.Inners[At - 1]);
  for (bool Changed = true; Changed;) {
    Changed = false;
    for (size_t N = 0; N < Made.Inners.size(); ++N) {
      Inner Loop = Made.Inners[N];
      const APInt *Stride = Constant(Loop.Stride), *Span = Constant(Made.Span);
      bool Next =
          Stride && Stride->ule(Span ? Span->getZExtValue() : Made.Element);
      if (!Next && Loop.Stride != Made.Span)
        continue;
      Made.Span = SE.getAddExpr(
          Made.Span,
          SE.getMulExpr(Loop.Stride, SE.getMinusSCEV(Loop.Count, One)));
      Made.Inners.erase(Made.Inners.begin() + N);
      Changed = true;
      break;
    }
  }
}

/// flang's names of types for alias analysis end in the variable's:
/// `dummy arg data/_QFsEa`.
static std::string aliasName(const Instruction &I) {
  const MDNode *Tag = I.getMetadata(LLVMContext::MD_tbaa);
  auto *Ty = Tag ? dyn_cast<MDNode>(Tag->getOperand(0)) : nullptr;
  auto *Text = Ty ? dyn_cast<MDString>(Ty->getOperand(0)) : nullptr;
  if (!Text || !Text->getString().contains("/_Q"))
    return "";
  return plainName(Text->getString().rsplit('/').second);
}

std::string makeUse(Instruction &I, BasicBlock *Block, const Touch &One,
                    const Linear &Form, const ParallelLoop &Owner,
                    const Loop *Dealt, const Control &Shape, Use &Made) {
  ScalarEvolution &SE = Shape.Evolution;
  Type *Word = Type::getInt64Ty(I.getContext());
  Made.Base = Form.Base;
  Made.Offset = Form.Offset;
  Made.Unit = SE.getZero(Word);
  Made.Where = I.getDebugLoc();
  Made.Name = aliasName(I);
  (One.Writes ? Made.Writes : Made.Reads) = true;
  if (One.Length) {
    const SCEV *Length = SE.getSCEV(One.Length);
    if (!isKnownBefore(Length))
      return "how many bytes are copied is not known before the region";
    Made.Span = SE.getTruncateOrZeroExtend(Length, Word);
    Made.Element = 1;
    require(Made.When,
            {Condition::Kind::Positive, nullptr, Made.Span, nullptr});
  } else {
    Made.Span = SE.getConstant(Word, One.Bytes);
    Made.Element = One.Bytes;
  }
  std::string Why = Shape.conditions(Block, Dealt, Made.When);
  if (!Why.empty())
    return Why;

  for (auto &[Left, Right] : Form.Equal)
    require(Made.When, {Condition::Kind::Equal, nullptr, Left, Right});
  for (auto &[L, Step] : Form.Steps)
    if (!L->contains(&I))
      return "its index comes out of a loop that has ended";
  for (const Loop *L = Shape.Loops.getLoopFor(Block); L;
       L = L->getParentLoop()) {
    auto Step = Form.Steps.find(L);
    bool Moves = Step != Form.Steps.end();
    bool Turns = Form.Rotated && Form.Rotated->L == L;
    if (Moves && Turns)
      return "its index is both a loop counter and a rotated one";
    if (L == Dealt) {
      if (Moves)
        Made.Unit = Step->second;
      if (Turns) {
        Made.Unit = Form.Rotated->Step;
        Made.Communication = Use::Talk::Rotate;
        Made.Distance =
            SE.getConstant(Word, Form.Rotated->By, /*isSigned=*/true);
        require(Made.When,
                {Condition::Kind::Equal, nullptr, Owner.Iterations,
                 SE.getTruncateOrSignExtend(Form.Rotated->Of, Word)});
      }
      continue;
    }
    const SCEV *Count = Shape.count(L, Block, Why);
    if (Moves || Turns) {
      if (!Count)
        return Why;
      require(Made.When, {Condition::Kind::Positive, nullptr, Count, nullptr});
      Made.Inners.push_back({Moves ? Step->second : Form.Rotated->Step, Count});
      if (Turns)
        // All of its range in another order.
        require(Made.When,
                {Condition::Kind::Equal, nullptr, Count,
                 SE.getTruncateOrSignExtend(Form.Rotated->Of, Word)});
    } else if (!Shape.runsOnce(L, Block)) {
      // The same in each of its iterations, if there is one. A loop around the
      // shared one (time steps) is taken to run.
      if (Count)
        require(Made.When,
                {Condition::Kind::Positive, nullptr, Count, nullptr});
      else if (Dealt && Dealt->contains(L))
        return Why;
    }
  }
  for (const Condition &One : Made.When)
    if (One.Is == Condition::Kind::Equal && isa<SCEVConstant>(One.Left) &&
        isa<SCEVConstant>(One.Right))
      return "it goes around by another number than there are iterations";
  collapse(Made, SE);
  if (Made.Inners.size() > MostInner)
    return "more than three loops within move it by strides of their own";
  return "";
}

std::string plainName(StringRef Name) {
  // flang: _QMmodule... Fprocedure... Ename.
  if (Name.starts_with("_Q")) {
    size_t E = Name.rfind('E');
    if (E != StringRef::npos && E + 1 < Name.size())
      return Name.substr(E + 1).str();
    size_t P = Name.rfind('P');
    if (P != StringRef::npos && P + 1 < Name.size())
      return Name.substr(P + 1).str();
  }
  // Fortran's commons and procedures outside of modules.
  if (Name.size() > 1 && Name.ends_with("_"))
    Name = Name.drop_back();
  return demangle(Name);
}

} // namespace domicile
