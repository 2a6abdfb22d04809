//===- fork.cpp - the values of a region where it is forked
//----------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/fork.h"
#include "summary/access.h"
#include "summary/hoist.h"
#include "summary/linear.h"
#include "summary/names.h"
#include "summary/sizes.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace domicile {

/// What a load that must not be done reads instead: as long as the longest
/// descriptor of a Fortran array.
static GlobalVariable *nothing(Module &M) {
  constexpr StringLiteral Name = "domicile.nothing";
  if (GlobalVariable *There = M.getNamedGlobal(Name))
    return There;
  auto *Ty = ArrayType::get(Type::getInt64Ty(M.getContext()), 64);
  auto *Made = new GlobalVariable(M, Ty, /*isConstant=*/true,
                                  GlobalValue::InternalLinkage,
                                  ConstantAggregateZero::get(Ty), Name);
  Made->setAlignment(Align(16));
  return Made;
}

Fork::Fork(CallBase &Call, Function &Region, const Control &Shape,
           const DenseMap<Value *, Value *> &Globals)
    : Call(Call), Region(Region), Shape(Shape), Globals(Globals), To(&Call) {
  To.SetCurrentDebugLocation(Call.getDebugLoc());
}

Value *Fork::leaf(Value *V) {
  auto Before = Known.find(V);
  if (Before != Known.end())
    return Before->second;
  // A condition that needs the value it guards: it cannot be had.
  if (!Busy.insert(V).second)
    return nullptr;
  Value *Found = find(V);
  Busy.erase(V);
  return Known[V] = Found;
}

Value *Fork::find(Value *V) {
  if (isa<GlobalVariable>(V))
    return Globals.lookup(V);
  if (auto *A = dyn_cast<Argument>(V)) {
    // fork_call(where, count, function, the region's third argument, ...)
    unsigned At = A->getArgNo() + 1;
    if (A->getArgNo() < 2 || At >= Call.arg_size())
      return nullptr;
    Value *There = Call.getArgOperand(At);
    return There->getType() == A->getType() ? There : nullptr;
  }
  return load(cast<LoadInst>(*V));
}

/// Whether \p Bytes from \p There can be read at the fork in any case.
bool Fork::isReadable(Value *Root, Value *There, int64_t Bytes) const {
  const DataLayout &Layout = Call.getModule()->getDataLayout();
  if (isa<GlobalVariable>(Root))
    return true;
  if (auto *A = dyn_cast<Argument>(Root))
    if (int64_t(A->getDereferenceableBytes()) >= Bytes)
      return true;
  Value *Object = There->stripPointerCasts();
  if (auto *Variable = dyn_cast<AllocaInst>(Object))
    if (auto Size = Variable->getAllocationSize(Layout))
      return int64_t(Size->getKnownMinValue()) >= Bytes;
  return isa<GlobalVariable>(Object);
}

/// Whether the region does \p Load (i1), as far as that can be known.
Value *Fork::guard(LoadInst &Load) {
  const DataLayout &Layout = Region.getParent()->getDataLayout();
  int64_t Offset;
  const Value *Root = capturedRoot(Load.getPointerOperand(), Offset, Layout);
  Value *Any = nullptr;
  for (Instruction &I : instructions(Region)) {
    if (!calls(&I, HereName))
      continue;
    int64_t Its;
    if (capturedRoot(cast<CallBase>(I).getArgOperand(0), Its, Layout) != Root ||
        Its != Offset)
      continue;
    Conditions When;
    bool Known = Shape.conditions(I.getParent(), nullptr, When).empty();
    for (Loop *L = Shape.Loops.getLoopFor(I.getParent()); L && Known;
         L = L->getParentLoop()) {
      if (Shape.runsOnce(L, I.getParent()))
        continue;
      std::string Why;
      const SCEV *Count = Shape.count(L, I.getParent(), Why);
      Known = Count;
      if (Count)
        require(When, {Condition::Kind::Positive, nullptr, Count, nullptr});
    }
    SmallSetVector<Value *, 16> Leaves;
    for (const Condition &One : When) {
      if (One.Bool)
        leavesOf(One.Bool, Leaves);
      for (const SCEV *S : {One.Left, One.Right})
        if (S)
          leavesOf(S, Leaves);
    }
    for (Value *Leaf : Leaves)
      Known = Known && leaf(Leaf);
    if (!Known)
      continue;
    Translator There(To, [&](Value *Leaf) { return leaf(Leaf); });
    Value *Holds = There.write(When);
    Any = Any ? To.CreateOr(Any, Holds) : Holds;
  }
  return Any;
}

Value *Fork::addressOf(LoadInst &Load, int64_t Beyond) {
  const DataLayout &Layout = Region.getParent()->getDataLayout();
  int64_t Offset;
  const Value *Root = capturedRoot(Load.getPointerOperand(), Offset, Layout);
  Value *There = Root ? leaf(const_cast<Value *>(Root)) : nullptr;
  if (!There || !There->getType()->isPointerTy())
    return nullptr;
  int64_t Bytes = Layout.getTypeStoreSize(Load.getType()).getFixedValue();
  Value *Address = There;
  if (Offset + Beyond)
    Address = To.CreateConstGEP1_64(To.getInt8Ty(), There, Offset + Beyond);
  if (isReadable(const_cast<Value *>(Root), There, Offset + Beyond + Bytes) ||
      isAlwaysLoaded(Load))
    return Address;
  Value *Does = guard(Load);
  return Does ? To.CreateSelect(Does, Address, nothing(*Call.getModule()))
              : nullptr;
}

