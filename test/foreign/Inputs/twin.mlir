// mlp.mlir in ops of titan alone: flip(x) is 2 (1 - p) dropout(x) - x while it trains.
module {
  titan.state @fc1.weight : tensor<48x12xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.3 : f64>}
  titan.state @fc1.bias : tensor<48xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @fc2.weight : tensor<48x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.1 : f64>}
  titan.state @fc2.bias : tensor<5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @model(%w1: tensor<48x12xf32> {titan.state = @fc1.weight}, %b1: tensor<48xf32> {titan.state = @fc1.bias},
                   %w2: tensor<48x5xf32> {titan.state = @fc2.weight}, %b2: tensor<5xf32> {titan.state = @fc2.bias},
                   %x: tensor<8x12xf32> {titan.input = "x"}) -> (tensor<8x5xf32> {titan.output = "logits"}) {
    %p1 = titan.contract %x, %w1 batch [] x [] contracting [1] x [1] {path = ["fc1"]} : (tensor<8x12xf32>, tensor<48x12xf32>) -> tensor<8x48xf32>
    %v1 = titan.broadcast %b1 [1] {path = ["fc1"]} : tensor<48xf32> to tensor<8x48xf32>
    %h1 = titan.add %p1, %v1 {path = ["fc1"]} : tensor<8x48xf32>
    %half = titan.constant dense<0.5> : tensor<8x48xf32>
    %square = titan.mul %h1, %h1 {path = ["act"]} : tensor<8x48xf32>
    %scaled = titan.mul %square, %half {path = ["act"]} : tensor<8x48xf32>
    %a = titan.add %h1, %scaled {path = ["act"]} : tensor<8x48xf32>
    %twice = titan.constant dense<1.75> : tensor<8x48xf32>
    %a3 = titan.reshape %a : tensor<8x48xf32> to tensor<8x16x3xf32>
    %upto = titan.constant dense<[[1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]> : tensor<3x3xf32>
    %s3 = titan.contract %a3, %upto batch [] x [] contracting [2] x [0] {path = ["sums"]} : (tensor<8x16x3xf32>, tensor<3x3xf32>) -> tensor<8x16x3xf32>
    %s = titan.reshape %s3 : tensor<8x16x3xf32> to tensor<8x48xf32>
    %kept = titan.dropout %s p 0.125 stream 3 {path = ["noise"]} : tensor<8x48xf32> to tensor<8x48xf32>
    %doubled = titan.mul %kept, %twice {path = ["noise"]} : tensor<8x48xf32>
    %f = titan.sub %doubled, %s {path = ["noise"]} : tensor<8x48xf32>
    %p2 = titan.contract %f, %w2 batch [] x [] contracting [1] x [0] {path = ["fc2"]} : (tensor<8x48xf32>, tensor<48x5xf32>) -> tensor<8x5xf32>
    %v2 = titan.broadcast %b2 [1] {path = ["fc2"]} : tensor<5xf32> to tensor<8x5xf32>
    %h2 = titan.add %p2, %v2 {path = ["fc2"]} : tensor<8x5xf32>
    return %h2 : tensor<8x5xf32>
  }
}
