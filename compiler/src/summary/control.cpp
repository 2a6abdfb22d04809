//===- control.cpp - when, and how often, a block of a region runs
//---------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/control.h"
#include "summary/linear.h"
#include "summary/names.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace domicile {

static std::string whyNot(const Value *Bool) {
  // One thread's work: omp single, master, masked.
  SmallVector<const Value *, 8> Work{Bool};
  for (unsigned Steps = 0; !Work.empty() && Steps < 16; ++Steps) {
    const Value *V = Work.pop_back_val();
    if (calls(V, "__kmpc_single") || calls(V, "__kmpc_master") ||
        calls(V, "__kmpc_masked"))
      return "only one thread runs it (single or master)";
    if (calls(V, "__kmpc_reduce"))
      return "it is the end of a reduction";
    if (auto *I = dyn_cast<Instruction>(V))
      if (!isa<LoadInst>(I) && !isa<PHINode>(I))
        for (const llvm::Use &U : I->operands())
          Work.push_back(U.get());
  }
  return "it runs under a condition that may change from iteration to "
         "iteration";
}

std::string Control::conditions(BasicBlock *Block, const Loop *Within,
                                Conditions &When, bool MayEnd) const {
  BasicBlock *Stop = Within ? Within->getHeader() : nullptr;
  auto *Node = Dominators.getNode(Block);
  while (Node && Node->getBlock() != Stop) {
    // From one dominator to the next: a block that always follows the one above
    // it depends on nothing there, but perhaps on what is further above.
    BasicBlock *Below = Node->getBlock();
    Node = Node->getIDom();
    if (!Node)
      break;
    BasicBlock *Above = Node->getBlock();
    Instruction *End = Above->getTerminator();
    if (End->getNumSuccessors() < 2 || After.dominates(Below, Above))
      continue;
    // A loop that may be left there: count() knows how often it runs.
    bool Counted = false, Leaves = false;
    for (Loop *L = Loops.getLoopFor(Above); L; L = L->getParentLoop())
      if (L->contains(Block)) {
        Counted |= L->getExitingBlock() == Above;
        Leaves |= L->isLoopExiting(Above);
      }
    if (Counted || (Leaves && MayEnd))
      continue;
    if (Leaves)
      return "a loop around it may be left early";
    auto *Branch = dyn_cast<BranchInst>(End);
    if (!Branch)
      return "it is one case of several (a switch)";
    unsigned Taken = 0, Leading = 0;
    for (unsigned N = 0; N < 2; ++N)
      if (Dominators.dominates(BasicBlockEdge(Above, Branch->getSuccessor(N)),
                               Below)) {
        Taken = N;
        ++Leading;
      }
    if (!isKnownBefore(Branch->getCondition()))
      return whyNot(Branch->getCondition());
    if (Leading != 1)
      return "it runs under a condition of several parts";
    require(When, {Taken == 0 ? Condition::Kind::Holds : Condition::Kind::Fails,
                   Branch->getCondition()});
  }
  return "";
}

BasicBlock *Control::common(ArrayRef<BasicBlock *> Blocks) const {
  BasicBlock *Above = Blocks.front();
  for (BasicBlock *Block : Blocks)
    Above = Dominators.findNearestCommonDominator(Above, Block);
  const Loop *Around = Loops.getLoopFor(Above);
  SmallPtrSet<BasicBlock *, 16> Seen(Blocks.begin(), Blocks.end());
  if (Seen.count(Above))
    return Above;
  for (BasicBlock *Block : Blocks)
    if (Loops.getLoopFor(Block) != Around)
      return nullptr;
  auto *Node = After.getNode(Above);
  BasicBlock *Meet =
      Node && Node->getIDom() ? Node->getIDom()->getBlock() : nullptr;
  SmallVector<BasicBlock *, 16> Work(successors(Above));
  while (!Work.empty()) {
    BasicBlock *Block = Work.pop_back_val();
    // Past all of them, out of the loop, or round again.
    if (Block == Meet || Block == Above || (Around && !Around->contains(Block)))
      return nullptr;
    if (Seen.insert(Block).second)
      Work.append(succ_begin(Block), succ_end(Block));
  }
  return Above;
}

const SCEV *Control::count(const Loop *L, const BasicBlock *Block,
                           std::string &Why) const {
  BasicBlock *Exit = L->getExitingBlock();
  if (!Exit) {
    Why = "a loop around it may be left early";
    return nullptr;
  }
  const SCEV *Turns = Evolution.getExitCount(L, Exit);
  if (isa<SCEVCouldNotCompute>(Turns)) {
    Why = "how often a loop around it runs is not known before";
    return nullptr;
  }
  if (!isKnownBefore(Turns)) {
    Why = "the bounds of a loop around it change within the region (a triangle "
          "or a tile)";
    return nullptr;
  }
  Type *Word = Type::getInt64Ty(Evolution.getContext());
  Turns = Evolution.getTruncateOrZeroExtend(Turns, Word);
  bool AfterTest = Block != Exit && Dominators.dominates(Exit, Block);
  return AfterTest ? Turns
                   : Evolution.getAddExpr(Turns, Evolution.getOne(Word));
}

bool Control::runsOnce(const Loop *L, const BasicBlock *Block) const {
  BasicBlock *Exit = L->getExitingBlock();
  return Exit && (Block == Exit || !Dominators.dominates(Exit, Block));
}

} // namespace domicile