Value *Fork::load(LoadInst &Load) {
  const DataLayout &Layout = Region.getParent()->getDataLayout();
  int64_t Offset;
  const Value *Root = capturedRoot(Load.getPointerOperand(), Offset, Layout);
  if (Value *Holder = Root ? leaf(const_cast<Value *>(Root)) : nullptr)
    if (Value *Stored = storedBefore(Holder, Offset, Call))
      if (Stored->getType() == Load.getType())
        return Stored;
  Value *Address = addressOf(Load, 0);
  if (!Address)
    return nullptr;
  // Nobody may have written it yet.
  return To.CreateFreeze(
      To.CreateAlignedLoad(Load.getType(), Address, Load.getAlign()));
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

/// flang's descriptor: extent and stride of each dimension behind 24 bytes.
Value *Fork::sizeByDescriptor(LoadInst &Load, unsigned Rank) {
  Value *First = addressOf(Load, 0);
  if (!First)
    return nullptr;
  auto Word = [&](unsigned At) {
    return To.CreateFreeze(To.CreateLoad(
        To.getInt64Ty(), To.CreateConstGEP1_64(To.getInt8Ty(), First, At)));
  };
  Value *Bytes = Word(8), *Plain = To.getTrue();
  for (unsigned D = 0; D < Rank; ++D) {
    Value *Extent = Word(24 + 24 * D + 8), *Stride = Word(24 + 24 * D + 16);
    Bytes = To.CreateAdd(
        Bytes, To.CreateMul(Stride, To.CreateSub(Extent, To.getInt64(1))));
    Plain = To.CreateAnd(Plain, To.CreateICmpSGE(Stride, To.getInt64(0)));
    Plain = To.CreateAnd(Plain, To.CreateICmpSGT(Extent, To.getInt64(0)));
  }
  // Downwards, the base address is not the start: the size is not described.
  return To.CreateSelect(Plain, Bytes, To.getInt64(0));
}

/// The name in the debugging information of the variable at \p Address.
static std::string variableName(Value *Address) {
  for (DbgVariableRecord *Record : findDVRDeclares(Address))
    return Record->getVariable()->getName().str();
  if (auto *Variable = dyn_cast<Instruction>(Address))
    for (DbgVariableRecord *Record : at::getDVRAssignmentMarkers(Variable))
      return Record->getVariable()->getName().str();
  for (DbgDeclareInst *Declare : findDbgDeclares(Address))
    return Declare->getVariable()->getName().str();
  return "";
}

void Fork::describe(Value *There, Object &Found) {
  const DataLayout &Layout = Call.getModule()->getDataLayout();
  APInt Distance(64, 0);
  Value *Root = There->stripAndAccumulateConstantOffsets(
      Layout, Distance, /*AllowNonInbounds=*/true);
  auto *Global = dyn_cast<GlobalVariable>(Root);
  auto *Variable = dyn_cast<AllocaInst>(Root);
  if (Global || Variable) {
    Found.Start = Root;
    Found.Ahead = Distance.getSExtValue();
  }
  if (Global) {
    Found.Name = plainName(Global->getName());
    uint64_t Bytes = Layout.getTypeAllocSize(Global->getValueType());
    if (Bytes)
      Found.Bytes = To.getInt64(Bytes);
  }
  if (Variable) {
    Found.Name = variableName(Variable);
    Value *Count =
        To.CreateZExtOrTrunc(Variable->getArraySize(), To.getInt64Ty());
    Found.Bytes = To.CreateMul(Count, To.getInt64(Layout.getTypeAllocSize(
                                          Variable->getAllocatedType())));
  }
}

Object Fork::object(Value *Base) {
  Object Found;
  Found.Start = leaf(Base);
  if (!Found.Start)
    return Found;
  auto *Load = dyn_cast<LoadInst>(Base);
  if (!Load) {
    describe(Found.Start, Found);
    return Found;
  }
  if (unsigned Rank = descriptorRank(*Load))
    Found.Bytes = sizeByDescriptor(*Load, Rank);
  const DataLayout &Layout = Region.getParent()->getDataLayout();
  int64_t Offset;
  const Value *Root = capturedRoot(Load->getPointerOperand(), Offset, Layout);
  Value *Holder = Root ? leaf(const_cast<Value *>(Root)) : nullptr;
  if (!Holder)
    return Found;
  // flang passes a structure of addresses: what was stored there.
  if (Value *Stored = storedBefore(Holder, Offset, Call)) {
    if (!isa<LoadInst>(Stored))
      describe(Stored, Found);
    return Found;
  }
  if (Offset)
    return Found;
  Found.Name = isa<GlobalVariable>(Holder) ? plainName(Holder->getName())
                                           : variableName(Holder);
  if (!Found.Bytes)
    Found.Bytes = allocatedBytes(Holder, Call);
  return Found;
}

Value *Fork::threads() const {
  // An if clause puts a branch between the two.
  const BasicBlock *Block = Call.getParent();
  const Instruction *I = Call.getPrevNode();
  for (unsigned Blocks = 0; Block && Blocks < 3; ++Blocks) {
    for (; I; I = I->getPrevNode()) {
      if (calls(I, "__kmpc_push_num_threads"))
        return cast<CallBase>(I)->getArgOperand(2);
      if (calls(I, "__kmpc_fork_call"))
        return nullptr;
    }
    Block = Block->getSinglePredecessor();
    I = Block ? Block->getTerminator() : nullptr;
  }
  return nullptr;
}

} // namespace domicile
