// Fusion by execution: which kernels become one, and that no bit changes by it.
#include "compiler/Lower/testing/LowerFixture.h"
#include "dialects/Kernel/Kernel.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace titan::lower::testing {
namespace {

TEST_F(Lower, TransformerBlockWithGradients) {
  auto module = parse(R"(
    func.func @f(%x: tensor<24x32xf32>, %scale: tensor<32xf32>, %bias: tensor<32xf32>, %dy: tensor<24x32xf32>)
        -> (tensor<24x32xf32>, tensor<24x32xf32>, tensor<32xf32>, tensor<32xf32>) {
      %y, %mean, %rstd = titan.layer_norm %x scale %scale bias %bias over [1] epsilon 1.0e-5 {path = ["norm"]}
        : (tensor<24x32xf32>, tensor<32xf32>, tensor<32xf32>) -> (tensor<24x32xf32>, tensor<24xf32>, tensor<24xf32>)
      %g = titan.gelu erf %y {path = ["act"]} : tensor<24x32xf32>
      %r = titan.add %g, %x {path = ["residual"]} : tensor<24x32xf32>
      %p = titan.softmax %r dim 1 {path = ["softmax"]} : tensor<24x32xf32>
      %m = titan.broadcast %mean [0] : tensor<24xf32> to tensor<24x32xf32>
      %s = titan.broadcast %rstd [0] : tensor<24xf32> to tensor<24x32xf32>
      %c = titan.sub %x, %m : tensor<24x32xf32>
      %n = titan.mul %c, %s : tensor<24x32xf32>
      %dn = titan.mul %dy, %n : tensor<24x32xf32>
      %dscale = titan.reduce sum %dn [0] : tensor<24x32xf32> to tensor<32xf32>
      %dbias = titan.reduce sum %dy [0] : tensor<24x32xf32> to tensor<32xf32>
      return %p, %g, %dscale, %dbias : tensor<24x32xf32>, tensor<24x32xf32>, tensor<32xf32>, tensor<32xf32>
    })");
  expectEquivalent(*module);
}

// Query, key and value as slices of one projection, their adjoints as a sum of padded parts, with
// dropout keyed by the microbatch: views, and no copy.
TEST_F(Lower, AttentionReadsAndWritesAProjectionInPlace) {
  for (std::string element : {"f32", "bf16"}) {
    std::string text = R"(
    func.func @f(%xs: tensor<2x2x5x24x$E>, %d: tensor<2x5x4x2x$E>, %zero: tensor<2x5x24x$E>, %seed: tensor<i64>, %step: tensor<i64>, %mask: tensor<1x1x5x5xi1>) -> tensor<2x5x24x$E> {
      %r = accum.loop %i in 2 running slices(%x = %xs : tensor<2x2x5x24x$E>) accumulators(%a = %zero : tensor<2x5x24x$E>) -> (tensor<2x5x24x$E>) {
        %c200 = arith.constant 200 : index
        %base = arith.muli %i, %c200 : index
        %q = titan.slice %x offsets [0, 0, 0] strides [1, 1, 1] : tensor<2x5x24x$E> to tensor<2x5x8x$E>
        %k = titan.slice %x offsets [0, 0, 8] strides [1, 1, 1] : tensor<2x5x24x$E> to tensor<2x5x8x$E>
        %v = titan.slice %x offsets [0, 0, 16] strides [1, 1, 1] : tensor<2x5x24x$E> to tensor<2x5x8x$E>
        %qh = titan.reshape %q : tensor<2x5x8x$E> to tensor<2x5x4x2x$E>
        %kh = titan.reshape %k : tensor<2x5x8x$E> to tensor<2x5x4x2x$E>
        %vh = titan.reshape %v : tensor<2x5x8x$E> to tensor<2x5x4x2x$E>
        %y, %l = titan.attention %qh, %kh, %vh mask %mask seed %seed step %step base %base scale 0.7 {p = 0.25, stream = 7, window = #titan.window<[4, 4, 5, 5], multiple = 200>}
          : (tensor<2x5x4x2x$E>, tensor<2x5x4x2x$E>, tensor<2x5x4x2x$E>, tensor<1x1x5x5xi1>, tensor<i64>, tensor<i64>, index) -> (tensor<2x5x4x2x$E>, tensor<2x4x5xf32>)
        %dq, %dk, %dv = titan.attention_grad %qh, %kh, %vh result %y, %l, %d mask %mask seed %seed step %step base %base scale 0.7 {p = 0.25, stream = 7, window = #titan.window<[4, 4, 5, 5], multiple = 200>}
          : (tensor<2x5x4x2x$E>, tensor<2x5x4x2x$E>, tensor<2x5x4x2x$E>, tensor<2x5x4x2x$E>, tensor<2x4x5xf32>, tensor<2x5x4x2x$E>, tensor<1x1x5x5xi1>, tensor<i64>, tensor<i64>, index)
          -> (tensor<2x5x4x2x$E>, tensor<2x5x4x2x$E>, tensor<2x5x4x2x$E>)
        %dqf = titan.reshape %dq : tensor<2x5x4x2x$E> to tensor<2x5x8x$E>
        %dkf = titan.reshape %dk : tensor<2x5x4x2x$E> to tensor<2x5x8x$E>
        %dvf = titan.reshape %dv : tensor<2x5x4x2x$E> to tensor<2x5x8x$E>
        %dx = titan.concat %dqf, %dkf, %dvf dim 2 : (tensor<2x5x8x$E>, tensor<2x5x8x$E>, tensor<2x5x8x$E>) -> tensor<2x5x24x$E>
        %s = titan.add %a, %dx : tensor<2x5x24x$E>
        accum.yield %s : tensor<2x5x24x$E>
      }
      return %r : tensor<2x5x24x$E>
    })";
    auto module = parse(replaceAll(text, "$E", element));
    expectEquivalent(*module);
    // The accumulation is all that is not a routine.
    EXPECT_EQ(count<kernel::FusedOp>(*Lowered::of(*module).fused), 1);
  }
}

// Samples whose rows chunks divide and samples whose rows they do not, behind reshapes as exporters
// write them.
TEST_F(Lower, RowsOfSamplesAndRowsOfProducts) {
  for (std::string positions : {"32", "25", "17"}) {
    SCOPED_TRACE(positions + " positions");
    std::string rows = std::to_string(3 * std::stoi(positions));
    std::string text = R"(
    func.func @f(%x: tensor<3xTx24xf32>, %scale: tensor<24xf32>, %b: tensor<40xf32>, %w: tensor<40x24xf32>,
                 %dz: tensor<Nx40xf32>, %t: tensor<Nxi64>)
        -> (tensor<Nx40xf32>, tensor<40xf32>, tensor<3xTx24xf32>, tensor<24xf32>, tensor<N xf32>, tensor<Nx40xf32>) {
      %n, %mean, %rstd = titan.layer_norm %x scale %scale over [2] epsilon 1.0e-5
        : (tensor<3xTx24xf32>, tensor<24xf32>) -> (tensor<3xTx24xf32>, tensor<3xTxf32>, tensor<3xTxf32>)
      %r = titan.reshape %n : tensor<3xTx24xf32> to tensor<Nx24xf32>
      %h = titan.contract %r, %w batch [] x [] contracting [1] x [1] : (tensor<Nx24xf32>, tensor<40x24xf32>) -> tensor<Nx40xf32>
      %bb = titan.broadcast %b [1] : tensor<40xf32> to tensor<Nx40xf32>
      %s = titan.add %h, %bb : tensor<Nx40xf32>
      %v = titan.reshape %s : tensor<Nx40xf32> to tensor<3xTx40xf32>
      %g = titan.gelu tanh %v : tensor<3xTx40xf32>
      %a = titan.reshape %g : tensor<3xTx40xf32> to tensor<Nx40xf32>
      %loss = titan.cross_entropy %a, %t ignore_index -100 label_smoothing 0.0 : (tensor<Nx40xf32>, tensor<Nxi64>) -> tensor<Nxf32>
      %one = titan.constant dense<1.0> : tensor<Nxf32>
      %da = titan.cross_entropy_grad %a, %t, %one ignore_index -100 label_smoothing 0.0 {phase = #titan<phase backward>}
        : (tensor<Nx40xf32>, tensor<Nxi64>, tensor<Nxf32>) -> tensor<Nx40xf32>
      %e = titan.tanh %v {phase = #titan<phase backward>} : tensor<3xTx40xf32>
      %d3 = titan.reshape %dz {phase = #titan<phase backward>} : tensor<Nx40xf32> to tensor<3xTx40xf32>
      %d = titan.mul %d3, %e {phase = #titan<phase backward>} : tensor<3xTx40xf32>
      %db = titan.reduce sum %d [0, 1] {phase = #titan<phase backward>} : tensor<3xTx40xf32> to tensor<40xf32>
      %d2 = titan.reshape %d {phase = #titan<phase backward>} : tensor<3xTx40xf32> to tensor<Nx40xf32>
      %dx = titan.contract %d2, %w batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<Nx40xf32>, tensor<40x24xf32>) -> tensor<Nx24xf32>
      %dr = titan.reshape %dx {phase = #titan<phase backward>} : tensor<Nx24xf32> to tensor<3xTx24xf32>
      %m = titan.broadcast %mean [0, 1] {phase = #titan<phase backward>} : tensor<3xTxf32> to tensor<3xTx24xf32>
      %c = titan.sub %x, %m {phase = #titan<phase backward>} : tensor<3xTx24xf32>
      %q = titan.mul %dr, %c {phase = #titan<phase backward>} : tensor<3xTx24xf32>
      %dot = titan.reduce sum %q [2] {phase = #titan<phase backward>} : tensor<3xTx24xf32> to tensor<3xTxf32>
      %bd = titan.broadcast %dot [0, 1] {phase = #titan<phase backward>} : tensor<3xTxf32> to tensor<3xTx24xf32>
      %o = titan.sub %dr, %bd {phase = #titan<phase backward>} : tensor<3xTx24xf32>
      %ds = titan.reduce sum %q [0, 1] {phase = #titan<phase backward>} : tensor<3xTx24xf32> to tensor<24xf32>
      return %d2, %db, %o, %ds, %loss, %da
        : tensor<Nx40xf32>, tensor<40xf32>, tensor<3xTx24xf32>, tensor<24xf32>, tensor<Nxf32>, tensor<Nx40xf32>
    })";
    auto replace = [&](const std::string& from, const std::string& to) {
      text = replaceAll(text, from, to);
    };
    replace("<3xT", "<3x" + positions);
    replace("<N x", "<Nx");
    replace("<Nx", "<" + rows + "x");
    expectEquivalent(*parse(text), /*integerBound=*/40);
  }
}

TEST_F(Lower, BarriersKeepRecomputedKernelsApart) {
  auto module = parse(R"(
    func.func @f(%x: tensor<5000xf32>) -> (tensor<5000xf32>, tensor<5000xf32>) {
      %a = titan.exp %x : tensor<5000xf32>
      %b = titan.barrier %x id 1 : tensor<5000xf32>
      %c = titan.exp %b : tensor<5000xf32>
      return %a, %c : tensor<5000xf32>, tensor<5000xf32>
    })");
  expectEquivalent(*module);
  OwningOpRef<ModuleOp> fused = std::move(Lowered::of(*module).fused);
  EXPECT_EQ(count<kernel::FusedOp>(*fused), 2);
  EXPECT_EQ(count<ir::BarrierOp>(*fused), 0);
}

// Kernels that run together because they are small or read one value, where the second also reads
// the first: what it reads elsewhere than the first writes keeps them apart.
TEST_F(Lower, KernelsRunTogetherOnlyWhereOneFindsTheOther) {
  for (std::string n : {"10", "3000"}) { // small kernels, and large ones that share a read
    SCOPED_TRACE(n);
    std::string next = std::to_string(std::stoi(n) + 1);
    std::string x = "tensor<4x" + n + "xf32>", joined = "tensor<4x" + next + "xf32>";
    std::string slice = " : " + joined + " to " + x + "\n";
    // The steps between neighbours; the first is from itself.
    auto steps =
        parse("func.func @steps(%x: " + x + ") -> " + x + " {\n" +
              "%h = titan.slice %x offsets [0, 0] strides [1, 1] : " + x + " to tensor<4x1xf32>\n" +
              "%c = titan.concat %h, %x dim 1 : (tensor<4x1xf32>, " + x + ") -> " + joined + "\n" +
              "%a = titan.slice %c offsets [0, 1] strides [1, 1]" + slice +
              "%b = titan.slice %c offsets [0, 0] strides [1, 1]" + slice +
              "%d = titan.sub %a, %b : " + x + "\n%y = titan.mul %d, %x : " + x +
              "\nreturn %y : " + x + "\n}");
    expectEquivalent(*steps);
    // Every row, and the first row for every row: as many points, but not the same ones.
    auto rows =
        parse("func.func @rows(%x: " + x + ") -> (" + x + ", " + x + ") {\n" +
              "%e = titan.exp %x : " + x + "\n" +
              "%h = titan.slice %x offsets [0, 0] strides [1, 1] : " + x + " to tensor<1x" + n +
              "xf32>\n" + "%s = titan.reshape %h : tensor<1x" + n + "xf32> to tensor<" + n +
              "xf32>\n" + "%r = titan.broadcast %s [1] : tensor<" + n + "xf32> to " + x +
              "\n%y = titan.tanh %r : " + x + "\nreturn %e, %y : " + x + ", " + x + "\n}");
    expectEquivalent(*rows);
  }
}

// Two pairs of equal kernels, of which the first has a value in common besides.
TEST_F(Lower, EqualPairsDoNotTakeEachOthersOperands) {
  auto module = parse(R"(
    func.func @f(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>, %z: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
      %a = titan.sub %x, %y : tensor<8x8xf32>
      %b = titan.mul %a, %x : tensor<8x8xf32>
      %c = titan.sub %b, %y : tensor<8x8xf32>
      %d = titan.mul %c, %z : tensor<8x8xf32>
      %e = titan.sub %y, %z : tensor<8x8xf32>
      %f = titan.mul %e, %x : tensor<8x8xf32>
      return %d, %f : tensor<8x8xf32>, tensor<8x8xf32>
    })");
  expectEquivalent(*module);
}

// Sums down columns beside sums along the rows: together as far as the machine holds the former.
TEST_F(Lower, SumsDownColumnsOfLongRowsStayApart) {
  auto module = parse(R"(
    func.func @f(%x: tensor<12x2000xf32>) -> (tensor<12x2000xf32>, tensor<2000xf32>) {
      %s = titan.reduce sum %x [1] : tensor<12x2000xf32> to tensor<12xf32>
      %b = titan.broadcast %s [0] : tensor<12xf32> to tensor<12x2000xf32>
      %y = titan.mul %x, %b : tensor<12x2000xf32>
      %c = titan.reduce sum %y [0] : tensor<12x2000xf32> to tensor<2000xf32>
      return %y, %c : tensor<12x2000xf32>, tensor<2000xf32>
    })");
  for (auto [columnSums, kernels] : {std::pair<int64_t, int>{2000, 1}, {1999, 2}}) {
    setMachine(*module, &MachineModel::columnSums, columnSums);
    expectEquivalent(*module);
    EXPECT_EQ(count<kernel::FusedOp>(*Lowered::of(*module).fused), kernels);
  }
}

// A part at the front has identity maps as well: the call reads, or gives, more than the copy
// moves.
TEST_F(Lower, AttentionDoesNotTakeAPartForTheWhole) {
  auto module = parse(R"(
    func.func @padded(%q: tensor<2x6x2x4xf32>, %k: tensor<2x5x2x4xf32>, %v: tensor<2x5x2x4xf32>) -> tensor<2x6x2x4xf32> {
      %kp = titan.pad %k low [0, 0, 0, 0] interior [0, 0, 0, 0] : tensor<2x5x2x4xf32> to tensor<2x6x2x4xf32>
      %vp = titan.pad %v low [0, 0, 0, 0] interior [0, 0, 0, 0] : tensor<2x5x2x4xf32> to tensor<2x6x2x4xf32>
      %y, %l = titan.attention %q, %kp, %vp scale 0.5
        : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x2x4xf32>, tensor<2x2x6xf32>)
      return %y : tensor<2x6x2x4xf32>
    }
    func.func @padded_slice(%x: tensor<4x6x2x4xf32>) -> tensor<2x6x2x4xf32> {
      %k = titan.slice %x offsets [0, 0, 0, 0] strides [1, 1, 1, 1] : tensor<4x6x2x4xf32> to tensor<2x5x2x4xf32>
      %kp = titan.pad %k low [0, 0, 0, 0] interior [0, 0, 0, 0] : tensor<2x5x2x4xf32> to tensor<2x6x2x4xf32>
      %y, %l = titan.attention %kp, %kp, %kp scale 0.5
        : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x2x4xf32>, tensor<2x2x6xf32>)
      return %y : tensor<2x6x2x4xf32>
    }
    func.func @first_rows(%q: tensor<2x6x2x4xf32>) -> tensor<2x5x2x4xf32> {
      %y, %l = titan.attention %q, %q, %q scale 0.5
        : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x2x4xf32>, tensor<2x2x6xf32>)
      %s = titan.slice %y offsets [0, 0, 0, 0] strides [1, 1, 1, 1] : tensor<2x6x2x4xf32> to tensor<2x5x2x4xf32>
      return %s : tensor<2x5x2x4xf32>
    })");
  expectEquivalent(*module);
}

// The front part of a product or of a weight is not the whole of it; a bias of three elements is
// none of six columns.
TEST_F(Lower, ProductsDoNotTakeAPartForTheWhole) {
  auto module = parse(R"(
    func.func @bias(%x: tensor<4x8xf32>, %w: tensor<8x2x3xf32>, %b: tensor<6xf32>) -> tensor<4x2x3xf32> {
      %z = titan.contract %x, %w batch [] x [] contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x2x3xf32>) -> tensor<4x2x3xf32>
      %h = titan.slice %b offsets [0] strides [1] : tensor<6xf32> to tensor<3xf32>
      %r = titan.broadcast %h [2] : tensor<3xf32> to tensor<4x2x3xf32>
      %s = titan.add %z, %r : tensor<4x2x3xf32>
      return %s : tensor<4x2x3xf32>
    }
    func.func @relu(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x6xf32> {
      %z = titan.contract %x, %w batch [] x [] contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %s = titan.slice %z offsets [0, 0] strides [1, 1] : tensor<4x8xf32> to tensor<4x6xf32>
      %r = titan.relu %s : tensor<4x6xf32>
      return %r : tensor<4x6xf32>
    }
    func.func @rounding(%x: tensor<4x6xbf16>, %w: tensor<6x8xf32>) -> tensor<4x5xbf16> {
      %s = titan.slice %w offsets [0, 0] strides [1, 1] : tensor<6x8xf32> to tensor<6x5xf32>
      %c = titan.convert %s : tensor<6x5xf32> to tensor<6x5xbf16>
      %z = titan.contract %x, %c batch [] x [] contracting [1] x [0] : (tensor<4x6xbf16>, tensor<6x5xbf16>) -> tensor<4x5xf32>
      %r = titan.convert %z : tensor<4x5xf32> to tensor<4x5xbf16>
      return %r : tensor<4x5xbf16>
    })");
  expectEquivalent(*module);
}

} // namespace
} // namespace titan::lower::testing
