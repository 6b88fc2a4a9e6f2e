// RUN: titan-opt %s --titan-import-raise-attention --remarks-filter=import 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

titan.state @bias : tensor<3x3xf32> {init = #titan.init_rule<"constant", 0.000000e+00 : f64, 0.000000e+00 : f64>, kind = #titan<kind param>, trainable}

// CHECK-LABEL: func.func @trained_bias
func.func @trained_bias(%bias: tensor<3x3xf32> {titan.state = @bias}, %q: tensor<2x3x8xf32>, %k: tensor<2x3x8xf32>, %v: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  // CHECK-NOT: titan.attention
  // REMARK: [Missed] raise {{.*}}Reason="what is added to its scores depends on trainable parameters"{{.*}}'relative' looks like titan.attention
  %s = titan.contract %q, %k batch [0] x [0] contracting [2] x [2] : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
  %b = titan.broadcast %bias [1, 2] : tensor<3x3xf32> to tensor<2x3x3xf32>
  %f = titan.add %s, %b : tensor<2x3x3xf32>
  %p = titan.softmax %f dim 2 {path = ["relative"]} : tensor<2x3x3xf32>
  %y = titan.contract %p, %v batch [0] x [0] contracting [2] x [1] : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// CHECK-LABEL: func.func @probabilities_are_returned
func.func @probabilities_are_returned(%q: tensor<2x3x8xf32>, %k: tensor<2x3x8xf32>, %v: tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x3xf32>) {
  // CHECK-NOT: titan.attention
  // REMARK: [Missed] raise {{.*}}Reason="its probabilities have another use"
  %n = titan.neg %q : tensor<2x3x8xf32>
  %m = titan.neg %k : tensor<2x3x8xf32>
  %s = titan.contract %n, %m batch [0] x [0] contracting [2] x [2] : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
  %p = titan.softmax %s dim 2 {path = ["shown"]} : tensor<2x3x3xf32>
  %y = titan.contract %p, %v batch [0] x [0] contracting [2] x [1] : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y, %p : tensor<2x3x8xf32>, tensor<2x3x3xf32>
}

// CHECK-LABEL: func.func @capped
func.func @capped(%q: tensor<2x3x8xf32>, %k: tensor<2x3x8xf32>, %v: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  // CHECK-NOT: titan.attention
  // REMARK: [Missed] raise {{.*}}Reason="its scores are not a product of queries and keys that is scaled and masked"
  %s = titan.contract %q, %k batch [0] x [0] contracting [2] x [2] : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
  %t = titan.tanh %s : tensor<2x3x3xf32>
  %p = titan.softmax %t dim 2 {path = ["capped"]} : tensor<2x3x3xf32>
  %y = titan.contract %p, %v batch [0] x [0] contracting [2] x [1] : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// CHECK-LABEL: func.func @over_queries
func.func @over_queries(%q: tensor<2x3x8xf32>, %k: tensor<2x3x8xf32>, %v: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  // CHECK-NOT: titan.attention
  // REMARK: [Missed] raise {{.*}}Reason="its probabilities do not weigh values by key"
  %s = titan.contract %q, %k batch [0] x [0] contracting [2] x [2] : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
  %p = titan.softmax %s dim 1 {path = ["queries"]} : tensor<2x3x3xf32>
  %y = titan.contract %p, %v batch [0] x [0] contracting [2] x [1] : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// A classifier's probabilities are nothing to remark on.
// REMARK-NOT: classifier
func.func @classifier(%x: tensor<2x8xf32>, %w: tensor<3x8xf32>) -> tensor<2x3xf32> {
  %s = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<2x3xf32>
  %p = titan.softmax %s dim 1 {path = ["classifier"]} : tensor<2x3xf32>
  return %p : tensor<2x3xf32>
}
