// For test/peers/checkpoint_files.py, which looks at Titan's files with PyTorch and gives PyTorch's
// to Titan:
//
//   titan_checkpoint_peer save DIR      saves the sample state as step 1 of DIR; prints its tensors
//   titan_checkpoint_peer save-ranks DIR   saves a state on 2 x 2 ranks, which cut it, as step 1;
//   prints its tensors as one rank has them
//   titan_checkpoint_peer init PATH     loads weights over a zeroed sample state; prints its
//   parameters and buffers
//   titan_checkpoint_peer seal FILE     gives an edited manifest the digest of what it says now
//
// One tensor a line: name, dtype, shape, bytes in hex.
#include "runtime/checkpoint/testing/MeshState.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/collective/testing/RankThreads.h"

#include <cstring>

namespace {

using namespace titan;
using namespace titan::checkpoint;

constexpr uint8_t fill = 9;

void print(const std::string& tensor, DType dtype, const Shape& shape, std::string_view bytes) {
  fmt::print("{} {} {} ", tensor, name(dtype), fmt::join(shape, ","));
  for (unsigned char byte : bytes)
    fmt::print("{:02x}", byte);
  fmt::print("\n");
}

void print(SampleState& state, bool slots) {
  for (const TableEntry& row : state.program.table) {
    if (row.kind == StateKind::Counter || (row.kind == StateKind::Slot && !slots))
      continue;
    print(row.name, row.dtype, row.shape, state.bytes(row.name));
  }
}

Status save(const std::string& directory) {
  SampleState state(fill);
  CheckpointStore store = TITAN_TRY(CheckpointStore::open(directory));
  TITAN_TRY(store.save(state.saveRequest(1), 0));
  print(state, true);
  return {};
}

Status saveOnRanks(const std::string& directory) {
  const std::vector<MeshAxis> mesh = {{"replicate", 2}, {"shard", 2}};
  constexpr DType dtype = DType::I64; // has no NaN, which nothing equals
  const std::vector<MeshState::Tensor> tensors = {
      {"rows.weight", StateKind::Param, dtype, {5, 3}, {{1, 0}}},
      {"columns.weight", StateKind::Param, dtype, {4, 7}, {{1, 1}}},
      {"both.weight", StateKind::Param, dtype, {5, 2}, {{0, 0}, {1, 0}}},
      {"grid.weight", StateKind::Param, dtype, {3, 5}, {{0, 1}, {1, 0}}},
      {"bias", StateKind::Param, dtype, {3}, {}},
      {"few", StateKind::Buffer, dtype, {1}, {{1, 0}}},
      {"rows.weight.exp_avg", StateKind::Slot, dtype, {5, 3}, {{1, 0}, {0, 1}}},
      {"bias.exp_avg", StateKind::Slot, dtype, {3}, {{1, 0}}},
  };
  for (const Status& saved : titan::testing::onRanks(4, [&](Peers& peers) -> Status {
         MeshState state(tensors, mesh, peers.rank());
         state.fill(fill);
         CheckpointStore store = TITAN_TRY(CheckpointStore::open(directory, peers));
         TITAN_TRY(store.save(state.saveRequest(1), 0));
         return {};
       }))
    TITAN_TRY(saved);
  for (const MeshState::Tensor& tensor : tensors)
    print(tensor.name, tensor.dtype, tensor.shape, MeshState::whole(tensor, fill));
  return {};
}

Status init(const std::string& path) {
  SampleState state(fill);
  for (const TableEntry& row : state.program.table)
    std::memset(state.bytes(row.name).data(), 0, state.bytes(row.name).size());
  const InitReport report = TITAN_TRY(loadWeights(path, state.initRequest()));
  for (const std::string& note : report.notes)
    fmt::print(stderr, "note: {}\n", note);
  print(state, false);
  return {};
}

Status seal(const std::string& path) {
  constexpr int64_t limit = 1 << 20;
  const std::string text = TITAN_TRY(readWholeFile(posixEnv(), path, limit));
  const std::string edited = text.substr(0, text.rfind(",\n  \"xxh3_128\"")) + "\n}";
  TITAN_TRY(posixEnv().removeFile(path));
  auto file = TITAN_TRY(posixEnv().createFile(path));
  TITAN_TRY(file->append(sealManifest(edited)));
  return file->close();
}

Status run(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "save")
    return save(argv[2]);
  if (argc == 3 && std::string_view(argv[1]) == "save-ranks")
    return saveOnRanks(argv[2]);
  if (argc == 3 && std::string_view(argv[1]) == "init")
    return init(argv[2]);
  if (argc == 3 && std::string_view(argv[1]) == "seal")
    return seal(argv[2]);
  return Error::usage(
      "usage: titan_checkpoint_peer save DIR | save-ranks DIR | init PATH | seal FILE");
}

} // namespace

int main(int argc, char** argv) {
  const Status status = run(argc, argv);
  if (status.ok())
    return 0;
  fmt::print(stderr, "error: {}\n", status.error().message());
  return status.error().exitCode();
}
