// A model with a parameter of each kind: tied (table and head), applied twice, frozen, with fewer elements than ranks, unused; and a buffer.
module {
  titan.state @table : tensor<6x4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.5 : f64>}
  titan.state @twice : tensor<4x4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.5 : f64>}
  titan.state @bias : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.5 : f64>}
  titan.state @frozen : tensor<4x4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.5 : f64>}
  titan.state @few : tensor<1xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  titan.state @unused : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.5 : f64, 0.0 : f64>}
  titan.state @mask : tensor<4xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 1.5 : f64, 0.0 : f64>}
  func.func @model(%table: tensor<6x4xf32> {titan.state = @table}, %twice: tensor<4x4xf32> {titan.state = @twice}, %bias: tensor<4xf32> {titan.state = @bias},
      %frozen: tensor<4x4xf32> {titan.state = @frozen}, %few: tensor<1xf32> {titan.state = @few}, %unused: tensor<4xf32> {titan.state = @unused},
      %mask: tensor<4xf32> {titan.state = @mask}, %ids: tensor<2xi64> {titan.input = "ids"}) -> (tensor<2x6xf32> {titan.output = "logits"}) {
    %e = titan.embedding %table, %ids {path = ["table"]} : (tensor<6x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
    %f = titan.contract %e, %frozen batch [] x [] contracting [1] x [1] {path = ["frozen"]} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %a = titan.contract %f, %twice batch [] x [] contracting [1] x [1] {path = ["first"]} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %b = titan.broadcast %bias [1] {path = ["first"]} : tensor<4xf32> to tensor<2x4xf32>
    %c = titan.add %a, %b {path = ["first"]} : tensor<2x4xf32>
    %t = titan.tanh %c {path = ["first"]} : tensor<2x4xf32>
    %d = titan.contract %t, %twice batch [] x [] contracting [1] x [1] {path = ["second"]} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %m = titan.broadcast %mask [1] {path = ["mask"]} : tensor<4xf32> to tensor<2x4xf32>
    %g = titan.mul %d, %m {path = ["mask"]} : tensor<2x4xf32>
    %l = titan.contract %g, %table batch [] x [] contracting [1] x [1] {path = ["head"]} : (tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<2x6xf32>
    %s = titan.reshape %few {path = ["few"]} : tensor<1xf32> to tensor<f32>
    %sb = titan.broadcast %s [] {path = ["few"]} : tensor<f32> to tensor<2x6xf32>
    %y = titan.mul %l, %sb {path = ["few"]} : tensor<2x6xf32>
    return %y : tensor<2x6xf32>
  }
}
