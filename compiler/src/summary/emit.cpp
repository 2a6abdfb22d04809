//===- emit.cpp - summaries as calls of the run-time library
//---------------===//
//
// SPDX-License-Identifier: MIT OR Apache-2.0
//===----------------------------------------------------------------------===//

#include "summary/emit.h"
#include "summary/access.h"
#include "summary/guard.h"
#include "summary/linear.h"
#include "summary/record.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace domicile {

// Values of domicile/summary.h.
enum Schedule : unsigned { Even = 0, Chunked = 2 };
enum Access : unsigned { Reads = 1, Writes = 2 };

namespace {

struct Ready {
  const Use *What;
  Object Array;
};

struct ReadyLoop {
  const ParallelLoop *What;
  std::vector<Ready> Uses;
};

class Emitter {
public:
  Emitter(CallBase &Call, Fork &At, Report Remark)
      : Call(Call), At(At), Remark(Remark) {}

  DescribedCount run(const Study &Found) {
    DescribedCount Count;
    std::vector<ReadyLoop> Loops;
    for (const ParallelLoop &One : Found.Loops) {
      ReadyLoop Made{&One, {}};
      if (!One.Refused.empty() || !canHave(One))
        continue;
      for (const Use &U : One.Uses)
        if (std::optional<Ready> Can = prepare(U)) {
          Made.Uses.push_back(*Can);
          Count.Accesses += U.Accesses;
        }
      if (One.Shared && !Made.Uses.empty())
        ++Count.Loops;
      if (!Made.Uses.empty())
        Loops.push_back(std::move(Made));
    }
    if (Loops.empty())
      return Count;
    for (const ReadyLoop &One : Loops)
      remark(One);
    Threads = At.threads();
    for (const ReadyLoop &One : Loops) {
      Inputs.clear();
      gather(One);
      if (Inputs.empty() && (!Threads || isa<Constant>(Threads))) {
        Guard Early(*Call.getModule());
        write({One}, Early);
      }
    }
    Inputs.clear();
    for (const ReadyLoop &One : Loops)
      gather(One);
    if (!Threads)
      Threads = usualThreads(At.builder());
    if (!isa<Constant>(Threads))
      Inputs.insert(Threads);
    if (!Inputs.empty()) {
      Guard AtFork(Call, At.builder(), Inputs.getArrayRef());
      write(Loops, AtFork);
    }
    return Count;
  }

private:
  CallBase &Call;
  Fork &At;
  Report Remark;
  /// What the summaries depend on, as values of the program.
  SmallSetVector<Value *, 16> Inputs;
  /// Of the team; null: as many as usual.
  Value *Threads = nullptr;

  static void leaves(const Conditions &All, SmallSetVector<Value *, 16> &Into) {
    for (const Condition &One : All) {
      if (One.Bool)
        leavesOf(One.Bool, Into);
      for (const SCEV *S : {One.Left, One.Right})
        if (S)
          leavesOf(S, Into);
    }
  }

  static SmallSetVector<Value *, 16> leaves(const ParallelLoop &One) {
    SmallSetVector<Value *, 16> All;
    leavesOf(One.Iterations, All);
    if (One.Chunked)
      leavesOf(One.Chunk, All);
    leaves(One.When, All);
    return All;
  }

  static SmallSetVector<Value *, 16> leaves(const Use &U) {
    SmallSetVector<Value *, 16> All;
    for (const SCEV *S : {U.Offset, U.Unit, U.Span, U.Distance})
      if (S)
        leavesOf(S, All);
    for (const Inner &Loop : U.Inners) {
      leavesOf(Loop.Stride, All);
      leavesOf(Loop.Count, All);
    }
    leaves(U.When, All);
    return All;
  }

  bool canHave(const ParallelLoop &One) {
    for (Value *Leaf : leaves(One))
      if (!At.leaf(Leaf)) {
        Remark(
            false, One.Where,
            "loop not summarised: its bounds cannot be read before the region");
        return false;
      }
    return true;
  }

  std::optional<Ready> prepare(const Use &U) {
    Ready Made{&U, {}};
    bool Can = true;
    for (Value *Leaf : leaves(U))
      Can = Can && At.leaf(Leaf);
    if (Can)
      Made.Array = At.object(U.Base);
    if (!Can || !Made.Array.Start) {
      Remark(false, U.Where,
           Twine(U.Writes ? "write" : "read") +
               " of an array not summarised: its address or bounds cannot be "
               "read before the region");
      return std::nullopt;
    }
    if (Made.Array.Name.empty())
      Made.Array.Name = U.Name;
    if (Made.Array.Name.empty())
      Made.Array.Name = plainName(Call.getFunction()->getName()) + "'s array";
    return Made;
  }

  void gather(const ReadyLoop &One) {
    auto Add = [&](Value *V) {
      if (V && !isa<Constant>(V))
        Inputs.insert(V);
    };
    for (Value *Leaf : leaves(*One.What))
      Add(At.leaf(Leaf));
    for (const Ready &R : One.Uses) {
      for (Value *Leaf : leaves(*R.What))
        Add(At.leaf(Leaf));
      Add(R.Array.Start);
      Add(R.Array.Bytes);
    }
  }

