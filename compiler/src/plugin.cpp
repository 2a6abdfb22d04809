//===- plugin.cpp - the entry that clang, flang and opt look for -----------===//
//
// Purpose: says which passes there are and where in the pipeline they run.
//
//   clang-19   -fopenmp -fpass-plugin=libdomicile_compiler.so ...
//   flang-new-19 -fopenmp -fpass-plugin=libdomicile_compiler.so ...
//   opt-19 -load-pass-plugin=libdomicile_compiler.so -passes=domicile-summary
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "options.h"
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
  Builder.registerPipelineParsingCallback(
      [](StringRef Name, ModulePassManager &Passes,
         ArrayRef<PassBuilder::PipelineElement>) {
        if (Name != "domicile-summary")
          return false;
        Passes.addPass(SummaryPass(SummaryPass::When::Start));
        return true;
      });
}

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "domicile", LLVM_VERSION_STRING,
          registerPasses};
}
