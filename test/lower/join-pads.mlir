// RUN: titan-opt %s --titan-lower-join-pads --remarks-filter=lower 2>&1 | FileCheck %s

// CHECK: join-pads
// CHECK-SAME: 3 parts of 'h.0.attn' are joined

// CHECK-LABEL: @slices_of_a_projection
// CHECK: %[[JOINED:.*]] = titan.concat %arg0, %arg1, %arg2 dim 1 {{.*}}path = ["h.0.attn"]
// CHECK-NOT: titan.add
// CHECK: return %[[JOINED]]
func.func @slices_of_a_projection(%q: tensor<2x4xf32>, %k: tensor<2x3xf32>, %v: tensor<2x4xf32>) -> tensor<2x11xf32> {
  %a = titan.pad %v low [0, 7] interior [0, 0] {path = ["h.0.attn"]} : tensor<2x4xf32> to tensor<2x11xf32>
  %b = titan.pad %k low [0, 4] interior [0, 0] {path = ["h.0.attn"]} : tensor<2x3xf32> to tensor<2x11xf32>
  %c = titan.pad %q low [0, 0] interior [0, 0] {path = ["h.0.attn"]} : tensor<2x4xf32> to tensor<2x11xf32>
  %ab = titan.add %a, %b {path = ["h.0.attn"]} : tensor<2x11xf32>
  %s = titan.add %ab, %c {path = ["h.0.attn"]} : tensor<2x11xf32>
  return %s : tensor<2x11xf32>
}

// CHECK-LABEL: @a_hole_stays
// CHECK: titan.add
func.func @a_hole_stays(%q: tensor<4xf32>, %k: tensor<4xf32>) -> tensor<9xf32> {
  %a = titan.pad %q low [0] interior [0] : tensor<4xf32> to tensor<9xf32>
  %b = titan.pad %k low [5] interior [0] : tensor<4xf32> to tensor<9xf32>
  %s = titan.add %a, %b : tensor<9xf32>
  return %s : tensor<9xf32>
}

// CHECK-LABEL: @an_overlap_stays
// CHECK: titan.add
func.func @an_overlap_stays(%q: tensor<4xf32>, %k: tensor<4xf32>) -> tensor<7xf32> {
  %a = titan.pad %q low [0] interior [0] : tensor<4xf32> to tensor<7xf32>
  %b = titan.pad %k low [3] interior [0] : tensor<4xf32> to tensor<7xf32>
  %s = titan.add %a, %b : tensor<7xf32>
  return %s : tensor<7xf32>
}

// CHECK-LABEL: @another_reader_of_a_partial_sum
// CHECK: titan.add
// CHECK: titan.add
func.func @another_reader_of_a_partial_sum(%q: tensor<1xf32>, %k: tensor<1xf32>, %v: tensor<1xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %a = titan.pad %q low [0] interior [0] : tensor<1xf32> to tensor<3xf32>
  %b = titan.pad %k low [1] interior [0] : tensor<1xf32> to tensor<3xf32>
  %c = titan.pad %v low [2] interior [0] : tensor<1xf32> to tensor<3xf32>
  %ab = titan.add %a, %b : tensor<3xf32>
  %s = titan.add %ab, %c : tensor<3xf32>
  return %ab, %s : tensor<3xf32>, tensor<3xf32>
}
