// RUN: not titan-opt %s --titan-optimize-average-parameters=profiles=slow:0.5 2>&1 | FileCheck %s

// CHECK: error: @step has no update to average: run insert-update first
func.func @step(%x: tensor<f32> {titan.input = "x"}) -> (tensor<f32> {titan.metric = "loss"}) {
  return %x : tensor<f32>
}
