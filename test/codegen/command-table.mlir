// A planned module becomes a table: loops, addresses that follow their counters, shared kernels, the payload.
// RUN: titan-compile %s --emit=codegen | FileCheck %s

module attributes {titan.stage = "plan", titan.model = "small.onnx",
    titan.target = {kind = "cpu", cpu = "x86-64-v4", features = ""},
    kernel.arena = {bytes = 4096 : i64, states = 512 : i64, constants = 64 : i64, bindings = 1792 : i64, temporaries = 1728 : i64}} {
  // CHECK: program small.onnx target cpu cpu x86-64-v4 arena 4096 bytes (state 512, bindings 1792, temporaries 1728)
  // CHECK: param w : F32 [4, 16] at 0, 256 bytes, trainable, init normal(0, 0.5)
  titan.state @w : tensor<4x16xf32> {init = #titan.init_rule<"normal", 0.0 : f64, 0.5 : f64>, kernel.offset = 0 : i64, kind = #titan<kind param>, trainable}
  // CHECK: constant at 512, 8 bytes, payload at 0

  // Two kernels with one body are one entry, with both paths.
  // CHECK: kernel titan_kernel_0 : flat [8, 16] addf : first, second
  // CHECK-NOT: flat [8, 16] addf
  // CHECK: library #0 C[8, 4] = A[16] * B^T[16] + bias
  // CHECK: function step
  func.func @step(%w: memref<4x16xf32> {kernel.offset = 0 : i64, titan.state = @w},
                  %x: memref<3x8x16xf32> {kernel.offset = 576 : i64, titan.input = "x"},
                  %labels: memref<3x8xi64> {kernel.offset = 2112 : i64, titan.input = "targets"},
                  %loss: memref<f32> {kernel.offset = 2304 : i64, titan.metric = "loss"}) {
    // CHECK-DAG: input x : F32 [3, 8, 16] at 576, 1536 bytes
    // CHECK-DAG: metric loss : F32 [] at 2304, 4 bytes
    %b = kernel.constant dense<[1.0, 2.0]> : tensor<2xf32> at 512 : memref<2xf32>
    %h = kernel.buffer 2368 : memref<8x16xf32>
    %y = kernel.buffer 2880 : memref<8x4xf32>
    %s = kernel.buffer 3008 : memref<4xf32>
    // CHECK: forward repeat 3
    accum.loop %i in 3 running {
      %xi = kernel.slice %x[%i] : memref<3x8x16xf32> to memref<8x16xf32>
      // CHECK: forward kernel titan_kernel_0 (576 + 512*i0 : 512, 576 + 512*i0 : 512, out 2368 : 512)
      kernel.fused flat [8, 16] ins(%xi, %xi : memref<8x16xf32>, memref<8x16xf32>) outs(%h : memref<8x16xf32>)
          maps [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>] attributes {path = ["first"]} {
      ^bb0(%a: f32, %c: f32):
        %0 = arith.addf %a, %c : f32
        kernel.yield %0 : f32
      }
      // CHECK: backward kernel titan_kernel_0 (2368 : 512, 2368 : 512, out 2368 : 512)
      kernel.fused flat [8, 16] ins(%h, %h : memref<8x16xf32>, memref<8x16xf32>) outs(%h : memref<8x16xf32>)
          maps [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>] attributes {path = ["second"], phase = #titan<phase backward>} {
      ^bb0(%a: f32, %c: f32):
        %0 = arith.addf %a, %c : f32
        kernel.yield %0 : f32
      }
      // A, B, C, then the bias.
      // CHECK: library #0 (2368 : 512, 0 : 256, out 2880 : 128, 3008 : 16) units 1
      kernel.call #kernel.gemm<batch = 1, m = 8, n = 4, k = 16, lda = 16, ldb = 16, ldc = 4, strideA = 0, strideB = 0, strideC = 0,
          transposeA = false, transposeB = true, accumulate = false, bias = true, relu = false, tileM = 8, tileN = 4>
          ins(%h, %w, %s : memref<8x16xf32>, memref<4x16xf32>, memref<4xf32>) outs(%y : memref<8x4xf32>)
      accum.yield
    }
    // CHECK: end
    // CHECK: copy (out 3008 : 8, 512 : 8)
    %two = kernel.buffer 3008 : memref<2xf32>
    kernel.copy %b to %two : memref<2xf32> to memref<2xf32>
    return
  }
}
// CHECK: titan_kernel_0:
