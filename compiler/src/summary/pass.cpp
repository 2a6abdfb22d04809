//===- pass.cpp - summaries of statically scheduled parallel loops
//---------===//
//
// The analysis works on a private clone of the module, which it simplifies as
// it likes; the program gets the calls and nothing else.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/pass.h"
#include "options.h"
#include "summary/emit.h"
#include "summary/names.h"
#include "summary/serial.h"
#include "summary/study.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace domicile {

/// An attribute of outlined regions that have been looked at: the run at the
/// end of the pipeline passes them over.
static constexpr StringLiteral Seen = "domicile-summary";
/// What -Rpass=, -Rpass-missed= select.
static constexpr StringLiteral RemarkPass = "domicile";

namespace {

struct Region {
  Function *Body;
  SmallVector<CallBase *, 2> Forks;
};

struct Totals {
  unsigned Loops = 0, SummarisedLoops = 0, Accesses = 0, Recognised = 0;
};

class Summariser {
public:
  explicit Summariser(Module &M) : M(M) {}

  bool run() {
    findRegions();
    if (Regions.empty())
      return false;
    Clone = CloneModule(M, Map);
    for (GlobalVariable &Global : M.globals())
      Globals[Map.lookup(&Global)] = &Global;
    PassBuilder Builder;
    Builder.registerModuleAnalyses(Modules);
    Builder.registerCGSCCAnalyses(Components);
    Builder.registerFunctionAnalyses(Functions);
    Builder.registerLoopAnalyses(Loops);
    Builder.crossRegisterProxies(Loops, Functions, Components, Modules);
    for (Region &One : Regions)
      One.Body->addFnAttr(Seen);
    for (Region &One : Regions)
      summarise(One);
    report();
    return true;
  }

private:
  Module &M;
  std::vector<Region> Regions;
  ValueToValueMapTy Map;
  DenseMap<Value *, Value *> Globals;
  std::unique_ptr<Module> Clone;
  // Destroyed before the clone that they speak of.
  LoopAnalysisManager Loops;
  FunctionAnalysisManager Functions;
  CGSCCAnalysisManager Components;
  ModuleAnalysisManager Modules;
  Totals All;

  void findRegions() {
    Function *Forker = M.getFunction("__kmpc_fork_call");
    if (!Forker)
      return;
    SmallVector<CallBase *, 16> Calls;
    for (User *U : Forker->users())
      if (auto *Call = dyn_cast<CallBase>(U))
        if (Call->getCalledOperand() == Forker && Call->arg_size() >= 3)
          Calls.push_back(Call);
    // In the order of the program, not of the use list.
    DenseMap<CallBase *, unsigned> Order;
    unsigned Number = 0;
    for (Function &F : M)
      for (BasicBlock &Block : F)
        for (Instruction &I : Block)
          if (auto *Call = dyn_cast<CallBase>(&I))
            Order[Call] = Number++;
    sort(Calls, [&](CallBase *A, CallBase *B) { return Order[A] < Order[B]; });
    MapVector<Function *, SmallVector<CallBase *, 2>> ByBody;
    for (CallBase *Call : Calls)
      if (auto *Body =
              dyn_cast<Function>(Call->getArgOperand(2)->stripPointerCasts()))
        if (!Body->isDeclaration() && !Body->hasFnAttribute(Seen))
          ByBody[Body].push_back(Call);
    for (auto &[Body, Forks] : ByBody)
      Regions.push_back({Body, Forks});
  }

  /// Whether \p F is outlined, or called by what is and by nothing else.
  static bool isWithinRegion(const Function &F, unsigned Depth = 0) {
    if (F.hasFnAttribute(Seen))
      return true;
    if (!F.hasLocalLinkage() || F.use_empty() || Depth > 4)
      return false;
    return all_of(F.users(), [&](const User *U) {
      auto *Call = dyn_cast<CallBase>(U);
      return Call && Call->getCalledOperand() == &F &&
             isWithinRegion(*Call->getFunction(), Depth + 1);
    });
  }

  void summarise(Region &One) {
    // A region within a region: its team is not the one that is predicted.
    erase_if(One.Forks, [&](CallBase *Fork) {
      return isWithinRegion(*Fork->getFunction());
    });
    if (One.Forks.empty())
      return;
    auto *Body = cast<Function>(Map.lookup(One.Body));
    serialise(*Body, Clone->getSourceFileName() == "FIRModule", Functions);
    if (Options::get().Show)
      Body->print(errs());
    Study Found = study(*Body, Functions);
    Function &Owner = *One.Forks.front()->getFunction();
    OptimizationRemarkEmitter Remarks(&Owner);
    for (const Refusal &Why : Found.Refusals)
      Remarks.emit(OptimizationRemarkMissed(RemarkPass.data(), "NotSummarised",
                                            Why.Where, &Owner.getEntryBlock())
                   << Why.Why);
    bool First = true;
    for (CallBase *Call : One.Forks) {
      Control Shape{Functions.getResult<DominatorTreeAnalysis>(*Body),
                    Functions.getResult<PostDominatorTreeAnalysis>(*Body),
                    Functions.getResult<LoopAnalysis>(*Body),
                    Functions.getResult<ScalarEvolutionAnalysis>(*Body)};
      Fork At(*Call, *Body, Shape, Globals);
      DescribedCount Count = emit(
          *Call, Found, At, [&](bool Done, DebugLoc Where, const Twine &What) {
            if (Done)
              Remarks.emit(OptimizationRemark(RemarkPass.data(), "Summarised",
                                              Where, &Owner.getEntryBlock())
                           << What.str());
            else
              Remarks.emit(OptimizationRemarkMissed(RemarkPass.data(),
                                                    "NotSummarised", Where,
                                                    &Owner.getEntryBlock())
                           << What.str());
          });
      if (First)
        add(Found, Count);
      First = false;
    }
  }

  void add(const Study &Found, const DescribedCount &Count) {
    for (const ParallelLoop &One : Found.Loops) {
      All.Loops += One.Shared;
      All.Accesses += One.Accesses;
    }
    All.SummarisedLoops += Count.Loops;
    All.Recognised += Count.Accesses;
  }

  void report() {
    const std::string &File = Options::get().Report;
    if (File.empty())
      return;
    std::error_code Error;
    raw_fd_ostream Out(File, Error, sys::fs::OF_Append);
    if (Error) {
      errs() << "domicile: " << File << ": " << Error.message() << "\n";
      return;
    }
    Out << "{\"module\":\"" << M.getModuleIdentifier()
        << "\",\"loops\":" << All.Loops
        << ",\"summarised\":" << All.SummarisedLoops
        << ",\"accesses\":" << All.Accesses
        << ",\"recognised\":" << All.Recognised << "}\n";
  }
};

} // namespace

PreservedAnalyses SummaryPass::run(Module &Program, ModuleAnalysisManager &) {
  (void)At;
  return Summariser(Program).run() ? PreservedAnalyses::none()
                                   : PreservedAnalyses::all();
}

} // namespace domicile
