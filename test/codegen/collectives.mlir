// Collectives of a planned module become entries of the table, starts and waits commands, coordinates terms of values. The input of
// the job is that of all ranks.
// RUN: titan-compile %s --emit=codegen | FileCheck %s

module attributes {titan.stage = "plan", titan.model = "small.onnx", titan.recipe = {mesh = {axes = {replicate = 2 : i64, shard = 3 : i64}}, batch = {micro = 4 : i64, global = 48 : i64}},
    titan.target = {kind = "cpu", cpu = "x86-64-v4", features = ""}, dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 3]>,
    kernel.arena = {bytes = 12288 : i64, states = 0 : i64, constants = 0 : i64, bindings = 512 : i64, staging_offset = 4096 : i64, staging = 4096 : i64, temporaries = 4096 : i64}} {
  // CHECK: program small.onnx target cpu
  // CHECK: staging at 4096, 4096 bytes
  // CHECK: collective #0 all_reduce as a tree over replicate : F32 [1, 24], I64 [1, 1] : fc, out
  // CHECK: collective #1 all_gather over shard : F32 [2, 9] : update
  // CHECK: collective #2 reduce_scatter by rank over replicate, shard : BF16 [1, 48] : fc
  // CHECK: function step
  // CHECK: input x : F32 [12, 4] at 0, 32 bytes
  func.func @step(%x: memref<2x4xf32> {kernel.offset = 0 : i64, titan.input = "x"}, %y: memref<2x9xf32> {kernel.offset = 64 : i64, titan.metric = "y"}) {
    %s = kernel.buffer 4096 : memref<4x6xf32>
    %n = kernel.buffer 4224 : memref<i64>
    %p = kernel.buffer 4288 : memref<2x3xf32>
    %b = kernel.buffer 4352 : memref<12x4xbf16>
    %rs = kernel.buffer 8192 : memref<4x6xf32>
    %rn = kernel.buffer 8320 : memref<i64>
    %rb = kernel.buffer 8384 : memref<2x4xbf16>
    // 5 + 12 d + 72 i, of data rank d = 3 p + s in iteration i.
    // CHECK: kernel titan_kernel_0 (out 4096 : 96) [5 + 72*i0 + 36*r0 + 12*r1]
    accum.loop %i in 2 running {
      %d0 = dist.coordinate "replicate"
      %d1 = dist.coordinate "shard"
      %c3 = arith.constant 3 : index
      %c5 = arith.constant 5 : index
      %c6 = arith.constant 6 : index
      %c12 = arith.constant 12 : index
      %dp = arith.muli %d0, %c3 : index
      %d = arith.addi %dp, %d1 : index
      %m = arith.muli %i, %c6 : index
      %dm = arith.addi %d, %m : index
      %o = arith.muli %dm, %c12 : index
      %base = arith.addi %o, %c5 : index
      kernel.fused flat [4, 6] outs(%s : memref<4x6xf32>) scalars(%base) maps [affine_map<(r, c) -> (r, c)>] {
      ^bb0(%k: index):
        %e = arith.index_cast %k : index to i64
        %f = arith.sitofp %e : i64 to f32
        kernel.yield %f : f32
      }
      accum.yield
    }
    // CHECK: backward start collective #0 (4096 : 96, 4224 : 8, out 8192 : 96, out 8320 : 8)
    %t = dist.start all_reduce ins(%s, %n : memref<4x6xf32>, memref<i64>) outs(%rs, %rn : memref<4x6xf32>, memref<i64>) axes ["replicate"] order tree {path = ["fc", "out"], phase = #titan<phase backward>}
    // CHECK-NEXT: update start collective #1 (4288 : 24, out 64 : 72)
    %u = dist.start all_gather ins(%p : memref<2x3xf32>) outs(%y : memref<2x9xf32>) axes ["shard"] dims [1] {phase = #titan<phase update>}
    // CHECK-NEXT: backward wait for collective #0 (4096 : 96, 4224 : 8, out 8192 : 96, out 8320 : 8)
    dist.wait %t ins(%s, %n : memref<4x6xf32>, memref<i64>) outs(%rs, %rn : memref<4x6xf32>, memref<i64>) {path = ["fc", "out"], phase = #titan<phase backward>}
    // CHECK-NEXT: update wait for collective #1 (4288 : 24, out 64 : 72)
    dist.wait %u ins(%p : memref<2x3xf32>) outs(%y : memref<2x9xf32>) {phase = #titan<phase update>}
    // CHECK-NEXT: start collective #2 (4352 : 96, out 8384 : 16)
    %v = dist.start reduce_scatter ins(%b : memref<12x4xbf16>) outs(%rb : memref<2x4xbf16>) axes ["replicate", "shard"] dims [0] order rank {path = ["fc"]}
    dist.wait %v ins(%b : memref<12x4xbf16>) outs(%rb : memref<2x4xbf16>) {path = ["fc"]}
    return
  }
}
