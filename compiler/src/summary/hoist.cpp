//===- hoist.cpp - what a region captures and never changes
//----------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/hoist.h"
#include "summary/names.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"
#include <map>
#include <set>

using namespace llvm;

namespace domicile {

// Metadata of the clone's loads.
static constexpr StringLiteral HoistedKind = "domicile.hoisted";
static constexpr StringLiteral AlwaysKind = "domicile.always";
static constexpr StringLiteral RankKind = "domicile.rank";

bool isHoisted(const Value *V) {
  const auto *Load = dyn_cast<LoadInst>(V);
  return Load && Load->hasMetadata(HoistedKind);
}

bool isAlwaysLoaded(const LoadInst &Load) {
  return Load.hasMetadata(AlwaysKind);
}

unsigned descriptorRank(const LoadInst &Load) {
  if (const MDNode *Node = Load.getMetadata(RankKind))
    return mdconst::extract<ConstantInt>(Node->getOperand(0))->getZExtValue();
  return 0;
}

const Value *capturedRoot(const Value *Address, int64_t &Offset,
                          const DataLayout &Layout) {
  APInt Distance(Layout.getIndexTypeSizeInBits(Address->getType()), 0);
  const Value *Root = Address->stripAndAccumulateConstantOffsets(
      Layout, Distance, /*AllowNonInbounds=*/true);
  Offset = Distance.getSExtValue();
  if (isa<Argument>(Root) || isHoisted(Root))
    return Root;
  const auto *Global = dyn_cast<GlobalVariable>(Root);
  return Global && !Global->isThreadLocal() ? Root : nullptr;
}

/// flang's descriptor: base address, element's size, version, rank, type and
/// two bytes more, then three words for each dimension.
static unsigned rankOfDescriptor(Type *Ty) {
  auto *Struct = dyn_cast<StructType>(Ty);
  if (!Struct || Struct->getNumElements() < 8 ||
      !Struct->getElementType(0)->isPointerTy() ||
      !Struct->getElementType(1)->isIntegerTy(64) ||
      !Struct->getElementType(2)->isIntegerTy(32))
    return 0;
  auto *Dimensions = dyn_cast<ArrayType>(Struct->getElementType(7));
  if (!Dimensions)
    return 0;
  auto *Words = dyn_cast<ArrayType>(Dimensions->getElementType());
  if (!Words || Words->getNumElements() != 3)
    return 0;
  return Dimensions->getNumElements();
}

namespace {

/// What the region stores to, by root.
struct Stores {
  struct Range {
    int64_t Begin, End;
  };
  std::map<const Value *, SmallVector<Range, 4>> Exact;
  /// Roots that are stored to at places that vary; with what type.
  std::map<const Value *, SmallVector<Type *, 2>> Varying;
  /// Roots of which anything may be stored to.
  std::set<const Value *> Anywhere;
};

class Hoister {
public:
  Hoister(Function &Region, bool Fortran)
      : Region(Region), Fortran(Fortran),
        Layout(Region.getParent()->getDataLayout()), After(Region) {}

  void run() {
    findStores();
    // Loads of pointers first, then what they point to.
    while (round())
      ;
    dropMarks();
    for (LoadInst *Load : Replaced)
      Load->deleteValue();
  }

private:
  Function &Region;
  bool Fortran;
  const DataLayout &Layout;
  PostDominatorTree After;
  Stores Stored;
  std::map<std::tuple<const Value *, int64_t, Type *>, LoadInst *> Loaded;
  /// Kept to the end: stores are remembered by them, and no load that is made
  /// meanwhile may come to lie where one of them was.
  SmallVector<LoadInst *, 32> Replaced;

  void findStores() {
    for (Instruction &I : instructions(Region)) {
      Value *Address = nullptr;
      Type *Ty = nullptr;
      if (auto *Store = dyn_cast<StoreInst>(&I)) {
        Address = Store->getPointerOperand();
        Ty = Store->getValueOperand()->getType();
      } else if (auto *Update = dyn_cast<AtomicRMWInst>(&I)) {
        Address = Update->getPointerOperand();
        Ty = Update->getType();
      } else if (auto *Swap = dyn_cast<AtomicCmpXchgInst>(&I)) {
        Address = Swap->getPointerOperand();
        Ty = Swap->getCompareOperand()->getType();
      } else {
        if (auto *Call = dyn_cast<CallBase>(&I))
          noteCall(*Call);
        continue;
      }
      note(Address, Ty);
    }
  }

