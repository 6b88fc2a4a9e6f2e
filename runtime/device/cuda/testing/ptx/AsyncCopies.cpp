#include "runtime/device/cuda/testing/ptx/AsyncCopies.h"

#include "runtime/device/cuda/testing/ptx/Request.h"

#include <cstring>

namespace titan::ptx {

void AsyncCopies::reset() {
  count_ = 0;
  committed_.fill(0);
  together_ = true;
}

AsyncCopies::Copy& AsyncCopies::add() {
  if (count_ == copies_.size())
    copies_.emplace_back();
  return copies_[count_];
}

void AsyncCopies::enqueue(Copy& copy, Mask lanes) {
  copy.lanes = lanes;
  copy.groups = committed_;
  ++count_;
}

void AsyncCopies::commit(Mask lanes) {
  for (int lane = 0; lane < warpSize; ++lane)
    committed_[lane] += lanes >> lane & 1;
  together_ &= lanes == ~Mask{0};
}

Mask AsyncCopies::dueOf(const Copy& copy, Mask lanes, int64_t left) const {
  if (left == allCopies)
    return lanes;
  if (together_)
    return copy.groups[0] + left < committed_[0] ? lanes : 0;
  Mask due = 0;
  for (Mask each = lanes; each; each &= each - 1) {
    const int lane = firstLane(each);
    due |= Mask{copy.groups[lane] + left < committed_[lane]} << lane;
  }
  return due;
}

/// Bytes of the widest copy.
static constexpr uint8_t widest = 16;

void AsyncCopies::wait(Mask lanes, int64_t left, uint32_t thread, SharedMemory& memory) {
  size_t kept = 0;
  for (size_t i = 0; i < count_; ++i) {
    Copy& copy = copies_[i];
    const Mask due = dueOf(copy, copy.lanes & lanes, left);
    for (Mask each = due; each; each &= each - 1) {
      const int lane = firstLane(each);
      char* to = memory.arrive(copy.to[lane], copy.bytes, thread + static_cast<uint32_t>(lane));
      if (copy.sizes[lane] == widest) {
        std::memcpy(to, copy.from[lane], widest);
        continue;
      }
      std::memcpy(to, copy.from[lane], copy.sizes[lane]);
      std::memset(to + copy.sizes[lane], 0, copy.bytes - copy.sizes[lane]);
    }
    copy.lanes &= ~due;
    if (copy.lanes == 0)
      continue;
    if (kept != i)
      std::swap(copies_[kept], copy);
    ++kept;
  }
  count_ = kept;
}

Mask AsyncCopies::waiting(Mask lanes) const {
  Mask found = 0;
  for (size_t i = 0; i < count_; ++i)
    found |= copies_[i].lanes & lanes;
  return found;
}

namespace {

/// Bytes that each lane reads. False: more than it writes.
bool readSizes(Request& to, std::array<uint8_t, warpSize>& sizes) {
  const Instruction& instruction = to.instruction;
  if (!instruction.partial) {
    sizes.fill(static_cast<uint8_t>(to.bytes));
    return true;
  }
  const auto* column = reinterpret_cast<const uint32_t*>(
      to.warp.file + instruction.at[instruction.results + instruction.sources - 1]);
  sizes.fill(0);
  for (Mask left = to.mask; left; left &= left - 1) {
    const int lane = firstLane(left);
    if (column[lane] > to.bytes)
      return to.fail(lane, fmt::format("reads {} bytes to write {}", column[lane], to.bytes));
    sizes[lane] = static_cast<uint8_t>(column[lane]);
  }
  return true;
}

/// Reads of `sizes[lane]` bytes, which are checked as those of loads are. Finds `hosts`.
bool touchSource(Request& to, const std::array<uint8_t, warpSize>& sizes) {
  Request from(to.machine, to.warp, to.instruction, to.mask, true, to.bytes);
  if (!from.locate(to.instruction.source, Space::Global))
    return false;
  Mask left = to.mask;
  for (; left; left &= left - 1)
    if (sizes[firstLane(left)] != to.bytes)
      break;
  if (left == 0) {
    if (!from.touchGlobal())
      return false;
    to.hosts = from.hosts;
    return true;
  }
  for (left = to.mask; left;) {
    const uint8_t size = sizes[firstLane(left)];
    Mask alike = 0;
    for (Mask each = left; each; each &= each - 1)
      alike |= Mask{sizes[firstLane(each)] == size} << firstLane(each);
    left &= ~alike;
    if (size == 0)
      continue;
    Request some(to.machine, to.warp, to.instruction, alike, true, to.bytes);
    if (!some.locate(to.instruction.source, Space::Global) || !some.touchGlobal(size))
      return false;
    for (Mask each = alike; each; each &= each - 1)
      to.hosts[firstLane(each)] = some.hosts[firstLane(each)];
  }
  return true;
}

} // namespace

bool copyAsync(Machine& machine, Warp& warp, const Instruction& instruction, Mask mask) {
  Request to(machine, warp, instruction, mask, false, instruction.bytes());
  AsyncCopies::Copy& copy = warp.copies.add();
  to.hosts.fill(machine.shared->at(0)); // of copies that read nothing
  if (!to.locate(instruction.address, Space::Shared) || !to.insideShared() ||
      !readSizes(to, copy.sizes) || !touchSource(to, copy.sizes))
    return false;
  std::string wrong;
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = firstLane(left);
    copy.to[lane] = to.sharedOffset(lane);
    copy.from[lane] = to.hosts[lane];
    if (!machine.shared->expect(copy.to[lane], to.bytes, to.thread(lane), wrong))
      return to.fail(lane, wrong);
  }
  copy.bytes = static_cast<uint32_t>(to.bytes);
  warp.copies.enqueue(copy, mask);
  to.countShared(machine.counters.sharedStores);
  return true;
}

} // namespace titan::ptx
