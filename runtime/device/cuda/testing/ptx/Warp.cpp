// The run loop. Lanes that part at a branch become groups; the one with the lowest program counter
// runs first, and groups that meet become one again. At an instruction for several lanes together a
// group waits for the others.
#include "runtime/device/cuda/testing/ptx/Machine.h"

#include <algorithm>

namespace titan::ptx {
namespace {

class WarpRun {
public:
  WarpRun(Machine& machine, Warp& warp) : machine_(machine), warp_(warp) {}

  bool run() {
    while (!warp_.groups.empty() && !warp_.atBarrier) {
      merge();
      Group* group = lowest();
      if (!group && warp_.groups.size() > 1)
        return deadlock();
      if (!group) // those it waits for have exited: it says so
        group = &warp_.groups[0];
      if (!runGroup(*group))
        return false;
    }
    if (warp_.groups.empty() || warp_.loads.large() || warp_.stores.large())
      endTrip(machine_, warp_);
    return true;
  }

private:
  enum class Step { Next, Jump, Reselect, Fault };

  void merge() {
    std::vector<Group>& groups = warp_.groups;
    if (groups.size() < 2)
      return;
    std::sort(groups.begin(), groups.end(),
              [](const Group& a, const Group& b) { return a.pc < b.pc; });
    size_t kept = 0;
    for (size_t i = 1; i < groups.size(); ++i)
      if (groups[kept].pc == groups[i].pc)
        groups[kept] = {groups[i].pc, groups[kept].mask | groups[i].mask, false};
      else
        groups[++kept] = groups[i];
    groups.resize(kept + 1);
  }

  Group* lowest() {
    auto found = std::find_if(warp_.groups.begin(), warp_.groups.end(),
                              [](const Group& group) { return !group.parked; });
    return found == warp_.groups.end() ? nullptr : &*found;
  }

  /// All groups wait, each for lanes of another.
  bool deadlock() {
    const Group& first = warp_.groups[0];
    const Group& second = warp_.groups[1];
    return fail(at(first.pc), firstLane(first.mask),
                fmt::format("lanes 0x{:08x} wait for lanes 0x{:08x}, which wait at line {}",
                            first.mask, second.mask, at(second.pc).line));
  }

  const Instruction& at(uint32_t pc) const { return machine_.entry->code[pc]; }
  bool fail(const Instruction& instruction, int lane, const std::string& what) {
    return machine_.fail(instruction, lane, what);
  }

  /// Until it meets another group, parts, waits or exits.
  bool runGroup(Group& group) {
    uint32_t limit = ~uint32_t{0};
    for (const Group& other : warp_.groups)
      if (other.pc > group.pc)
        limit = std::min(limit, other.pc);
    const bool alone = warp_.groups.size() == 1;
    for (;;) {
      const Instruction& instruction = at(group.pc);
      switch (step(instruction, group)) {
      case Step::Next:
        if (++group.pc == limit)
          return true;
        break;
      case Step::Jump:
        if (!alone)
          return true;
        break;
      case Step::Reselect:
        return true;
      case Step::Fault:
        return false;
      }
    }
  }

  Step step(const Instruction& instruction, Group& group) {
    Mask mask = group.mask;
    if (--warp_.budget < 0) {
      fail(instruction, firstLane(mask),
           fmt::format("has run {} instructions: an endless loop?", machine_.launch->warpBudget));
      return Step::Fault;
    }
    ++machine_.counters.warpInstructions;
    if (instruction.guarded) {
      if (!defined(instruction, instruction.guardIndex, mask))
        return Step::Fault;
      Mask guard = *reinterpret_cast<Mask*>(warp_.file + instruction.guardAt);
      mask &= instruction.guardNegated ? ~guard : guard;
    }
    const int operands = instruction.results + instruction.sources;
    for (int i = instruction.results; i < operands; ++i)
      if (!defined(instruction, instruction.index[i], mask))
        return Step::Fault;
    machine_.classes[static_cast<int>(instruction.counter)] += lanesOf(mask);
    Step done = mask ? execute(instruction, group, mask) : Step::Next;
    if (done == Step::Next)
      for (int i = 0; i < instruction.results; ++i)
        warp_.written[instruction.index[i]] |= mask;
    return done;
  }

  bool defined(const Instruction& instruction, uint32_t index, Mask mask) {
    Mask missing = mask & ~warp_.written[index];
    return missing == 0 || undefined(instruction, index, missing);
  }

  __attribute__((noinline)) bool undefined(const Instruction& instruction, uint32_t index,
                                           Mask missing) {
    return fail(instruction, firstLane(missing),
                fmt::format("reads register {}, which this thread never wrote",
                            machine_.entry->registers[index].name));
  }

  static Step stepOf(bool fine) { return fine ? Step::Next : Step::Fault; }

  Step execute(const Instruction& instruction, Group& group, Mask mask) {
    switch (instruction.kind) {
    case Kind::Divide:
      if (!divisible(instruction, mask))
        return Step::Fault;
      [[fallthrough]];
    case Kind::Lanes:
      instruction.lanes(warp_.file, instruction.at.data(), mask);
      return Step::Next;
    case Kind::Load:
    case Kind::Store:
      return stepOf(access(machine_, warp_, instruction, mask));
    case Kind::LoadMatrix:
    case Kind::Multiply:
      return matrices(instruction, group);
    case Kind::Copy:
      return stepOf(copyAsync(machine_, warp_, instruction, mask));
    case Kind::CommitCopies:
      warp_.copies.commit(mask);
      return Step::Next;
    case Kind::WaitCopies:
      warp_.copies.wait(mask, instruction.number, warp_.number * warpSize, *machine_.shared);
      return Step::Next;
    case Kind::Branch:
      return branch(instruction, group, mask);
    case Kind::Exit:
      return exit(instruction, group, mask);
    case Kind::Barrier:
      return barrier(instruction, group);
    case Kind::WarpSync:
    case Kind::Shuffle:
    case Kind::Vote:
      return together(instruction, group);
    case Kind::ActiveMask:
      vote(warp_, instruction, mask);
      return Step::Next;
    case Kind::Fence:
      return Step::Next;
    case Kind::Undefine:
      undefine(instruction);
      return Step::Next;
    }
    return Step::Fault;
  }

  bool divisible(const Instruction& instruction, Mask mask) {
    int bytes = static_cast<int>(machine_.entry->registers[instruction.index[2]].width);
    const char* divisor = warp_.file + instruction.at[2];
    for (Mask left = mask; left; left &= left - 1) {
      const char* value = divisor + firstLane(left) * bytes;
      if (std::all_of(value, value + bytes, [](char byte) { return byte == 0; }))
        return fail(instruction, firstLane(left), "divides by zero, whose value PTX leaves open");
    }
    return true;
  }

  /// A value that depends on the order of the launch: what rests on it differs from run to run.
  void undefine(const Instruction& instruction) {
    char* column = warp_.file + instruction.at[0];
    Width width = machine_.entry->registers[instruction.index[0]].width;
    size_t bytes = width == Width::Predicate ? sizeof(Mask) : warpSize * static_cast<size_t>(width);
    for (size_t i = 0; i < bytes; ++i)
      column[i] = static_cast<char>(machine_.nextGarbage());
  }

  Step branch(const Instruction& instruction, Group& group, Mask taken) {
    if (instruction.target <= group.pc)
      endTrip(machine_, warp_);
    if (taken == group.mask) {
      group.pc = instruction.target;
      return Step::Jump;
    }
    ++machine_.counters.divergences;
    group.mask &= ~taken;
    ++group.pc;
    warp_.groups.push_back({instruction.target, taken, false});
    return Step::Reselect;
  }

  Step exit(const Instruction& instruction, Group& group, Mask mask) {
    if (Mask waiting = warp_.copies.waiting(mask)) {
      fail(instruction, firstLane(waiting), "exits before its copies have come: it waits for none");
      return Step::Fault;
    }
    warp_.live &= ~mask;
    group.mask &= ~mask;
    if (group.mask)
      return Step::Next;
    warp_.groups.erase(warp_.groups.begin() + (&group - warp_.groups.data()));
    return Step::Reselect;
  }

  /// Whether all lanes of `wanted` are here. Else the group waits for them, or they never come.
  Step gather(const Instruction& instruction, Group& group, Mask wanted) {
    wanted &= warp_.started;
    if (Mask gone = wanted & ~warp_.live) {
      fail(instruction, firstLane(group.mask),
           fmt::format("waits for lanes 0x{:08x}, which have exited", gone));
      return Step::Fault;
    }
    if (group.mask == wanted)
      return Step::Next;
    group.parked = true;
    // It counts when it is done.
    --machine_.counters.warpInstructions;
    machine_.classes[static_cast<int>(instruction.counter)] -= lanesOf(group.mask);
    return Step::Reselect;
  }

  Step barrier(const Instruction& instruction, Group& group) {
    auto threads =
        machine_.launch->block[0] * machine_.launch->block[1] * machine_.launch->block[2];
    if (instruction.number != 0 && instruction.number != int64_t{threads}) {
      fail(
          instruction, firstLane(group.mask),
          fmt::format("is a barrier of {} threads, in a block of {}", instruction.number, threads));
      return Step::Fault;
    }
    Step gathered = gather(instruction, group, warp_.started);
    if (gathered != Step::Next)
      return gathered;
    const auto* numbers = reinterpret_cast<uint32_t*>(warp_.file + instruction.at[0]);
    warp_.atBarrier = numbers[firstLane(group.mask)];
    ++group.pc;
    return Step::Reselect;
  }

  Step matrices(const Instruction& instruction, Group& group) {
    if (warp_.started != ~Mask{0}) {
      fail(instruction, firstLane(group.mask),
           fmt::format("is for the 32 lanes of a warp, and this one has {}",
                       lanesOf(warp_.started)));
      return Step::Fault;
    }
    Step gathered = gather(instruction, group, warp_.started);
    if (gathered != Step::Next)
      return gathered;
    if (instruction.kind == Kind::LoadMatrix)
      return stepOf(loadMatrix(machine_, warp_, instruction));
    multiply(warp_, instruction);
    return Step::Next;
  }

  Step together(const Instruction& instruction, Group& group) {
    int last = instruction.results + instruction.sources - 1;
    const auto* members = reinterpret_cast<uint32_t*>(warp_.file + instruction.at[last]);
    Mask wanted = members[firstLane(group.mask)];
    for (Mask left = group.mask; left; left &= left - 1)
      if (int lane = firstLane(left); members[lane] != wanted || !(wanted >> lane & 1)) {
        fail(instruction, lane,
             fmt::format("takes part with lanes 0x{:08x}, but runs with 0x{:08x}", members[lane],
                         group.mask));
        return Step::Fault;
      }
    Step gathered = gather(instruction, group, wanted);
    if (gathered != Step::Next)
      return gathered;
    if (instruction.kind == Kind::Shuffle)
      return stepOf(shuffle(machine_, warp_, instruction, group.mask));
    if (instruction.kind == Kind::Vote)
      vote(warp_, instruction, group.mask);
    else if (group.mask == warp_.started && machine_.shared)
      machine_.shared->warpSync(warp_.number);
    return Step::Next;
  }

  Machine& machine_;
  Warp& warp_;
};

} // namespace

bool runWarp(Machine& machine, Warp& warp) { return WarpRun(machine, warp).run(); }

} // namespace titan::ptx