  /// What is copied or filled as a whole, and what a function without a body
  /// here is given the address of. (Fortran's get all numbers by address: those
  /// are taken to be left as they are.)
  void noteCall(CallBase &Call) {
    if (auto *Fill = dyn_cast<MemIntrinsic>(&Call)) {
      noteAnywhere(Fill->getRawDest());
      return;
    }
    StringRef Name = calleeName(Call);
    if (Fortran || isa<IntrinsicInst>(Call) || Call.onlyReadsMemory() ||
        Name.starts_with("__kmpc_") || Name.starts_with("domicile."))
      return;
    for (unsigned N = 0; N < Call.arg_size(); ++N)
      if (Call.getArgOperand(N)->getType()->isPointerTy() &&
          !Call.onlyReadsMemory(N))
        noteAnywhere(Call.getArgOperand(N));
  }

  void noteAnywhere(const Value *Address) {
    while (true) {
      Address = Address->stripPointerCasts();
      auto *Step = dyn_cast<GEPOperator>(Address);
      if (!Step)
        break;
      Address = Step->getPointerOperand();
    }
    Stored.Anywhere.insert(same(Address));
  }

  void note(Value *Address, Type *Ty) {
    APInt Distance(Layout.getIndexTypeSizeInBits(Address->getType()), 0);
    const Value *Root = Address->stripAndAccumulateConstantOffsets(
        Layout, Distance, /*AllowNonInbounds=*/true);
    if (isa<GEPOperator>(Root)) {
      // Somewhere within an array.
      while (auto *Step = dyn_cast<GEPOperator>(Root))
        Root = Step->getPointerOperand();
      Stored.Varying[same(Root)].push_back(Ty);
      return;
    }
    int64_t Begin = Distance.getSExtValue();
    int64_t Bytes = Layout.getTypeStoreSize(Ty).getFixedValue();
    Stored.Exact[same(Root)].push_back({Begin, Begin + Bytes});
  }

  /// Two loads of one captured pointer are the same root.
  std::map<std::pair<const Value *, int64_t>, const Value *> Representative;
  const Value *same(const Value *Root) {
    const auto *Load = dyn_cast<LoadInst>(Root);
    if (!Load)
      return Root;
    APInt Distance(
        Layout.getIndexTypeSizeInBits(Load->getOperand(0)->getType()), 0);
    const Value *From =
        Load->getPointerOperand()->stripAndAccumulateConstantOffsets(
            Layout, Distance, /*AllowNonInbounds=*/true);
    if (isa<GEPOperator>(From))
      return Root;
    return Representative
        .try_emplace({same(From), Distance.getSExtValue()}, Root)
        .first->second;
  }

  bool changes(const Value *Root, int64_t Begin, Type *Ty) {
    Root = same(Root);
    if (Stored.Anywhere.count(Root))
      return true;
    int64_t End = Begin + int64_t(Layout.getTypeStoreSize(Ty).getFixedValue());
    auto Exact = Stored.Exact.find(Root);
    if (Exact != Stored.Exact.end())
      for (auto &Range : Exact->second)
        if (Range.Begin < End && Begin < Range.End)
          return true;
    // A store at a varying place of the same object: of another type, it is
    // another member (arrays of doubles beside a count, say).
    auto Varying = Stored.Varying.find(Root);
    if (Varying != Stored.Varying.end())
      for (Type *Other : Varying->second)
        if (Other == Ty)
          return true;
    return false;
  }

  bool round() {
    SmallVector<LoadInst *, 32> Found;
    for (Instruction &I : instructions(Region))
      if (auto *Load = dyn_cast<LoadInst>(&I))
        if (canHoist(*Load))
          Found.push_back(Load);
    for (LoadInst *Load : Found)
      hoist(*Load);
    return !Found.empty();
  }

  /// A number with a fraction that decides something, and is a variable of its
  /// own.
  static bool isCompared(const LoadInst &Load) {
    auto *Global = dyn_cast<GlobalVariable>(Load.getPointerOperand());
    return (Load.getType()->isFloatTy() || Load.getType()->isDoubleTy()) &&
           (Global ? !Global->getValueType()->isArrayTy()
                   : isa<Argument>(Load.getPointerOperand())) &&
           any_of(Load.users(), [](const User *U) { return isa<FCmpInst>(U); });
  }

  bool canHoist(LoadInst &Load) {
    Type *Ty = Load.getType();
    // Values that bounds, strides and addresses are made of, and conditions.
    if (!Load.isSimple() || isHoisted(&Load) ||
        !(Ty->isPointerTy() || Ty->isIntegerTy() || isCompared(Load)))
      return false;
    int64_t Offset;
    const Value *Root = capturedRoot(Load.getPointerOperand(), Offset, Layout);
    // The first two arguments are the thread's numbers.
    if (const auto *A = dyn_cast_or_null<Argument>(Root))
      if (A->getArgNo() < 2)
        return false;
    return Root && !changes(Root, Offset, Ty);
  }

