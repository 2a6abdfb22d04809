//===- callee.cpp - calls that touch no array of the program
//---------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/callee.h"
#include "summary/names.h"
#include "summary/own.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace domicile {

/// What the compiler and the runtimes put in: memory is had and given back,
/// threads are counted, and C++ sets up a thread's own variable of another file
/// (_ZTH) before each use of it (_ZTW).
static bool isOfTheRuntime(StringRef Name) {
  static constexpr StringLiteral Beginnings[] = {
      "__kmpc_", "omp_", "domicile.", "__cxa_", "_Zd", "_Zn", "_ZTH", "_ZTW"};
  return Name == "free" || Name == "malloc" ||
         any_of(Beginnings, [&](StringRef B) { return Name.starts_with(B); });
}

/// sqrt, pow: they have no address to work on.
static bool isOfNumbers(const CallBase &Call) {
  return Call.doesNotThrow() && !Call.getType()->isPointerTy() &&
         !Call.getType()->isVoidTy() && all_of(Call.args(), [](const Use &U) {
           return U->getType()->isFloatingPointTy() ||
                  U->getType()->isIntegerTy();
         });
}

/// The functions of flang's runtime that write or read one item, or say that a
/// statement begins or ends. (Others get an array by its descriptor.)
static bool isFortransPrinting(StringRef Name) {
  if (!Name.consume_front("_FortranAio"))
    return false;
  return !Name.contains("Descriptor") && !Name.contains("Namelist") &&
         !Name.contains("DerivedType");
}

/// Whether nothing that threads share lies at \p Address.
static bool isNobodyElses(const Value *Address) {
  const Value *Object = getUnderlyingObject(Address);
  if (isOwn(Object) || isa<ConstantPointerNull>(Object))
    return true;
  if (auto *Global = dyn_cast<GlobalVariable>(Object))
    return Global->isConstant();
  // A statement under way, by the name that the runtime gave it.
  if (calls(Object, "_FortranAio"))
    return true;
  auto *Load = dyn_cast<LoadInst>(Object);
  auto *Stream =
      Load ? dyn_cast<GlobalVariable>(Load->getPointerOperand()) : nullptr;
  return Stream && (Stream->getName() == "stdout" ||
                    Stream->getName() == "stderr" ||
                    Stream->getName() == "stdin");
}

/// The C library's functions that look at what they are given, print it or
/// take the time. (Those that call back are not among these.)
static bool isOfTheLibrary(const Function &Callee,
                           const TargetLibraryInfo &Library) {
  LibFunc Which;
  return Library.getLibFunc(Callee, Which) && Library.has(Which);
}

bool touchesNoArray(const CallBase &Call, const TargetLibraryInfo &Library) {
  if (isa<IntrinsicInst>(Call) || Call.doesNotAccessMemory() ||
      Call.onlyAccessesInaccessibleMemory())
    return true;
  StringRef Name = calleeName(Call);
  if (isOfTheRuntime(Name))
    return true;
  const Function *Callee = Call.getCalledFunction();
  if (!Callee || !Callee->isDeclaration())
    return false;
  if (isOfNumbers(Call))
    return true;
  return (isFortransPrinting(Name) || isOfTheLibrary(*Callee, Library)) &&
         all_of(Call.args(), [](const Use &U) {
           return !U->getType()->isPointerTy() || isNobodyElses(U);
         });
}

} // namespace domicile
