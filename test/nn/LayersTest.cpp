// Layers of the own frontend, run by the reference interpreter in f64, against loops that say what
// they compute.
#include "frontend/nn/Layers.h"
#include "compiler/Interpreter/Interpreter.h"
#include "frontend/nn/Builder.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;

namespace titan::nn {
namespace {

/// A row-major array of numbers.
struct Array {
  Shape shape;
  std::vector<double> values;

  explicit Array(Shape shape) : shape(std::move(shape)), values(elementCount(this->shape)) {}
  double& at(std::initializer_list<int64_t> index) {
    int64_t place = 0;
    auto extent = shape.begin();
    for (int64_t i : index)
      place = place * *extent++ + i;
    return values[place];
  }
};

/// Numbers between -1 and 1 that differ from name to name.
Array drawn(std::string_view name, const Shape& shape) {
  Array array(shape);
  const double start = static_cast<double>(std::hash<std::string_view>()(name) % 1000);
  for (size_t i = 0; i < array.values.size(); ++i)
    array.values[i] = std::sin(start + 1.7 * static_cast<double>(i));
  return array;
}

class Layers : public ::testing::Test {
protected:
  Layers() : context_(registry()) {}

  static DialectRegistry registry() {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, ir::TitanDialect>();
    interpreter::registerInterpreterModels(registry);
    return registry;
  }

  /// What `layer` gives of x, drawn in the shape [2, sample...]; states are drawn too.
  Array run(const Shape& sample, const std::function<Tensor(Scope, Tensor)>& layer) {
    Recipe recipe;
    recipe.model.init = "fresh";
    recipe.batch.micro = recipe.batch.global = 2;
    auto module = buildModule(context_, "m", recipe, [&](Model& model) {
      Tensor x = model.input("x", DType::F32, sample);
      model.output("y", layer(model.root(), x));
    });
    EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().message());
    interpreter::Arguments arguments;
    for (auto state : (*module)->getOps<ir::StateOp>())
      arguments.states[state.getSymName().str()] =
          tensorOf(state.getTensorType(), state.getSymName());
    auto function = *(*module)->getOps<func::FuncOp>().begin();
    auto type = cast<RankedTensorType>(function.getArgumentTypes().back());
    arguments.inputs["x"] = tensorOf(type, "x");
    auto results = interpreter::run(function, arguments, interpreter::Engine::F64);
    EXPECT_TRUE(succeeded(results));
    const interpreter::Tensor& y = results->outputs.at("y");
    Array result(Shape(y.shape().begin(), y.shape().end()));
    for (int64_t i = 0; i < y.size(); ++i)
      result.values[i] = y.number(i);
    return result;
  }

  static interpreter::Tensor tensorOf(RankedTensorType type, StringRef name) {
    Array values =
        drawn(std::string_view(name), Shape(type.getShape().begin(), type.getShape().end()));
    if (isa<IntegerType>(type.getElementType()))
      return interpreter::Tensor(type);
    return interpreter::Tensor::of(type, ArrayRef<double>(values.values));
  }

  /// Up to the rounding of constants, which are f32.
  static void expectEqual(const Array& found, const Array& expected) {
    ASSERT_EQ(found.shape, expected.shape);
    for (size_t i = 0; i < found.values.size(); ++i)
      ASSERT_NEAR(found.values[i], expected.values[i], 1e-7) << "element " << i;
  }

  MLIRContext context_;
};

TEST_F(Layers, LinearReadsBothLayouts) {
  Array x = drawn("x", {2, 3});
  for (MatrixLayout layout : {MatrixLayout::OutIn, MatrixLayout::InOut}) {
    const bool outIn = layout == MatrixLayout::OutIn;
    Array w = drawn("fc.weight", outIn ? Shape{5, 3} : Shape{3, 5}), b = drawn("fc.bias", {5});
    Array y({2, 5});
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t o = 0; o < 5; ++o) {
        y.at({n, o}) = b.at({o});
        for (int64_t i = 0; i < 3; ++i)
          y.at({n, o}) += x.at({n, i}) * (outIn ? w.at({o, i}) : w.at({i, o}));
      }
    expectEqual(run({3}, [&](Scope s,
                             Tensor t) { return linear(s.child("fc"), t, 5, {.layout = layout}); }),
                y);
  }
}

