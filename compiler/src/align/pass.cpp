//===- align/pass.cpp - where large static arrays begin --------------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "align/pass.h"
#include "machine.h"
#include "options.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace domicile {

namespace {

/// What may be done with an array, and why no more.
enum class May { Nothing, Align, Pad };

struct Verdict {
  May Do;
  const char *Reason;
};

class Layout {
public:
  explicit Layout(Module &M) : M(M), Data(M.getDataLayout()) {
    SmallVector<GlobalValue *, 8> Named;
    collectUsedGlobalVariables(M, Named, /*CompilerUsed=*/false);
    collectUsedGlobalVariables(M, Named, /*CompilerUsed=*/true);
    Used.insert(Named.begin(), Named.end());
    for (const Function &F : M)
      if (!F.isDeclaration()) {
        Where = Where ? Where : &F;
        Sanitized |= F.hasFnAttribute(Attribute::SanitizeAddress) ||
                     F.hasFnAttribute(Attribute::SanitizeHWAddress);
      }
  }

  bool run(bool Pad);

private:
  Verdict judge(const GlobalVariable &Array) const;
  bool staysHere(const GlobalVariable &Array) const;
  void place(GlobalVariable &Array, uint64_t At);
  void remark(const GlobalVariable &Array, bool Done, const Twine &What) const;

  Module &M;
  const DataLayout &Data;
  const Machine &Target = Machine::get();
  SmallPtrSet<const GlobalValue *, 8> Used;
  /// A function to hang remarks on; there may be none.
  const Function *Where = nullptr;
  bool Sanitized = false;
};

} // namespace

/// Whether this definition is the one that the program will use, so that code
/// may rely on how it is aligned. Clang marks it, flang leaves it to the
/// module's level of position independence.
bool Layout::staysHere(const GlobalVariable &Array) const {
  if (!Array.isStrongDefinitionForLinker())
    return false;
  return Array.hasLocalLinkage() || Array.isDSOLocal() ||
         !Array.hasDefaultVisibility() ||
         M.getPIELevel() != PIELevel::Default ||
         M.getPICLevel() == PICLevel::NotPIC;
}

Verdict Layout::judge(const GlobalVariable &Array) const {
  if (Array.isThreadLocal())
    return {May::Nothing, "each thread has its own"};
  if (Array.hasSection() || Array.hasImplicitSection())
    return {May::Nothing, "it lies in a section of its own choice"};
  if (Used.contains(&Array))
    return {May::Nothing, "it is marked as used by what the compiler cannot see"};
  // Tables that the compiler made: nobody knows them by name.
  if (Array.hasPrivateLinkage() || !Array.hasName())
    return {May::Align, "it has no name"};
  if (Array.hasCommonLinkage())
    return {May::Align, "the linker lays it out: it is a COMMON block or a "
                        "tentative definition"};
  if (!staysHere(Array) || Array.hasComdat())
    return {May::Nothing, "another definition may replace it when the program "
                          "is linked or loaded"};
  return {May::Pad, nullptr};
}

void Layout::remark(const GlobalVariable &Array, bool Done,
                  const Twine &What) const {
  if (!Where)
    return;
  SmallVector<DIGlobalVariableExpression *, 1> Debug;
  Array.getDebugInfo(Debug);
  std::string Name = Array.getName().str();
  if (!Debug.empty()) {
    const DIGlobalVariable *Variable = Debug.front()->getVariable();
    Name = (Variable->getName() + " (" +
            sys::path::filename(Variable->getFilename()) + ":" +
            Twine(Variable->getLine()) + ")")
               .str();
  }
  std::string Text = ("`" + Twine(Name) + "` " + What).str();
  DiagnosticLocation Location(Where->getSubprogram());
  if (Done)
    M.getContext().diagnose(OptimizationRemark("domicile-align", "Placed",
                                               Location, &Where->front())
                            << Text);
  else
    M.getContext().diagnose(OptimizationRemarkMissed(
                                "domicile-align", "NotPlaced", Location,
                                &Where->front())
                            << Text);
}

