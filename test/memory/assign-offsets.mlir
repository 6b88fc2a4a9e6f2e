// RUN: titan-opt %s --titan-plan-assign-offsets --titan-plan-verify-offsets | FileCheck %s

// States, constants, bindings, temporaries; the first and the third temporary of @step never meet. The outputs of both functions share
// bytes: only one runs at a time.
// CHECK: module attributes {kernel.arena = {bindings = 0 : i64, bytes = 384 : i64, constants = 64 : i64, states = 128 : i64, temporaries = 192 : i64}}
// CHECK: titan.state @w {{.*}}kernel.offset = 0
// CHECK: titan.state @b {{.*}}kernel.offset = 64
// CHECK-LABEL: func.func @step
// CHECK-SAME: {kernel.offset = 64 : i64, titan.state = @b}
// CHECK-SAME: {kernel.offset = 192 : i64, titan.output = "y"}
// CHECK-SAME: kernel.max_live = 128
// CHECK: kernel.constant {{.*}} at 128
// CHECK: kernel.buffer 256
// CHECK: kernel.buffer 320
// CHECK: kernel.buffer 256
module {
  titan.state @w : tensor<16xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @b : tensor<3xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @step(%b: memref<3xf32> {titan.state = @b}, %y: memref<3xf32> {titan.output = "y"}) {
    %k = kernel.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32> : memref<3xf32>
    %0 = kernel.buffer -1 : memref<3xf32>
    kernel.copy %b to %0 : memref<3xf32> to memref<3xf32>
    %1 = kernel.buffer -1 : memref<3xf32>
    kernel.copy %0 to %1 : memref<3xf32> to memref<3xf32>
    %2 = kernel.buffer -1 : memref<3xf32>
    kernel.copy %1 to %2 : memref<3xf32> to memref<3xf32>
    kernel.copy %2 to %y : memref<3xf32> to memref<3xf32>
    return
  }
  func.func @eval(%w: memref<16xf32> {titan.state = @w}, %y: memref<16xf32> {titan.output = "y"}) {
    kernel.copy %w to %y : memref<16xf32> to memref<16xf32>
    return
  }
}
