// What the table cannot say of ranks is an error of the op.
// RUN: split-file %s %t
// RUN: %exits 4 titan-compile %t/axis.mlir --emit=codegen 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: %exits 4 titan-compile %t/index.mlir --emit=codegen 2>&1 | FileCheck %s --check-prefix=INDEX
// RUN: %exits 4 titan-compile %t/type.mlir --emit=codegen 2>&1 | FileCheck %s --check-prefix=TYPE

// AXIS: 'dist.start' op names axis 'expert', which mesh.axes of the recipe lacks
// INDEX: index is not a sum of loop counters and coordinates times constants
// TYPE: 'dist.start' op exchanges elements of type 'f80', which have no place in a command table

//--- axis.mlir
module attributes {titan.stage = "plan", titan.model = "small.onnx", titan.target = {kind = "cpu", cpu = "x86-64-v4", features = ""}, dist.mesh = #dist.mesh<["expert" = 2]>,
    kernel.arena = {bytes = 8192 : i64, states = 0 : i64, constants = 0 : i64, bindings = 0 : i64, staging_offset = 0 : i64, staging = 4096 : i64, temporaries = 4096 : i64}} {
  func.func @step() {
    %s = kernel.buffer 0 : memref<4xf32>
    %r = kernel.buffer 4096 : memref<4xf32>
    %t = dist.start all_reduce ins(%s : memref<4xf32>) outs(%r : memref<4xf32>) axes ["expert"] order rank
    dist.wait %t ins(%s : memref<4xf32>) outs(%r : memref<4xf32>)
    return
  }
}

//--- index.mlir
module attributes {titan.stage = "plan", titan.model = "small.onnx", titan.recipe = {mesh = {axes = {replicate = 2 : i64}}, batch = {micro = 4 : i64, global = 8 : i64}}, titan.target = {kind = "cpu", cpu = "x86-64-v4", features = ""},
    dist.mesh = #dist.mesh<["replicate" = 2]>,
    kernel.arena = {bytes = 128 : i64, states = 0 : i64, constants = 0 : i64, bindings = 128 : i64, temporaries = 0 : i64}} {
  func.func @step(%y: memref<4xf32> {kernel.offset = 0 : i64, titan.metric = "y"}) {
    %d = dist.coordinate "replicate"
    %q = arith.muli %d, %d : index
    kernel.fused flat [4] outs(%y : memref<4xf32>) scalars(%q) maps [affine_map<(r) -> (r)>] {
    ^bb0(%k: index):
      %e = arith.index_cast %k : index to i64
      %f = arith.sitofp %e : i64 to f32
      kernel.yield %f : f32
    }
    return
  }
}

//--- type.mlir
module attributes {titan.stage = "plan", titan.model = "small.onnx", titan.recipe = {mesh = {axes = {replicate = 2 : i64}}, batch = {micro = 4 : i64, global = 8 : i64}}, titan.target = {kind = "cpu", cpu = "x86-64-v4", features = ""},
    dist.mesh = #dist.mesh<["replicate" = 2]>,
    kernel.arena = {bytes = 8192 : i64, states = 0 : i64, constants = 0 : i64, bindings = 0 : i64, staging_offset = 0 : i64, staging = 4096 : i64, temporaries = 4096 : i64}} {
  func.func @step() {
    %s = kernel.buffer 0 : memref<4xf80>
    %r = kernel.buffer 4096 : memref<8xf80>
    %t = dist.start all_gather ins(%s : memref<4xf80>) outs(%r : memref<8xf80>) axes ["replicate"] dims [0]
    dist.wait %t ins(%s : memref<4xf80>) outs(%r : memref<8xf80>)
    return
  }
}
