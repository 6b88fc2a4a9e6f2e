// Gradients that ranks cut among themselves are summed one by one, each behind what makes it; one that all get stays with the others.
// RUN: titan-opt %s --titan-schedule-order-ops | FileCheck %s

module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>} {

// CHECK-LABEL: func.func @step
// CHECK: accum.loop
// CHECK: %[[DY:.*]] = titan.mul
// CHECK-NEXT: %[[DW:.*]] = titan.contract %[[DY]]
// CHECK-NEXT: %[[PAD:.*]] = titan.pad %[[DW]]
// CHECK-NEXT: %[[W:.*]] = dist.reduce_scatter sum %[[PAD]] axes ["shard"] dims [0] order rank {path = ["w"], phase = #titan<phase backward>}
// CHECK-NEXT: titan.add %{{.*}}, %[[W]]
// CHECK-NEXT: titan.exp
// CHECK-NEXT: %[[DV:.*]] = titan.contract
// CHECK-NEXT: %[[V:.*]] = dist.reduce_scatter sum %[[DV]] axes ["shard"] dims [1] order rank {path = ["v"], phase = #titan<phase backward>}
// CHECK-NEXT: titan.add %{{.*}}, %[[V]]
// CHECK: dist.all_reduce sum %{{.*}}, %{{.*}} axes ["replicate"] order rank {path = ["w", "v"]
func.func @step(%x: tensor<2x8x4xf32>) -> (tensor<3x4xf32>, tensor<4x2xf32>) {
  %z0 = titan.constant dense<0.0> : tensor<3x4xf32>
  %z1 = titan.constant dense<0.0> : tensor<4x2xf32>
  %s:2 = accum.loop %i in 2 running slices(%xi = %x : tensor<2x8x4xf32>) accumulators(%a = %z0 : tensor<3x4xf32>, %b = %z1 : tensor<4x2xf32>) -> (tensor<3x4xf32>, tensor<4x2xf32>) {
    %col = titan.slice %xi offsets [0, 0] strides [1, 1] : tensor<8x4xf32> to tensor<8x3xf32>
    %five = titan.concat %xi, %col dim 1 : (tensor<8x4xf32>, tensor<8x3xf32>) -> tensor<8x7xf32>
    %h = titan.slice %five offsets [0, 0] strides [1, 1] : tensor<8x7xf32> to tensor<8x5xf32>
    %dy = titan.mul %h, %h {phase = #titan<phase backward>} : tensor<8x5xf32>
    %dx = titan.exp %xi {phase = #titan<phase backward>} : tensor<8x4xf32>
    %dv = titan.contract %dx, %xi batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %dw = titan.contract %dy, %xi batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>} : (tensor<8x5xf32>, tensor<8x4xf32>) -> tensor<5x4xf32>
    %pad = titan.pad %dw low [0, 0] interior [0, 0] {phase = #titan<phase backward>} : tensor<5x4xf32> to tensor<6x4xf32>
    %w, %v = dist.reduce_scatter sum %pad, %dv axes ["shard"] dims [0, 1] order rank {path = ["w", "v"], phase = #titan<phase backward>}
        : tensor<6x4xf32>, tensor<4x4xf32> to tensor<3x4xf32>, tensor<4x2xf32>
    %na = titan.add %a, %w {phase = #titan<phase backward>} : tensor<3x4xf32>
    %nb = titan.add %b, %v {phase = #titan<phase backward>} : tensor<4x2xf32>
    accum.yield %na, %nb : tensor<3x4xf32>, tensor<4x2xf32>
  }
  %r, %t = dist.all_reduce sum %s#0, %s#1 axes ["replicate"] order rank {path = ["w", "v"], phase = #titan<phase backward>}
      : tensor<3x4xf32>, tensor<4x2xf32> to tensor<3x4xf32>, tensor<4x2xf32>
  return %r, %t : tensor<3x4xf32>, tensor<4x2xf32>
}

}
