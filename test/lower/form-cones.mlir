// RUN: titan-opt %s --titan-lower-form-cones --split-input-file | FileCheck %s
// RUN: titan-opt %s --titan-lower-form-cones --titan-lower-form-kernels --titan-lower-classify-kernels --titan-lower-verify-kernels --split-input-file

// The example of titan-lower-form-cones.
// CHECK-LABEL: func.func @example
// CHECK: kernel.fused flat [4] ins(%arg0, %arg1 : {{.*}})
// CHECK: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: kernel.yield
// CHECK-NOT: titan.
func.func @example(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = titan.mul %x, %y : tensor<4xf32>
  %b = titan.add %a, %x : tensor<4xf32>
  return %b : tensor<4xf32>
}

// Of two readers too, as long as both are in the cone. The kernel has the paths of all but constants.
// CHECK-LABEL: func.func @twice
// CHECK: kernel.fused flat [4] ins(%arg0 : tensor<4xf32>)
// CHECK-SAME: path = ["a", "b"]
// CHECK: math.exp
// CHECK-NOT: kernel.fused
func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = titan.constant dense<1.0> : tensor<4xf32> {path = ["c"]}
  %e = titan.exp %x {path = ["a"]} : tensor<4xf32>
  %p = titan.add %e, %one {path = ["b"]} : tensor<4xf32>
  %q = titan.mul %e, %p {path = ["b"]} : tensor<4xf32>
  return %q : tensor<4xf32>
}

// What others read stays an op of its own.
// CHECK-LABEL: func.func @shared
// CHECK: titan.exp
// CHECK: kernel.fused flat [4]
// CHECK: arith.negf
// CHECK-NEXT: arith.addf
func.func @shared(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = titan.exp %x : tensor<4xf32>
  %n = titan.neg %e : tensor<4xf32>
  %y = titan.add %n, %x : tensor<4xf32>
  return %e, %y : tensor<4xf32>, tensor<4xf32>
}

// Each op rounds its result.
// CHECK-LABEL: func.func @narrow
// CHECK: arith.mulf
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.truncf
func.func @narrow(%x: tensor<4xbf16>, %y: tensor<4xbf16>) -> tensor<4xbf16> {
  %a = titan.mul %x, %y : tensor<4xbf16>
  %b = titan.add %a, %x : tensor<4xbf16>
  return %b : tensor<4xbf16>
}

// A broadcast is read through its map, by each of the kernels; one of a constant is that.
// CHECK-LABEL: func.func @broadcast
// CHECK-COUNT-2: kernel.fused flat [4, 8] ins(%arg{{[01]}}, %arg{{[01]}} : tensor<{{.*}}>, tensor<{{.*}}>)
// CHECK-NOT: titan.
func.func @broadcast(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %half = titan.constant dense<0.5> : tensor<f32>
  %halves = titan.broadcast %half [] : tensor<f32> to tensor<4x8xf32>
  %r = titan.broadcast %b [1] : tensor<8xf32> to tensor<4x8xf32>
  %s = titan.add %x, %r : tensor<4x8xf32>
  %t = titan.mul %s, %halves : tensor<4x8xf32>
  %u = titan.mul %x, %r : tensor<4x8xf32>
  return %t, %u : tensor<4x8xf32>, tensor<4x8xf32>
}

// One that something else reads as well stays, and is read as it is.
// CHECK-LABEL: func.func @broadcast_for_others
// CHECK: titan.broadcast
// CHECK-NEXT: titan.add
// CHECK-NEXT: titan.reduce
func.func @broadcast_for_others(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %r = titan.broadcast %b [1] : tensor<8xf32> to tensor<4x8xf32>
  %s = titan.add %x, %r : tensor<4x8xf32>
  %t = titan.reduce sum %r [1] : tensor<4x8xf32> to tensor<4xf32>
  return %s, %t : tensor<4x8xf32>, tensor<4xf32>
}

// Only the last of two broadcasts is read through its map.
// CHECK-LABEL: func.func @broadcast_of_broadcast
// CHECK: %[[R:.*]] = titan.broadcast %{{.*}} [1] : tensor<8xf32> to tensor<4x8xf32>
// CHECK: kernel.fused flat [2, 4, 8] ins(%[[R]], %arg0 : {{.*}})
func.func @broadcast_of_broadcast(%x: tensor<2x4x8xf32>, %b: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %r = titan.broadcast %b [1] : tensor<8xf32> to tensor<4x8xf32>
  %s = titan.broadcast %r [1, 2] : tensor<4x8xf32> to tensor<2x4x8xf32>
  %t = titan.add %x, %s : tensor<2x4x8xf32>
  return %t : tensor<2x4x8xf32>
}

