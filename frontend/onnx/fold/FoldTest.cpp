#include "frontend/onnx/fold/Fold.h"
#include "frontend/onnx/testing/ModelBuilder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace titan::frontend {
namespace {

Node node(const std::string& type, size_t outputs = 1, int64_t opset = 17) {
  Node node;
  node.opType = type;
  node.opset = opset;
  for (size_t i = 0; i < outputs; ++i)
    node.outputs.push_back("y" + std::to_string(i));
  return node;
}
Node with(Node node, const std::string& attribute, int64_t value) {
  ::onnx::AttributeProto proto;
  proto.set_name(attribute);
  proto.set_i(value);
  node.attributes.push_back(proto);
  return node;
}
HostTensor list(std::vector<int64_t> values) { return HostTensor::vector(values); }
HostTensor number(int64_t value) { return HostTensor::scalar(value); }
HostTensor matrix(Shape shape) {
  HostTensor tensor = HostTensor::empty(DType::I64, shape);
  for (int64_t i = 0; i < elementCount(shape); ++i)
    tensor.push(i);
  return tensor;
}
HostTensor run(const Node& node, const std::vector<HostTensor>& inputs) {
  HostInputs operands;
  for (const HostTensor& input : inputs)
    operands.push_back(&input);
  auto outputs = fold(node, operands).take();
  EXPECT_TRUE(outputs) << node.opType;
  return outputs ? outputs->front() : HostTensor();
}
using Values = std::vector<int64_t>;

TEST(Fold, ShapeArithmeticOfAView) {
  // What exporters write for x.view(x.shape[0], -1) of a [8, 5, 6] tensor.
  HostTensor x = HostTensor::empty(DType::F32, {8, 5, 6});
  HostTensor shape = run(node("Shape"), {x});
  EXPECT_EQ(shape.integers, (Values{8, 5, 6}));
  HostTensor batch = run(node("Gather"), {shape, number(0)});
  EXPECT_EQ(batch.shape, Shape());
  HostTensor row = run(node("Unsqueeze"), {batch, list({0})});
  EXPECT_EQ(run(node("Concat"), {row, list({-1})}).integers, (Values{8, -1}));
  EXPECT_EQ(run(with(with(node("Shape"), "start", -2), "end", 3), {x}).integers, (Values{5, 6}));
  EXPECT_EQ(run(node("Size"), {x}).integers, (Values{240}));
}

TEST(Fold, SliceClampsAsTheSpecificationSays) {
  HostTensor data = list({0, 1, 2, 3, 4});
  auto slice = [&](int64_t start, int64_t end, int64_t step) {
    return run(node("Slice"), {data, list({start}), list({end}), list({0}), list({step})}).integers;
  };
  EXPECT_EQ(slice(1, 3, 1), (Values{1, 2}));
  EXPECT_EQ(slice(-2, INT64_MAX, 1), (Values{3, 4}));
  EXPECT_EQ(slice(-100, 100, 2), (Values{0, 2, 4}));
  EXPECT_EQ(slice(4, INT64_MIN, -1), (Values{4, 3, 2, 1, 0}));
  EXPECT_EQ(slice(100, 1, -2), (Values{4, 2}));
  EXPECT_EQ(slice(3, 3, 1), Values());
  EXPECT_EQ(slice(0, 5, INT64_MAX), (Values{0}));
}

TEST(Fold, BroadcastsElementwise) {
  HostTensor a = matrix({2, 3}), b = list({10, 20, 30});
  EXPECT_EQ(run(node("Add"), {a, b}).integers, (Values{10, 21, 32, 13, 24, 35}));
  EXPECT_EQ(run(node("Less"), {a, number(2)}).integers, (Values{1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(run(node("Where"), {run(node("Less"), {a, number(2)}), a, number(-1)}).integers,
            (Values{0, 1, -1, -1, -1, -1}));
  EXPECT_EQ(run(node("Mod"), {list({7, -7}), list({3, 3})}).integers, (Values{1, 2}));
  EXPECT_EQ(run(with(node("Mod"), "fmod", 1), {list({7, -7}), list({3, 3})}).integers,
            (Values{1, -1}));
}

// Convolutions that pad as TensorFlow does clamp what is missing of the last window.
TEST(Fold, ClipsBetweenBoundsThatMayBeAbsent) {
  const HostTensor data = list({-2, 1, 7}), low = number(0), high = number(4);
  auto clip = [&](const HostTensor* from, const HostTensor* to) {
    return fold(node("Clip"), {&data, from, to}).take()->front().integers;
  };
  EXPECT_EQ(clip(&low, &high), (Values{0, 1, 4}));
  EXPECT_EQ(clip(&low, nullptr), (Values{0, 1, 7}));
  EXPECT_EQ(clip(nullptr, &high), (Values{-2, 1, 4}));
}

TEST(Fold, IntegersWrapAndDivisionsByZeroAreLeft) {
  EXPECT_EQ(run(node("Add"), {number(INT64_MAX), number(1)}).integers, (Values{INT64_MIN}));
  HostTensor one = number(1), zero = number(0);
  EXPECT_FALSE(*fold(node("Div"), {&one, &zero}));
}

TEST(Fold, MovesElements) {
  EXPECT_EQ(run(node("Transpose"), {matrix({2, 3})}).integers, (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(run(with(node("Gather"), "axis", 1), {matrix({2, 3}), list({-1, 0})}).integers,
            (Values{2, 0, 5, 3}));
  EXPECT_EQ(run(node("Range"), {number(5), number(0), number(-2)}).integers, (Values{5, 3, 1}));
  EXPECT_EQ(run(node("Expand"), {list({1, 2}), list({2, 1})}).integers, (Values{1, 2, 1, 2}));
  EXPECT_EQ(run(node("Reshape"), {matrix({2, 3}), list({0, -1, 1})}).shape, (Shape{2, 3, 1}));
  HostTensor data = matrix({5});
  auto pieces = fold(node("Split", 2), {&data}).take();
  EXPECT_EQ((*pieces)[1].integers, (Values{3, 4}));
}

TEST(Fold, MarksPlaces) {
  const HostTensor indices = list({2, -3, 5}), values = list({7, 9});
  EXPECT_EQ(run(node("OneHot"), {indices, number(3), values}).integers,
            (Values{7, 7, 9, 9, 7, 7, 7, 7, 7}));
  HostTensor columns = run(with(node("OneHot"), "axis", 0), {indices, list({3}), values});
  EXPECT_EQ(columns.shape, (Shape{3, 3}));
  EXPECT_EQ(columns.integers, (Values{7, 9, 7, 7, 7, 7, 9, 7, 7}));
  const HostTensor none = number(0), deep = number(1 << 30);
  for (const HostTensor* depth : {&none, &deep})
    EXPECT_FALSE(*fold(node("OneHot"), {&indices, depth, &values}));
}

TEST(Fold, Reduces) {
  EXPECT_EQ(run(with(node("ReduceProd"), "keepdims", 0), {list({2, 3, 4})}).integers, (Values{24}));
  EXPECT_EQ(run(node("ReduceMax"), {matrix({2, 3}), list({1})}).integers, (Values{2, 5}));
}

TEST(Fold, LeavesWhatIsLarge) {
  HostTensor shape = list({1 << 20, 1 << 10}), one = number(1);
  EXPECT_FALSE(*fold(node("ConstantOfShape"), {&shape}));
  EXPECT_FALSE(*fold(node("Expand"), {&one, &shape}));
}

TEST(Fold, RefusesWhatTheSpecificationForbids) {
  HostTensor data = matrix({2, 3}), target = list({4, 4}), two = list({-1, -1}), index = list({3});
  for (const HostTensor* bad : {&target, &two})
    EXPECT_FALSE(fold(node("Reshape"), {&data, bad}).ok());
  EXPECT_FALSE(fold(node("Gather"), {&data, &index}).ok());
  EXPECT_FALSE(fold(node("Squeeze"), {&data, &index}).ok());
}

TEST(Fold, RangesOfNoneAndWithoutAnEnd) {
  auto real = [](double value) {
    HostTensor tensor = HostTensor::empty(DType::F64, {});
    tensor.push(value);
    return tensor;
  };
  auto range = [](const HostTensor& start, const HostTensor& limit, const HostTensor& delta) {
    return fold(node("Range"), {&start, &limit, &delta});
  };
  // Backwards, by more elements than a 64-bit integer counts.
  EXPECT_EQ(run(node("Range"), {real(1e300), real(0), real(1e-300)}).shape, (Shape{0}));
  EXPECT_EQ(run(node("Range"), {number(5), number(0), number(1)}).shape, (Shape{0}));
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(range(real(0), real(1e300), real(1e-300)).ok());
  for (double endless : {infinity, -infinity, std::nan("")}) {
    EXPECT_FALSE(range(real(0), real(endless), real(1)).ok());
    EXPECT_FALSE(range(real(endless), real(0), real(1)).ok());
    EXPECT_FALSE(range(real(0), real(1), real(endless)).ok());
  }
  for (int64_t limit : {-1, 0, 1})
    EXPECT_FALSE(range(number(0), number(limit), number(0)).ok());
  EXPECT_FALSE(range(real(0), real(-1), real(-0.0)).ok());
}

TEST(Fold, CastsSaturateAndRound) {
  HostTensor real = HostTensor::empty(DType::F64, {4});
  for (double value : {1.9, -1.9, 1e30, std::nan("")})
    real.push(value);
  Node cast = with(node("Cast"), "to", ::onnx::TensorProto::INT64);
  EXPECT_EQ(run(cast, {real}).integers, (Values{1, -1, INT64_MAX, 0}));
  Node half = with(node("Cast"), "to", ::onnx::TensorProto::FLOAT16);
  EXPECT_EQ(run(half, {real}).reals[0], 1.900390625);
}

TEST(Fold, MasksAndIndices) {
  auto one = [](const Node& node, const HostInputs& inputs) {
    auto outputs = fold(node, inputs);
    return outputs.ok() && *outputs ? (**outputs)[0].integers : std::vector<int64_t>();
  };
  HostTensor square = matrix({2, 2}), lines = list({1, 2});
  EXPECT_EQ(one(with(node("Trilu"), "upper", 0), {&square}), (std::vector<int64_t>{0, 0, 2, 3}));
  EXPECT_EQ(one(node("Tile"), {&square, &lines}), (std::vector<int64_t>{0, 1, 0, 1, 2, 3, 2, 3}));
  HostTensor axis = number(1);
  EXPECT_EQ(one(node("CumSum"), {&square, &axis}), (std::vector<int64_t>{0, 1, 2, 5}));
  EXPECT_EQ(one(node("NonZero"), {&square}), (std::vector<int64_t>{0, 1, 1, 1, 0, 1}));
  EXPECT_EQ(one(node("EyeLike"), {&square}), (std::vector<int64_t>{1, 0, 0, 1}));
}

TEST(Fold, LookupsAndWritesByIndex) {
  auto one = [](const Node& node, const HostInputs& inputs) {
    auto outputs = fold(node, inputs);
    return outputs.ok() && *outputs ? (**outputs)[0].integers : std::vector<int64_t>();
  };
  HostTensor data = matrix({2, 3}), tuples = matrix({2, 2}), updates = list({7, 8});
  tuples.integers = {1, 2, 0, -1};
  EXPECT_EQ(one(node("GatherND"), {&data, &tuples}), (std::vector<int64_t>{5, 2}));
  EXPECT_EQ(one(node("ScatterND"), {&data, &tuples, &updates}),
            (std::vector<int64_t>{0, 1, 8, 3, 4, 7}));
  HostTensor picks = matrix({1, 3});
  picks.integers = {1, 0, 1};
  EXPECT_EQ(one(node("GatherElements"), {&data, &picks}), (std::vector<int64_t>{3, 1, 5}));
  tuples.integers = {1, 3, 0, 0};
  EXPECT_FALSE(fold(node("GatherND"), {&data, &tuples}).ok());
}

} // namespace
} // namespace titan::frontend
