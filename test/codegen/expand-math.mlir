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

// f64 is left to libm.
// CHECK-LABEL: @double
func.func @double(%x: f64, %n: f64) -> f64 {
  // CHECK: math.exp
  // CHECK: math.powf
  %e = math.exp %x : f64
  %p = math.powf %e, %n : f64
  return %p : f64
}