  void write(ArrayRef<ReadyLoop> Loops, Guard &Written) {
    Translator There(Written.cold(),
                     [&](Value *Leaf) { return Written.input(At.leaf(Leaf)); });
    for (const ReadyLoop &One : Loops)
      write(One, There, Written);
  }

  void remark(const ReadyLoop &One) {
    const ParallelLoop &What = *One.What;
    if (What.Shared)
      Remark(true, What.Where,
           "loop summarised: " + Twine(What.Recognised) + " of " +
               Twine(What.Accesses) + " accesses in " + Twine(One.Uses.size()) +
               " summaries, iterations " + number(What.Iterations) +
               (What.Chunked ? ", chunk " + number(What.Chunk) : ""));
    for (const Ready &R : One.Uses)
      Remark(true, R.What->Where, sentence(R, What.Shared));
  }

  void write(const ReadyLoop &One, Translator &There, Guard &Written) {
    IRBuilder<> &To = Written.cold();
    const ParallelLoop &What = *One.What;
    LoopRecord Record;
    Record.Place = text(To, placeOf(What));
    Record.Present = There.write(What.When);
    Record.Iterations = There.write(What.Iterations);
    Record.Chunk = To.getInt64(0);
    if (What.Chunked) {
      // libomp takes less than one for one.
      Value *Chunk = There.write(What.Chunk), *Least = To.getInt64(1);
      Record.Chunk =
          To.CreateSelect(To.CreateICmpSLT(Chunk, Least), Least, Chunk);
    }
    Record.Schedule = To.getInt32(What.Chunked ? Chunked : Even);
    Record.Threads =
        Threads ? To.CreateZExtOrTrunc(Written.input(Threads), To.getInt32Ty())
                : To.getInt32(0);
    SmallVector<SummaryRecord, 8> Records;
    for (const Ready &R : One.Uses)
      Records.push_back(summary(R, There, Written));
    writeCall(To, Record, Records);
  }

  SummaryRecord summary(const Ready &R, Translator &There, Guard &Written) {
    IRBuilder<> &To = Written.cold();
    const Use &U = *R.What;
    SummaryRecord Made;
    Made.Name = text(To, R.Array.Name);
    Made.Start = Written.input(R.Array.Start);
    Made.Bytes = R.Array.Bytes ? Written.input(R.Array.Bytes) : To.getInt64(0);
    Made.Present = There.write(U.When);
    Made.Offset =
        To.CreateAdd(There.write(U.Offset), To.getInt64(R.Array.Ahead));
    Made.Unit = There.write(U.Unit);
    Made.Span = There.write(U.Span);
    for (unsigned N = 0; N < SummaryRecord::Inner; ++N) {
      bool Has = N < U.Inners.size();
      Made.Strides[N] = Has ? There.write(U.Inners[N].Stride) : To.getInt64(0);
      Made.Counts[N] = Has ? There.write(U.Inners[N].Count) : To.getInt64(0);
    }
    Made.Distance = U.Distance ? There.write(U.Distance) : To.getInt64(0);
    Made.Communication = To.getInt32(unsigned(U.Communication));
    Made.Access = To.getInt32((U.Reads ? Reads : 0) | (U.Writes ? Writes : 0));
    return Made;
  }

  static std::string number(const SCEV *S) {
    if (auto *C = dyn_cast<SCEVConstant>(S))
      return std::to_string(C->getAPInt().getSExtValue());
    return "known at run time";
  }

  static std::string sentence(const Ready &R, bool Shared) {
    const Use &U = *R.What;
    std::string Text = R.Array.Name + ": ";
    if (U.Reads)
      Text += U.Writes ? "read and written" : "read";
    else
      Text += "written";
    Text += Shared ? "" : " by every thread";
    Text += ", unit " + number(U.Unit) + ", offset " + number(U.Offset) +
            ", span " + number(U.Span);
    for (const Inner &Loop : U.Inners)
      Text += ", inner " + number(Loop.Stride) + " x " + number(Loop.Count);
    if (U.Communication != Use::Talk::None)
      Text += (U.Communication == Use::Talk::Shift ? ", shift " : ", rotate ") +
              number(U.Distance);
    return Text;
  }

  /// `calc1 (swim.f90:123)`
  std::string placeOf(const ParallelLoop &Loop) {
    Function &F = *Call.getFunction();
    std::string Place = plainName(F.getName());
    if (DISubprogram *Described = F.getSubprogram())
      if (!Described->getName().empty())
        Place = Described->getName().str();
    DebugLoc Where = Loop.Shared ? Loop.Where : Call.getDebugLoc();
    if (Where)
      Place += " (" + sys::path::filename(Where->getFilename()).str() + ":" +
               std::to_string(Where.getLine()) + ")";
    return Place;
  }

  Constant *text(IRBuilder<> &To, StringRef Text) {
    return To.CreateGlobalString(Text, "domicile.text");
  }
};

} // namespace

DescribedCount emit(CallBase &Call, const Study &Found, Fork &At, Report Remark) {
  return Emitter(Call, At, Remark).run(Found);
}

} // namespace domicile