/// Makes \p Array begin \p At bytes behind a multiple of the way.
void Layout::place(GlobalVariable &Array, uint64_t At) {
  Align Start(std::max(Target.Way, Array.getAlign().valueOrOne().value()));
  if (At == 0) {
    Array.setAlignment(Start);
    return;
  }
  LLVMContext &Context = M.getContext();
  Type *Inner = Array.getValueType();
  Type *Pad = ArrayType::get(Type::getInt8Ty(Context), At);
  StructType *Padded =
      StructType::get(Context, {Pad, Inner}, /*isPacked=*/true);
  Constant *Initial = ConstantStruct::get(
      Padded, {Constant::getNullValue(Pad), Array.getInitializer()});
  // Private: it is in no symbol table, so what looks an address up in there
  // finds the array's own symbol, which then has a size of its own as well.
  auto *Object = new GlobalVariable(M, Padded, Array.isConstant(),
                                    GlobalValue::PrivateLinkage, Initial,
                                    Array.getName() + ".padded", &Array,
                                    GlobalValue::NotThreadLocal,
                                    Array.getAddressSpace());
  Object->setAlignment(Start);
  Object->copyMetadata(&Array, static_cast<unsigned>(At));
  if (auto Model = Array.getCodeModel())
    Object->setCodeModel(*Model);
  Constant *Offset = ConstantInt::get(Type::getInt64Ty(Context), At);
  Constant *Field = ConstantExpr::getInBoundsGetElementPtr(
      Type::getInt8Ty(Context), Object, Offset);
  auto *Alias = GlobalAlias::create(Inner, Array.getAddressSpace(),
                                    Array.getLinkage(), "", Field, &M);
  Alias->takeName(&Array);
  Alias->setVisibility(Array.getVisibility());
  Alias->setDLLStorageClass(Array.getDLLStorageClass());
  Alias->setUnnamedAddr(Array.getUnnamedAddr());
  Alias->setDSOLocal(Array.isDSOLocal());
  Array.replaceAllUsesWith(Alias);
  Array.eraseFromParent();
}

bool Layout::run(bool Pad) {
  // Sanitizers lay globals out by themselves; only ELF has aliases like these.
  if (Sanitized || !Triple(M.getTargetTriple()).isOSBinFormatELF())
    return false;
  SmallVector<GlobalVariable *, 16> Placed;
  bool Changed = false;
  for (GlobalVariable &Array : M.globals()) {
    if (Array.isDeclaration() || Array.hasAvailableExternallyLinkage() ||
        Array.getName().starts_with("llvm.") ||
        Data.getTypeAllocSize(Array.getValueType()) < Target.Page)
      continue;
    Verdict Judged = judge(Array);
    if (Judged.Do == May::Nothing) {
      remark(Array, false, Twine("is neither aligned nor padded: ") + Judged.Reason);
      continue;
    }
    if (Array.getAlign().valueOrOne() < Target.Line) {
      Array.setAlignment(Align(Target.Line));
      Changed = true;
    }
    if (!Pad)
      continue;
    if (Judged.Do == May::Align)
      remark(Array, false, Twine("is aligned, but not padded: ") + Judged.Reason);
    else
      Placed.push_back(&Array);
  }
  if (Placed.empty() || Target.Way < 2 * Target.Line)
    return Changed;

  // Places are lines of a way, spread evenly. Modules begin at different ones,
  // by their files' names (not paths: the same source gives the same object).
  const uint64_t Places = Target.Way / Target.Line;
  const uint64_t Step = std::max<uint64_t>(1, Places / Placed.size());
  const uint64_t First =
      xxh3_64bits(sys::path::filename(M.getSourceFileName())) % Places;
  if (Placed.size() > Places)
    remark(*Placed.back(), false,
         "begins where another of this module's " + Twine(Placed.size()) +
             " arrays does: the on-chip cache has " + Twine(Places) + " places");
  for (auto [Number, Array] : enumerate(Placed)) {
    uint64_t At = (First + Number * Step) % Places * Target.Line;
    // An object that asks for more than a line only has places that it accepts.
    uint64_t Needed = Array->getAlign().valueOrOne().value();
    if (Needed > Target.Line)
      At = alignTo(At, Needed) % Target.Way;
    remark(*Array, true, "begins " + Twine(At) + " bytes into the on-chip cache");
    place(*Array, At);
  }
  return true;
}

PreservedAnalyses AlignPass::run(Module &M, ModuleAnalysisManager &) {
  const Options &Asked = Options::get();
  return Layout(M).run(Asked.Pad) ? PreservedAnalyses::none()
                                  : PreservedAnalyses::all();
}

} // namespace domicile
