// Attention against the products, softmax and dropout that it stands for, over several blocks of
// rows; the routine of kernel.call against the op.
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace titan::interpreter;

namespace {

class Attention : public titan::interpreter::testing::ModuleFixture {
protected:
  void expectEquivalent(const std::string& before, const std::string& after,
                        const EquivalenceOptions& options = {}) {
    OwningOpRef<ModuleOp> first = parse(before), second = parse(after);
    ASSERT_TRUE(first && second);
    EXPECT_TRUE(succeeded(checkEquivalent(*first, *second, options))) << message;
  }
};

/// @f(query, key, value, adjoint of the result, index) -> (result, log_sum_exp, dquery, dkey,
/// dvalue) of two heads, 70 queries and 81 keys. %mask allows key 0 to every query: softmax has no
/// value for a query that attends to nothing.
constexpr std::string_view signature = R"(
  func.func @f(%q: tensor<2x70x2x8xf32>, %k: tensor<2x81x2x8xf32>, %v: tensor<2x81x2x4xf32>, %d: tensor<2x70x2x4xf32>,
               %m: tensor<2x1x70x81xi1>, %seed: tensor<i64>, %step: tensor<i64>)
      -> (tensor<2x70x2x4xf32>, tensor<2x2x70xf32>, tensor<2x70x2x8xf32>, tensor<2x81x2x8xf32>, tensor<2x81x2x4xf32>) {{
    %base = arith.constant 68040 : index
    %keys = titan.iota 3 : tensor<2x1x70x81xi64>
    %none = titan.constant dense<0> : tensor<2x1x70x81xi64>
    %first = titan.compare eq %keys, %none : tensor<2x1x70x81xi64>
    %mask = titan.or %m, %first : tensor<2x1x70x81xi1>
    {}
    return %y, %lse, %dq, %dk, %dv : tensor<2x70x2x4xf32>, tensor<2x2x70xf32>, tensor<2x70x2x8xf32>, tensor<2x81x2x8xf32>, tensor<2x81x2x4xf32>
  }})";

std::string oneOp(const std::string& options) {
  constexpr std::string_view body = R"(
    %y, %lse = titan.attention %q, %k, %v mask %mask seed %seed step %step base %base scale 0.25 {0}
        : (tensor<2x70x2x8xf32>, tensor<2x81x2x8xf32>, tensor<2x81x2x4xf32>, tensor<2x1x70x81xi1>, tensor<i64>, tensor<i64>, index)
        -> (tensor<2x70x2x4xf32>, tensor<2x2x70xf32>)
    %dq, %dk, %dv = titan.attention_grad %q, %k, %v result %y, %lse, %d mask %mask seed %seed step %step base %base scale 0.25 {0}
        : (tensor<2x70x2x8xf32>, tensor<2x81x2x8xf32>, tensor<2x81x2x4xf32>, tensor<2x70x2x4xf32>, tensor<2x2x70xf32>, tensor<2x70x2x4xf32>,
           tensor<2x1x70x81xi1>, tensor<i64>, tensor<i64>, index)
        -> (tensor<2x70x2x8xf32>, tensor<2x81x2x8xf32>, tensor<2x81x2x4xf32>))";
  return fmt::format(signature, fmt::format(body, options));
}

