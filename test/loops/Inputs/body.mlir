// One microbatch: %xi and %yi give the gradient %dw, the loss %li and the number of elements %ni. The gradient's last op is no product,
// so that accumulators are added and not continued: its terms are the same in every form of the loop.
      %d = titan.dropout %xi p 0.25 stream 7 seed %seed step %step {path = ["drop"]} : tensor<8x3xf32> to tensor<8x3xf32>
      %p = titan.contract %d, %w batch [] x [] contracting [1] x [1] {path = ["fc"]} : (tensor<8x3xf32>, tensor<4x3xf32>) -> tensor<8x4xf32>
      %e = titan.sub %yi, %p {path = ["loss"]} : tensor<8x4xf32>
      %ee = titan.mul %e, %e {path = ["loss"]} : tensor<8x4xf32>
      %li = titan.reduce sum %ee [0, 1] {path = ["loss"]} : tensor<8x4xf32> to tensor<f32>
      %e2 = titan.add %e, %e {path = ["loss"], phase = #titan<phase backward>} : tensor<8x4xf32>
      %dp = titan.contract %e2, %d batch [] x [] contracting [0] x [0] {path = ["fc"], phase = #titan<phase backward>} : (tensor<8x4xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
      %dw = titan.neg %dp {path = ["fc"], phase = #titan<phase backward>} : tensor<4x3xf32>
      %ni = titan.constant dense<32> : tensor<i64>