TEST_F(Layers, TheBlocksAreMadeOfTheirLayers) {
  const LinearOptions plain = {.bias = false};
  const auto part = [](const char* name, int64_t outputs) {
    return [=](Scope s, Tensor t) { return linear(s.child(name), t, outputs, {.bias = false}); };
  };
  Array gate = run({3}, part("g", 4)), up = run({3}, part("u", 4));
  Array down = drawn("d.weight", {3, 4}), silued({2, 3}), gelued({2, 3});
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t o = 0; o < 3; ++o)
      for (int64_t i = 0; i < 4; ++i) {
        const double g = gate.at({n, i}), u = up.at({n, i});
        silued.at({n, o}) += down.at({o, i}) * u * g / (1 + std::exp(-g));
        gelued.at({n, o}) += down.at({o, i}) * u / 2 * (1 + std::erf(u / std::sqrt(2)));
      }
  expectEqual(
      run({3},
          [&](Scope s, Tensor t) {
            return swiGluBlock(
                s, t, 4,
                {.gate = "g", .up = "u", .down = "d", .inOptions = plain, .downOptions = plain});
          }),
      silued);
  expectEqual(run({3},
                  [&](Scope s, Tensor t) {
                    return geluBlock(
                        s, t, 4,
                        {.up = "u", .down = "d", .upOptions = plain, .downOptions = plain});
                  }),
              gelued);
}

TEST_F(Layers, NormsOfWidthAndGroups) {
  Array x = drawn("x", {2, 4, 6}), w = drawn("weight", {6}), b = drawn("bias", {6});
  Array layer({2, 4, 6}), rms({2, 4, 6}), group({2, 4, 6});
  const auto of = [&](int64_t n, int64_t t0, int64_t t1, int64_t c0, int64_t c1) {
    double sum = 0, squares = 0, count = 0;
    for (int64_t t = t0; t < t1; ++t)
      for (int64_t c = c0; c < c1; ++c, ++count)
        sum += x.at({n, t, c}), squares += x.at({n, t, c}) * x.at({n, t, c});
    return std::pair(sum / count, squares / count);
  };
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t t = 0; t < 4; ++t)
      for (int64_t c = 0; c < 6; ++c) {
        const auto [mean, square] = of(n, t, t + 1, 0, 6);
        const auto [groupMean, groupSquare] = of(n, 0, 4, c / 3 * 3, c / 3 * 3 + 3);
        const double value = x.at({n, t, c}), scale = w.at({c}), shift = b.at({c});
        layer.at({n, t, c}) =
            (value - mean) / std::sqrt(square - mean * mean + 1e-5) * scale + shift;
        rms.at({n, t, c}) = value / std::sqrt(square + 1e-3) * scale;
        group.at({n, t, c}) =
            (value - groupMean) / std::sqrt(groupSquare - groupMean * groupMean + 1e-5) * scale +
            shift;
      }
  expectEqual(run({4, 6}, [](Scope s, Tensor t) { return layerNorm(s, t); }), layer);
  expectEqual(run({4, 6}, [](Scope s, Tensor t) { return rmsNorm(s, t, 1e-3); }), rms);
  expectEqual(run({4, 6}, [](Scope s, Tensor t) { return groupNorm(s, t, 2); }), group);
}

