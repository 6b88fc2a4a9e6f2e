// A kernel whose out lies on an in that other units read is refused, even where they are two views of one buffer.
// RUN: %exits 4 titan-compile %s --emit=codegen 2>&1 | FileCheck %s
// CHECK: error: {{.*}}writes outs[0] over ins[1], which other units of the kernel read

module attributes {titan.stage = "plan", titan.target = {kind = "cpu", cpu = "x86-64-v3", features = ""},
    kernel.arena = {bytes = 4096 : i64, states = 0 : i64, constants = 0 : i64, bindings = 2048 : i64, temporaries = 2048 : i64}} {
  func.func @step(%x: memref<16x16xf32> {kernel.offset = 0 : i64, titan.input = "x"}) {
    %b = kernel.buffer 2048 : memref<16x16xf32>
    %a = kernel.cast_shape %b : memref<16x16xf32> to memref<256xf32>
    kernel.fused flat [16, 16] ins(%x, %a : memref<16x16xf32>, memref<256xf32>) outs(%b : memref<16x16xf32>)
        maps [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>, affine_map<(r, c) -> (r, c)>] {
    ^bb0(%v: f32, %w: f32):
      %0 = arith.addf %v, %w : f32
      kernel.yield %0 : f32
    }
    return
  }
}
