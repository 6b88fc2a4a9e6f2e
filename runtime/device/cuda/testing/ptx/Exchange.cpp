// What the lanes of a warp tell each other.
#include "runtime/device/cuda/testing/ptx/Machine.h"

#include <cstring>

namespace titan::ptx {
namespace {

const uint32_t* words(const Warp& warp, uint32_t at) {
  return reinterpret_cast<const uint32_t*>(warp.file + at);
}

/// The lane that `lane` reads from, and whether it lies in range (PTX ISA, shfl.sync).
struct Source {
  int lane;
  bool inRange;
};

Source sourceOf(ShuffleMode mode, int lane, uint32_t b, uint32_t c) {
  int by = b & 31, clamp = c & 31, segment = c >> 8 & 31;
  int highest = (lane & segment) | (clamp & ~segment);
  int lowest = lane & segment;
  int from = lane;
  switch (mode) {
  case ShuffleMode::Up:
    from = lane - by;
    return {from, from >= highest};
  case ShuffleMode::Down:
    from = lane + by;
    break;
  case ShuffleMode::Butterfly:
    from = lane ^ by;
    break;
  case ShuffleMode::Index:
    from = lowest | (by & ~segment);
    break;
  }
  return {from, from <= highest};
}

} // namespace

bool shuffle(Machine& machine, Warp& warp, const Instruction& instruction, Mask mask) {
  const uint32_t* a = words(warp, instruction.at[2]);
  const uint32_t* b = words(warp, instruction.at[3]);
  const uint32_t* c = words(warp, instruction.at[4]);
  alignas(64) uint32_t result[warpSize];
  Mask inRange = 0;
  for (Mask left = mask; left; left &= left - 1) {
    int lane = firstLane(left);
    Source source = sourceOf(instruction.shuffle, lane, b[lane], c[lane]);
    int from = source.inRange ? source.lane : lane;
    if (!(mask >> from & 1))
      return machine.fail(
          instruction, lane,
          fmt::format("reads lane {}, which takes no part: lanes are 0x{:08x}", from, mask));
    result[lane] = a[from];
    inRange |= Mask{source.inRange} << lane;
  }
  auto* to = reinterpret_cast<uint32_t*>(warp.file + instruction.at[0]);
  for (int lane = 0; lane < warpSize; ++lane)
    to[lane] = mask >> lane & 1 ? result[lane] : to[lane];
  auto* predicate = reinterpret_cast<Mask*>(warp.file + instruction.at[1]);
  *predicate = (*predicate & ~mask) | inRange;
  return true;
}

void vote(Warp& warp, const Instruction& instruction, Mask mask) {
  if (instruction.kind == Kind::ActiveMask || instruction.vote == VoteMode::Ballot) {
    Mask ballot = mask;
    if (instruction.kind == Kind::Vote)
      ballot &= *words(warp, instruction.at[1]);
    auto* to = reinterpret_cast<uint32_t*>(warp.file + instruction.at[0]);
    for (int lane = 0; lane < warpSize; ++lane)
      to[lane] = mask >> lane & 1 ? ballot : to[lane];
    return;
  }
  Mask yes = *words(warp, instruction.at[1]) & mask;
  bool all = yes == mask, any = yes != 0;
  bool outcome = instruction.vote == VoteMode::All   ? all
                 : instruction.vote == VoteMode::Any ? any
                                                     : all || !any;
  auto* to = reinterpret_cast<Mask*>(warp.file + instruction.at[0]);
  *to = (*to & ~mask) | (outcome ? mask : 0);
}

} // namespace titan::ptx
