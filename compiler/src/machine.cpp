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
  Machine Told;
  const char *Variable = std::getenv("DOMICILE_COMPILER");
  StringRef List = Variable ? Variable : "";
  set(List, "line", Told.Line, Kind::PowerOfTwo);
  set(List, "way", Told.Way, Kind::PowerOfTwo);
  set(List, "page", Told.Page, Kind::PowerOfTwo);
  set(List, "chip", Told.Chip);
  set(List, "cache", Told.Cache);
  set(List, "clock", Told.Clock);
  set(List, "latency", Told.Latency);
  set(List, "issue", Told.Issue);
  if (Told.Way < Told.Line)
    Told.Way = Told.Line;
  return Told;
}

const Machine &Machine::get() {
  static const Machine Told = read();
  return Told;
}

} // namespace domicile
