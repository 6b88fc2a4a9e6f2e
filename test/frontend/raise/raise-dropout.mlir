// RUN: titan-opt %s --titan-import-raise-dropout | FileCheck %s

// A decision a sample, as torchvision and timm write it.
// CHECK-LABEL: func.func @rows
// CHECK: titan.dropout %{{.*}} p 2.500000e-01 stream 7 shared [1, 2] {path = ["depth"]} : tensor<8x4x3xf32>
// CHECK-NEXT: return
func.func @rows(%x: tensor<8x4x3xf32>) -> tensor<8x4x3xf32> {
  %k = titan.constant dense<0.75> : tensor<8x1x1xf32>
  %u = titan.random uniform stream 7 : tensor<8x1x1xf32>
  %c = titan.compare lt %u, %k : tensor<8x1x1xf32>
  %m = titan.convert %c : tensor<8x1x1xi1> to tensor<8x1x1xf32>
  %s = titan.div %m, %k : tensor<8x1x1xf32>
  %r = titan.reshape %s : tensor<8x1x1xf32> to tensor<8xf32>
  %b = titan.broadcast %r [0] : tensor<8xf32> to tensor<8x4x3xf32>
  %y = titan.mul %x, %b {path = ["depth"]} : tensor<8x4x3xf32>
  return %y : tensor<8x4x3xf32>
}

// Its factor at the other operand, as Hugging Face writes it.
// CHECK-LABEL: func.func @floor
// CHECK: titan.dropout %arg0 p 2.500000e-01 stream 7 shared [1]
func.func @floor(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %k = titan.constant dense<0.75> : tensor<8xf32>
  %u = titan.random uniform stream 7 : tensor<8xf32>
  %a = titan.add %k, %u : tensor<8xf32>
  %m = titan.floor %a : tensor<8xf32>
  %b = titan.broadcast %m [0] : tensor<8xf32> to tensor<8x4xf32>
  %w = titan.constant dense<0.75> : tensor<8x4xf32>
  %d = titan.div %x, %w : tensor<8x4xf32>
  %y = titan.mul %b, %d : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// The factor as a product, the comparison the other way round.
// CHECK-LABEL: func.func @channels
// CHECK: titan.dropout %arg0 p 5.000000e-01 stream 9 shared [2] : tensor<2x3x4xf32>
func.func @channels(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %k = titan.constant dense<0.5> : tensor<2x3xf32>
  %two = titan.constant dense<2.0> : tensor<2x3x4xf32>
  %u = titan.random uniform stream 9 : tensor<2x3xf32>
  %c = titan.compare gt %k, %u : tensor<2x3xf32>
  %m = titan.convert %c : tensor<2x3xi1> to tensor<2x3xf32>
  %b = titan.broadcast %m [0, 1] : tensor<2x3xf32> to tensor<2x3x4xf32>
  %w = titan.mul %two, %x : tensor<2x3x4xf32>
  %y = titan.mul %w, %b : tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// A mask of another mean, one of normal numbers, one that counts its elements in another order.
// CHECK-LABEL: func.func @others
// CHECK-NOT: titan.dropout
func.func @others(%x: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) {
  %k = titan.constant dense<0.75> : tensor<4x2xf32>
  %p = titan.constant dense<0.5> : tensor<4x2xf32>
  %u = titan.random uniform stream 7 : tensor<4x2xf32>
  %c = titan.compare lt %u, %k : tensor<4x2xf32>
  %m = titan.convert %c : tensor<4x2xi1> to tensor<4x2xf32>
  %bernoulli = titan.mul %x, %m : tensor<4x2xf32>
  %s = titan.div %m, %p : tensor<4x2xf32>
  %other = titan.mul %x, %s : tensor<4x2xf32>

  %n = titan.random normal stream 8 : tensor<4x2xf32>
  %cn = titan.compare lt %n, %k : tensor<4x2xf32>
  %mn = titan.convert %cn : tensor<4x2xi1> to tensor<4x2xf32>
  %sn = titan.div %mn, %k : tensor<4x2xf32>
  %normal = titan.mul %x, %sn : tensor<4x2xf32>

  %kt = titan.constant dense<0.75> : tensor<2x4xf32>
  %ut = titan.random uniform stream 9 : tensor<2x4xf32>
  %ct = titan.compare lt %ut, %kt : tensor<2x4xf32>
  %mt = titan.convert %ct : tensor<2x4xi1> to tensor<2x4xf32>
  %st = titan.div %mt, %kt : tensor<2x4xf32>
  %t = titan.transpose %st [1, 0] : tensor<2x4xf32> to tensor<4x2xf32>
  %turned = titan.mul %x, %t : tensor<4x2xf32>
  return %bernoulli, %other, %normal, %turned : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>
}
