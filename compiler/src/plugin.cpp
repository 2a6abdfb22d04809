//===- plugin.cpp - the entry that clang, flang and opt look for
//-----------===//
//
// Purpose: says which passes there are and where in the pipeline they run.
//
//   clang-19   -fopenmp -fpass-plugin=libdomicile_compiler.so ...
//   flang-new-19 -fopenmp -fpass-plugin=libdomicile_compiler.so ...
//   opt-19 -load-pass-plugin=libdomicile_compiler.so -passes=domicile-summary
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "align/pass.h"
#include "options.h"
#include "prefetch/pass.h"
#include "summary/pass.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"

using namespace llvm;
using namespace domicile;

static void registerPasses(PassBuilder &Builder) {
  // Loops that the programmer made parallel: before anything has touched them.
  Builder.registerPipelineStartEPCallback(
      [](ModulePassManager &Passes, OptimizationLevel) {
        if (Options::get().Summary)
          Passes.addPass(SummaryPass(SummaryPass::When::Start));
      });
  // Loops that Polly made parallel: after it.
  Builder.registerOptimizerLastEPCallback(
      [](ModulePassManager &Passes, OptimizationLevel) {
        if (Options::get().Summary && Options::get().Late)
          Passes.addPass(SummaryPass(SummaryPass::When::End));
      });
  // Loops as they will run; and last the places of arrays, because what comes
  // after sees them as parts of larger objects.
  Builder.registerOptimizerLastEPCallback(
      [](ModulePassManager &Passes, OptimizationLevel Level) {
        if (Options::get().Prefetch && Level != OptimizationLevel::O0)
          addPrefetchPasses(Passes);
        if (Options::get().Align)
          Passes.addPass(AlignPass());
      });
  Builder.registerPipelineParsingCallback(
      [](StringRef Name, ModulePassManager &Passes,
         ArrayRef<PassBuilder::PipelineElement>) {
        if (Name == "domicile-summary")
          Passes.addPass(SummaryPass(SummaryPass::When::Start));
        else if (Name == "domicile-align")
          Passes.addPass(AlignPass());
        else if (Name == "domicile-prefetch")
          addPrefetchPasses(Passes);
        else
          return false;
        return true;
      });
}

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "domicile", LLVM_VERSION_STRING,
          registerPasses};
}
