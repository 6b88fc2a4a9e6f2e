// The example of titan-accumulate-fold-contractions; a product that is used twice stays.
// RUN: titan-opt %s --titan-accumulate-fold-contractions | FileCheck %s

// CHECK-LABEL: func.func @once
func.func @once(%x: tensor<3x8x2xf32>, %y: tensor<3x8x4xf32>, %zero: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // CHECK: accumulators(%[[ACC:.*]] = %{{.*}} : tensor<4x2xf32>)
  %s = accum.loop %i in 3 running slices(%xi = %x : tensor<3x8x2xf32>, %yi = %y : tensor<3x8x4xf32>) accumulators(%a = %zero : tensor<4x2xf32>) -> (tensor<4x2xf32>) {
    // CHECK: %[[NEXT:.*]] = titan.contract %{{.*}}, %{{.*}} acc %[[ACC]] {{.*}}path = ["fc"]
    // CHECK-NOT: titan.add
    // CHECK: accum.yield %[[NEXT]]
    %g = titan.contract %yi, %xi batch [] x [] contracting [0] x [0] {path = ["fc"]} : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %next = titan.add %a, %g : tensor<4x2xf32>
    accum.yield %next : tensor<4x2xf32>
  }
  return %s : tensor<4x2xf32>
}

// CHECK-LABEL: func.func @twice
func.func @twice(%x: tensor<3x8x2xf32>, %y: tensor<3x8x4xf32>, %zero: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %s:2 = accum.loop %i in 3 running slices(%xi = %x : tensor<3x8x2xf32>, %yi = %y : tensor<3x8x4xf32>) accumulators(%a = %zero : tensor<4x2xf32>, %b = %zero : tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
    // CHECK: titan.contract %{{[a-z0-9]+}}, %{{[a-z0-9]+}} batch
    // CHECK: titan.add
    %g = titan.contract %yi, %xi batch [] x [] contracting [0] x [0] : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %next = titan.add %a, %g : tensor<4x2xf32>
    %other = titan.add %b, %g : tensor<4x2xf32>
    accum.yield %next, %other : tensor<4x2xf32>, tensor<4x2xf32>
  }
  return %s#0, %s#1 : tensor<4x2xf32>, tensor<4x2xf32>
}
