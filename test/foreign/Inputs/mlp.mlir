// Two layers whose products, activation, sums and noise are ops of another library.
module {
  titan.state @fc1.weight : tensor<48x12xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.3 : f64>}
  titan.state @fc1.bias : tensor<48xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @fc2.weight : tensor<48x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.1 : f64>}
  titan.state @fc2.bias : tensor<5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @model(%w1: tensor<48x12xf32> {titan.state = @fc1.weight}, %b1: tensor<48xf32> {titan.state = @fc1.bias},
                   %w2: tensor<48x5xf32> {titan.state = @fc2.weight}, %b2: tensor<5xf32> {titan.state = @fc2.bias},
                   %x: tensor<8x12xf32> {titan.input = "x"}) -> (tensor<8x5xf32> {titan.output = "logits"}) {
    %p1 = foreign.product %x, %w1 transposed {path = ["fc1"]} : (tensor<8x12xf32>, tensor<48x12xf32>) -> tensor<8x48xf32>
    %v1 = titan.broadcast %b1 [1] {path = ["fc1"]} : tensor<48xf32> to tensor<8x48xf32>
    %h1 = titan.add %p1, %v1 {path = ["fc1"]} : tensor<8x48xf32>
    %a = foreign.bend %h1 {path = ["act"]} : tensor<8x48xf32>
    %a3 = titan.reshape %a : tensor<8x48xf32> to tensor<8x16x3xf32>
    %s3 = foreign.running_sum %a3 {path = ["sums"]} : tensor<8x16x3xf32>
    %s = titan.reshape %s3 : tensor<8x16x3xf32> to tensor<8x48xf32>
    %f = foreign.flip %s p 0.125 stream 3 {path = ["noise"]} : tensor<8x48xf32>
    %p2 = foreign.product %f, %w2 {path = ["fc2"]} : (tensor<8x48xf32>, tensor<48x5xf32>) -> tensor<8x5xf32>
    %v2 = titan.broadcast %b2 [1] {path = ["fc2"]} : tensor<5xf32> to tensor<8x5xf32>
    %h2 = titan.add %p2, %v2 {path = ["fc2"]} : tensor<8x5xf32>
    return %h2 : tensor<8x5xf32>
  }
}
