// RUN: titan-opt %s --titan-codegen-expand-wide-math | FileCheck %s

// Functions of f64 become arithmetic, on a scalar and on a vector alike.
// CHECK-LABEL: @schedule
func.func @schedule(%x: f64) -> f64 {
  // CHECK-NOT: math.cos
  // CHECK: math.roundeven
  // CHECK: math.fma {{.*}} : f64
  // CHECK-NOT: math.cos
  // CHECK: return
  %y = math.cos %x : f64
  return %y : f64
}

// CHECK-LABEL: @vector
func.func @vector(%x: vector<8xf64>) -> vector<8xf64> {
  // CHECK-NOT: math.sin
  // CHECK: math.fma {{.*}} : vector<8xf64>
  // CHECK: return
  %y = math.sin %x : vector<8xf64>
  return %y : vector<8xf64>
}

// A power with a whole exponent: by squaring.
// CHECK-LABEL: @decay
func.func @decay(%beta: f64, %t: i32) -> f64 {
  // CHECK-NOT: math.powf
  // CHECK: arith.extsi
  // CHECK: scf.for
  // CHECK: arith.mulf
  %e = arith.sitofp %t : i32 to f64
  %y = math.powf %beta, %e : f64
  return %y : f64
}

// A power on f32, with any exponent, is one of f64 that is rounded.
// CHECK-LABEL: @narrow
func.func @narrow(%x: vector<8xf32>, %y: vector<8xf32>) -> vector<8xf32> {
  // CHECK-NOT: math.powf
  // CHECK: arith.extf {{.*}} to vector<8xf64>
  // CHECK: arith.truncf {{.*}} to vector<8xf32>
  // CHECK-NOT: math.powf
  // CHECK: return
  %p = math.powf %x, %y : vector<8xf32>
  return %p : vector<8xf32>
}

// What has no arithmetic stays.
// CHECK-LABEL: @other
func.func @other(%x: f64, %n: f64, %f: f32) -> (f64, f64, f32) {
  // CHECK: math.exp
  // CHECK: math.powf
  // CHECK: math.cos {{.*}} : f32
  %e = math.exp %x : f64
  %p = math.powf %e, %n : f64
  %c = math.cos %f : f32
  return %e, %p, %c : f64, f64, f32
}
