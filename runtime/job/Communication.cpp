#include "runtime/job/Communication.h"

#include "runtime/checkpoint/Load.h"
#include "runtime/executor/FirstWeights.h"
#include "runtime/program/Collective.h"
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
  return fmt::format("  {:<12}{:<10}{:<16}{:<20}{:<10}{:>8}{:>16}{:>16}  {}\n", "function", "phase",
                     "kind", "axes", "dtype", "count", "payload", last, "source");
}
std::string line(std::string_view function, std::string_view phase, std::string_view kind,
                 const std::vector<std::string>& axes, std::string_view dtype, int64_t count,
                 int64_t payload, int64_t last, std::string_view source) {
  return fmt::format("  {:<12}{:<10}{:<16}{:<20}{:<10}{:>8}{:>16}{:>16}  {}\n", function, phase,
                     kind, fmt::format("{}", fmt::join(axes, ", ")), dtype, count, payload, last,
                     source);
}
std::string line(const LedgerRow& row, int64_t count, int64_t payload, int64_t last) {
  return line(row.function, nameOf(row.phase), toString(row.kind), row.axes, row.dtype, count,
              payload, last, row.source);
}

/// That have more than one rank: what a broadcast to all is over.
std::vector<std::string> axesOf(std::span<const MeshAxis> mesh) {
  std::vector<std::string> axes;
  for (const MeshAxis& axis : mesh)
    if (axis.ranks > 1)
      axes.push_back(axis.name);
  return axes;
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

Result<std::vector<HostRow>> hostLedgerOf(const Program& program, int64_t rank) {
  std::vector<HostRow> rows;
  if (rankCount(program.mesh) > 1) {
    rows.push_back({"initialize", firstWeightsTraffic(program, rank)});
    rows.push_back({"load", TITAN_TRY(checkpoint::ownLoadTraffic(program, rank))});
  }
  std::erase_if(rows, [](const HostRow& row) { return row.traffic.executions == 0; });
  return rows;
}

Json hostLedgerJson(const std::vector<HostRow>& rows, std::span<const MeshAxis> mesh) {
  const std::vector<std::string> axes = axesOf(mesh);
  Json list = Json::array();
  for (const HostRow& row : rows)
    list.push_back({{"function", row.function},
                    {"phase", "host"},
                    {"kind", "broadcast"},
                    {"axes", axes},
                    {"dtype", "U8"},
                    {"source", "state"},
                    {"count", row.traffic.executions},
                    {"payload", row.traffic.payload},
                    {"wire", row.traffic.moved}});
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

std::string hostLedgerText(const std::vector<HostRow>& rows, std::span<const MeshAxis> mesh) {
  std::string text;
  for (const HostRow& row : rows)
    text += line(row.function, "host", "broadcast", axesOf(mesh), "U8", row.traffic.executions,
                 row.traffic.payload, row.traffic.moved, "state");
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

Json countedHostJson(const HostRow& row, int64_t movedByAll, std::span<const MeshAxis> mesh) {
  Json json = hostLedgerJson({row}, mesh).front();
  json.erase("wire");
  json["moved"] = row.traffic.moved;
  json["moved_all"] = movedByAll;
  return json;
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
