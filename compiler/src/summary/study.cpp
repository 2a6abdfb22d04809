//===- study.cpp - the parallel loops of one region, and what they touch
//---===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/study.h"
#include "summary/access.h"
#include "summary/control.h"
#include "summary/hoist.h"
#include "summary/linear.h"
#include "summary/names.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include <map>
#include <set>

using namespace llvm;

namespace domicile {

// Schedules of libomp, without the modifiers in the high bits.
static constexpr unsigned StaticChunked = 33, Static = 34;

namespace {

class Reader {
public:
  Reader(Function &Region, FunctionAnalysisManager &Analyses)
      : Region(Region), SE(Analyses.getResult<ScalarEvolutionAnalysis>(Region)),
        Library(Analyses.getResult<TargetLibraryAnalysis>(Region)),
        Shape{Analyses.getResult<DominatorTreeAnalysis>(Region),
              Analyses.getResult<PostDominatorTreeAnalysis>(Region),
              Analyses.getResult<LoopAnalysis>(Region), SE} {}

  Study read() {
    for (Instruction &I : instructions(Region))
      if (auto *Call = dyn_cast<CallBase>(&I))
        readCall(*Call);
    // What every thread does, beside the loops that are dealt.
    ParallelLoop Rest;
    Rest.Shared = false;
    Rest.Chunked = true;
    Type *Word = Type::getInt64Ty(Region.getContext());
    Rest.Chunk = SE.getOne(Word);
    Rest.Iterations = SE.getConstant(Word, ParallelLoop::Everyone);
    size_t RestAt = Result.Loops.size();
    Result.Loops.push_back(std::move(Rest));

    for (Instruction &I : instructions(Region)) {
      const Loop *Owner = Shape.Loops.getLoopFor(I.getParent());
      while (Owner && !Found.count(Owner) && !Dynamic.count(Owner))
        Owner = Owner->getParentLoop();
      if (Owner && Dynamic.count(Owner))
        continue;
      size_t At = Owner ? Found[Owner] : RestAt;
      readAccess(I, At, Owner);
    }
    addCommon();
    for (ParallelLoop &One : Result.Loops)
      shape(One.Uses, SE);
    if (Result.Loops[RestAt].Uses.empty() && !Result.Loops[RestAt].Accesses)
      Result.Loops.pop_back();
    return std::move(Result);
  }

private:
  Function &Region;
  ScalarEvolution &SE;
  const TargetLibraryInfo &Library;
  Control Shape;
  Study Result;
  std::map<const Loop *, size_t> Found;
  std::set<const Loop *> Dynamic;

  void refuse(const Instruction &At, const Twine &Why) {
    Result.Refusals.push_back({At.getDebugLoc(), Why.str()});
  }

  void readCall(CallBase &Call) {
    StringRef Name = calleeName(Call);
    if (Name == BeginName) {
      readLoop(Call);
    } else if (Name.starts_with("__kmpc_dispatch_init")) {
      ParallelLoop Loop;
      Loop.Where = Call.getDebugLoc();
      Loop.Refused =
          "its iterations are dealt while it runs (schedule dynamic, "
          "guided, runtime or auto, or ordered)";
      refuse(Call, "loop not summarised: " + Loop.Refused);
      Result.Loops.push_back(std::move(Loop));
    } else if (Name.starts_with("__kmpc_dispatch_next")) {
      if (const Loop *L = Shape.Loops.getLoopFor(Call.getParent()))
        Dynamic.insert(L);
    } else if (Name == "__kmpc_fork_call") {
      refuse(Call,
             "a parallel region within a parallel region: not summarised");
    } else if (Name.starts_with("__kmpc_omp_task") ||
               Name.starts_with("__kmpc_taskloop")) {
      refuse(Call, "tasks are not summarised: which thread runs them is not "
                   "known before");
    }
  }

  /// The loop that was dealt at \p Begin.
  const Loop *dealtAt(CallBase &Begin) {
    const Loop *Around = Shape.Loops.getLoopFor(Begin.getParent());
    for (const Loop *L : Shape.Loops.getLoopsInPreorder()) {
      if (L->getParentLoop() != Around ||
          !Shape.Dominators.dominates(&Begin, &L->getHeader()->front()))
        continue;
      bool Another = any_of(instructions(Region), [&](Instruction &I) {
        return &I != &Begin && (calls(&I, BeginName) || calls(&I, EndName)) &&
               Shape.Dominators.dominates(&Begin, &I) &&
               Shape.Dominators.dominates(&I, &L->getHeader()->front());
      });
      if (!Another)
        return L;
    }
    return nullptr;
  }

  void readLoop(CallBase &Begin) {
    ParallelLoop One;
    One.Where = Begin.getDebugLoc();
    const Loop *L = dealtAt(Begin);
    if (!L) {
      // Nothing is left of a loop without a body.
      return;
    }
    if (DebugLoc Start = L->getStartLoc())
      One.Where = Start;
    One.Refused = describe(Begin, L, One);
    if (!One.Refused.empty())
      refuse(Begin, "loop not summarised: " + One.Refused);
    Found[L] = Result.Loops.size();
    Result.Loops.push_back(std::move(One));
  }

