#include "runtime/program/Ledger.h"

#include <algorithm>

namespace titan {

namespace {

/// The dtypes of the pieces, each once.
std::string dtypesOf(const Collective& collective) {
  std::string text;
  uint32_t seen = 0;
  for (const CollectivePiece& piece : collective.pieces) {
    const uint32_t bit = uint32_t{1} << static_cast<uint8_t>(piece.dtype);
    if (!(seen & bit))
      text += (text.empty() ? "" : ", ") + std::string(name(piece.dtype));
    seen |= bit;
  }
  return text;
}

LedgerRow rowOf(const Program& program, const Function& function, const Command& start,
                int64_t count) {
  const Collective& collective = program.collectives[start.target];
  const int64_t group = groupSize(collective.axes, program.mesh);
  LedgerRow row;
  row.function = function.name;
  row.phase = start.phase;
  row.kind = collective.kind;
  for (uint8_t axis : collective.axes)
    row.axes.push_back(program.mesh[axis].name);
  row.dtype = dtypesOf(collective);
  row.source = collective.label;
  row.collectives = {start.target};
  row.count = count;
  row.payload = count * payloadBytes(collective, group);
  row.wire = count * wireBytes(collective, group);
  return row;
}

/// Is `next` what `row` lists, at another place of the table?
bool isAgain(const Program& program, const LedgerRow& row, const LedgerRow& next) {
  return row.function == next.function && row.phase == next.phase &&
         program.collectives[row.collectives.front()] ==
             program.collectives[next.collectives.front()];
}

} // namespace

std::vector<LedgerRow> ledgerOf(const Program& program) {
  std::vector<LedgerRow> rows;
  const auto add = [&](LedgerRow next) {
    const auto found = std::ranges::find_if(
        rows, [&](const LedgerRow& row) { return isAgain(program, row, next); });
    if (found == rows.end())
      return rows.push_back(std::move(next));
    found->collectives.push_back(next.collectives.front());
    found->count += next.count;
    found->payload += next.payload;
    found->wire += next.wire;
  };
  for (const Function& function : program.functions) {
    const std::vector<int64_t> times = executionsOf(function);
    for (size_t i = 0; i < times.size(); ++i)
      if (function.commands[i].kind == CommandKind::CollectiveStart)
        add(rowOf(program, function, function.commands[i], times[i]));
  }
  return rows;
}

} // namespace titan
