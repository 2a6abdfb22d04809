//===- machine.h - what the passes know of the machine that they compile for ===//
//
// Purpose: the sizes and times by which arrays are laid out and prefetches
// scheduled. The wrappers take them from a machine description
// (--domicile-machine) and say them in DOMICILE_COMPILER; what is not said is
// that of present x86-64 machines, so that a build does not depend on where it
// is built.
//
//   DOMICILE_COMPILER=line=128,way=16384,cache=1048576,clock=400,latency=500
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#ifndef DOMICILE_MACHINE_H
#define DOMICILE_MACHINE_H

#include <cstdint>

namespace domicile {

struct Machine {
  /// Bytes of the longest cache line: what processors exchange.
  uint64_t Line = 64;
  /// Bytes after which the on-chip data cache begins anew: its size by its
  /// ways. Two virtual addresses that differ by a multiple compete there.
  uint64_t Way = 4096;
  /// Bytes of the on-chip data cache.
  uint64_t Chip = 32768;
  /// Bytes of the outermost cache.
  uint64_t Cache = 2097152;
  /// Bytes of a page.
  uint64_t Page = 4096;
  /// Cycles in a microsecond (MHz).
  uint64_t Clock = 3000;
  /// Nanoseconds until a line has come from memory.
  uint64_t Latency = 100;
  /// Instructions that begin in a cycle, in a loop whose data is there.
  uint64_t Issue = 2;

  /// Cycles until a line has come from memory.
  uint64_t latencyInCycles() const { return Latency * Clock / 1000; }

  /// What DOMICILE_COMPILER says, the values above where it says nothing.
  /// What is no number, is 0 where that makes no sense, or is no power of two
  /// where one is needed, is reported on the standard error and passed over.
  static const Machine &get();
};

} // namespace domicile

#endif
