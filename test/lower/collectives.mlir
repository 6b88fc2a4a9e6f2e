// RUN: titan-opt %s --titan-lower-form-kernels --titan-lower-fuse-kernels --titan-lower-fuse-epilogues | FileCheck %s
// RUN: titan-opt %s --titan-lower-form-kernels --titan-lower-fuse-kernels --titan-lower-fuse-epilogues --remarks-filter=lower 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: titan-opt %s --titan-lower-form-kernels --titan-lower-classify-kernels --titan-lower-verify-kernels

// REMARK-DAG: Reason="a collective starts or is awaited between the two", Remark="'first' keeps apart from 'second'"
// REMARK-DAG: Reason="a collective starts or is awaited between the two", Remark="'before' keeps apart from 'behind'"
// REMARK-DAG: Reason="a collective starts or is awaited between the two", Remark="'one' does not run together with 'other'"
// REMARK-DAG: Reason="a collective starts or is awaited between the two", Remark="the product of 'fc' keeps apart from its bias or relu"
// REMARK-DAG: Reason="a collective starts or is awaited before its bias is there", Remark="the product of 'fc' does not round its result"

module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>} {

// What *schedule* left whole is halved.
// CHECK-LABEL: func.func @whole
// CHECK: %[[E:.*]] = kernel.empty : tensor<4xf32>
// CHECK: %[[T:.*]] = dist.start all_reduce ins(%arg0 : tensor<4xf32>) outs(%[[E]] : tensor<4xf32>) axes ["replicate"] order rank
// CHECK: %[[R:.*]] = dist.wait %[[T]]
// CHECK: return %[[R]]
func.func @whole(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = dist.all_reduce sum %x axes ["replicate"] order rank : tensor<4xf32> to tensor<4xf32>
  return %r : tensor<4xf32>
}

// Without the collective these are one kernel.
// CHECK-LABEL: func.func @apart
// CHECK: kernel.fused flat [4]
// CHECK: math.exp
// CHECK: dist.start
// CHECK: kernel.fused flat [4]
// CHECK: arith.mulf
// CHECK: dist.wait
// CHECK: kernel.fused flat [4]
// CHECK: arith.maximumf
func.func @apart(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = titan.exp %x {path = ["first"]} : tensor<4xf32>
  %e = kernel.empty : tensor<4xf32>
  %t = dist.start all_reduce ins(%g : tensor<4xf32>) outs(%e : tensor<4xf32>) axes ["replicate"] order rank
  %b = titan.mul %a, %a {path = ["second"]} : tensor<4xf32>
  %r = dist.wait %t ins(%g : tensor<4xf32>) outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
  %c = titan.relu %b {path = ["third"]} : tensor<4xf32>
  return %c, %r : tensor<4xf32>, tensor<4xf32>
}

// What stands on one side meets there.
// CHECK-LABEL: func.func @together
// CHECK: dist.start
// CHECK: dist.wait
// CHECK: kernel.fused
// CHECK: math.exp
// CHECK: arith.mulf
// CHECK-NOT: kernel.fused
func.func @together(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r = dist.all_reduce sum %g axes ["replicate"] order rank : tensor<4xf32> to tensor<4xf32>
  %a = titan.exp %x : tensor<4xf32>
  %b = titan.mul %a, %r : tensor<4xf32>
  return %b, %r : tensor<4xf32>, tensor<4xf32>
}

// A constant has no place.
// CHECK-LABEL: func.func @constant
// CHECK-NOT: kernel.fused
// CHECK: dist.wait
// CHECK: kernel.fused flat [4]
// CHECK: arith.constant 3.0
// CHECK-NOT: kernel.fused
func.func @constant(%g: tensor<4xf32>) -> tensor<4xf32> {
  %c = titan.constant dense<3.0> : tensor<4xf32>
  %r = dist.all_reduce sum %g axes ["replicate"] order rank : tensor<4xf32> to tensor<4xf32>
  %b = titan.mul %c, %r : tensor<4xf32>
  return %b : tensor<4xf32>
}

// As a source it has one: the start does not move behind its other reader.
// CHECK-LABEL: func.func @constant_source
// CHECK: kernel.fused flat [4]
// CHECK: dist.start
// CHECK: dist.wait
// CHECK: arith.mulf
func.func @constant_source(%g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = titan.constant dense<3.0> : tensor<4xf32>
  %r = dist.all_reduce sum %c axes ["replicate"] order rank : tensor<4xf32> to tensor<4xf32>
  %b = titan.mul %c, %g : tensor<4xf32>
  return %b, %r : tensor<4xf32>, tensor<4xf32>
}

// Small kernels over one space, which would run together.
// CHECK-LABEL: func.func @siblings
// CHECK: kernel.fused
// CHECK: dist.start
// CHECK: dist.wait
// CHECK: kernel.fused
func.func @siblings(%x: tensor<4xf32>, %y: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = titan.exp %x {path = ["one"]} : tensor<4xf32>
  %r = dist.all_reduce sum %g axes ["replicate"] order rank : tensor<4xf32> to tensor<4xf32>
  %b = titan.exp %y {path = ["other"]} : tensor<4xf32>
  return %a, %b, %r : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A product does not wait for its epilogue.
// CHECK-LABEL: func.func @epilogue
// CHECK: kernel.call #kernel.gemm<{{.*}}bias = false
// CHECK: dist.start
// CHECK: dist.wait
// CHECK: kernel.fused
func.func @epilogue(%x: tensor<8x4xf32>, %w: tensor<16x4xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
  %p = titan.contract %x, %w batch [] x [] contracting [1] x [1] {path = ["fc"]} : (tensor<8x4xf32>, tensor<16x4xf32>) -> tensor<8x16xf32>
  %r = dist.all_reduce sum %b axes ["replicate"] order rank : tensor<16xf32> to tensor<16xf32>
  %s = titan.broadcast %r [1] {path = ["fc"]} : tensor<16xf32> to tensor<8x16xf32>
  %y = titan.add %p, %s {path = ["fc"]} : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// Nor for the bias with which its result is rounded.
// CHECK-LABEL: func.func @rounding
// CHECK: kernel.call #kernel.gemm<{{.*}}bias = false{{.*}} -> (tensor<8x16xf32>)
// CHECK: dist.start
// CHECK: dist.wait
// CHECK: kernel.fused
// CHECK: arith.truncf
func.func @rounding(%x: tensor<8x4xbf16>, %w: tensor<16x4xbf16>, %b: tensor<16xbf16>) -> tensor<8x16xbf16> {
  %p = titan.contract %x, %w batch [] x [] contracting [1] x [1] {path = ["fc"]} : (tensor<8x4xbf16>, tensor<16x4xbf16>) -> tensor<8x16xf32>
  %r = dist.all_reduce sum %b axes ["replicate"] order rank : tensor<16xbf16> to tensor<16xbf16>
  %s = titan.broadcast %r [1] {path = ["fc"]} : tensor<16xbf16> to tensor<8x16xbf16>
  %v = titan.convert %s {path = ["fc"]} : tensor<8x16xbf16> to tensor<8x16xf32>
  %y = titan.add %p, %v {path = ["fc"]} : tensor<8x16xf32>
  %z = titan.convert %y {path = ["fc"]} : tensor<8x16xf32> to tensor<8x16xbf16>
  return %z : tensor<8x16xbf16>
}

// A collective in a loop stands between what is before the loop and what is behind it.
// CHECK-LABEL: func.func @loop
// CHECK: math.exp
// CHECK: accum.loop
// CHECK: dist.wait
// CHECK: arith.mulf
func.func @loop(%x: tensor<4xf32>, %xs: tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = titan.constant dense<0.0> : tensor<4xf32>
  %a = titan.exp %x : tensor<4xf32>
  %s = accum.loop %i in 2 running slices(%xi = %xs : tensor<2x4xf32>) accumulators(%acc = %zero : tensor<4xf32>) -> (tensor<4xf32>) {
    %r = dist.all_reduce sum %xi axes ["replicate"] order rank : tensor<4xf32> to tensor<4xf32>
    %n = titan.add %acc, %r : tensor<4xf32>
    accum.yield %n : tensor<4xf32>
  }
  %b = titan.mul %a, %a : tensor<4xf32>
  return %b, %s : tensor<4xf32>, tensor<4xf32>
}

// A gather in a loop keeps what is computed before its start from what reads it behind its wait.
// CHECK-LABEL: func.func @gather_in_loop
// CHECK: accum.loop
// CHECK: kernel.fused
// CHECK: math.exp
// CHECK: dist.start all_gather
// CHECK: dist.wait
// CHECK: kernel.fused
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK-NOT: kernel.fused
// CHECK: accum.yield
func.func @gather_in_loop(%w: tensor<4xf32>, %xs: tensor<2x8xf32>) -> tensor<8xf32> {
  %zero = titan.constant dense<0.0> : tensor<8xf32>
  %s = accum.loop %i in 2 running slices(%xi = %xs : tensor<2x8xf32>) accumulators(%acc = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
    %a = titan.exp %xi {path = ["before"]} : tensor<8xf32>
    %full = dist.all_gather %w axes ["replicate"] dims [0] : tensor<4xf32> to tensor<8xf32>
    %b = titan.mul %a, %full {path = ["behind"]} : tensor<8xf32>
    %n = titan.add %acc, %b : tensor<8xf32>
    accum.yield %n : tensor<8xf32>
  }
  return %s : tensor<8xf32>
}

}
