#include "runtime/device/CommandSlots.h"

#include <algorithm>

namespace titan {

CommandSlots::CommandSlots(const Function& function, std::span<const int64_t> coordinates,
                           int64_t arena)
    : CommandSlots(function, coordinates, [=](uint32_t, const Operand&) { return arena; }) {}

CommandSlots::CommandSlots(const Function& function, std::span<const int64_t> coordinates,
                           const Origin& origin) {
  // Sized first: commands point into these vectors.
  size_t slots = 0, varying = 0, terms = 0;
  auto count = [&](const Affine& value) {
    ++slots;
    varying += !value.isConstant();
    terms += value.terms.size();
  };
  for (const titan::Command& command : function.commands) {
    for (const Operand& operand : command.operands)
      count(operand.address);
    std::ranges::for_each(command.scalars, count);
  }
  slots_.resize(slots);
  varying_.reserve(varying);
  terms_.reserve(terms);
  commands_.reserve(function.commands.size());

  int64_t* slot = slots_.data();
  auto place = [&](const Affine& value, int64_t origin) {
    const Affine local = onRank(value, coordinates);
    *slot = origin + local.base;
    if (!local.isConstant()) {
      const size_t firstTerm = terms_.size();
      terms_.insert(terms_.end(), local.terms.begin(), local.terms.end());
      varying_.push_back(
          {{terms_.data() + firstTerm, local.terms.size()}, slot, origin + local.base});
    }
    ++slot;
  };
  for (const titan::Command& command : function.commands) {
    Command& placed = commands_.emplace_back();
    const size_t firstVarying = varying_.size();
    placed.operands = {slot, command.operands.size()};
    for (const Operand& operand : command.operands)
      place(operand.address, origin(static_cast<uint32_t>(commands_.size() - 1), operand));
    placed.scalars = {slot, command.scalars.size()};
    for (const Affine& scalar : command.scalars)
      place(scalar, 0);
    placed.varying = {varying_.data() + firstVarying, varying_.size() - firstVarying};
  }
}

} // namespace titan
