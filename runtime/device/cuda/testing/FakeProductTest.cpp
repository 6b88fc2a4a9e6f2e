#include "runtime/device/cuda/testing/FakeProduct.h"

#include "runtime/program/DType.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace titan::cuda::testing {
namespace {

uint64_t put(ptx::Memory& memory, const std::vector<float>& values, cudaDataType_t type) {
  const int64_t size = type == CUDA_R_16BF ? 2 : 4, bytes = std::ssize(values) * size;
  const uint64_t address = memory.allocate(bytes).take();
  char* at = memory.bytes(address, bytes).data();
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t narrow = toBFloat16(values[i]);
    if (type == CUDA_R_16BF)
      std::memcpy(at + i * 2, &narrow, 2);
    else
      std::memcpy(at + i * 4, &values[i], 4);
  }
  memory.markWritten(address, bytes);
  return address;
}

std::vector<float> get(ptx::Memory& memory, uint64_t address, size_t count) {
  std::vector<float> values(count);
  std::memcpy(values.data(), memory.bytes(address, static_cast<int64_t>(4 * count)).data(),
              4 * count);
  return values;
}

TEST(FakeProduct, MultipliesTransposesAndAdds) {
  ptx::Memory memory;
  FakeProduct product;
  // op(A) = [1 2; 3 4; 5 6], op(B) = [1 10; 2 20], both stored transposed.
  product.a = {CUDA_R_32F, 2, 3, 2}, product.transposeA = true;
  product.b = {CUDA_R_32F, 2, 2, 3}, product.transposeB = true;
  product.d = {CUDA_R_32F, 3, 2, 4};
  product.aAddress = put(memory, {1, 2, 3, 4, 5, 6}, CUDA_R_32F);
  product.bAddress = put(memory, {1, 10, 0, 2, 20, 0}, CUDA_R_32F);
  product.dAddress = put(memory, {1, 1, 1, 7, 1, 1, 1, 7}, CUDA_R_32F);
  product.biasAddress = put(memory, {100, 200, 300}, CUDA_R_32F);
  product.accumulate = true;
  for (product.parts = 1; product.parts <= 2; ++product.parts) {
    ASSERT_TRUE(product.run(memory).ok());
    const auto more = static_cast<float>(product.parts - 1);
    EXPECT_EQ(get(memory, product.dAddress, 8),
              (std::vector<float>{106 + 105 * more, 212 + 211 * more, 318 + 317 * more, 7,
                                  151 + 150 * more, 311 + 310 * more, 471 + 470 * more, 7}));
  }
}

TEST(FakeProduct, TakesEachMatrixOfABatch) {
  ptx::Memory memory;
  FakeProduct product;
  product.a = {CUDA_R_16BF, 1, 1, 1, 3, 1};
  product.b = {CUDA_R_16BF, 1, 1, 1, 3, 0}; // one for all
  product.d = {CUDA_R_32F, 1, 1, 1, 3, 1};
  product.aAddress = put(memory, {1, 2, 3}, CUDA_R_16BF);
  product.bAddress = put(memory, {5}, CUDA_R_16BF);
  product.dAddress = put(memory, {0, 0, 0}, CUDA_R_32F);
  ASSERT_TRUE(product.run(memory).ok());
  EXPECT_EQ(get(memory, product.dAddress, 3), (std::vector<float>{5, 10, 15}));
}

TEST(FakeProduct, RoundsTwiceWhereItIsToldTo) {
  ptx::Memory memory;
  FakeProduct product;
  product.a = product.b = {CUDA_R_32F, 1, 1, 1};
  product.d = {CUDA_R_32F, 1, 1, 1};
  product.aAddress = put(memory, {-1029}, CUDA_R_32F); // 11 bits
  product.bAddress = put(memory, {1}, CUDA_R_32F);
  product.dAddress = put(memory, {3}, CUDA_R_32F);
  product.accumulate = product.misrounds = true;
  ASSERT_TRUE(product.run(memory).ok());
  EXPECT_EQ(get(memory, product.dAddress, 1), (std::vector<float>{-1032 + 3}));
}

TEST(FakeProduct, ReadsF32AsTf32WhereItIsToldTo) {
  ptx::Memory memory;
  FakeProduct product;
  product.a = product.b = product.d = {CUDA_R_32F, 1, 1, 1};
  product.aAddress = put(memory, {2049}, CUDA_R_32F); // 12 bits
  product.bAddress = put(memory, {1}, CUDA_R_32F);
  product.dAddress = put(memory, {4097}, CUDA_R_32F);
  product.accumulate = product.coarse = true;
  ASSERT_TRUE(product.run(memory).ok());
  EXPECT_EQ(get(memory, product.dAddress, 1), (std::vector<float>{2048 + 4097}));
}

TEST(FakeProduct, FindsWhatNobodyWrote) {
  ptx::Memory memory;
  FakeProduct product;
  product.a = product.b = product.d = {CUDA_R_32F, 1, 1, 1};
  product.aAddress = memory.allocate(4).take();
  product.bAddress = product.dAddress = put(memory, {1}, CUDA_R_32F);
  EXPECT_EQ(
      product.run(memory).error().message(),
      fmt::format("the library's product reads A at {:#x}, which nobody wrote", product.aAddress));
  product.aAddress = product.bAddress;
  product.d.columns = 2, product.d.leading = 1;
  EXPECT_NE(product.run(memory).error().message().find("C of 8 bytes"), std::string::npos);
}

} // namespace
} // namespace titan::cuda::testing
