//===- prefetch/pass.cpp - fetch lines before they are needed --------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "prefetch/pass.h"
#include "machine.h"
#include "prefetch/locality.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/DomTreeUpdater.h"
#include "llvm/Analysis/LoopIterator.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LCSSA.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"
#include "llvm/Transforms/Utils/UnrollLoop.h"
#include <map>
#include <set>

using namespace llvm;

namespace domicile {

namespace {

const char *const Name = "domicile-prefetch";
/// The instructions that a loop may have after unrolling; beyond that, copies
/// cost more of the instruction cache than a test in each iteration costs time.
constexpr uint64_t MostUnrolled = 512;
/// Further ahead than this share of the cache, a prefetch drives out what the
/// earlier ones brought.
constexpr uint64_t AheadShare = 8;

struct Planned {
  Miss What;
  /// Bytes ahead; 0: `Iterations` times a step that is known at run time only.
  int64_t Bytes;
  /// One prefetch in so many iterations.
  uint64_t Every;
  CallInst *Call = nullptr;
};

class Schedule {
public:
  Schedule(Function &F, FunctionAnalysisManager &Analyses)
      : F(F), LI(Analyses.getResult<LoopAnalysis>(F)),
        SE(Analyses.getResult<ScalarEvolutionAnalysis>(F)),
        DT(Analyses.getResult<DominatorTreeAnalysis>(F)),
        AC(Analyses.getResult<AssumptionAnalysis>(F)),
        TTI(Analyses.getResult<TargetIRAnalysis>(F)),
        ORE(Analyses.getResult<OptimizationRemarkEmitterAnalysis>(F)) {}

  bool run();

private:
  uint64_t shortestPass(Loop *L) const;
  uint64_t size(Loop *L) const;
  bool process(Loop *L, const Locality::Found &Found);
  bool plan(Loop *L, const Miss &What, uint64_t Iterations, Planned &Plan) const;
  void insert(Loop *L, Planned &Plan, uint64_t Iterations, Instruction *Before);
  bool unroll(Loop *L, unsigned Count, std::vector<Planned> &Plans);
  PHINode *counter(Loop *L);
  Instruction *guard(Loop *L, PHINode *Iteration, uint64_t Count);
  void refuse(const Instruction *At, const Loop *L, const Twine &Reason);

