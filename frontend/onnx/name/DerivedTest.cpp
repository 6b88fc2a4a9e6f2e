// Tensors that are others with their dimensions moved, and what was computed of them.
#include "frontend/onnx/name/Derived.h"

#include "frontend/Strides.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace titan::frontend {
namespace {

using Dims = std::vector<int64_t>;

template <typename Element> Tensor tensorOf(DType dtype, Shape shape, std::vector<Element> values) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.inlineBytes = std::make_shared<const std::string>(
      reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Element));
  return tensor;
}

template <typename Element> std::vector<Element> valuesOf(const Tensor& tensor) {
  std::vector<Element> values(tensor.inlineBytes->size() / sizeof(Element));
  std::memcpy(values.data(), tensor.inlineBytes->data(), tensor.inlineBytes->size());
  return values;
}

/// All different.
template <typename Element> Tensor drawn(DType dtype, const Shape& shape) {
  std::vector<Element> values(static_cast<size_t>(elementCount(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<Element>(0.1 + 1.37 * static_cast<double>(i));
  return tensorOf(dtype, shape, values);
}

/// Dimension i of `of` becomes dimension dims[i].
template <typename Element> Tensor moved(const Tensor& of, const Dims& dims) {
  Shape shape(of.shape.size());
  for (size_t d = 0; d < dims.size(); ++d)
    shape[static_cast<size_t>(dims[d])] = of.shape[d];
  const Shape from = rowMajorStrides(of.shape), to = rowMajorStrides(shape);
  std::vector<Element> values = valuesOf<Element>(of), result(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < dims.size(); ++d)
      at += static_cast<int64_t>(i) / from[d] % of.shape[d] * to[static_cast<size_t>(dims[d])];
    result[static_cast<size_t>(at)] = values[i];
  }
  return tensorOf(of.dtype, shape, result);
}

template <typename Element> void expectAllMovements(DType dtype, const Shape& shape) {
  const Tensor of = drawn<Element>(dtype, shape);
  Dims dims(shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  do {
    const Tensor tensor = moved<Element>(of, dims);
    EXPECT_EQ(movementKey(of), movementKey(tensor)) << toString(shape) << toString(dims);
    EXPECT_TRUE(isMovedBy(of, tensor, dims)) << toString(shape) << toString(dims);
    auto found = movementOf(of, tensor);
    ASSERT_TRUE(found) << toString(shape) << toString(dims);
    EXPECT_TRUE(isMovedBy(of, tensor, *found)) << toString(*found);
    // One element less.
    std::vector<Element> values = valuesOf<Element>(tensor);
    values[values.size() / 2] = values.front();
    EXPECT_FALSE(isMovedBy(of, tensorOf(dtype, tensor.shape, values), dims)) << toString(dims);
  } while (std::ranges::next_permutation(dims).found);
}

TEST(Movements, AreFoundOfAllTypesAndRanks) {
  expectAllMovements<double>(DType::F64, {3, 4, 5, 2});
  expectAllMovements<float>(DType::F32, {70, 130}); // more than a block
  expectAllMovements<float>(DType::F32, {1, 5, 1, 3});
  expectAllMovements<uint16_t>(DType::U16, {7, 3, 2});
  expectAllMovements<uint8_t>(DType::U8, {9, 5});
}

TEST(Movements, KeysTellTensorsApart) {
  const Tensor of = drawn<float>(DType::F32, {4, 6});
  EXPECT_NE(movementKey(of), movementKey(drawn<float>(DType::F32, {3, 8})));
  EXPECT_NE(movementKey(of), movementKey(drawn<uint32_t>(DType::U32, {4, 6})));
  std::vector<float> values = valuesOf<float>(of);
  values[7] += 1; // on the diagonal
  EXPECT_NE(movementKey(of), movementKey(tensorOf(DType::F32, {4, 6}, values)));
  Tensor missing = of;
  missing.missing = "not there";
  EXPECT_FALSE(movementKey(missing));
}

TEST(Movements, ReadTheDiagonalAlone) {
  const Tensor of = drawn<float>(DType::F32, {4, 6});
  std::vector<float> values = valuesOf<float>(of);
  values[1] += 1;
  const Tensor other = tensorOf(DType::F32, {4, 6}, values);
  EXPECT_EQ(movementKey(of), movementKey(other));
  EXPECT_FALSE(isMovedBy(of, other, {0, 1}));
  EXPECT_FALSE(movementOf(of, other));
}

TEST(Movements, OfNothing) {
  const Tensor none = drawn<float>(DType::F32, {0, 3});
  EXPECT_EQ(movementKey(none), movementKey(drawn<float>(DType::F32, {3, 0})));
  EXPECT_TRUE(isMovedBy(none, drawn<float>(DType::F32, {3, 0}), {1, 0}));
}

} // namespace
} // namespace titan::frontend
