#include "runtime/executor/Poisoner.h"

#include "runtime/device/Part.h"

#include <fmt/format.h>

#include <algorithm>

namespace titan {
namespace {

constexpr char poisonByte = '\xff'; // a quiet NaN in every float dtype, -1 in every integer
constexpr char guardByte = '\xa5';

/// The bytes of the arena between the runs of a state's elements.
std::vector<std::pair<int64_t, int64_t>> paddingOf(const State& state, const Part& part) {
  std::vector<std::pair<int64_t, int64_t>> gaps;
  const int64_t bytes = byteSize(state.dtype), elements = elementCount(part.local);
  int64_t end = 0;
  const auto leaveOut = [&](int64_t begin, int64_t count) {
    if (begin > end)
      gaps.emplace_back(state.offset + end * bytes, state.offset + begin * bytes);
    end = begin + count;
  };
  Overlap(part, Part::dense(part.box))
      .forEachRun(0, elements, [&](int64_t at, int64_t, int64_t count) { leaveOut(at, count); });
  leaveOut(elements, 0);
  return gaps;
}

} // namespace

Result<std::unique_ptr<Poisoner>> Poisoner::create(const Program& program, Device& device,
                                                   int64_t rank) {
  std::unique_ptr<Poisoner> poisoner(new Poisoner(device));
  const std::vector<int64_t> coordinates = coordinatesOf(rank, program.mesh);
  for (const State& state : program.states)
    std::ranges::copy(paddingOf(state, partOf(state, program.mesh, coordinates)),
                      std::back_inserter(poisoner->padding_));
  poisoner->addExchanges(program, coordinates);
  std::vector<std::pair<int64_t, int64_t>> planned;
  auto take = [&](const auto& part) {
    planned.emplace_back(part.offset, part.offset + part.bytes);
  };
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
      poisoner->unplanned_.emplace_back(end, begin);
    end = std::max(end, partEnd);
  }
  if (device.bytes() > end)
    poisoner->unplanned_.emplace_back(end, device.bytes());
  for (auto [begin, gapEnd] : poisoner->unplanned_)
    TITAN_TRY(device.fill(begin, gapEnd - begin, guardByte));
  return poisoner;
}

void Poisoner::addExchanges(const Program& program, std::span<const int64_t> coordinates) {
  exchanges_.resize(program.collectives.size());
  for (const Function& function : program.functions)
    for (const Command& command : function.commands) {
      if (command.kind != CommandKind::CollectiveStart)
        continue;
      const Collective& collective = program.collectives[command.target];
      Exchange& exchange = exchanges_[command.target];
      exchange.label = fmt::format("{} of {}", toString(collective.kind), collective.label);
      for (const Operand& operand : command.operands) {
        const Affine address = onRank(operand.address, coordinates);
        if (!address.isConstant())
          continue;
        const Buffer buffer = {address.base, operand.bytes};
        const auto isHere = [&](const Buffer& in) { return in.offset == buffer.offset; };
        if (operand.access == Access::Read)
          exchange.ins.push_back(buffer);
        else if (std::erase_if(exchange.ins, isHere) == 0)
          exchange.outs.push_back(buffer);
      }
    }
}

void Poisoner::poison(int64_t offset, int64_t bytes) {
  if (status_.ok())
    status_ = device_->fill(offset, bytes, poisonByte);
}

void Poisoner::beforeFunction(const Function& function) {
  for (auto [begin, end] : padding_)
    poison(begin, end - begin);
  for (const LiveRange& range : function.temporaries)
    poison(range.offset, range.bytes);
  for (const Binding& binding : function.bindings)
    if (binding.role == Binding::Role::Metric || binding.role == Binding::Role::Output)
      poison(binding.offset, binding.bytes);
}

std::vector<char> Poisoner::read(Buffer buffer) {
  std::vector<char> bytes(static_cast<size_t>(buffer.bytes));
  if (status_.ok())
    status_ = device_->download(buffer.offset, bytes);
  if (status_.ok())
    status_ = device_->wait(device_->record());
  return bytes;
}

void Poisoner::before(const Function& function, uint32_t command) {
  for (const LiveRange& range : function.temporaries)
    if (range.first == command)
      poison(range.offset, range.bytes);
  const Command& next = function.commands[command];
  if (next.kind == CommandKind::CollectiveStart) {
    Exchange& exchange = exchanges_[next.target];
    // Before the start: from there on peers may write.
    for (const Buffer& out : exchange.outs)
      poison(out.offset, out.bytes);
    exchange.held.clear();
    for (const Buffer& in : exchange.ins)
      exchange.held.push_back(read(in));
  }
  if (next.kind == CommandKind::CollectiveWait)
    compare(exchanges_[next.target]);
}

void Poisoner::compare(const Exchange& exchange) {
  for (size_t i = 0; i < exchange.ins.size(); ++i) {
    const std::vector<char> found = read(exchange.ins[i]);
    if (status_.ok() && found != exchange.held[i])
      status_ = Error::internal("a source of the {} was written between its start and its wait",
                                exchange.label);
  }
}

void Poisoner::after(const Function& function, uint32_t command) {
  for (const LiveRange& range : function.temporaries)
    if (range.last == command)
      poison(range.offset, range.bytes);
}

Status Poisoner::check() const {
  TITAN_TRY(status_);
  std::vector<char> found;
  for (auto [begin, end] : unplanned_) {
    found.resize(static_cast<size_t>(end - begin));
    TITAN_TRY(device_->download(begin, found));
    TITAN_TRY(device_->wait(device_->record()));
    const auto changed = std::ranges::find_if(found, [](char byte) { return byte != guardByte; });
    if (changed != found.end())
      return Error::internal(
          "byte {} of the arena was written, and the plan gives it to nobody (free: [{}, {}))",
          begin + (changed - found.begin()), begin, end);
  }
  return {};
}

} // namespace titan
