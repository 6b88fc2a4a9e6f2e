#include "runtime/device/cuda/CardMemory.h"

#include "runtime/program/HostStates.h"

#include <algorithm>

namespace titan::cuda {

CardMemory::CardMemory(const Program& program, int64_t bytes, bool split) : program_(&program) {
  if (!split) {
    addWhole(bytes);
    return;
  }
  for (const Function& function : program.functions) {
    std::vector<Part>& parts = temporaries_.emplace_back();
    for (const LiveRange& range : function.temporaries) {
      Part& part = parts.emplace_back();
      part.offset = range.offset, part.bytes = range.bytes;
    }
  }
  addKept();
}

void CardMemory::addWhole(int64_t bytes) {
  int64_t end = 0; // of the parts so far
  const auto add = [&](int64_t until, bool isOnHost) {
    if (until == end)
      return;
    Part& part = kept_.emplace_back();
    part.offset = end, part.bytes = until - end, part.isOnHost = isOnHost;
    end = until;
  };
  for (const ArenaRange& range : hostRanges(*program_)) {
    add(range.offset, /*isOnHost=*/false);
    add(range.offset + range.bytes, /*isOnHost=*/true);
  }
  add(bytes, /*isOnHost=*/false);
}

void CardMemory::addKept() {
  std::vector<std::pair<int64_t, int64_t>> ranges; // [begin, end)
  const auto add = [&](const auto& part) {
    if (part.bytes > 0)
      ranges.emplace_back(part.offset, part.offset + part.bytes);
  };
  std::ranges::for_each(program_->states, add);
  std::ranges::for_each(program_->constants, add);
  for (size_t f = 0; f < program_->functions.size(); ++f) {
    const Function& function = program_->functions[f];
    std::ranges::for_each(function.bindings, add);
    for (uint32_t c = 0; c < function.commands.size(); ++c)
      for (const Operand& operand : function.commands[c].operands)
        if (!temporaryOf(f, c, operand))
          ranges.emplace_back(operand.address.base, operand.address.base + operand.bytes);
  }
  std::ranges::sort(ranges);
  for (const auto& [begin, end] : ranges) {
    if (kept_.empty() || kept_.back().offset + kept_.back().bytes <= begin)
      kept_.emplace_back().offset = begin;
    Part& part = kept_.back();
    part.bytes = std::max(part.bytes, end - part.offset);
  }
  for (const ArenaRange& range : hostRanges(*program_))
    for (Part& part : kept_)
      if (range.offset <= part.offset && part.offset < range.offset + range.bytes)
        part.isOnHost = true;
}

int64_t CardMemory::bytesOf(bool onHost) const {
  int64_t bytes = 0;
  const auto add = [&](const Part& part) { bytes += part.isOnHost == onHost ? part.bytes : 0; };
  std::ranges::for_each(kept_, add);
  for (const std::vector<Part>& parts : temporaries_)
    std::ranges::for_each(parts, add);
  return bytes;
}

Answer CardMemory::allocateCard(const Driver& driver) {
  Answer answer = {CUDA_SUCCESS, driver.cuMemAlloc_v2.name()};
  const auto take = [&](Part& part) {
    if (!answer.ok() || part.bytes == 0 || part.isOnHost)
      return;
    answer = driver.cuMemAlloc_v2(&part.address, static_cast<size_t>(part.bytes));
    if (answer.ok())
      part.memory = OwnedMemory(driver, part.address);
  };
  std::ranges::for_each(kept_, take);
  for (std::vector<Part>& parts : temporaries_)
    std::ranges::for_each(parts, take);
  return answer;
}

Answer CardMemory::allocateHost(const Driver& driver) {
  Answer answer = {CUDA_SUCCESS, driver.cuMemHostAlloc.name()};
  for (Part& part : kept_) {
    if (!answer.ok() || !part.isOnHost)
      continue;
    void* memory = nullptr;
    answer = driver.cuMemHostAlloc(&memory, static_cast<size_t>(part.bytes), mappedHostMemory);
    if (!answer.ok())
      continue;
    part.hostMemory = OwnedHostMemory(driver, memory);
    answer = driver.cuMemHostGetDevicePointer_v2(&part.address, memory, 0);
  }
  return answer;
}

Error CardMemory::noPlace(int64_t offset, int64_t bytes) {
  return Error::usage("{}=1: bytes [{}, {}) of the arena are of no single state or binding: leave "
                      "the variable out for --poison and compare",
                      splitVariable, offset, offset + bytes);
}

const CardMemory::Part* CardMemory::temporaryOf(size_t function, uint32_t command,
                                                const Operand& operand) const {
  if (temporaries_.empty())
    return nullptr;
  const Part* found = nullptr;
  const std::vector<LiveRange>& ranges = program_->functions[function].temporaries;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Part& part = temporaries_[function][i];
    if (command < ranges[i].first || ranges[i].last < command ||
        !part.holds(operand.address.base, operand.bytes))
      continue;
    const bool fits = (operand.access == Access::Write) == (ranges[i].first == command);
    if (!found || fits)
      found = &part;
  }
  return found;
}

CUdeviceptr CardMemory::originOf(size_t function, uint32_t command, const Operand& operand) const {
  const Part* found = temporaryOf(function, command, operand);
  for (size_t i = 0; !found && i < kept_.size(); ++i)
    if (kept_[i].holds(operand.address.base, operand.bytes))
      found = &kept_[i];
  return found ? found->origin() : 0;
}

} // namespace titan::cuda
