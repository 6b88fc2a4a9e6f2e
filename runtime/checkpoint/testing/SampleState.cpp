#include "runtime/checkpoint/testing/SampleState.h"

#include <algorithm>
#include <cstring>

namespace titan::checkpoint {
namespace {

std::string keyOf(const TableEntry& row) {
  return row.profile.empty() ? row.name : row.profile + "/" + row.name;
}

} // namespace

SampleState::SampleState(uint8_t fill) {
  program.fingerprint = "0123456789abcdef0123456789abcdef";
  program.optimizer = "adamw";
  program.model = "mlp.onnx";
  program.recipe = R"({"optimizer":{"kind":"adamw","lr":0.001},"train":{"steps":100}})";
  program.target = "cpu";
  program.cpu = "znver5";
  program.compilerVersion = "0.1.0";
  program.libraries = {{"cpu.gemm", {"onednn", "2.6.3"}}, {"libc", {"glibc", "2.36"}}};
  program.mesh = {{"replicate", 1}, {"shard", 1}, {"tensor", 1}};
  add("fc1.weight", StateKind::Param, DType::F32, {3, 4});
  add("fc1.bias", StateKind::Param, DType::F32, {3});
  add("embed.weight", StateKind::Param, DType::BF16, {5, 3}, {"head.weight"});
  add("norm.count", StateKind::Buffer, DType::I64, {});
  add("norm.empty", StateKind::Buffer, DType::F32, {0, 4});
  add("fc1.weight.exp_avg", StateKind::Slot, DType::F32, {3, 4});
  add("embed.weight.exp_avg", StateKind::Slot, DType::F32, {5, 3}, {"head.weight.exp_avg"});
  for (const char* counter : {"step", "optimizer.t", "samples", "skipped"})
    add(counter, StateKind::Counter, DType::I64, {});
  refill(fill);
}

void SampleState::add(const std::string& name, StateKind kind, DType dtype, Shape shape,
                      std::vector<std::string> aliases, const std::string& profile) {
  TableEntry row;
  row.name = name;
  row.kind = kind;
  row.profile = profile;
  row.dtype = dtype;
  row.shape = std::move(shape);
  row.trainable = kind == StateKind::Param;
  row.aliases = std::move(aliases);
  bytes_[keyOf(row)].assign(static_cast<size_t>(elementCount(row.shape) * byteSize(dtype)), '\0');
  program.table.push_back(std::move(row));
}

void SampleState::addAverages(const std::vector<std::string>& profiles) {
  const std::vector<TableEntry> rows = program.table;
  for (const std::string& profile : profiles)
    for (const TableEntry& row : rows)
      if (row.kind == StateKind::Param)
        add(row.name, StateKind::Ema, DType::F32, row.shape, row.aliases, profile);
}

void SampleState::remove(const std::string& name) {
  bytes_.erase(name);
  std::erase_if(program.table, [&](const TableEntry& row) { return keyOf(row) == name; });
}

void SampleState::refill(uint8_t fill) {
  for (const TableEntry& row : program.table) {
    const std::string key = keyOf(row);
    std::string& bytes = bytes_[key];
    // Counters stay small and positive.
    const size_t filled = row.kind == StateKind::Counter ? 2 : bytes.size();
    for (size_t i = 0; i < filled; ++i)
      bytes[i] = static_cast<char>((fill + i * 7 + key.size()) & 0x7f);
  }
}

SaveRequest SampleState::saveRequest(int64_t step) const {
  SaveRequest request;
  request.step = step;
  request.program = program;
  request.data = {"00ff", 50000, 7};
  for (const TableEntry& row : program.table) {
    const std::string& bytes = bytes_.at(keyOf(row));
    if (row.kind == StateKind::Counter)
      std::memcpy(&request.counters[row.name], bytes.data(), sizeof(int64_t));
    else
      request.tensors.push_back({row.name,
                                 row.kind,
                                 row.profile,
                                 row.dtype,
                                 row.shape,
                                 std::span<const char>(bytes),
                                 {}});
  }
  return request;
}

std::vector<Destination> SampleState::destinations() {
  std::vector<Destination> destinations;
  for (const TableEntry& row : program.table)
    destinations.push_back({row, std::span<char>(bytes_.at(keyOf(row)))});
  return destinations;
}

LoadRequest SampleState::loadRequest() { return {destinations(), program}; }

InitRequest SampleState::initRequest() { return {destinations(), {}, {}}; }

TableEntry& SampleState::entry(const std::string& name) {
  return *std::find_if(program.table.begin(), program.table.end(),
                       [&](const TableEntry& row) { return keyOf(row) == name; });
}

SampleState withAverages(uint8_t fill) {
  SampleState state(fill);
  state.addAverages({"fast", "slow"});
  state.refill(fill);
  return state;
}

} // namespace titan::checkpoint
