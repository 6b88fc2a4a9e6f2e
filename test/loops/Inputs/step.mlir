// A linear model as the stage *optimize* leaves it, but for its loop over microbatches of 8 samples, which compare_forms.py puts in. The loop
// gives %g (the sum of the microbatches' gradients), %loss and %n (the number of elements). SGD with the mean's gradient.
module attributes {titan.stage = "optimize", titan.target = {cpu = "x86-64-v3", features = "", kind = "cpu"},
    titan.recipe = {batch = {micro = 8 : i64, global = ${samples} : i64}, loss = {kind = "mse"}, optimizer = {kind = "sgd", lr = 0.05 : f64},
                    data = {train = ["data.npz"]}, train = {seed = 5 : i64}}} {
  titan.state @w : tensor<4x3xf32> {init = #titan.init_rule<"normal", 0.0 : f64, 0.5 : f64>, kind = #titan<kind param>, trainable,
    placement = #titan.placement<["shard" = shard(0)]>}
  titan.state @counter.step : tensor<i64> {canonical_name = "step", init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, kind = #titan<kind counter>}
  titan.state @counter.optimizer.t : tensor<i64> {canonical_name = "optimizer.t", init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, kind = #titan<kind counter>}
  titan.state @counter.samples : tensor<i64> {canonical_name = "samples", init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, kind = #titan<kind counter>}
  titan.state @counter.skipped : tensor<i64> {canonical_name = "skipped", init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, kind = #titan<kind counter>}
  func.func @step(%w: tensor<4x3xf32> {titan.state = @w}, %step: tensor<i64> {titan.state = @counter.step}, %x: tensor<${count}x8x3xf32> {titan.input = "x"},
      %y: tensor<${count}x8x4xf32> {titan.input = "targets"}, %seed: tensor<i64> {titan.control = "train.seed"},
      %t: tensor<i64> {titan.state = @counter.optimizer.t}, %lr: tensor<f32> {titan.control = "optimizer.lr"}, %warmup: tensor<i64> {titan.control = "schedule.warmup_steps"},
      %steps: tensor<i64> {titan.control = "schedule.steps"}, %least: tensor<f32> {titan.control = "schedule.min_lr_ratio"},
      %decay: tensor<f32> {titan.control = "optimizer.weight_decay"}, %samples: tensor<i64> {titan.state = @counter.samples}, %skipped: tensor<i64> {titan.state = @counter.skipped})
      -> (tensor<4x3xf32> {titan.state = @w}, tensor<i64> {titan.state = @counter.step}, tensor<i64> {titan.state = @counter.optimizer.t},
          tensor<i64> {titan.state = @counter.samples}, tensor<i64> {titan.state = @counter.skipped}, tensor<f32> {titan.metric = "loss"},
          tensor<f32> {titan.metric = "grad_norm"}, tensor<f32> {titan.metric = "lr"}, tensor<i64> {titan.metric = "count"}, tensor<i64> {titan.metric = "applied"}) {
    %zg = titan.constant dense<0.0> : tensor<4x3xf32>
    %zl = titan.constant dense<0.0> : tensor<f32>
    %zn = titan.constant dense<0> : tensor<i64>
${loop}
    %one = titan.constant dense<1> : tensor<i64> {phase = #titan<phase update>}
    %count = titan.convert %n {phase = #titan<phase update>} : tensor<i64> to tensor<f32>
    %unit = titan.constant dense<1.0> : tensor<f32> {phase = #titan<phase update>}
    %scale = titan.div %unit, %count {phase = #titan<phase update>} : tensor<f32>
    %squares = titan.mul %g, %g {phase = #titan<phase update>} : tensor<4x3xf32>
    %sum = titan.reduce sum %squares [0, 1] {phase = #titan<phase update>} : tensor<4x3xf32> to tensor<f32>
    %root = titan.sqrt %sum {phase = #titan<phase update>} : tensor<f32>
    %norm = titan.mul %root, %scale {phase = #titan<phase update>} : tensor<f32>
    %apply = titan.is_finite %sum {phase = #titan<phase update>} : tensor<f32>
    %applied = titan.convert %apply {phase = #titan<phase update>} : tensor<i1> to tensor<i64>
    %rate = titan.schedule constant %step, %lr, %warmup, %steps, %least {phase = #titan<phase update>}
    %new = titan.sgd %w, %g lr %rate weight_decay %decay scale %scale apply %apply {lr_scale = 1.0 : f64, momentum = 0.0 : f64, nesterov = false, path = ["w"], phase = #titan<phase update>} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<4x3xf32>
    %next = titan.add %step, %one {phase = #titan<phase update>} : tensor<i64>
    %nextt = titan.add %t, %applied {phase = #titan<phase update>} : tensor<i64>
    %global = titan.constant dense<${samples}> : tensor<i64> {phase = #titan<phase update>}
    %seen = titan.add %samples, %global {phase = #titan<phase update>} : tensor<i64>
    %left = titan.sub %one, %applied {phase = #titan<phase update>} : tensor<i64>
    %out = titan.add %skipped, %left {phase = #titan<phase update>} : tensor<i64>
    %mean = titan.div %loss, %count {phase = #titan<phase update>} : tensor<f32>
    return %new, %next, %nextt, %seen, %out, %mean, %norm, %rate, %n, %applied : tensor<4x3xf32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<i64>
  }
  func.func @eval(%w: tensor<4x3xf32> {titan.state = @w}, %x: tensor<8x3xf32> {titan.input = "x"}, %y: tensor<8x4xf32> {titan.input = "targets"}, %rows: tensor<i64> {titan.control = "valid_rows"})
      -> (tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"}, tensor<i64> {titan.metric = "correct"}) {
    %l = titan.reduce sum %y [0, 1] : tensor<8x4xf32> to tensor<f32>
    return %l, %rows, %rows : tensor<f32>, tensor<i64>, tensor<i64>
  }
  func.func @predict(%w: tensor<4x3xf32> {titan.state = @w}, %x: tensor<8x3xf32> {titan.input = "x"}) -> (tensor<8x4xf32> {titan.output = "y"}) {
    %y = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<8x3xf32>, tensor<4x3xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }
}
