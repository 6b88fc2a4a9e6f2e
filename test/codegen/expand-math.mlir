// RUN: titan-opt %s --titan-codegen-expand-math | FileCheck %s

// Functions of f32 become arithmetic, on a scalar and on a vector alike; products and sums are never merged.
// CHECK-LABEL: @softplus
func.func @softplus(%x: vector<16xf32>) -> vector<16xf32> {
  // CHECK-NOT: math.exp
  // CHECK-NOT: math.log1p
  // CHECK-NOT: fastmath
  // CHECK: math.fma {{.*}} : vector<16xf32>
  %e = math.exp %x : vector<16xf32>
  %y = math.log1p %e : vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: @scalar
func.func @scalar(%x: f32) -> f32 {
  // CHECK-NOT: math.tanh
  // CHECK: math.fma {{.*}} : f32
  %y = math.tanh %x : f32
  return %y : f32
}

// The exponential is limited at both ends, but at one where its operand is known not to be above 0.
// CHECK-LABEL: @limits
func.func @limits(%x: f32) -> (f32, f32) {
  // CHECK: arith.cmpf olt
  // CHECK: arith.cmpf ogt
  %e = math.exp %x : f32
  // CHECK: arith.cmpf olt
  // CHECK-NOT: arith.cmpf
  %n = math.exp %x {kernel.nonpositive} : f32
  return %e, %n : f32, f32
}

// A remainder is computed in f64 where that is exact for every lane.
// CHECK-LABEL: @remainder
func.func @remainder(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  // CHECK: %[[Q:.*]] = math.trunc {{.*}} : vector<16xf64>
  // CHECK: %[[ALL:.*]] = vector.reduction <and>
  // CHECK: scf.if %[[ALL]] -> (vector<16xf32>)
  // CHECK: math.fma {{.*}} : vector<16xf64>
  // CHECK: else
  // CHECK: arith.remf %{{.*}}, %{{.*}} : vector<16xf32>
  // CHECK-NOT: arith.remf
  %r = arith.remf %x, %y : vector<16xf32>
  return %r : vector<16xf32>
}

// f64 is left to libm.
// CHECK-LABEL: @double
func.func @double(%x: f64, %n: f64) -> f64 {
  // CHECK: math.exp
  // CHECK: math.powf
  %e = math.exp %x : f64
  %p = math.powf %e, %n : f64
  return %p : f64
}