// Phases keep ops apart.
// CHECK-LABEL: func.func @phases
// CHECK: titan.exp
// CHECK: titan.neg
func.func @phases(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = titan.exp %x : tensor<4xf32>
  %n = titan.neg %e {phase = #titan<phase backward>} : tensor<4xf32>
  return %n : tensor<4xf32>
}

// Equal cones get copies of one kernel, each with its own path.
// CHECK-LABEL: func.func @equal
// CHECK: kernel.fused flat [4] ins(%arg0 : tensor<4xf32>)
// CHECK-SAME: path = ["h.0"]
// CHECK: kernel.fused flat [4] ins(%{{.*}} : tensor<4xf32>)
// CHECK-SAME: path = ["h.1"]
func.func @equal(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = titan.exp %x {path = ["h.0"]} : tensor<4xf32>
  %b = titan.neg %a {path = ["h.0"]} : tensor<4xf32>
  %c = titan.exp %b {path = ["h.1"]} : tensor<4xf32>
  %d = titan.neg %c {path = ["h.1"]} : tensor<4xf32>
  return %b, %d : tensor<4xf32>, tensor<4xf32>
}

// As many operands as there may be: the last kernel has 16, of which the first one's result is one.
// CHECK-LABEL: func.func @wide
// CHECK: kernel.fused flat [2] ins(%arg0, %arg1, %arg2 : {{.*}})
// CHECK: kernel.fused flat [2] ins(%{{[0-9]+}}, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10, %arg11, %arg12, %arg13, %arg14, %arg15, %arg16, %arg17 : {{.*}})
func.func @wide(%a: tensor<2xf32>, %b: tensor<2xf32>, %c: tensor<2xf32>, %d: tensor<2xf32>, %e: tensor<2xf32>, %f: tensor<2xf32>,
                %g: tensor<2xf32>, %h: tensor<2xf32>, %i: tensor<2xf32>, %j: tensor<2xf32>, %k: tensor<2xf32>, %l: tensor<2xf32>,
                %m: tensor<2xf32>, %n: tensor<2xf32>, %o: tensor<2xf32>, %p: tensor<2xf32>, %q: tensor<2xf32>, %r: tensor<2xf32>) -> tensor<2xf32> {
  %0 = titan.add %a, %b : tensor<2xf32>
  %1 = titan.add %0, %c : tensor<2xf32>
  %2 = titan.add %1, %d : tensor<2xf32>
  %3 = titan.add %2, %e : tensor<2xf32>
  %4 = titan.add %3, %f : tensor<2xf32>
  %5 = titan.add %4, %g : tensor<2xf32>
  %6 = titan.add %5, %h : tensor<2xf32>
  %7 = titan.add %6, %i : tensor<2xf32>
  %8 = titan.add %7, %j : tensor<2xf32>
  %9 = titan.add %8, %k : tensor<2xf32>
  %10 = titan.add %9, %l : tensor<2xf32>
  %11 = titan.add %10, %m : tensor<2xf32>
  %12 = titan.add %11, %n : tensor<2xf32>
  %13 = titan.add %12, %o : tensor<2xf32>
  %14 = titan.add %13, %p : tensor<2xf32>
  %15 = titan.add %14, %q : tensor<2xf32>
  %16 = titan.add %15, %r : tensor<2xf32>
  return %16 : tensor<2xf32>
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>} {

// What stands before a start and behind it are two.
// CHECK-LABEL: func.func @collective
// CHECK: titan.exp
// CHECK: dist.start
// CHECK: titan.neg
func.func @collective(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = titan.exp %x : tensor<4xf32>
  %e = kernel.empty : tensor<4xf32>
  %t = dist.start all_reduce ins(%g : tensor<4xf32>) outs(%e : tensor<4xf32>) axes ["replicate"] order rank
  %b = titan.neg %a : tensor<4xf32>
  %r = dist.wait %t ins(%g : tensor<4xf32>) outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
  return %b, %r : tensor<4xf32>, tensor<4xf32>
}

}
