// Layers of one width: what one gradient needs is little beside all of them.
module {
  titan.state @w0 : tensor<64x64xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.1 : f64>}
  titan.state @w1 : tensor<64x64xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.1 : f64>}
  titan.state @w2 : tensor<64x64xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.1 : f64>}
  titan.state @w3 : tensor<64x64xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.1 : f64>}
  titan.state @w4 : tensor<64x64xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.1 : f64>}
  titan.state @w5 : tensor<64x64xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.1 : f64>}
  func.func @model(%w0: tensor<64x64xf32> {titan.state = @w0}, %w1: tensor<64x64xf32> {titan.state = @w1}, %w2: tensor<64x64xf32> {titan.state = @w2}, %w3: tensor<64x64xf32> {titan.state = @w3}, %w4: tensor<64x64xf32> {titan.state = @w4}, %w5: tensor<64x64xf32> {titan.state = @w5},
      %x: tensor<2x64xf32> {titan.input = "x"}) -> (tensor<2x64xf32> {titan.output = "y"}) {
    %c0 = titan.contract %x, %w0 batch [] x [] contracting [1] x [1] {path = ["layers.0"]} : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    %t0 = titan.tanh %c0 {path = ["layers.0"]} : tensor<2x64xf32>
    %c1 = titan.contract %t0, %w1 batch [] x [] contracting [1] x [1] {path = ["layers.1"]} : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    %t1 = titan.tanh %c1 {path = ["layers.1"]} : tensor<2x64xf32>
    %c2 = titan.contract %t1, %w2 batch [] x [] contracting [1] x [1] {path = ["layers.2"]} : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    %t2 = titan.tanh %c2 {path = ["layers.2"]} : tensor<2x64xf32>
    %c3 = titan.contract %t2, %w3 batch [] x [] contracting [1] x [1] {path = ["layers.3"]} : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    %t3 = titan.tanh %c3 {path = ["layers.3"]} : tensor<2x64xf32>
    %c4 = titan.contract %t3, %w4 batch [] x [] contracting [1] x [1] {path = ["layers.4"]} : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    %t4 = titan.tanh %c4 {path = ["layers.4"]} : tensor<2x64xf32>
    %c5 = titan.contract %t4, %w5 batch [] x [] contracting [1] x [1] {path = ["layers.5"]} : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    %t5 = titan.tanh %c5 {path = ["layers.5"]} : tensor<2x64xf32>
    return %t5 : tensor<2x64xf32>
  }
}