  std::string describe(CallBase &Begin, const Loop *L, ParallelLoop &One) {
    auto *Schedule = dyn_cast<ConstantInt>(Begin.getArgOperand(0));
    unsigned Kind = Schedule ? Schedule->getZExtValue() & 0xffff : 0;
    if (Kind != Static && Kind != StaticChunked)
      return "its schedule is neither static nor static with a chunk";
    One.Chunked = Kind == StaticChunked;
    One.Chunk = SE.getSCEV(Begin.getArgOperand(1));
    if (One.Chunked && !isKnownBefore(One.Chunk))
      return "its chunk is not known before the region";
    std::string Why;
    BasicBlock *Latch = L->getLoopLatch();
    One.Iterations = Latch ? Shape.count(L, Latch, Why) : nullptr;
    if (!One.Iterations)
      return Why.empty() ? "it has no simple form" : Why;
    Why = Shape.conditions(Begin.getParent(), nullptr, One.When,
                           /*MayEnd=*/true);
    if (!Why.empty())
      return Why;
    require(One.When,
            {Condition::Kind::Positive, nullptr, One.Iterations, nullptr});
    return "";
  }

  void readAccess(Instruction &I, size_t At, const Loop *Dealt) {
    ParallelLoop &Owner = Result.Loops[At];
    for (Touch &One : touchesOf(I, Library)) {
      if (!One.Unknown.empty()) {
        ++Owner.Accesses;
        if (Owner.Refused.empty())
          refuse(I, One.Unknown);
        continue;
      }
      Linear Form =
          linear(One.Address, I, Shape.Loops.getLoopFor(I.getParent()), SE);
      if (isNoArray(Form))
        continue;
      ++Owner.Accesses;
      if (!Owner.Refused.empty())
        continue;
      if (!Form.Refused.empty())
        refuseAccess(I, One, Form.Base, Form.Refused);
      else
        add({&I, One, Form, At, Dealt}, I.getParent());
    }
  }

  /// An access that waits: on other ways there may be the same one.
  struct Pending {
    Instruction *I;
    Touch One;
    Linear Form;
    size_t At;
    const Loop *Dealt;
  };
  /// By address, bytes, and whether it is written.
  MapVector<std::tuple<const SCEV *, uint64_t, unsigned>, std::vector<Pending>>
      Waiting;

  /// \p Again: it has waited; what is refused now does not wait once more.
  void add(const Pending &Access, BasicBlock *Block, bool Again = false) {
    ParallelLoop &Owner = Result.Loops[Access.At];
    Use Made;
    std::string Why = makeUse(*Access.I, Block, Access.One, Access.Form, Owner,
                              Access.Dealt, Shape, Made);
    if (Why.empty()) {
      ++Owner.Recognised;
      Owner.Uses.push_back(std::move(Made));
    } else if (!Again && Block == Access.I->getParent() && Access.One.Bytes) {
      Waiting[{SE.getSCEV(Access.One.Address), Access.One.Bytes,
               unsigned(Access.One.Writes)}]
          .push_back(Access);
    } else {
      refuseAccess(*Access.I, Access.One, Access.Form.Base, Why);
    }
  }

  /// What is done on every way through a choice is done in any case.
  void addCommon() {
    for (auto &[Key, Same] : Waiting) {
      SmallVector<BasicBlock *, 4> Blocks;
      for (const Pending &Access : Same)
        if (Access.Dealt == Same.front().Dealt)
          Blocks.push_back(Access.I->getParent());
      BasicBlock *Common = Blocks.size() > 1 ? Shape.common(Blocks) : nullptr;
      for (const Pending &Access : Same) {
        if (Common && Access.Dealt == Same.front().Dealt) {
          add(Access, Common, /*Again=*/true);
          continue;
        }
        Use Made;
        refuseAccess(*Access.I, Access.One, Access.Form.Base,
                     makeUse(*Access.I, Access.I->getParent(), Access.One,
                             Access.Form, Result.Loops[Access.At], Access.Dealt,
                             Shape, Made));
      }
    }
  }

  void refuseAccess(const Instruction &I, const Touch &One, const Value *Base,
                    const Twine &Why) {
    refuse(I, Twine(One.Writes ? "write" : "read") + " of " + nameFor(Base) +
                  " not summarised: " + Why);
  }

  /// What threads do not share, and single variables: nothing to place.
  static bool isNoArray(const Linear &Form) {
    if (Form.Refused == "private")
      return true;
    if (!Form.Refused.empty() || !Form.Steps.empty() || Form.Rotated)
      return false;
    auto *Global = dyn_cast<GlobalVariable>(Form.Base);
    return !Global || !Global->getValueType()->isArrayTy();
  }

  static std::string nameFor(const Value *Base) {
    if (Base && isa<GlobalVariable>(Base))
      return plainName(Base->getName());
    return "an array";
  }
};

} // namespace

Study study(Function &Region, FunctionAnalysisManager &Analyses) {
  return Reader(Region, Analyses).read();
}

} // namespace domicile
