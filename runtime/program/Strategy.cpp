#include "runtime/program/Strategy.h"

#include <algorithm>

namespace titan {

namespace {

constexpr Share whole = Share::Whole, part = Share::Part;

// clang-format off
constexpr StrategyRow rows[] = {
  // strategy, axis,       parameters, gradients, slots, needsRanks
  {"ddp",   "replicate", whole, whole, whole, false},
  {"ddp",   "shard",     whole, whole, whole, false},
  {"zero1", "replicate", whole, whole, whole, false},
  {"zero1", "shard",     whole, part,  part,  true},
  {"zero2", "replicate", whole, whole, whole, false},
  {"zero2", "shard",     whole, part,  part,  true},
  {"zero3", "replicate", whole, whole, whole, false},
  {"zero3", "shard",     part,  part,  part,  true},
  {"fsdp",  "replicate", whole, whole, whole, false},
  {"fsdp",  "shard",     part,  part,  part,  true},
  {"hsdp",  "replicate", whole, whole, whole, true},
  {"hsdp",  "shard",     part,  part,  part,  true},
};
// clang-format on

} // namespace

std::span<const StrategyRow> strategyRows() { return rows; }

const StrategyRow* findStrategyRow(std::string_view strategy, std::string_view axis) {
  const auto* row = std::ranges::find_if(rows, [&](const StrategyRow& each) {
    return each.strategy == strategy && each.axis == axis;
  });
  return row == std::end(rows) ? nullptr : row;
}

} // namespace titan
