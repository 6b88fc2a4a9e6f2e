// Blocks of attention that do not fit on the stack of a thread are refused with their size.
// RUN: %exits 1 titan-compile %s --emit=codegen 2>&1 | FileCheck %s

module attributes {titan.stage = "plan", titan.model = "attention.onnx",
    titan.target = {kind = "cpu", cpu = "x86-64-v4", features = ""},
    kernel.arena = {bytes = 16809984 : i64, states = 0 : i64, constants = 0 : i64, bindings = 8388608 : i64, temporaries = 8421376 : i64}} {
  func.func @step(%x: memref<1x8192x1x256xf32> {kernel.offset = 0 : i64, titan.input = "x"},
                  %y: memref<1x8192x1x256xf32> {kernel.offset = 8388608 : i64, titan.output = "y"},
                  %l: memref<1x1x8192xf32> {kernel.offset = 16777216 : i64, titan.output = "l"}) {
    // CHECK: error: {{.*}}has blocks of 8192 rows, which take {{[0-9]+}} bytes of the stack; 8388608 are there: use fewer rows (machine.attention_rows)
    kernel.call #kernel.attention<batch = 1, heads = 1, keyHeads = 1, queries = 8192, keys = 8192, width = 256, valueWidth = 256,
        element = f32, scale = 0.0625 : f64, causal = true, query = <operand = 0, offset = 0, batch = 0, row = 256, head = 256>,
        key = <operand = 0, offset = 0, batch = 0, row = 256, head = 256>, value = <operand = 0, offset = 0, batch = 0, row = 256, head = 256>,
        result = <operand = 0, offset = 0, batch = 0, row = 256, head = 256>, logSumExp = 1, blocks = <rows = 8192, keys = 64, padding = 16, workspace = 0>>
        ins(%x : memref<1x8192x1x256xf32>) outs(%y, %l : memref<1x8192x1x256xf32>, memref<1x1x8192xf32>)
    return
  }
}
