// RUN: titan-opt %s --titan-plan-reuse-in-place | FileCheck %s

#same = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>

// CHECK-LABEL: func.func @dying
// CHECK: %[[A:.*]] = kernel.buffer
// CHECK: kernel.fused {{.*}} outs(%[[A]] :
// CHECK: kernel.fused {{.*}} ins(%[[A]] : memref<4x4xf32>) outs(%[[A]] :
// CHECK: %[[B:.*]] = kernel.buffer
// CHECK: kernel.fused transpose {{.*}} ins(%[[A]] : memref<4x4xf32>) outs(%[[B]] :
func.func @dying(%x: memref<4x4xf32> {titan.input = "x"}, %y: memref<4x4xf32> {titan.output = "y"}) {
  %a = kernel.buffer -1 : memref<4x4xf32>
  kernel.fused flat [4, 4] ins(%x : memref<4x4xf32>) outs(%a : memref<4x4xf32>) maps [#same, #same] {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  %b = kernel.buffer -1 : memref<4x4xf32>
  kernel.fused flat [4, 4] ins(%a : memref<4x4xf32>) outs(%b : memref<4x4xf32>) maps [#same, #same] {
  ^bb0(%v: f32):
    %e = math.exp %v : f32
    kernel.yield %e : f32
  }
  %c = kernel.buffer -1 : memref<4x4xf32>
  kernel.fused transpose [4, 4] ins(%b : memref<4x4xf32>) outs(%c : memref<4x4xf32>) maps [#turned, #same] {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  kernel.copy %c to %y : memref<4x4xf32> to memref<4x4xf32>
  return
}
