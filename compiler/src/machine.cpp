//===- machine.cpp - what the passes know of the machine -------------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "machine.h"
#include "options.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace llvm;

namespace domicile {

namespace {
enum class Kind { Any, PowerOfTwo };
}

static void set(StringRef List, StringRef Name, uint64_t &Field,
                Kind Needed = Kind::Any) {
  StringRef Said;
  if (!findSetting(List, Name, Said))
    return;
  // A bound keeps products of two of them within 64 bits.
  uint64_t Value = 0;
  if (Said.getAsInteger(10, Value) || Value == 0 || Value >> 32 ||
      (Needed == Kind::PowerOfTwo && !isPowerOf2_64(Value))) {
    errs() << "domicile: DOMICILE_COMPILER: `" << Name << "=" << Said
           << "` is not "
           << (Needed == Kind::PowerOfTwo ? "a power of two" : "a number")
           << " from 1 to 4294967295; " << Field << " is used\n";
    return;
  }
  Field = Value;
}

static Machine read() {
  Machine Given;
  const char *Variable = std::getenv("DOMICILE_COMPILER");
  StringRef List = Variable ? Variable : "";
  set(List, "line", Given.Line, Kind::PowerOfTwo);
  set(List, "way", Given.Way, Kind::PowerOfTwo);
  set(List, "page", Given.Page, Kind::PowerOfTwo);
  set(List, "chip", Given.Chip);
  set(List, "cache", Given.Cache);
  set(List, "clock", Given.Clock);
  set(List, "latency", Given.Latency);
  set(List, "issue", Given.Issue);
  if (Given.Way < Given.Line)
    Given.Way = Given.Line;
  return Given;
}

const Machine &Machine::get() {
  static const Machine Given = read();
  return Given;
}

} // namespace domicile