TEST_F(Layers, ConvolutionAndPools) {
  Array x = drawn("x", {2, 7, 4}), w = drawn("weight", {6, 2, 3}), b = drawn("bias", {6});
  Array y({2, 3, 6}), largest({2, 4, 4}), average({2, 4, 4});
  for (int64_t n = 0; n < 2; ++n) {
    // Taps 2 apart, strides of 2, one element of padding, two groups.
    for (int64_t p = 0; p < 3; ++p)
      for (int64_t o = 0; o < 6; ++o) {
        y.at({n, p, o}) = b.at({o});
        for (int64_t c = 0; c < 2; ++c)
          for (int64_t t = 0; t < 3; ++t)
            if (const int64_t at = 2 * p + 2 * t - 1; at >= 0 && at < 7)
              y.at({n, p, o}) += w.at({o, c, t}) * x.at({n, at, o / 3 * 2 + c});
      }
    for (int64_t p = 0; p < 4; ++p)
      for (int64_t c = 0; c < 4; ++c) {
        largest.at({n, p, c}) = -INFINITY;
        for (int64_t t = 0; t < 3; ++t)
          if (const int64_t at = 2 * p + t - 1; at >= 0 && at < 7) {
            largest.at({n, p, c}) = std::max(largest.at({n, p, c}), x.at({n, at, c}));
            average.at({n, p, c}) += x.at({n, at, c}) / 3;
          }
      }
  }
  expectEqual(run({7, 4},
                  [](Scope s, Tensor t) {
                    return convolution(
                        s, t, 6, {3},
                        {.strides = {2}, .padding = {1}, .dilations = {2}, .groups = 2});
                  }),
              y);
  const PoolOptions options = {.strides = {2}, .padding = {1}};
  expectEqual(run({7, 4}, [&](Scope s, Tensor t) { return maxPool(s, t, {3}, options); }), largest);
  expectEqual(run({7, 4}, [&](Scope s, Tensor t) { return averagePool(s, t, {3}, options); }),
              average);
}

TEST_F(Layers, RotaryTurnsPairsByPosition) {
  Array x = drawn("x", {2, 3, 1, 4}), y({2, 3, 1, 4});
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t t = 0; t < 3; ++t)
      for (int64_t i = 0; i < 2; ++i) {
        const double angle = static_cast<double>(t) * std::pow(100.0, -static_cast<double>(i) / 2);
        const double a = x.at({n, t, 0, i}), b = x.at({n, t, 0, i + 2});
        y.at({n, t, 0, i}) = a * std::cos(angle) - b * std::sin(angle);
        y.at({n, t, 0, i + 2}) = b * std::cos(angle) + a * std::sin(angle);
      }
  Array found = run({3, 1, 4}, [](Scope s, Tensor t) { return rotary(s, t, 100); });
  ASSERT_EQ(found.shape, y.shape);
  for (size_t i = 0; i < y.values.size(); ++i)
    ASSERT_NEAR(found.values[i], y.values[i], 1e-6); // angles are f32
}

TEST_F(Layers, AttentionSharesHeadsInGroups) {
  // [N, T, H, D] and [N, S, G, D] are slices of one input [N, 4, 3, 2]: two heads, one of keys.
  Array x = drawn("x", {2, 4, 3, 2}), y({2, 4, 2, 2});
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t t = 0; t < 4; ++t)
      for (int64_t h = 0; h < 2; ++h) {
        double total = 0;
        for (int64_t s = 0; s <= t; ++s) {
          double score = 0;
          for (int64_t d = 0; d < 2; ++d)
            score += x.at({n, t, h, d}) * x.at({n, s, 2, d});
          const double weight = std::exp(score / std::sqrt(2));
          total += weight;
          for (int64_t d = 0; d < 2; ++d)
            y.at({n, t, h, d}) += weight * x.at({n, s, 2, d});
        }
        for (int64_t d = 0; d < 2; ++d)
          y.at({n, t, h, d}) /= total;
      }
  expectEqual(run({4, 3, 2},
                  [](Scope s, Tensor t) {
                    Tensor key = slice(s, t, 2, 2, 1);
                    return attention(s, slice(s, t, 2, 0, 2), key, key, {.causal = true});
                  }),
              y);
}

TEST_F(Layers, MovementAndMeans) {
  Array x = drawn("x", {2, 3, 4}), y({2, 8});
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t c = 0; c < 4; ++c) {
      double sum = 0, power = 0;
      for (int64_t t = 0; t < 3; ++t)
        sum += x.at({n, t, c}), power += std::exp(x.at({n, t, c}));
      y.at({n, c}) = sum / 3;
      y.at({n, c + 4}) = std::exp(x.at({n, 1, c})) / power;
    }
  expectEqual(run({3, 4},
                  [](Scope s, Tensor t) {
                    Tensor last = channelsLast(s, transpose(s, t, {0, 2, 1})); // back again
                    Tensor share = slice(s, softmax(s, last, 1), -2, 1, 1);
                    return concat(s, {mean(s, t, {1}), reshape(s, share, {2, -1})}, -1);
                  }),
              y);
}

} // namespace
} // namespace titan::nn
