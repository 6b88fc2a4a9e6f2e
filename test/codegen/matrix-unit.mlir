// A product of bf16 for a target with AMX: its tiles are configured once for a strip of 32 rows, and the loop along k has
// nothing but two loads of A, two of B and four products.
// RUN: titan-compile %s --emit=codegen > %t
// RUN: FileCheck %s --input-file %t
// RUN: FileCheck %s --input-file %t --check-prefix=ONCE
// RUN: FileCheck %s --input-file %t --check-prefix=NARROW
// RUN: sed s/sapphirerapids/znver5/ %s > %t.zen.mlir
// RUN: titan-compile %t.zen.mlir --emit=codegen | FileCheck %s --check-prefix=ZEN
// RUN: sed s/sapphirerapids/x86-64-v4/ %s > %t.v4.mlir
// RUN: titan-compile %t.v4.mlir --emit=codegen | FileCheck %s --check-prefix=VECTORS

module attributes {titan.stage = "plan", titan.model = "product.onnx",
    titan.target = {kind = "cpu", cpu = "sapphirerapids", features = ""},
    kernel.arena = {bytes = 53248 : i64, states = 0 : i64, constants = 0 : i64, bindings = 32768 : i64, temporaries = 20480 : i64}} {
  func.func @step(%x: memref<64x128xbf16> {kernel.offset = 0 : i64, titan.input = "x"},
                  %y: memref<64x128xbf16> {kernel.offset = 16384 : i64, titan.input = "y"},
                  %z: memref<64x64xf32> {kernel.offset = 32768 : i64, titan.output = "z"},
                  %few: memref<8x64xf32> {kernel.offset = 49152 : i64, titan.output = "few"}) {
    kernel.call #kernel.gemm<batch = 1, m = 64, n = 64, k = 128, lda = 128, ldb = 128, ldc = 64, strideA = 0, strideB = 0, strideC = 0,
        transposeA = false, transposeB = true, accumulate = false, bias = false, relu = false, tileM = 64, tileN = 64>
        ins(%x, %y : memref<64x128xbf16>, memref<64x128xbf16>) outs(%z : memref<64x64xf32>)
    kernel.call #kernel.gemm<batch = 1, m = 8, n = 64, k = 128, lda = 128, ldb = 128, ldc = 64, strideA = 0, strideB = 0, strideC = 0,
        transposeA = false, transposeB = true, accumulate = false, bias = false, relu = false, tileM = 8, tileN = 64>
        ins(%x, %y : memref<64x128xbf16>, memref<64x128xbf16>) outs(%few : memref<8x64xf32>)
    return
  }
}

// CHECK: matrix_strip:
// CHECK: ldtilecfg
// CHECK-NOT: {{call|ldtilecfg}}
// CHECK: tileloadd {{.*}}, %tmm4
// CHECK: tileloadd {{.*}}, %tmm5
// CHECK: tileloadd {{.*}}, %tmm6
// CHECK: tileloadd {{.*}}, %tmm7
// CHECK-NEXT: tdpbf16ps %tmm6, %tmm4, [[SUM:%tmm[0-3]]]
// CHECK-NEXT: tdpbf16ps
// CHECK-NEXT: tdpbf16ps
// CHECK-NEXT: tdpbf16ps
// CHECK: {{jl|jb|jne}}
// CHECK: tilestored [[SUM]],
// CHECK-NOT: {{call|ldtilecfg}}
// CHECK: tilerelease
// CHECK: .size matrix_strip

// One configuration in all.
// ONCE-COUNT-1: ldtilecfg
// ONCE-NOT: ldtilecfg

// Eight rows stay on vectors, as this CPU multiplies pairs of bf16 slower than f32.
// NARROW-NOT: vdpbf16ps

// ZEN-NOT: tdpbf16ps
// ZEN: vdpbf16ps
// VECTORS-NOT: {{tdpbf16ps|vdpbf16ps}}
