// Converters whose semantics changed between opsets, or that are easily read wrong.
#include "frontend/onnx/testing/ImportFixture.h"

namespace titan::frontend {
namespace {

using testing::ModelBuilder;

class Converters : public testing::ImportFixture {};

TEST_F(Converters, SoftmaxBeforeOpset13FlattensFromItsAxis) {
  auto axis0 = [](::onnx::NodeProto& n) { ModelBuilder::setInt(n, "axis", 0); };
  EXPECT_HAS(node("Softmax", 12, axis0),
             "titan.softmax %0 dim 0 {path = [\"n\"]} : tensor<32xf32>");
  EXPECT_HAS(node("Softmax", 12), "titan.softmax %arg0 dim 1"); // default axis 1
  EXPECT_HAS(node("Softmax", 13, axis0), "titan.softmax %arg0 dim 0");
  EXPECT_HAS(node("LogSoftmax", 17), "titan.log_softmax %arg0 dim 1"); // default axis -1
}

TEST_F(Converters, AxesAreAttributesInOldOpsetsAndOperandsInNewOnes) {
  auto attribute = [](::onnx::NodeProto& n) { ModelBuilder::setInts(n, "axes", {-1}); };
  auto operand = [](ModelBuilder& m) { m.integers("a", {-1}); };
  EXPECT_HAS(node("ReduceSum", 11, attribute), "titan.reduce sum %arg0 [1]");
  EXPECT_HAS(node("ReduceSum", 13, nullptr, {"a"}, operand), "titan.reduce sum %arg0 [1]");
  EXPECT_HAS(node("Unsqueeze", 11, attribute), "tensor<8x4x1xf32>");
  EXPECT_HAS(node("Unsqueeze", 13, nullptr, {"a"}, operand), "tensor<8x4x1xf32>");
  EXPECT_HAS(node("ReduceMean", 18), "titan.reduce sum %arg0 [0, 1]"); // no axes: all
  auto noop = [](::onnx::NodeProto& n) { ModelBuilder::setInt(n, "noop_with_empty_axes", 1); };
  EXPECT_LACKS(node("ReduceMean", 18, noop), "titan.reduce");
}

TEST_F(Converters, ClipBoundsAreOptional) {
  auto clip = [&](const std::vector<std::string>& bounds) {
    return node("Clip", 13, nullptr, bounds, [](ModelBuilder& m) {
      m.floats("zero", {}, {0});
      m.floats("six", {}, {6});
      m.floats("least", {}, {-3e38F});
      m.integers("whole", {6});
      m.node("CastLike", {"whole", "x"}, {"cast"}, "c");
    });
  };
  EXPECT_HAS(clip({"", "six"}), " ge %arg0");
  EXPECT_LACKS(clip({"", "six"}), "titan.relu");
  EXPECT_HAS(clip({"zero"}), "titan.relu");
  EXPECT_HAS(clip({"six"}), " le %arg0");
  EXPECT_HAS(clip({"least"}), "titan.max"); // of scores: no value is there
  EXPECT_HAS(clip({"", "cast"}), " ge %arg0");
  EXPECT_LACKS(clip({"", "cast"}), "titan.convert");
}

TEST_F(Converters, EquationsOfEinsumMayHaveDotsAndNoOutput) {
  auto einsum = [&](const std::string& equation, const std::vector<int64_t>& shape) {
    ModelBuilder model(17);
    model.input("x", {-1, 2, 4}).output("y");
    model.floats("w", shape, std::vector<float>(elementCount(shape), 0.5f));
    ::onnx::AttributeProto& attribute = *model.node("Einsum", {"x", "w"}, {"y"}).add_attribute();
    attribute.set_name("equation");
    attribute.set_type(::onnx::AttributeProto::STRING);
    attribute.set_s(equation);
    return import(model);
  };
  const char* plain = "batch [] x [] contracting [2] x [0]";
  EXPECT_HAS(einsum("b s e, e w -> b s w", {4, 3}), plain);
  EXPECT_HAS(einsum("...e,ew->...w", {4, 3}), plain);
  EXPECT_HAS(einsum("...e,ew", {4, 3}), plain);
  // Dimensions behind dots are aligned at their ends; one element goes with any number.
  EXPECT_HAS(einsum("...e,...ew->...w", {2, 4, 3}), "batch [1] x [0] contracting [2] x [1]");
  EXPECT_HAS(einsum("...e,...ew->...w", {1, 4, 3}), plain);
  EXPECT_HAS(einsum("b...,...->b...", {2, 1}), "batch [1] x [0] contracting [] x []");

  EXPECT_HAS(einsum("bse->bs", {4, 3}), "'bse->bs' has 1 terms for 2 operands");
  EXPECT_HAS(einsum("b0e,ew->b0w", {4, 3}), "'b0e,ew->b0w' is not one of letters");
  EXPECT_HAS(einsum("be,ew->bw", {4, 3}), "'be,ew->bw' does not fit operand 0 of [8, 2, 4]");
  EXPECT_HAS(einsum("bs.e,ew->bw", {4, 3}), "'bs.e,ew->bw' does not fit operand 0 of [8, 2, 4]");
  EXPECT_HAS(einsum("bstue...,ew->bw", {4, 3}), "does not fit operand 0 of [8, 2, 4]");
  EXPECT_HAS(einsum("bee,ew->bw", {4, 3}), "'bee,ew->bw': 'e' is 2 and 4");
  EXPECT_HAS(einsum("bse,sw->bew", {4, 3}), "'bse,sw->bew': 's' is 2 and 4");
  EXPECT_HAS(einsum("...e,...ew->...w", {3, 4, 3}), "'...e,...ew->...w': '...' is 2 and 3");
  EXPECT_HAS(einsum("...e,ew->w", {4, 3}), "'...e,ew->w': its output has no '...'");
  EXPECT_HAS(einsum("bse,ew->bq", {4, 3}), "'bse,ew->bq': its output is not a list of its letters");
}

TEST_F(Converters, LettersThatOccurTwiceInATermWalkAlongItsDiagonal) {
  const auto einsum = [&](const std::string& equation, const std::vector<int64_t>& shape) {
    ModelBuilder model(17);
    model.input("x", shape).output("y");
    ModelBuilder::setText(model.node("Einsum", {"x"}, {"y"}, "n"), "equation", equation.c_str());
    return import(model);
  };
  std::string text = einsum("bii->bi", {-1, 3, 3});
  EXPECT_HAS(text, "tensor<8x3x3xf32> to tensor<8x9xf32>");
  EXPECT_HAS(text, "tensor<8x9xf32> to tensor<8x3xf32>");
  EXPECT_HAS(einsum("...ii", {-1, 3, 3}), "tensor<8x3xf32> to tensor<8xf32>");
  EXPECT_HAS(einsum("biji->bj", {-1, 3, 2, 3}), "tensor<8x3x3x2xf32> to tensor<8x9x2xf32>");
  EXPECT_HAS(einsum("biii->bi", {-1, 3, 3, 3}), "tensor<8x9xf32> to tensor<8x3xf32>");
  EXPECT_HAS(einsum("bii->bi", {-1, 3, 4}), "'bii->bi': 'i' is 3 and 4");
}

TEST_F(Converters, OpsOlderThanTheirFirstOpsetAreRefused) {
  EXPECT_HAS(node("Gelu", 19), "opset 19 is older than 20");
}

TEST_F(Converters, DimensionsOfATranspositionMayCountFromTheEnd) {
  const auto transposed = [&](const std::vector<int64_t>& permutation) {
    ModelBuilder model;
    model.input("x", {-1, 2, 3, 4}).output("y");
    ModelBuilder::setInts(model.node("Transpose", {"x"}, {"y"}, "n"), "perm", permutation);
    return import(model);
  };
  EXPECT_HAS(transposed({0, -2, -1, 1}), "titan.transpose %arg0 [0, 2, 3, 1]");
  EXPECT_HAS(transposed({0, -1, 3, 1}), "(Transpose): [0, -1, 3, 1] does not permute 4 dimensions");
  EXPECT_HAS(transposed({0, -5, 2, 3}), "(Transpose): [0, -5, 2, 3] does not permute 4 dimensions");
}

TEST_F(Converters, MatMulBroadcastsLikeNumPy) {
  ModelBuilder model;
  model.input("a", {-1, 3, 5, 4})
      .input("b", {3, 4, 2})
      .output("y")
      .node("MatMul", {"a", "b"}, {"y"});
  std::string text = import(model);
  EXPECT_HAS(text, "titan.broadcast %arg1 [1, 2, 3] {path = [\"y\"]} : tensor<3x4x2xf32> to "
                   "tensor<8x3x4x2xf32>");
  EXPECT_HAS(text, "batch [0, 1] x [0, 1] contracting [3] x [2]");
  ModelBuilder vectors;
  vectors.input("a", {-1, 4}).input("b", {4}).output("y").node("MatMul", {"a", "b"}, {"y"});
  EXPECT_HAS(import(vectors), "-> tensor<8xf32>");
}

TEST_F(Converters, EmptyResultsAreRefused) {
  auto tensors = [](ModelBuilder& m) { m.integers("s", {2}), m.integers("e", {2}); };
  EXPECT_HAS(node("Slice", 13, nullptr, {"s", "e"}, tensors), "of shape [0, 4] is empty");
}

TEST_F(Converters, StepsBackwardsAreReversed) {
  ModelBuilder model;
  model.input("x", {-1, 7}).output("y");
  for (auto [name, value] : {std::pair("start", -1), {"end", 0}, {"axis", 1}, {"step", -2}})
    model.integers(name, {value});
  model.node("Slice", {"x", "start", "end", "axis", "step"}, {"y"});
  std::string text = import(model);
  EXPECT_HAS(text, "offsets [0, 2] strides [1, 2]");
  EXPECT_HAS(text, "titan.reverse %0 [1]");
}

TEST_F(Converters, EmptyPiecesAddNothing) {
  // A rotary embedding of the whole head, written for one of its part: concat(turned, x[..., 3:]).
  ModelBuilder model;
  model.input("x", {2, 3}).output("y");
  model.integers("start", {3});
  model.integers("end", {9});
  model.integers("axis", {1});
  model.node("Relu", {"x"}, {"turned"});
  model.node("Slice", {"x", "start", "end", "axis"}, {"rest"});
  ::onnx::NodeProto& concat = model.node("Concat", {"turned", "rest"}, {"y"});
  ModelBuilder::setInt(concat, "axis", 1);
  std::string text = import(model);
  EXPECT_HAS(text, "titan.relu");
  EXPECT_LACKS(text, "titan.concat");
}

TEST_F(Converters, APaddingWrapsAround) {
  ModelBuilder model;
  model.input("x", {-1, 7}).output("y").integers("pads", {0, 2, 0, 1});
  ModelBuilder::setText(model.node("Pad", {"x", "pads"}, {"y"}), "mode", "wrap");
  std::string text = import(model);
  EXPECT_HAS(text, "%0 = titan.slice %arg0 offsets [0, 5]");
  EXPECT_HAS(text, "%1 = titan.slice %arg0 offsets [0, 0]");
  EXPECT_HAS(text, "titan.concat %0, %arg0, %1 dim 1");
}

TEST_F(Converters, AnIdentityOfTorchExportMayStopAGradient) {
  const auto identity = [](const char* op, int32_t type) {
    ModelBuilder model(20);
    model.input("x", {-1, 4}, type).output("y");
    ModelBuilder::setSource(model.node("Identity", {"x"}, {"y"}), "", op, "%x");
    return model;
  };
  constexpr int32_t floats = ::onnx::TensorProto::FLOAT, integers = ::onnx::TensorProto::INT64;
  ModelBuilder detach = identity("detach.default", floats),
               clone = identity("clone.default", floats),
               numbers = identity("detach.default", integers);
  EXPECT_HAS(import(detach), "titan.detach %arg0");
  EXPECT_LACKS(import(clone), "titan.detach");
  EXPECT_LACKS(import(numbers), "titan.detach");
}

TEST_F(Converters, WhatDoesNotFitAPadOrABlockIsRefused) {
  const auto refusal = [&](const char* op, std::vector<int64_t> pads, auto set) {
    ModelBuilder model;
    model.input("x", {-1, 6, 5, 4}).output("y").integers("pads", pads);
    auto& node = pads.empty() ? model.node(op, {"x"}, {"y"}, "n")
                              : model.node(op, {"x", "pads"}, {"y"}, "n");
    set(node);
    return import(model);
  };
  const auto mode = [](const char* text) {
    return [text](auto& node) { ModelBuilder::setText(node, "mode", text); };
  };
  const auto block = [](int64_t size) {
    return [size](auto& node) { ModelBuilder::setInt(node, "blocksize", size); };
  };
  EXPECT_HAS(refusal("Pad", {0, 0, 5, 0, 0, 0, 0, 0}, mode("reflect")),
             "pads 5 and 0 reflect more of dimension 2 than its extent 5 has");
  EXPECT_HAS(refusal("Pad", {0, 0, 6, 0, 0, 0, 0, 0}, mode("wrap")),
             "pads 6 and 0 wrap around more than the extent 5 of dimension 2");
  EXPECT_HAS(refusal("Pad", {0, 0, 1, 0, 0, 0, 0, 0}, mode("tile")), "mode = 'tile' is not known");
  EXPECT_HAS(refusal("DepthToSpace", {}, block(2)),
             "6 channels are no multiple of blocksize 2 squared");
  EXPECT_HAS(refusal("SpaceToDepth", {}, block(2)), "5 x 4 is no multiple of blocksize 2");
  EXPECT_HAS(refusal("SpaceToDepth", {}, block(0)),
             "blocksize = 0 for an operand of shape [8, 6, 5, 4]");
}

} // namespace
} // namespace titan::frontend
