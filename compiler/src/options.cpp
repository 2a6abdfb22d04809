//===- options.cpp - what the wrapper or the command line asks
//-------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "options.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace llvm;

namespace domicile {

static cl::opt<std::string>
    ReportFile("domicile-report",
               cl::desc("append how much of each module is summarised"),
               cl::value_desc("file"));

/// Names that other passes of this plugin read from the same variable with
/// findSetting().
static bool isKnown(StringRef Name) {
  return StringSwitch<bool>(Name)
      .Cases("summary", "late", "show", "report", true)
      .Cases("align", "pad", "prefetch", true)
      .Cases("line", "way", "chip", "cache", "page", true)
      .Cases("clock", "latency", "issue", true)
      .Default(false);
}

bool findSetting(StringRef List, StringRef Name, StringRef &Value) {
  SmallVector<StringRef, 8> Items;
  List.split(Items, ',', -1, /*KeepEmpty=*/false);
  for (StringRef Item : Items) {
    auto [Key, Said] = Item.split('=');
    if (Key != Name)
      continue;
    Value = Item.contains('=') ? Said : StringRef("on");
    return true;
  }
  return false;
}

static bool isOn(StringRef List, StringRef Name, bool Default) {
  StringRef Value;
  if (!findSetting(List, Name, Value))
    return Default;
  return Value == "on" || Value == "1" || Value == "yes";
}

static Options read() {
  Options Asked;
  const char *Variable = std::getenv("DOMICILE_COMPILER");
  StringRef List = Variable ? Variable : "";
  SmallVector<StringRef, 8> Items;
  List.split(Items, ',', -1, /*KeepEmpty=*/false);
  for (StringRef Item : Items)
    if (!isKnown(Item.split('=').first))
      errs() << "domicile: DOMICILE_COMPILER: `" << Item.split('=').first
             << "` is not known\n";

  Asked.Summary = isOn(List, "summary", true);
  Asked.Late = isOn(List, "late", true);
  Asked.Show = isOn(List, "show", false);
  Asked.Align = isOn(List, "align", true);
  Asked.Pad = Asked.Align && isOn(List, "pad", true);
  Asked.Prefetch = isOn(List, "prefetch", false);
  StringRef File;
  if (findSetting(List, "report", File))
    Asked.Report = File.str();
  if (!ReportFile.empty())
    Asked.Report = ReportFile;
  return Asked;
}

const Options &Options::get() {
  static const Options Asked = read();
  return Asked;
}

} // namespace domicile
