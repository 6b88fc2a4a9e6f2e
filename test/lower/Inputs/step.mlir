// A training step as the stage *shard* leaves it: 48-32-10 perceptron, cross-entropy, Adam for the first weight and SGD for
// the rest. ${count} is the number of microbatches of 16 samples.
module {
  titan.state @"fc1.weight" : tensor<32x48xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.03 : f64>}
  titan.state @"fc1.bias" : tensor<32xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @"fc2.weight" : tensor<10x32xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.03 : f64>}
  titan.state @"fc2.bias" : tensor<10xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @"fc1.weight.exp_avg" : tensor<32x48xf32> {kind = #titan<kind slot>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @"fc1.weight.exp_avg_sq" : tensor<32x48xf32> {kind = #titan<kind slot>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @optimizer.t : tensor<i64> {kind = #titan<kind counter>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @step(%w1: tensor<32x48xf32> {titan.state = @"fc1.weight"}, %b1: tensor<32xf32> {titan.state = @"fc1.bias"},
      %w2: tensor<10x32xf32> {titan.state = @"fc2.weight"}, %b2: tensor<10xf32> {titan.state = @"fc2.bias"},
      %m: tensor<32x48xf32> {titan.state = @"fc1.weight.exp_avg"}, %v: tensor<32x48xf32> {titan.state = @"fc1.weight.exp_avg_sq"}, %t: tensor<i64> {titan.state = @optimizer.t},
      %xs: tensor<${count}x16x48xf32> {titan.input = "x"}, %ys: tensor<${count}x16xi64> {titan.input = "y"}, %lr: tensor<f32> {titan.control = "optimizer.lr"},
      %wd: tensor<f32> {titan.control = "optimizer.weight_decay"})
    -> (tensor<32x48xf32> {titan.state = @"fc1.weight"}, tensor<32xf32> {titan.state = @"fc1.bias"},
        tensor<10x32xf32> {titan.state = @"fc2.weight"}, tensor<10xf32> {titan.state = @"fc2.bias"},
        tensor<32x48xf32> {titan.state = @"fc1.weight.exp_avg"}, tensor<32x48xf32> {titan.state = @"fc1.weight.exp_avg_sq"}, tensor<i64> {titan.state = @optimizer.t},
        tensor<f32> {titan.metric = "loss"}) {
    %z1 = titan.constant dense<0.0> : tensor<32x48xf32>
    %zb1 = titan.constant dense<0.0> : tensor<32xf32>
    %z2 = titan.constant dense<0.0> : tensor<10x32xf32>
    %zb2 = titan.constant dense<0.0> : tensor<10xf32>
    %zl = titan.constant dense<0.0> : tensor<f32>
    %zc = titan.constant dense<0> : tensor<i64>
    %r:6 = accum.loop %i in ${count} running slices(%x = %xs : tensor<${count}x16x48xf32>, %y = %ys : tensor<${count}x16xi64>)
        accumulators(%a1 = %z1 : tensor<32x48xf32>, %ab1 = %zb1 : tensor<32xf32>, %a2 = %z2 : tensor<10x32xf32>, %ab2 = %zb2 : tensor<10xf32>, %al = %zl : tensor<f32>, %ac = %zc : tensor<i64>)
        -> (tensor<32x48xf32>, tensor<32xf32>, tensor<10x32xf32>, tensor<10xf32>, tensor<f32>, tensor<i64>) {
      %h0 = titan.contract %x, %w1 batch [] x [] contracting [1] x [1] {path = ["fc1"]} : (tensor<16x48xf32>, tensor<32x48xf32>) -> tensor<16x32xf32>
      %bb1 = titan.broadcast %b1 [1] {path = ["fc1"]} : tensor<32xf32> to tensor<16x32xf32>
      %h1 = titan.add %h0, %bb1 {path = ["fc1"]} : tensor<16x32xf32>
      %h = titan.relu %h1 {path = ["relu"]} : tensor<16x32xf32>
      %l0 = titan.contract %h, %w2 batch [] x [] contracting [1] x [1] {path = ["fc2"]} : (tensor<16x32xf32>, tensor<10x32xf32>) -> tensor<16x10xf32>
      %bb2 = titan.broadcast %b2 [1] {path = ["fc2"]} : tensor<10xf32> to tensor<16x10xf32>
      %l = titan.add %l0, %bb2 {path = ["fc2"]} : tensor<16x10xf32>
      %ce = titan.cross_entropy %l, %y ignore_index -100 label_smoothing 0.0 {path = ["loss"]} : (tensor<16x10xf32>, tensor<16xi64>) -> tensor<16xf32>
      %ls = titan.reduce sum %ce [0] {path = ["loss"]} : tensor<16xf32> to tensor<f32>
      %ign = titan.constant dense<-100> : tensor<16xi64>
      %valid = titan.compare ne %y, %ign : tensor<16xi64>
      %vi = titan.convert %valid : tensor<16xi1> to tensor<16xi64>
      %cnt = titan.reduce sum %vi [0] : tensor<16xi64> to tensor<i64>
      %one = titan.constant dense<1.0> : tensor<16xf32>
      %dl = titan.cross_entropy_grad %l, %y, %one ignore_index -100 label_smoothing 0.0 {phase = #titan<phase backward>, path = ["loss"]} : (tensor<16x10xf32>, tensor<16xi64>, tensor<16xf32>) -> tensor<16x10xf32>
      %g2 = titan.contract %dl, %h acc %a2 batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>, path = ["fc2"]} : (tensor<16x10xf32>, tensor<16x32xf32>, tensor<10x32xf32>) -> tensor<10x32xf32>
      %db2 = titan.reduce sum %dl [0] {phase = #titan<phase backward>, path = ["fc2"]} : tensor<16x10xf32> to tensor<10xf32>
      %gb2 = titan.add %ab2, %db2 {phase = #titan<phase backward>, path = ["fc2"]} : tensor<10xf32>
      %dh = titan.contract %dl, %w2 batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>, path = ["fc2"]} : (tensor<16x10xf32>, tensor<10x32xf32>) -> tensor<16x32xf32>
      %zero = titan.constant dense<0.0> : tensor<16x32xf32>
      %mask = titan.compare gt %h, %zero {phase = #titan<phase backward>, path = ["relu"]} : tensor<16x32xf32>
      %dz = titan.select %mask, %dh, %zero {phase = #titan<phase backward>, path = ["relu"]} : tensor<16x32xi1>, tensor<16x32xf32>
      %g1 = titan.contract %dz, %x acc %a1 batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>, path = ["fc1"]} : (tensor<16x32xf32>, tensor<16x48xf32>, tensor<32x48xf32>) -> tensor<32x48xf32>
      %db1 = titan.reduce sum %dz [0] {phase = #titan<phase backward>, path = ["fc1"]} : tensor<16x32xf32> to tensor<32xf32>
      %gb1 = titan.add %ab1, %db1 {phase = #titan<phase backward>, path = ["fc1"]} : tensor<32xf32>
      %nl = titan.add %al, %ls : tensor<f32>
      %nc = titan.add %ac, %cnt : tensor<i64>
      accum.yield %g1, %gb1, %g2, %gb2, %nl, %nc : tensor<32x48xf32>, tensor<32xf32>, tensor<10x32xf32>, tensor<10xf32>, tensor<f32>, tensor<i64>
    }
    %n = titan.convert %r#5 : tensor<i64> to tensor<f32>
    %o = titan.constant dense<1.0> : tensor<f32>
    %scale = titan.div %o, %n : tensor<f32>
    %loss = titan.mul %r#4, %scale : tensor<f32>
    %apply = titan.is_finite %loss : tensor<f32>
    %p1:3 = titan.adam %w1, %r#0, %m, %v lr %lr weight_decay %wd scale %scale t %t apply %apply {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, decoupled = true, lr_scale = 1.0 : f64, path = ["fc1"], phase = #titan<phase update>} : tensor<32x48xf32>
    %p2 = titan.sgd %b1, %r#1 lr %lr weight_decay %wd scale %scale apply %apply {momentum = 0.0 : f64, nesterov = false, lr_scale = 1.0 : f64, phase = #titan<phase update>} : (tensor<32xf32>, tensor<32xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<32xf32>
    %p3 = titan.sgd %w2, %r#2 lr %lr weight_decay %wd scale %scale apply %apply {momentum = 0.0 : f64, nesterov = false, lr_scale = 1.0 : f64, phase = #titan<phase update>} : (tensor<10x32xf32>, tensor<10x32xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<10x32xf32>
    %p4 = titan.sgd %b2, %r#3 lr %lr weight_decay %wd scale %scale apply %apply {momentum = 0.0 : f64, nesterov = false, lr_scale = 1.0 : f64, phase = #titan<phase update>} : (tensor<10xf32>, tensor<10xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<10xf32>
    %oi = titan.constant dense<1> : tensor<i64>
    %t2 = titan.add %t, %oi {phase = #titan<phase update>} : tensor<i64>
    %t3 = titan.select %apply, %t2, %t {phase = #titan<phase update>} : tensor<i1>, tensor<i64>
    return %p1#0, %p2, %p3, %p4, %p1#1, %p1#2, %t3, %loss : tensor<32x48xf32>, tensor<32xf32>, tensor<10x32xf32>, tensor<10xf32>, tensor<32x48xf32>, tensor<32x48xf32>, tensor<i64>, tensor<f32>
  }
}
