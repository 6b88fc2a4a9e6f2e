#include "runtime/device/cuda/testing/FakeProduct.h"

#include "runtime/program/DType.h"

#include <cstring>
#include <vector>

namespace titan::cuda::testing {
namespace {

float roundToBits(float value, int bits) {
  // To nearest even, by the carry of an addition; no test has sums near the largest number.
  const float large = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xff800000u) *
                      static_cast<float>(1 << (24 - bits)) * 1.5f;
  volatile float sum = value + large;
  return sum - large;
}

/// One matrix of a batch.
class Matrix {
public:
  Matrix(const FakeLayout& layout, CUdeviceptr address, int64_t number, bool coarse = false)
      : layout_(&layout), coarse_(coarse),
        address_(address + static_cast<uint64_t>(number * layout.stride * layout.elementBytes())) {}

  /// Its bytes, all of which lie in an allocation; with `read` they were written, too.
  Status map(ptx::Memory& memory, const char* name, bool read) {
    const int64_t size = layout_->elementBytes(), column = layout_->rows * size;
    const int64_t bytes = (layout_->columns - 1) * layout_->leading * size + column;
    bytes_ = memory.bytes(address_, bytes);
    if (bytes_.empty())
      return Error::runFailed("the library's product: {} of {} bytes at {:#x} lies in no "
                              "allocation",
                              name, bytes, address_);
    for (int64_t j = 0; read && j < layout_->columns; ++j)
      if (const auto at = memory.firstUnwritten(address_ + j * layout_->leading * size, column))
        return Error::runFailed("the library's product reads {} at {:#x}, which nobody wrote", name,
                                *at);
    return {};
  }
  void markWritten(ptx::Memory& memory) const {
    const int64_t size = layout_->elementBytes();
    for (int64_t j = 0; j < layout_->columns; ++j)
      memory.markWritten(address_ + j * layout_->leading * size, layout_->rows * size);
  }

  float get(int64_t i, int64_t j) const {
    const char* at = place(i, j);
    if (layout_->type == CUDA_R_16BF) {
      uint16_t bits = 0;
      std::memcpy(&bits, at, sizeof bits);
      return fromBFloat16(bits);
    }
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    constexpr int bitsOfTf32 = 11;
    return coarse_ ? roundToBits(value, bitsOfTf32) : value;
  }
  void set(int64_t i, int64_t j, float value, bool flip) {
    char* at = place(i, j);
    if (layout_->type == CUDA_R_16BF) {
      const uint16_t bits = static_cast<uint16_t>(toBFloat16(value) ^ flip);
      std::memcpy(at, &bits, sizeof bits);
    } else {
      const uint32_t bits = std::bit_cast<uint32_t>(value) ^ flip;
      std::memcpy(at, &bits, sizeof bits);
    }
  }

private:
  char* place(int64_t i, int64_t j) const {
    return bytes_.data() + (j * layout_->leading + i) * layout_->elementBytes();
  }

  const FakeLayout* layout_;
  bool coarse_;
  CUdeviceptr address_;
  std::span<char> bytes_;
};

} // namespace

Status FakeProduct::run(ptx::Memory& memory) const {
  const int64_t depth = transposeA ? a.rows : a.columns;
  const std::span<char> scratch = memory.bytes(workspace, workspaceBytes);
  if (scratch.size() != static_cast<size_t>(workspaceBytes))
    return Error::runFailed("the library's product: its workspace lies in no allocation");
  const bool flip = flips || (careless && !scratch.empty() && scratch[0] != 0x5a);
  // In pieces: what is written first has to be read again.
  for (char& byte : scratch)
    byte = 0x77;
  memory.markWritten(workspace, workspaceBytes);

  std::vector<float> bias(static_cast<size_t>(biasAddress ? d.rows : 0));
  if (biasAddress) {
    const FakeLayout layout{d.type, d.rows, 1, d.rows};
    Matrix vector(layout, biasAddress, 0);
    TITAN_TRY(vector.map(memory, "the bias", true));
    for (int64_t i = 0; i < d.rows; ++i)
      bias[static_cast<size_t>(i)] = vector.get(i, 0);
  }
  for (int64_t number = 0; number < d.batch; ++number) {
    Matrix left(a, aAddress, number, coarse), right(b, bAddress, number, coarse);
    Matrix result(d, dAddress, number);
    TITAN_TRY(left.map(memory, "A", true));
    TITAN_TRY(right.map(memory, "B", true));
    TITAN_TRY(result.map(memory, "C", accumulate));
    for (int64_t j = 0; j < d.columns; ++j)
      for (int64_t i = 0; i < d.rows; ++i) {
        float sum = 0;
        for (int part = 0; part < parts; ++part) {
          volatile float partial = 0; // no fused multiply-adds
          for (int64_t k = depth * part / parts; k < depth * (part + 1) / parts; ++k) {
            const volatile float product = (transposeA ? left.get(k, i) : left.get(i, k)) *
                                           (transposeB ? right.get(j, k) : right.get(k, j));
            partial = partial + product;
          }
          sum = part == 0 ? partial : sum + partial;
        }
        constexpr int bitsOfF32 = 8, bitsOfBf16 = 12;
        if (misrounds && sum != 0)
          sum = roundToBits(sum, d.type == CUDA_R_16BF ? bitsOfBf16 : bitsOfF32);
        if (accumulate)
          sum += result.get(i, j);
        if (biasAddress)
          sum += bias[static_cast<size_t>(i)];
        result.set(i, j, sum, flip && number == 0 && i == 0 && j == 0);
      }
    result.markWritten(memory);
  }
  return {};
}

} // namespace titan::cuda::testing
