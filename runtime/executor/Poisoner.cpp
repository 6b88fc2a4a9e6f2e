#include "runtime/executor/Poisoner.h"

#include <algorithm>
#include <cstring>

namespace titan {
namespace {

constexpr char poisonByte = '\xff'; // a quiet NaN in every float dtype, -1 in every integer
constexpr char guardByte = '\xa5';

} // namespace

Poisoner::Poisoner(Executor& executor) : executor_(&executor) {
  std::vector<std::pair<int64_t, int64_t>> planned;
  auto take = [&](const auto& part) {
    planned.emplace_back(part.offset, part.offset + part.bytes);
  };
  const Program& program = executor.program();
  std::ranges::for_each(program.states, take);
  std::ranges::for_each(program.constants, take);
  for (const Function& function : program.functions) {
    std::ranges::for_each(function.bindings, take);
    std::ranges::for_each(function.temporaries, take);
  }
  std::ranges::sort(planned);
  int64_t end = 0;
  for (auto [begin, partEnd] : planned) {
    if (begin > end)
      unplanned_.emplace_back(end, begin);
    end = std::max(end, partEnd);
  }
  if (executor.arenaCapacity() > end)
    unplanned_.emplace_back(end, executor.arenaCapacity());
  for (auto [begin, gapEnd] : unplanned_)
    std::memset(executor.arena() + begin, guardByte, static_cast<size_t>(gapEnd - begin));
}

void Poisoner::poison(int64_t offset, int64_t bytes) {
  std::memset(executor_->arena() + offset, poisonByte, static_cast<size_t>(bytes));
}

void Poisoner::beforeFunction(const Function& function) {
  for (const LiveRange& range : function.temporaries)
    poison(range.offset, range.bytes);
  for (const Binding& binding : function.bindings)
    if (binding.role == Binding::Role::Metric || binding.role == Binding::Role::Output)
      poison(binding.offset, binding.bytes);
}

void Poisoner::before(const Function& function, uint32_t command) {
  for (const LiveRange& range : function.temporaries)
    if (range.first == command)
      poison(range.offset, range.bytes);
}

void Poisoner::after(const Function& function, uint32_t command) {
  for (const LiveRange& range : function.temporaries)
    if (range.last == command)
      poison(range.offset, range.bytes);
}

Status Poisoner::checkUnplanned() const {
  for (auto [begin, end] : unplanned_)
    for (int64_t i = begin; i < end; ++i)
      if (executor_->arena()[i] != guardByte)
        return Error::internal(
            "byte {} of the arena was written, and the plan gives it to nobody (free: [{}, {}))", i,
            begin, end);
  return {};
}

} // namespace titan
