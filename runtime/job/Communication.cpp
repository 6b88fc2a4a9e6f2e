#include "runtime/job/Communication.h"

#include "runtime/program/Text.h"

namespace titan {

using Json = nlohmann::ordered_json;

namespace {

/// Which collective a row is about.
Json nameJson(const LedgerRow& row) {
  return {{"function", row.function}, {"phase", nameOf(row.phase)}, {"kind", toString(row.kind)},
          {"axes", row.axes},         {"dtype", row.dtype},         {"source", row.source}};
}

/// A row of text: of a column `last`, and of one collective.
std::string heading(const char* last) {
  return fmt::format("  {:<10}{:<10}{:<16}{:<20}{:<10}{:>8}{:>16}{:>16}  {}\n", "function", "phase",
                     "kind", "axes", "dtype", "count", "payload", last, "source");
}
std::string line(const LedgerRow& row, int64_t count, int64_t payload, int64_t last) {
  return fmt::format("  {:<10}{:<10}{:<16}{:<20}{:<10}{:>8}{:>16}{:>16}  {}\n", row.function,
                     nameOf(row.phase), toString(row.kind),
                     fmt::format("{}", fmt::join(row.axes, ", ")), row.dtype, count, payload, last,
                     row.source);
}

/// What was counted of all collectives of a row.
Traffic trafficOf(const LedgerRow& row, std::span<const Traffic> counted) {
  Traffic sum;
  for (uint32_t collective : row.collectives) {
    sum.executions += counted[collective].executions;
    sum.payload += counted[collective].payload;
    sum.moved += counted[collective].moved;
  }
  return sum;
}

/// A whole number, unless the steps differed.
Json perStep(int64_t total, int64_t steps) {
  if (total % steps == 0)
    return total / steps;
  return static_cast<double>(total) / static_cast<double>(steps);
}

} // namespace

Json ledgerJson(const std::vector<LedgerRow>& rows) {
  Json list = Json::array();
  for (const LedgerRow& row : rows) {
    Json& json = list.emplace_back(nameJson(row));
    json["count"] = row.count;
    json["payload"] = row.payload;
    json["wire"] = row.wire;
  }
  return list;
}

std::string ledgerText(const std::vector<LedgerRow>& rows, std::span<const MeshAxis> mesh) {
  if (rows.empty())
    return fmt::format("communication: none, {}\n", describeRanks(mesh));
  std::string text =
      fmt::format("communication of one of {}, bytes\n", describeRanks(mesh)) + heading("wire");
  for (const LedgerRow& row : rows)
    text += line(row, row.count, row.payload, row.wire);
  return text;
}

std::string countedText(const std::vector<LedgerRow>& rows, std::span<const Traffic> counted,
                        int64_t steps, std::span<const MeshAxis> mesh) {
  std::string text =
      fmt::format("communication of one of {}, counted, bytes a step\n", describeRanks(mesh)) +
      heading("moved");
  for (const LedgerRow& row : rows)
    if (const Traffic traffic = trafficOf(row, counted); row.function == "step")
      text += line(row, traffic.executions / steps, traffic.payload / steps, traffic.moved / steps);
  return text;
}

Json countedJson(const std::vector<LedgerRow>& rows, std::span<const Traffic> counted,
                 std::span<const int64_t> movedByAll, int64_t steps) {
  Json list = Json::array();
  for (const LedgerRow& row : rows) {
    if (row.function != "step")
      continue;
    const Traffic traffic = trafficOf(row, counted);
    int64_t movedByRanks = 0;
    for (uint32_t collective : row.collectives)
      movedByRanks += movedByAll[collective];
    Json& json = list.emplace_back(nameJson(row));
    json["count"] = perStep(traffic.executions, steps);
    json["payload"] = perStep(traffic.payload, steps);
    json["moved"] = perStep(traffic.moved, steps);
    json["moved_all"] = perStep(movedByRanks, steps);
  }
  return list;
}

std::vector<Traffic> trafficBetween(const std::vector<Traffic>& before,
                                    std::vector<Traffic> after) {
  for (size_t i = 0; i < after.size(); ++i) {
    after[i].executions -= before[i].executions;
    after[i].payload -= before[i].payload;
    after[i].moved -= before[i].moved;
  }
  return after;
}

} // namespace titan
