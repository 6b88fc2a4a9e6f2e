// The state of a job on a mesh, as one of its ranks holds it. Each byte of a tensor is a function
// of a fill, the tensor's name and the byte's place in the whole, so what any rank of any mesh
// holds can be checked by itself.
#pragma once

#include "runtime/checkpoint/Load.h"
#include "runtime/device/testing/NullDevice.h"

#include <string>
#include <vector>

namespace titan::checkpoint {

class MeshState {
public:
  struct Tensor {
    std::string name;
    StateKind kind = StateKind::Param;
    DType dtype = DType::F32;
    Shape shape;
    Placement placement;
  };

  MeshState(const std::vector<Tensor>& tensors, const std::vector<MeshAxis>& mesh, int64_t rank,
            bool hasWindow = true);

  const Program& program() const { return program_; }
  /// Writes every element that this rank has, and 0xee to its padding; counters are `value`.
  void fill(uint8_t value);
  /// The name of the first tensor or counter that is not as fill(value) leaves it; empty: none.
  /// Padding may be anything.
  std::string differing(uint8_t value);

  SaveRequest saveRequest(int64_t step);
  LoadRequest loadRequest(Peers* peers);
  InitRequest initRequest(Peers* peers);
  /// The whole, as fill(value) would leave it on one rank.
  static std::string whole(const Tensor& tensor, uint8_t value);
  /// Of the elements that this rank has, and of all that there are.
  int64_t bytes();
  static int64_t bytesOf(const std::vector<Tensor>& tensors);

private:
  /// visit(state, memory offset, byte of the whole), of each byte that this rank has.
  template <typename Visit> void forEachByte(const Visit& visit);

  Program program_;
  titan::testing::NullDevice device_;
  StateAccess access_;
};

} // namespace titan::checkpoint
