//===- options.h - what the wrapper or the command line asks of the passes
//-===//
//
// Purpose: one place that knows how each pass is switched on and what it is
// given. flang has no -mllvm for options of plugins, so the wrappers say
// everything in one environment variable,
//
//   DOMICILE_COMPILER=summary=off,report=FILE
//
// (a name alone means `on`); the same names are options of `opt`
// (-domicile-report=FILE), which win over the environment.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_OPTIONS_H
#define DOMICILE_OPTIONS_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace domicile {

struct Options {
  /// Summarise parallel loops.
  bool Summary = true;
  /// Summarise once more at the end of the pipeline, what Polly made parallel.
  bool Late = true;
  /// Print each region as it is analysed on the standard error.
  bool Show = false;
  /// A file that gets one line (JSON) for each module: how many parallel loops
  /// and accesses there are, and how many of them are summarised. Empty: none.
  std::string Report;
  /// Align large static arrays on cache lines.
  bool Align = true;
  /// Have them begin at different places of the on-chip cache. Needs Align.
  bool Pad = true;
  /// Prefetch what is likely to miss.
  bool Prefetch = false;

  /// What environment and command line say. A name that no pass knows is reported
  /// on the standard error once and passed over: a wrapper may be newer.
  static const Options &get();
};

/// The value of \p Name in a list `a=1,b,c=x`; `on` for a name alone.
/// Returns false if the list does not have it.
bool findSetting(llvm::StringRef List, llvm::StringRef Name,
                 llvm::StringRef &Value);

} // namespace domicile

#endif
