// RUN: titan-opt %s --titan-import-raise-rms-norm --cse --remarks-filter=import 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// CHECK-LABEL: func.func @product
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<4xf32>
func.func @product(%x: tensor<2x4xf32>, %w: tensor<4xf32>) -> tensor<2x4xf32> {
  // CHECK: %[[Y:.*]], %{{.*}} = titan.rms_norm %[[X]] scale %[[W]] axis 1 epsilon 9.9999999999999995E-7 {path = ["norm"]}
  // CHECK-NEXT: return %[[Y]]
  // REMARK: [Passed] raise {{.*}}'norm' is one titan.rms_norm
  // REMARK-NOT: 'norm' is one titan.rms_norm
  %n = titan.constant dense<0.25> : tensor<2xf32>
  %eps = titan.constant dense<1.0e-6> : tensor<2x1xf32>
  %one = titan.constant dense<1.0> : tensor<2x1xf32>
  %sq = titan.mul %x, %x : tensor<2x4xf32>
  %0 = titan.reduce sum %sq [1] : tensor<2x4xf32> to tensor<2xf32>
  %1 = titan.mul %0, %n : tensor<2xf32>
  %2 = titan.reshape %1 : tensor<2xf32> to tensor<2x1xf32>
  %3 = titan.add %2, %eps : tensor<2x1xf32>
  %4 = titan.sqrt %3 : tensor<2x1xf32>
  %5 = titan.div %one, %4 : tensor<2x1xf32>
  %6 = titan.reshape %5 : tensor<2x1xf32> to tensor<2xf32>
  %7 = titan.broadcast %6 [0] : tensor<2xf32> to tensor<2x4xf32>
  %8 = titan.mul %x, %7 {path = ["norm"]} : tensor<2x4xf32>
  %9 = titan.broadcast %w [1] : tensor<4xf32> to tensor<2x4xf32>
  %y = titan.mul %9, %8 {path = ["norm"]} : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// A power of two and one of -1/2.
// CHECK-LABEL: func.func @powers
func.func @powers(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: titan.rms_norm %{{.*}} axis 1 epsilon 1.000000e-05 :
  %n = titan.constant dense<0.25> : tensor<2xf32>
  %eps = titan.constant dense<1.0e-5> : tensor<2xf32>
  %two = titan.constant dense<2.0> : tensor<2x4xf32>
  %half = titan.constant dense<-0.5> : tensor<2xf32>
  %sq = titan.pow %x, %two : tensor<2x4xf32>
  %0 = titan.reduce sum %sq [1] : tensor<2x4xf32> to tensor<2xf32>
  %1 = titan.mul %0, %n : tensor<2xf32>
  %2 = titan.add %eps, %1 : tensor<2xf32>
  %3 = titan.pow %2, %half : tensor<2xf32>
  %4 = titan.broadcast %3 [0] : tensor<2xf32> to tensor<2x4xf32>
  %y = titan.mul %4, %x : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @quotient
func.func @quotient(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: titan.rms_norm %{{.*}} axis 1 epsilon 1.000000e-05 :
  %n = titan.constant dense<4.0> : tensor<2xf32>
  %eps = titan.constant dense<1.0e-5> : tensor<2xf32>
  %sq = titan.mul %x, %x : tensor<2x4xf32>
  %0 = titan.reduce sum %sq [1] : tensor<2x4xf32> to tensor<2xf32>
  %1 = titan.div %0, %n : tensor<2xf32>
  %2 = titan.add %1, %eps : tensor<2xf32>
  %3 = titan.sqrt %2 : tensor<2xf32>
  %4 = titan.broadcast %3 [0] : tensor<2xf32> to tensor<2x4xf32>
  %y = titan.div %x, %4 : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// The statistic of another value, and one that is repeated along the wrong dimension.
// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK-NOT: titan.rms_norm
  %n = titan.constant dense<0.25> : tensor<4xf32>
  %eps = titan.constant dense<1.0e-5> : tensor<4xf32>
  %sq = titan.mul %x, %x : tensor<4x4xf32>
  %0 = titan.reduce sum %sq [1] : tensor<4x4xf32> to tensor<4xf32>
  %1 = titan.mul %0, %n : tensor<4xf32>
  %2 = titan.add %1, %eps : tensor<4xf32>
  %3 = titan.sqrt %2 : tensor<4xf32>
  %rows = titan.broadcast %3 [0] : tensor<4xf32> to tensor<4x4xf32>
  %columns = titan.broadcast %3 [1] : tensor<4xf32> to tensor<4x4xf32>
  %a = titan.div %z, %rows : tensor<4x4xf32>
  %b = titan.div %x, %columns : tensor<4x4xf32>
  return %a, %b : tensor<4x4xf32>, tensor<4x4xf32>
}

// torch.nn.functional.normalize, times the root of the width and a scale.
// CHECK-LABEL: func.func @normalized
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<4xf32>
func.func @normalized(%x: tensor<2x4xf32>, %w: tensor<4xf32>) -> tensor<2x4xf32> {
  // CHECK: %[[Y:.*]], %{{.*}} = titan.rms_norm %[[X]] scale %[[W]] axis 1 epsilon 2.500000e-25
  // CHECK-NEXT: return %[[Y]]
  %least = titan.constant dense<1.0e-12> : tensor<2x1xf32>
  %two = titan.constant dense<2.0> : tensor<2x4xf32>
  %sq = titan.mul %x, %x : tensor<2x4xf32>
  %0 = titan.reduce sum %sq [1] : tensor<2x4xf32> to tensor<2xf32>
  %1 = titan.sqrt %0 : tensor<2xf32>
  %2 = titan.reshape %1 : tensor<2xf32> to tensor<2x1xf32>
  %3 = titan.max %2, %least : tensor<2x1xf32>
  %4 = titan.reshape %3 : tensor<2x1xf32> to tensor<2xf32>
  %5 = titan.broadcast %4 [0] : tensor<2xf32> to tensor<2x4xf32>
  %6 = titan.div %x, %5 : tensor<2x4xf32>
  %7 = titan.mul %6, %two : tensor<2x4xf32>
  %8 = titan.broadcast %w [1] : tensor<4xf32> to tensor<2x4xf32>
  %y = titan.mul %7, %8 : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// The same as Clip writes it.
// CHECK-LABEL: func.func @clipped
func.func @clipped(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: titan.rms_norm
  %least = titan.constant dense<1.0e-12> : tensor<2xf32>
  %sq = titan.mul %x, %x : tensor<2x4xf32>
  %0 = titan.reduce sum %sq [1] : tensor<2x4xf32> to tensor<2xf32>
  %1 = titan.sqrt %0 : tensor<2xf32>
  %2 = titan.compare le %1, %least : tensor<2xf32>
  %3 = titan.select %2, %least, %1 : tensor<2xi1>, tensor<2xf32>
  %4 = titan.broadcast %3 [0] : tensor<2xf32> to tensor<2x4xf32>
  %y = titan.div %x, %4 : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// A floor that lengths may have is no guard against zero.
// CHECK-LABEL: func.func @large_floor
func.func @large_floor(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NOT: titan.rms_norm
  %least = titan.constant dense<1.0e-3> : tensor<2xf32>
  %sq = titan.mul %x, %x : tensor<2x4xf32>
  %0 = titan.reduce sum %sq [1] : tensor<2x4xf32> to tensor<2xf32>
  %1 = titan.sqrt %0 : tensor<2xf32>
  %2 = titan.max %1, %least : tensor<2xf32>
  %3 = titan.broadcast %2 [0] : tensor<2xf32> to tensor<2x4xf32>
  %y = titan.div %x, %3 : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