/// The formulas of the op descriptions with [B, H, T, S] tensors. With `causal` query i attends to
/// keys 0..i.
std::string writtenOut(bool causal) {
  constexpr std::string_view body = R"(
    %scale = titan.constant dense<0.25> : tensor<2x2x70x81xf32>
    %inf = titan.constant dense<0xFF800000> : tensor<2x2x70x81xf32>
    %qk = titan.contract %q, %k batch [0, 2] x [0, 2] contracting [3] x [3] : (tensor<2x70x2x8xf32>, tensor<2x81x2x8xf32>) -> tensor<2x2x70x81xf32>
    %scaled = titan.mul %qk, %scale : tensor<2x2x70x81xf32>
    %m3 = titan.reshape %mask : tensor<2x1x70x81xi1> to tensor<2x70x81xi1>
    %rows = titan.iota 1 : tensor<2x70x81xi64>
    %columns = titan.iota 2 : tensor<2x70x81xi64>
    %past = titan.compare le %columns, {0} : tensor<2x70x81xi64>
    %allowed = titan.and %m3, %past : tensor<2x70x81xi1>
    %masks = titan.broadcast %allowed [0, 2, 3] : tensor<2x70x81xi1> to tensor<2x2x70x81xi1>
    %s = titan.select %masks, %scaled, %inf : tensor<2x2x70x81xi1>, tensor<2x2x70x81xf32>
    %p = titan.softmax %s dim 3 : tensor<2x2x70x81xf32>
    %max = titan.reduce max %s [3] : tensor<2x2x70x81xf32> to tensor<2x2x70xf32>
    %maxs = titan.broadcast %max [0, 1, 2] : tensor<2x2x70xf32> to tensor<2x2x70x81xf32>
    %shifted = titan.sub %s, %maxs : tensor<2x2x70x81xf32>
    %e = titan.exp %shifted : tensor<2x2x70x81xf32>
    %total = titan.reduce sum %e [3] : tensor<2x2x70x81xf32> to tensor<2x2x70xf32>
    %log = titan.log %total : tensor<2x2x70xf32>
    %lse = titan.add %max, %log : tensor<2x2x70xf32>
    %pd = titan.dropout %p p 0.25 stream 9 seed %seed step %step base %base {{window = #titan.window<[8, 2, 70, 81], multiple = 22680>}}
        : tensor<2x2x70x81xf32> to tensor<2x2x70x81xf32>
    %yh = titan.contract %pd, %v batch [0, 1] x [0, 2] contracting [3] x [1] : (tensor<2x2x70x81xf32>, tensor<2x81x2x4xf32>) -> tensor<2x2x70x4xf32>
    %y = titan.transpose %yh [0, 2, 1, 3] : tensor<2x2x70x4xf32> to tensor<2x70x2x4xf32>

    %dpd = titan.contract %d, %v batch [0, 2] x [0, 2] contracting [3] x [3] : (tensor<2x70x2x4xf32>, tensor<2x81x2x4xf32>) -> tensor<2x2x70x81xf32>
    %dp = titan.dropout %dpd p 0.25 stream 9 seed %seed step %step base %base {{window = #titan.window<[8, 2, 70, 81], multiple = 22680>}}
        : tensor<2x2x70x81xf32> to tensor<2x2x70x81xf32>
    %dy = titan.mul %d, %y : tensor<2x70x2x4xf32>
    %delta = titan.reduce sum %dy [3] : tensor<2x70x2x4xf32> to tensor<2x70x2xf32>
    %deltas = titan.transpose %delta [0, 2, 1] : tensor<2x70x2xf32> to tensor<2x2x70xf32>
    %deltass = titan.broadcast %deltas [0, 1, 2] : tensor<2x2x70xf32> to tensor<2x2x70x81xf32>
    %centred = titan.sub %dp, %deltass : tensor<2x2x70x81xf32>
    %ds = titan.mul %p, %centred : tensor<2x2x70x81xf32>
    %dss = titan.mul %ds, %scale : tensor<2x2x70x81xf32>
    %dqh = titan.contract %dss, %k batch [0, 1] x [0, 2] contracting [3] x [1] : (tensor<2x2x70x81xf32>, tensor<2x81x2x8xf32>) -> tensor<2x2x70x8xf32>
    %dkh = titan.contract %dss, %q batch [0, 1] x [0, 2] contracting [2] x [1] : (tensor<2x2x70x81xf32>, tensor<2x70x2x8xf32>) -> tensor<2x2x81x8xf32>
    %dvh = titan.contract %pd, %d batch [0, 1] x [0, 2] contracting [2] x [1] : (tensor<2x2x70x81xf32>, tensor<2x70x2x4xf32>) -> tensor<2x2x81x4xf32>
    %dq = titan.transpose %dqh [0, 2, 1, 3] : tensor<2x2x70x8xf32> to tensor<2x70x2x8xf32>
    %dk = titan.transpose %dkh [0, 2, 1, 3] : tensor<2x2x81x8xf32> to tensor<2x81x2x8xf32>
    %dv = titan.transpose %dvh [0, 2, 1, 3] : tensor<2x2x81x4xf32> to tensor<2x81x2x4xf32>)";
  return fmt::format(signature, fmt::format(body, causal ? "%rows" : "%columns"));
}

constexpr StringLiteral dropout = "{p = 0.25 : f64, stream = 9 : i64, window = #titan.window<[8, "
                                  "2, 70, 81], multiple = 22680>}";

TEST_F(Attention, IsProductsSoftmaxAndDropout) {
  expectEquivalent(oneOp(dropout.str()), writtenOut(/*causal=*/false));
  expectEquivalent(oneOp("causal " + dropout.str()), writtenOut(/*causal=*/true));
}

// P and dS are values of the operands' type where they meet the other factor.
TEST_F(Attention, NarrowProbabilitiesAreRounded) {
  EquivalenceOptions options;
  options.engine = Engine::F32;
  options.tolerance = 1e-6;
  expectEquivalent(R"(
    func.func @f(%q: tensor<1x5x1x8xbf16>, %k: tensor<1x6x1x8xbf16>, %v: tensor<1x6x1x4xbf16>) -> tensor<1x5x1x4xbf16> {
      %y, %lse = titan.attention %q, %k, %v scale 0.25
          : (tensor<1x5x1x8xbf16>, tensor<1x6x1x8xbf16>, tensor<1x6x1x4xbf16>) -> (tensor<1x5x1x4xbf16>, tensor<1x1x5xf32>)
      return %y : tensor<1x5x1x4xbf16>
    })",
                   R"(
    func.func @f(%q: tensor<1x5x1x8xbf16>, %k: tensor<1x6x1x8xbf16>, %v: tensor<1x6x1x4xbf16>) -> tensor<1x5x1x4xbf16> {
      %scale = titan.constant dense<0.25> : tensor<1x1x5x6xf32>
      %qk = titan.contract %q, %k batch [0, 2] x [0, 2] contracting [3] x [3] : (tensor<1x5x1x8xbf16>, tensor<1x6x1x8xbf16>) -> tensor<1x1x5x6xf32>
      %s = titan.mul %qk, %scale : tensor<1x1x5x6xf32>
      %p = titan.softmax %s dim 3 : tensor<1x1x5x6xf32>
      %narrow = titan.convert %p : tensor<1x1x5x6xf32> to tensor<1x1x5x6xbf16>
      %yh = titan.contract %narrow, %v batch [0, 1] x [0, 2] contracting [3] x [1] : (tensor<1x1x5x6xbf16>, tensor<1x6x1x4xbf16>) -> tensor<1x1x5x4xf32>
      %yt = titan.transpose %yh [0, 2, 1, 3] : tensor<1x1x5x4xf32> to tensor<1x5x1x4xf32>
      %y = titan.convert %yt : tensor<1x5x1x4xf32> to tensor<1x5x1x4xbf16>
      return %y : tensor<1x5x1x4xbf16>
    })",
                   options);
}

// Query, key and value are parts of one projection, and their adjoints of one tensor.
TEST_F(Attention, RoutineIsTheOpOnViews) {
  constexpr std::string_view function = R"(
    func.func @f(%x: tensor<2x5x18xf32>, %d: tensor<2x5x2x3xf32>, %m: tensor<2x1x1x5xi1>, %seed: tensor<i64>, %step: tensor<i64>)
        -> (tensor<2x5x2x3xf32>, tensor<2x5x18xf32>) {{
      %base = arith.constant 100 : index
      {}
    }})";
  constexpr std::string_view ops = R"(
      %qs = titan.slice %x offsets [0, 0, 0] strides [1, 1, 1] : tensor<2x5x18xf32> to tensor<2x5x6xf32>
      %ks = titan.slice %x offsets [0, 0, 6] strides [1, 1, 1] : tensor<2x5x18xf32> to tensor<2x5x6xf32>
      %vs = titan.slice %x offsets [0, 0, 12] strides [1, 1, 1] : tensor<2x5x18xf32> to tensor<2x5x6xf32>
      %q = titan.reshape %qs : tensor<2x5x6xf32> to tensor<2x5x2x3xf32>
      %k = titan.reshape %ks : tensor<2x5x6xf32> to tensor<2x5x2x3xf32>
      %v = titan.reshape %vs : tensor<2x5x6xf32> to tensor<2x5x2x3xf32>
      %y, %lse = titan.attention %q, %k, %v mask %m seed %seed step %step base %base scale 0.5 causal
          {p = 0.5 : f64, stream = 3 : i64, window = #titan.window<[4, 2, 5, 5], multiple = 100>}
          : (tensor<2x5x2x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x3xf32>, tensor<2x1x1x5xi1>, tensor<i64>, tensor<i64>, index)
          -> (tensor<2x5x2x3xf32>, tensor<2x2x5xf32>)
      %dq, %dk, %dv = titan.attention_grad %q, %k, %v result %y, %lse, %d mask %m seed %seed step %step base %base scale 0.5 causal
          {p = 0.5 : f64, stream = 3 : i64, window = #titan.window<[4, 2, 5, 5], multiple = 100>}
          : (tensor<2x5x2x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x3xf32>, tensor<2x2x5xf32>, tensor<2x5x2x3xf32>,
             tensor<2x1x1x5xi1>, tensor<i64>, tensor<i64>, index) -> (tensor<2x5x2x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x3xf32>)
      %dqs = titan.reshape %dq : tensor<2x5x2x3xf32> to tensor<2x5x6xf32>
      %dks = titan.reshape %dk : tensor<2x5x2x3xf32> to tensor<2x5x6xf32>
      %dvs = titan.reshape %dv : tensor<2x5x2x3xf32> to tensor<2x5x6xf32>
      %dx = titan.concat %dqs, %dks, %dvs dim 2 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x18xf32>
      return %y, %dx : tensor<2x5x2x3xf32>, tensor<2x5x18xf32>)";
  constexpr std::string_view routines = R"(
      %yo = kernel.empty : tensor<2x5x2x3xf32>
      %lo = kernel.empty : tensor<2x2x5xf32>
      %xo = kernel.empty : tensor<2x5x18xf32>
      %wo = kernel.empty : tensor<640xf32>
      %y, %lse = kernel.call #kernel.attention<batch = 2, heads = 2, keyHeads = 2, queries = 5, keys = 5, width = 3, valueWidth = 3, element = f32,
            scale = 0.5 : f64, causal = true,
            query = <operand = 0, offset = 0, batch = 90, row = 18, head = 3>,
            key = <operand = 0, offset = 6, batch = 90, row = 18, head = 3>,
            value = <operand = 0, offset = 12, batch = 90, row = 18, head = 3>,
            result = <operand = 0, offset = 0, batch = 30, row = 6, head = 3>, logSumExp = 1,
            blocks = <rows = 64, keys = 64, padding = 16, workspace = 0>,
            mask = <operand = 1, boolean = true, batch = 5, head = 0, row = 0>,
            dropout = <p = 0.5 : f64, stream = 3, seed = 2, step = 3, global = [4, 2, 5, 5], multiple = 100>>
          ins(%x, %m, %seed, %step : tensor<2x5x18xf32>, tensor<2x1x1x5xi1>, tensor<i64>, tensor<i64>)
          outs(%yo, %lo : tensor<2x5x2x3xf32>, tensor<2x2x5xf32>) scalars(%base) -> (tensor<2x5x2x3xf32>, tensor<2x2x5xf32>)
      %dx, %sums = kernel.call #kernel.attention<batch = 2, heads = 2, keyHeads = 2, queries = 5, keys = 5, width = 3, valueWidth = 3, element = f32,
            scale = 0.5 : f64, causal = true,
            query = <operand = 0, offset = 0, batch = 90, row = 18, head = 3>,
            key = <operand = 0, offset = 6, batch = 90, row = 18, head = 3>,
            value = <operand = 0, offset = 12, batch = 90, row = 18, head = 3>,
            result = <operand = 4, offset = 0, batch = 30, row = 6, head = 3>, logSumExp = 5,
            blocks = <rows = 64, keys = 64, padding = 16, workspace = 640>,
            mask = <operand = 1, boolean = true, batch = 5, head = 0, row = 0>,
            dropout = <p = 0.5 : f64, stream = 3, seed = 2, step = 3, global = [4, 2, 5, 5], multiple = 100>,
            gradient = <dresult = <operand = 6, offset = 0, batch = 30, row = 6, head = 3>,
              dquery = <operand = 0, offset = 0, batch = 90, row = 18, head = 3>,
              dkey = <operand = 0, offset = 6, batch = 90, row = 18, head = 3>,
              dvalue = <operand = 0, offset = 12, batch = 90, row = 18, head = 3>, workspace = 1>>
          ins(%x, %m, %seed, %step, %y, %lse, %d : tensor<2x5x18xf32>, tensor<2x1x1x5xi1>, tensor<i64>, tensor<i64>, tensor<2x5x2x3xf32>,
              tensor<2x2x5xf32>, tensor<2x5x2x3xf32>)
          outs(%xo, %wo : tensor<2x5x18xf32>, tensor<640xf32>) scalars(%base) -> (tensor<2x5x18xf32>, tensor<640xf32>)
      return %y, %dx : tensor<2x5x2x3xf32>, tensor<2x5x18xf32>)";
  EquivalenceOptions options;
  options.engine = Engine::F32;
  options.tolerance = 0;
  expectEquivalent(fmt::format(function, ops), fmt::format(function, routines), options);
}

} // namespace
