#include "runtime/device/cuda/CardMemory.h"

#include <algorithm>

namespace titan::cuda {

CardMemory::CardMemory(const Program& program, int64_t bytes, bool split) : program_(&program) {
  if (!split) {
    kept_.emplace_back().bytes = bytes;
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
}

int64_t CardMemory::bytes() const {
  int64_t bytes = 0;
  const auto add = [&](const Part& part) { bytes += part.bytes; };
  std::ranges::for_each(kept_, add);
  for (const std::vector<Part>& parts : temporaries_)
    std::ranges::for_each(parts, add);
  return bytes;
}

Answer CardMemory::allocate(const Driver& driver) {
  Answer answer = {CUDA_SUCCESS, driver.cuMemAlloc_v2.name()};
  const auto take = [&](Part& part) {
    CUdeviceptr address = 0;
    if (answer.ok() && part.bytes > 0)
      answer = driver.cuMemAlloc_v2(&address, static_cast<size_t>(part.bytes));
    if (address)
      part.memory = OwnedMemory(driver, address);
  };
  std::ranges::for_each(kept_, take);
  for (std::vector<Part>& parts : temporaries_)
    std::ranges::for_each(parts, take);
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
