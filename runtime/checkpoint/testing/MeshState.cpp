#include "runtime/checkpoint/testing/MeshState.h"

#include <cstring>

namespace titan::checkpoint {
namespace {

constexpr const char* counterNames[] = {"step", "samples"};

char byteOf(const std::string& name, uint8_t value, int64_t byte) {
  uint64_t hash = value * uint64_t{0x9e3779b97f4a7c15};
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash = (hash ^ static_cast<uint64_t>(byte)) * 0xff51afd7ed558ccd;
  return static_cast<char>(hash >> 56);
}

Program programOf(const std::vector<MeshState::Tensor>& tensors,
                  const std::vector<MeshAxis>& mesh) {
  Program program;
  program.model = "mesh.onnx", program.recipe = "{}", program.optimizer = "adamw";
  program.mesh = mesh;
  const auto add = [&](State state) {
    state.local = *localShape(state.shape, state.placement, mesh);
    state.bytes = elementCount(state.local) * byteSize(state.dtype);
    state.offset = program.arenaBytes;
    program.arenaBytes += (state.bytes + 63) / 64 * 64;
    program.states.push_back(std::move(state));
  };
  for (const MeshState::Tensor& tensor : tensors) {
    State state;
    state.name = tensor.name, state.kind = tensor.kind, state.dtype = tensor.dtype;
    state.shape = tensor.shape, state.placement = tensor.placement;
    if (tensor.kind == StateKind::Ema)
      state.profile = "slow";
    add(state);
  }
  for (const char* name : counterNames) {
    State state;
    state.name = name, state.kind = StateKind::Counter, state.dtype = DType::I64;
    add(state);
  }
  return program;
}

} // namespace

MeshState::MeshState(const std::vector<Tensor>& tensors, const std::vector<MeshAxis>& mesh,
                     int64_t rank, bool hasWindow)
    : program_(programOf(tensors, mesh)), device_(program_.arenaBytes, hasWindow),
      access_(program_, device_, rank) {}

template <typename Visit> void MeshState::forEachByte(const Visit& visit) {
  for (const State& state : program_.states) {
    if (state.kind == StateKind::Counter)
      continue;
    const int64_t width = byteSize(state.dtype);
    for (const Box& box :
         boxesOf(state.shape, state.placement, program_.mesh, access_.coordinates()))
      for (int64_t i = 0; i < elementCount(box.extent); ++i) {
        int64_t rest = i, at = 0, whole = 0, localStride = 1, stride = 1;
        for (size_t d = box.extent.size(); d-- > 0; rest /= box.extent[d]) {
          const int64_t x = rest % box.extent[d];
          at += x * localStride, whole += (box.at[d] + x) * stride;
          localStride *= state.local[d], stride *= state.shape[d];
        }
        for (int64_t byte = 0; byte < width; ++byte)
          visit(state, at * width + byte, whole * width + byte);
      }
  }
}

void MeshState::fill(uint8_t value) {
  std::string arena(static_cast<size_t>(program_.arenaBytes), '\xee');
  forEachByte([&](const State& state, int64_t at, int64_t byte) {
    arena[static_cast<size_t>(state.offset + at)] = byteOf(state.name, value, byte);
  });
  for (const State& state : program_.states)
    if (state.kind == StateKind::Counter) {
      const int64_t count = value;
      std::memcpy(arena.data() + state.offset, &count, sizeof count);
    }
  (void)device_.upload(0, arena);
}

std::string MeshState::differing(uint8_t value) {
  std::string arena(static_cast<size_t>(program_.arenaBytes), '\0');
  (void)device_.download(0, arena);
  std::string name;
  forEachByte([&](const State& state, int64_t at, int64_t byte) {
    if (name.empty() &&
        arena[static_cast<size_t>(state.offset + at)] != byteOf(state.name, value, byte))
      name = state.name;
  });
  for (const State& state : program_.states)
    if (state.kind == StateKind::Counter && name.empty()) {
      int64_t count = 0;
      std::memcpy(&count, arena.data() + state.offset, sizeof count);
      name = count == value ? "" : state.name;
    }
  return name;
}

std::string MeshState::whole(const Tensor& tensor, uint8_t value) {
  std::string bytes;
  for (int64_t i = 0; i < elementCount(tensor.shape) * byteSize(tensor.dtype); ++i)
    bytes += byteOf(tensor.name, value, i);
  return bytes;
}

SaveRequest MeshState::saveRequest(int64_t step) {
  SaveRequest request;
  request.step = step;
  request.tensors = tensors(access_);
  request.counters = counters(access_).take();
  request.data = {"00ff", 50000, 7};
  request.program = describe(program_, {}, Recipe());
  return request;
}

LoadRequest MeshState::loadRequest(Peers* peers) {
  return {destinations(access_), describe(program_, {}, Recipe()), peers, program_.mesh};
}

InitRequest MeshState::initRequest(Peers* peers) {
  return {destinations(access_), {}, {}, peers, program_.mesh};
}

int64_t MeshState::bytes() {
  int64_t bytes = 0;
  forEachByte([&](const State&, int64_t, int64_t) { ++bytes; });
  return bytes;
}

int64_t MeshState::bytesOf(const std::vector<Tensor>& tensors) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors)
    bytes += elementCount(tensor.shape) * byteSize(tensor.dtype);
  return bytes;
}

} // namespace titan::checkpoint