  Function &F;
  LoopInfo &LI;
  ScalarEvolution &SE;
  DominatorTree &DT;
  AssumptionCache &AC;
  TargetTransformInfo &TTI;
  OptimizationRemarkEmitter &ORE;
  const Machine &Target = Machine::get();
};

} // namespace

static uint64_t cost(const TargetTransformInfo &TTI, const Instruction &I) {
  InstructionCost Cost =
      TTI.getInstructionCost(&I, TargetTransformInfo::TCK_CodeSize);
  return Cost.isValid() ? static_cast<uint64_t>(*Cost.getValue()) : 1;
}

uint64_t Schedule::size(Loop *L) const {
  uint64_t Total = 0;
  for (BasicBlock *Block : L->blocks())
    for (Instruction &I : *Block)
      Total += cost(TTI, I);
  return Total;
}

/// Instructions on the shortest way from the header to the latch. Mowry divides
/// the latency by it, so that prefetches are early enough on every way.
uint64_t Schedule::shortestPass(Loop *L) const {
  LoopBlocksRPO Order(L);
  Order.perform(&LI);
  DenseMap<const BasicBlock *, uint64_t> Least;
  for (BasicBlock *Block : Order) {
    uint64_t Before = UINT64_MAX;
    if (Block == L->getHeader())
      Before = 0;
    else
      for (BasicBlock *From : predecessors(Block))
        if (auto At = Least.find(From); At != Least.end())
          Before = std::min(Before, At->second);
    if (Before == UINT64_MAX)
      continue;
    for (Instruction &I : *Block)
      Before += cost(TTI, I);
    Least[Block] = Before;
  }
  auto At = Least.find(L->getLoopLatch());
  return std::max<uint64_t>(1, At == Least.end() ? size(L) : At->second);
}

void Schedule::refuse(const Instruction *At, const Loop *L,
                      const Twine &Reason) {
  ORE.emit([&] {
    DebugLoc Place = At && At->getDebugLoc() ? At->getDebugLoc()
                                             : L->getStartLoc();
    return OptimizationRemarkMissed(Name, "NotPrefetched", Place, L->getHeader())
           << "not prefetched: " << Reason.str();
  });
}

/// How far ahead and how often; false: not worth it.
bool Schedule::plan(Loop *L, const Miss &What, uint64_t Iterations,
                    Planned &Plan) const {
  Plan.What = What;
  Plan.Every = 1;
  Plan.Bytes = 0;
  if (What.Stride == 0)
    return SCEVExpander(SE, F.getDataLayout(), "prefetch")
        .isSafeToExpandAt(What.Step, L->getLoopPreheader()->getTerminator());
  uint64_t Stride = static_cast<uint64_t>(std::abs(What.Stride));
  uint64_t Ahead = Iterations * Stride;
  if (Stride < Target.Line) {
    Plan.Every = bit_floor(Target.Line / Stride);
    // Wherever in its line a reference is, the line that is fetched is not
    // reached sooner than after so many iterations.
    Ahead += Target.Line - Stride;
    Ahead = std::min(Ahead, std::max(Target.Line, Target.Cache / AheadShare));
  }
  if (Ahead >> 31)
    return false;
  Plan.Bytes = static_cast<int64_t>(Ahead) * (What.Stride < 0 ? -1 : 1);
  return true;
}

void Schedule::insert(Loop *L, Planned &Plan, uint64_t Iterations,
                      Instruction *Before) {
  IRBuilder<> Builder(Before);
  Builder.SetCurrentDebugLocation(Plan.What.Access->getDebugLoc());
  Value *Offset;
  if (Plan.Bytes) {
    Offset = Builder.getInt64(Plan.Bytes);
  } else {
    SCEVExpander Expander(SE, F.getDataLayout(), "prefetch");
    Type *Wide = Builder.getInt64Ty();
    const SCEV *Ahead =
        SE.getMulExpr(SE.getConstant(Wide, Iterations),
                      SE.getTruncateOrSignExtend(Plan.What.Step, Wide));
    Offset = Expander.expandCodeFor(Ahead, Wide,
                                    L->getLoopPreheader()->getTerminator());
  }
  Value *Address = Builder.CreateGEP(Builder.getInt8Ty(), Plan.What.Pointer,
                                     Offset, "prefetched");
  // Locality 3 is prefetcht0: into the outermost cache at least.
  Plan.Call = Builder.CreateIntrinsic(
      Intrinsic::prefetch, {Address->getType()},
      {Address, Builder.getInt32(Plan.What.Write), Builder.getInt32(3),
       Builder.getInt32(1)});
}

/// Unrolls the loop, in which the prefetches stand in each iteration already,
/// and takes all of them out but one for each line.
bool Schedule::unroll(Loop *L, unsigned Count, std::vector<Planned> &Plans) {
  LLVMContext &Context = F.getContext();
  const unsigned Mark = Context.getMDKindID("domicile.prefetch");
  for (auto [Number, Plan] : enumerate(Plans))
    Plan.Call->setMetadata(
        Mark, MDNode::get(Context, ConstantAsMetadata::get(ConstantInt::get(
                                       Type::getInt32Ty(Context), Number))));
  UnrollLoopOptions How;
  How.Count = Count;
  How.Force = true;
  How.Runtime = true;
  How.AllowExpensiveTripCount = false;
  How.UnrollRemainder = false;
  How.ForgetAllSCEV = false;
  Loop *Rest = nullptr;
  LoopUnrollResult Result = UnrollLoop(L, How, &LI, &SE, &DT, &AC, &TTI, &ORE,
                                       /*PreserveLCSSA=*/true, &Rest);
  bool Unrolled = Result == LoopUnrollResult::PartiallyUnrolled;
  SmallVector<uint64_t, 16> Seen(Plans.size());
  SmallVector<Instruction *, 64> Superfluous;
  for (BasicBlock *Block : ReversePostOrderTraversal<Function *>(&F))
    for (Instruction &I : *Block)
      if (MDNode *Node = I.getMetadata(Mark)) {
        I.setMetadata(Mark, nullptr);
        if (!Unrolled)
          continue;
        uint64_t Number =
            mdconst::extract<ConstantInt>(Node->getOperand(0))->getZExtValue();
        // The last iterations' lines were prefetched from the loop before them.
        if (!L->contains(Block) || Seen[Number]++ % Plans[Number].Every != 0)
          Superfluous.push_back(&I);
      }
  for (Instruction *I : Superfluous) {
    auto *Address = cast<Instruction>(I->getOperand(0));
    I->eraseFromParent();
    if (Address->use_empty())
      Address->eraseFromParent();
  }
  return Unrolled;
}

/// A count of the loop's iterations, from 0.
PHINode *Schedule::counter(Loop *L) {
  IRBuilder<> Head(&L->getHeader()->front());
  PHINode *Iteration = Head.CreatePHI(Head.getInt32Ty(), 2, "iteration");
  IRBuilder<> Builder(L->getLoopLatch()->getTerminator());
  Iteration->addIncoming(Builder.getInt32(0), L->getLoopPreheader());
  Iteration->addIncoming(Builder.CreateAdd(Iteration, Builder.getInt32(1)),
                         L->getLoopLatch());
  return Iteration;
}

/// Where prefetches belong that one in Count iterations reaches: the end of
/// the body, where all addresses are known.
Instruction *Schedule::guard(Loop *L, PHINode *Iteration, uint64_t Count) {
  Instruction *End = L->getLoopLatch()->getTerminator();
  IRBuilder<> Builder(End);
  Value *First = Builder.CreateICmpEQ(
      Builder.CreateAnd(Iteration, Builder.getInt32(Count - 1)),
      Builder.getInt32(0), "line");
  MDNode *Seldom = MDBuilder(F.getContext()).createBranchWeights(1, Count - 1);
  DomTreeUpdater Updater(DT, DomTreeUpdater::UpdateStrategy::Eager);
  // Phis of the header then name the block that was split off.
  return SplitBlockAndInsertIfThen(First, End, /*Unreachable=*/false, Seldom,
                                   &Updater, &LI);
}

bool Schedule::process(Loop *L, const Locality::Found &Found) {
  // An unrolled loop has each of them several times.
  std::set<std::pair<const DILocation *, StringRef>> Reported;
  for (const Refused &R : Found.Refusals)
    if (Reported.insert({R.Access->getDebugLoc().get(), R.Reason}).second)
      refuse(R.Access, L, R.Reason);
  if (Found.Misses.empty())
    return false;
  if (!L->isLoopSimplifyForm() || !L->isSafeToClone()) {
    refuse(nullptr, L, "the loop cannot be taken apart");
    return false;
  }
  const uint64_t Body = shortestPass(L);
  const uint64_t Iterations =
      divideCeil(Target.latencyInCycles() * Target.Issue, Body);
  const unsigned Most = SE.getSmallConstantMaxTripCount(L);
  if (Most && Most <= Iterations) {
    refuse(nullptr, L,
           "at most " + Twine(Most) + " iterations, and the latency takes " +
               Twine(Iterations));
    return false;
  }
  std::vector<Planned> Plans;
  uint64_t Count = 1;
  for (const Miss &What : Found.Misses) {
    Planned Plan;
    if (!plan(L, What, Iterations, Plan)) {
      refuse(What.Access, L, "how far ahead is not known before the loop");
      continue;
    }
    Count = std::max(Count, Plan.Every);
    Plans.push_back(Plan);
  }
  if (Plans.empty())
    return false;
  // Those of the same pace share an iteration; the largest pace is the loop's.
  const DebugLoc Start = L->getStartLoc();
  const char *How = "in each iteration";
  // A loop that is unrolled whole would leave none to speak of.
  if (Count > 1 && Count * size(L) <= MostUnrolled && !F.hasOptSize() &&
      (!Most || Most > Count) && SE.hasLoopInvariantBackedgeTakenCount(L)) {
    for (Planned &Plan : Plans)
      insert(L, Plan, Iterations, Plan.What.Access);
    How = unroll(L, Count, Plans) ? "once for each line, by unrolling"
                                  : "in each iteration";
  } else {
    PHINode *Iteration = Count > 1 ? counter(L) : nullptr;
    std::map<uint64_t, Instruction *> Places;
    for (Planned &Plan : Plans) {
      Instruction *Before = Plan.What.Access;
      if (Plan.Every > 1) {
        Instruction *&Place = Places[Plan.Every];
        if (!Place)
          Place = guard(L, Iteration, Plan.Every);
        Before = Place;
        How = "once for each line, by counting";
      }
      insert(L, Plan, Iterations, Before);
    }
    SE.forgetLoop(L);
  }
  ORE.emit([&] {
    return OptimizationRemark(Name, "Prefetched", Start, &F.getEntryBlock())
           << ore::NV("Prefetches", static_cast<unsigned>(Plans.size()))
           << " of " << ore::NV("References", Found.References)
           << " references prefetched "
           << ore::NV("Iterations", static_cast<unsigned>(Iterations))
           << " iterations ahead, " << How << "; "
           << ore::NV("Hits", Found.Hits) << " hit";
  });
  return true;
}

bool Schedule::run() {
  // Everything is judged before anything changes.
  std::vector<std::pair<Loop *, Locality::Found>> All;
  {
    Locality Reuse(LI, SE, DT);
    for (Loop *L : LI.getLoopsInPreorder())
      if (L->isInnermost())
        All.emplace_back(L, Reuse.misses(L));
  }
  bool Changed = false;
  for (auto &[L, Found] : All)
    Changed |= process(L, Found);
  return Changed;
}

PreservedAnalyses PrefetchPass::run(Function &F,
                                    FunctionAnalysisManager &Analyses) {
  if (F.hasOptNone() || F.hasMinSize())
    return PreservedAnalyses::all();
  return Schedule(F, Analyses).run() ? PreservedAnalyses::none()
                                     : PreservedAnalyses::all();
}

void addPrefetchPasses(ModulePassManager &Passes) {
  FunctionPassManager Each;
  Each.addPass(LoopSimplifyPass());
  Each.addPass(LCSSAPass());
  Each.addPass(PrefetchPass());
  Each.addPass(EarlyCSEPass());
  Each.addPass(InstCombinePass());
  Passes.addPass(createModuleToFunctionPassAdaptor(std::move(Each)));
}

} // namespace domicile