  void hoist(LoadInst &Load) {
    int64_t Offset;
    const Value *Root = capturedRoot(Load.getPointerOperand(), Offset, Layout);
    LoadInst *&Once = Loaded[{Root, Offset, Load.getType()}];
    if (!Once)
      Once = loadAtEntry(const_cast<Value *>(Root), Offset, Load);
    LLVMContext &Context = Region.getContext();
    if (After.dominates(Load.getParent(), &Region.getEntryBlock()))
      Once->setMetadata(AlwaysKind, MDNode::get(Context, {}));
    else
      leaveMark(Load, *Once);
    if (MDNode *Rank = Load.getMetadata(RankKind))
      Once->setMetadata(RankKind, Rank);
    if (const MDNode *Tag = Load.getMetadata(LLVMContext::MD_tbaa))
      if (!Once->hasMetadata(LLVMContext::MD_tbaa))
        Once->setMetadata(LLVMContext::MD_tbaa, const_cast<MDNode *>(Tag));
    Load.replaceAllUsesWith(Once);
    Load.removeFromParent();
    Replaced.push_back(&Load);
  }

  LoadInst *loadAtEntry(Value *Root, int64_t Offset, LoadInst &Load) {
    // After the loads that it may need, before everything else.
    Instruction *Next;
    if (auto *Before = dyn_cast<LoadInst>(Root))
      Next = Before->getNextNode();
    else
      Next = &*Region.getEntryBlock().getFirstInsertionPt();
    IRBuilder<> At(Next);
    At.SetCurrentDebugLocation(Load.getDebugLoc());
    Value *Address = Root;
    if (Offset)
      Address = At.CreateConstGEP1_64(At.getInt8Ty(), Root, Offset);
    LoadInst *Once = At.CreateLoad(Load.getType(), Address, Load.getName());
    LLVMContext &Context = Region.getContext();
    Once->setMetadata(HoistedKind, MDNode::get(Context, {}));
    Once->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(Context, {}));
    return Once;
  }

  /// What is read in any case, or can be, needs no marks.
  void dropMarks() {
    for (auto &[Key, Once] : Loaded) {
      auto [Root, Offset, Ty] = Key;
      auto *Captured = dyn_cast<Argument>(Root);
      int64_t End =
          Offset + int64_t(Layout.getTypeStoreSize(Ty).getFixedValue());
      if (!Once->hasMetadata(AlwaysKind) && !isa<GlobalVariable>(Root) &&
          !(Captured && int64_t(Captured->getDereferenceableBytes()) >= End))
        continue;
      for (User *U : make_early_inc_range(Once->getPointerOperand()->users()))
        if (calls(U, HereName))
          cast<Instruction>(U)->eraseFromParent();
    }
  }

  void leaveMark(LoadInst &Load, LoadInst &Once) {
    Module &M = *Region.getParent();
    LLVMContext &Context = M.getContext();
    auto Callee = M.getOrInsertFunction(
        HereName, FunctionType::get(Type::getVoidTy(Context),
                                    {PointerType::get(Context, 0)}, false));
    auto *F = cast<Function>(Callee.getCallee());
    F->setMemoryEffects(MemoryEffects::inaccessibleMemOnly());
    F->setDoesNotThrow();
    F->addFnAttr(Attribute::WillReturn);
    IRBuilder<> At(&Load);
    At.CreateCall(F, {Once.getPointerOperand()});
  }
};

} // namespace

static void setRank(LoadInst &Load, unsigned Rank) {
  LLVMContext &Context = Load.getContext();
  Load.setMetadata(
      RankKind, MDNode::get(Context, ConstantAsMetadata::get(ConstantInt::get(
                                         Type::getInt32Ty(Context), Rank))));
}

void markDescriptors(Function &Region) {
  for (Instruction &I : instructions(Region)) {
    auto *Load = dyn_cast<LoadInst>(&I);
    if (!Load || !Load->getType()->isPointerTy())
      continue;
    Type *Ty = nullptr;
    if (auto *Step = dyn_cast<GEPOperator>(Load->getPointerOperand()))
      Ty = Step->hasAllZeroIndices() ? Step->getSourceElementType() : nullptr;
    else if (auto *Global = dyn_cast<GlobalVariable>(Load->getPointerOperand()))
      Ty = Global->getValueType();
    if (unsigned Rank = Ty ? rankOfDescriptor(Ty) : 0)
      setRank(*Load, Rank);
  }
}

void hoistCaptured(Function &Region, bool Fortran) {
  Hoister(Region, Fortran).run();
}

} // namespace domicile
