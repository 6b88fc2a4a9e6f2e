// Forms of the loop of step.mlir, each behind a line with its name and the number of microbatches. ${body} is body.mlir; ${add} adds its
// terms to accumulators %a, %b, %c as %na, %nb, %nc.

// FORM unordered, 6
    %loss, %n, %g = accum.loop %i in 6 unordered slices(%xi = %x : tensor<6x8x3xf32>, %yi = %y : tensor<6x8x4xf32>) -> (tensor<f32>, tensor<i64>, tensor<4x3xf32>) {
${body}
      accum.yield %li, %ni, %dw : tensor<f32>, tensor<i64>, tensor<4x3xf32>
    }

// FORM six, 6
    %loss, %n, %g = accum.loop %i in 6 running slices(%xi = %x : tensor<6x8x3xf32>, %yi = %y : tensor<6x8x4xf32>)
        accumulators(%a = %zl : tensor<f32>, %b = %zn : tensor<i64>, %c = %zg : tensor<4x3xf32>) -> (tensor<f32>, tensor<i64>, tensor<4x3xf32>) {
${body}
${add}
      accum.yield %na, %nb, %nc : tensor<f32>, tensor<i64>, tensor<4x3xf32>
    }

// The inner loop continues the outer one's accumulators.
// FORM two-by-three, 6
    %xs = titan.reshape %x : tensor<6x8x3xf32> to tensor<2x3x8x3xf32>
    %ys = titan.reshape %y : tensor<6x8x4xf32> to tensor<2x3x8x4xf32>
    %loss, %n, %g = accum.loop %i in 2 running slices(%xo = %xs : tensor<2x3x8x3xf32>, %yo = %ys : tensor<2x3x8x4xf32>)
        accumulators(%oa = %zl : tensor<f32>, %ob = %zn : tensor<i64>, %oc = %zg : tensor<4x3xf32>) -> (tensor<f32>, tensor<i64>, tensor<4x3xf32>) {
      %s:3 = accum.loop %j in 3 running slices(%xi = %xo : tensor<3x8x3xf32>, %yi = %yo : tensor<3x8x4xf32>)
          accumulators(%a = %oa : tensor<f32>, %b = %ob : tensor<i64>, %c = %oc : tensor<4x3xf32>) -> (tensor<f32>, tensor<i64>, tensor<4x3xf32>) {
${body}
${add}
        accum.yield %na, %nb, %nc : tensor<f32>, tensor<i64>, tensor<4x3xf32>
      }
      accum.yield %s#0, %s#1, %s#2 : tensor<f32>, tensor<i64>, tensor<4x3xf32>
    }

// FORM six-by-one, 6
    %xs = titan.reshape %x : tensor<6x8x3xf32> to tensor<6x1x8x3xf32>
    %ys = titan.reshape %y : tensor<6x8x4xf32> to tensor<6x1x8x4xf32>
    %loss, %n, %g = accum.loop %i in 6 running slices(%xo = %xs : tensor<6x1x8x3xf32>, %yo = %ys : tensor<6x1x8x4xf32>)
        accumulators(%oa = %zl : tensor<f32>, %ob = %zn : tensor<i64>, %oc = %zg : tensor<4x3xf32>) -> (tensor<f32>, tensor<i64>, tensor<4x3xf32>) {
      %s:3 = accum.loop %j in 1 running slices(%xi = %xo : tensor<1x8x3xf32>, %yi = %yo : tensor<1x8x4xf32>)
          accumulators(%a = %oa : tensor<f32>, %b = %ob : tensor<i64>, %c = %oc : tensor<4x3xf32>) -> (tensor<f32>, tensor<i64>, tensor<4x3xf32>) {
${body}
${add}
        accum.yield %na, %nb, %nc : tensor<f32>, tensor<i64>, tensor<4x3xf32>
      }
      accum.yield %s#0, %s#1, %s#2 : tensor<f32>, tensor<i64>, tensor<4x3xf32>
    }

// FORM one-by-six, 6
    %xs = titan.reshape %x : tensor<6x8x3xf32> to tensor<1x6x8x3xf32>
    %ys = titan.reshape %y : tensor<6x8x4xf32> to tensor<1x6x8x4xf32>
    %loss, %n, %g = accum.loop %i in 1 running slices(%xo = %xs : tensor<1x6x8x3xf32>, %yo = %ys : tensor<1x6x8x4xf32>)
        accumulators(%oa = %zl : tensor<f32>, %ob = %zn : tensor<i64>, %oc = %zg : tensor<4x3xf32>) -> (tensor<f32>, tensor<i64>, tensor<4x3xf32>) {
      %s:3 = accum.loop %j in 6 running slices(%xi = %xo : tensor<6x8x3xf32>, %yi = %yo : tensor<6x8x4xf32>)
          accumulators(%a = %oa : tensor<f32>, %b = %ob : tensor<i64>, %c = %oc : tensor<4x3xf32>) -> (tensor<f32>, tensor<i64>, tensor<4x3xf32>) {
${body}
${add}
        accum.yield %na, %nb, %nc : tensor<f32>, tensor<i64>, tensor<4x3xf32>
      }
      accum.yield %s#0, %s#1, %s#2 : tensor<f32>, tensor<i64>, tensor<4x3xf32>
    }

// The rows of the stacks, added in order behind the loop.
// FORM stack, 6
    %n, %sl, %sg = accum.loop %i in 6 running stacked = 2 slices(%xi = %x : tensor<6x8x3xf32>, %yi = %y : tensor<6x8x4xf32>)
        accumulators(%b = %zn : tensor<i64>) -> (tensor<i64>, tensor<6xf32>, tensor<6x4x3xf32>) {
${body}
      %nb = titan.add %b, %ni : tensor<i64>
      accum.yield %nb, %li, %dw : tensor<i64>, tensor<f32>, tensor<4x3xf32>
    }
${rows 6}
    %l0 = titan.add %zl, %r0 : tensor<f32>
    %l1 = titan.add %l0, %r1 : tensor<f32>
    %l2 = titan.add %l1, %r2 : tensor<f32>
    %l3 = titan.add %l2, %r3 : tensor<f32>
    %l4 = titan.add %l3, %r4 : tensor<f32>
    %loss = titan.add %l4, %r5 : tensor<f32>
    %g0 = titan.add %zg, %q0 : tensor<4x3xf32>
    %g1 = titan.add %g0, %q1 : tensor<4x3xf32>
    %g2 = titan.add %g1, %q2 : tensor<4x3xf32>
    %g3 = titan.add %g2, %q3 : tensor<4x3xf32>
    %g4 = titan.add %g3, %q4 : tensor<4x3xf32>
    %g = titan.add %g4, %q5 : tensor<4x3xf32>

// The stacks of nested loops. The loop has no sums but the count's.
// FORM nested-stack, 6
    %xs = titan.reshape %x : tensor<6x8x3xf32> to tensor<3x2x8x3xf32>
    %ys = titan.reshape %y : tensor<6x8x4xf32> to tensor<3x2x8x4xf32>
    %n, %tl, %tg = accum.loop %i in 3 running stacked = 2 slices(%xo = %xs : tensor<3x2x8x3xf32>, %yo = %ys : tensor<3x2x8x4xf32>)
        accumulators(%ob = %zn : tensor<i64>) -> (tensor<i64>, tensor<3x2xf32>, tensor<3x2x4x3xf32>) {
      %s:3 = accum.loop %j in 2 running stacked = 2 slices(%xi = %xo : tensor<2x8x3xf32>, %yi = %yo : tensor<2x8x4xf32>)
          accumulators(%b = %ob : tensor<i64>) -> (tensor<i64>, tensor<2xf32>, tensor<2x4x3xf32>) {
${body}
        %nb = titan.add %b, %ni : tensor<i64>
        accum.yield %nb, %li, %dw : tensor<i64>, tensor<f32>, tensor<4x3xf32>
      }
      accum.yield %s#0, %s#1, %s#2 : tensor<i64>, tensor<2xf32>, tensor<2x4x3xf32>
    }
    %sl = titan.reshape %tl : tensor<3x2xf32> to tensor<6xf32>
    %sg = titan.reshape %tg : tensor<3x2x4x3xf32> to tensor<6x4x3xf32>
${rows 6}
    %l0 = titan.add %zl, %r0 : tensor<f32>
    %l1 = titan.add %l0, %r1 : tensor<f32>
    %l2 = titan.add %l1, %r2 : tensor<f32>
    %l3 = titan.add %l2, %r3 : tensor<f32>
    %l4 = titan.add %l3, %r4 : tensor<f32>
    %loss = titan.add %l4, %r5 : tensor<f32>
    %g0 = titan.add %zg, %q0 : tensor<4x3xf32>
    %g1 = titan.add %g0, %q1 : tensor<4x3xf32>
    %g2 = titan.add %g1, %q2 : tensor<4x3xf32>
    %g3 = titan.add %g2, %q3 : tensor<4x3xf32>
    %g4 = titan.add %g3, %q4 : tensor<4x3xf32>
    %g = titan.add %g4, %q5 : tensor<4x3xf32>

// FORM tree, 8
    %loss, %n, %g = accum.loop %i in 8 tree slices(%xi = %x : tensor<8x8x3xf32>, %yi = %y : tensor<8x8x4xf32>) -> (tensor<f32>, tensor<i64>, tensor<4x3xf32>) {
${body}
      accum.yield %li, %ni, %dw : tensor<f32>, tensor<i64>, tensor<4x3xf32>
    }

// What the tree stands for.
// FORM nest, 8
    %xs = titan.reshape %x : tensor<8x8x3xf32> to tensor<2x2x2x8x3xf32>
    %ys = titan.reshape %y : tensor<8x8x4xf32> to tensor<2x2x2x8x4xf32>
    %loss, %n, %g = accum.loop %i in 2 running slices(%xo = %xs : tensor<2x2x2x8x3xf32>, %yo = %ys : tensor<2x2x2x8x4xf32>)
        accumulators(%oa = %zl : tensor<f32>, %ob = %zn : tensor<i64>, %oc = %zg : tensor<4x3xf32>) -> (tensor<f32>, tensor<i64>, tensor<4x3xf32>) {
      %r:3 = accum.loop %j in 2 running slices(%xm = %xo : tensor<2x2x8x3xf32>, %ym = %yo : tensor<2x2x8x4xf32>)
          accumulators(%ma = %zl : tensor<f32>, %mb = %zn : tensor<i64>, %mc = %zg : tensor<4x3xf32>) -> (tensor<f32>, tensor<i64>, tensor<4x3xf32>) {
        %s:3 = accum.loop %k in 2 running slices(%xi = %xm : tensor<2x8x3xf32>, %yi = %ym : tensor<2x8x4xf32>)
            accumulators(%a = %zl : tensor<f32>, %b = %zn : tensor<i64>, %c = %zg : tensor<4x3xf32>) -> (tensor<f32>, tensor<i64>, tensor<4x3xf32>) {
${body}
${add}
          accum.yield %na, %nb, %nc : tensor<f32>, tensor<i64>, tensor<4x3xf32>
        }
        %sa = titan.add %ma, %s#0 : tensor<f32>
        %sb = titan.add %mb, %s#1 : tensor<i64>
        %sc = titan.add %mc, %s#2 : tensor<4x3xf32>
        accum.yield %sa, %sb, %sc : tensor<f32>, tensor<i64>, tensor<4x3xf32>
      }
      %ra = titan.add %oa, %r#0 : tensor<f32>
      %rb = titan.add %ob, %r#1 : tensor<i64>
      %rc = titan.add %oc, %r#2 : tensor<4x3xf32>
      accum.yield %ra, %rb, %rc : tensor<f32>, tensor<i64>, tensor<4x3xf32>
    }

// The tree written out over a stack's rows: neighbours first.
// FORM leaves, 8
    %n, %sl, %sg = accum.loop %i in 8 running stacked = 2 slices(%xi = %x : tensor<8x8x3xf32>, %yi = %y : tensor<8x8x4xf32>)
        accumulators(%b = %zn : tensor<i64>) -> (tensor<i64>, tensor<8xf32>, tensor<8x4x3xf32>) {
${body}
      %nb = titan.add %b, %ni : tensor<i64>
      accum.yield %nb, %li, %dw : tensor<i64>, tensor<f32>, tensor<4x3xf32>
    }
${rows 8}
    %l01 = titan.add %r0, %r1 : tensor<f32>
    %l23 = titan.add %r2, %r3 : tensor<f32>
    %l45 = titan.add %r4, %r5 : tensor<f32>
    %l67 = titan.add %r6, %r7 : tensor<f32>
    %l03 = titan.add %l01, %l23 : tensor<f32>
    %l47 = titan.add %l45, %l67 : tensor<f32>
    %loss = titan.add %l03, %l47 : tensor<f32>
    %g01 = titan.add %q0, %q1 : tensor<4x3xf32>
    %g23 = titan.add %q2, %q3 : tensor<4x3xf32>
    %g45 = titan.add %q4, %q5 : tensor<4x3xf32>
    %g67 = titan.add %q6, %q7 : tensor<4x3xf32>
    %g03 = titan.add %g01, %g23 : tensor<4x3xf32>
    %g47 = titan.add %g45, %g67 : tensor<4x3xf32>
    %g = titan.add %g03, %g47 : tensor<4x3xf32>

// FORM eight, 8
    %loss, %n, %g = accum.loop %i in 8 running slices(%xi = %x : tensor<8x8x3xf32>, %yi = %y : tensor<8x8x4xf32>)
        accumulators(%a = %zl : tensor<f32>, %b = %zn : tensor<i64>, %c = %zg : tensor<4x3xf32>) -> (tensor<f32>, tensor<i64>, tensor<4x3xf32>) {
${body}
${add}
      accum.yield %na, %nb, %nc : tensor<f32>, tensor<i64>, tensor<4x3xf32>
    }

// FORM one, 1
    %loss, %n, %g = accum.loop %i in 1 unordered slices(%xi = %x : tensor<1x8x3xf32>, %yi = %y : tensor<1x8x4xf32>) -> (tensor<f32>, tensor<i64>, tensor<4x3xf32>) {
${body}
      accum.yield %li, %ni, %dw : tensor<f32>, tensor<i64>, tensor<4x3xf32>
    }

// No loop is left to run: the microbatch itself.
// FORM body, 1
    %loss, %stack = accum.loop %i in 1 running stacked = 1 slices(%xi = %x : tensor<1x8x3xf32>, %yi = %y : tensor<1x8x4xf32>)
        accumulators(%a = %zl : tensor<f32>) -> (tensor<f32>, tensor<1x4x3xf32>) {
${body}
      %na = titan.add %a, %li : tensor<f32>
      accum.yield %na, %dw : tensor<f32>, tensor<4x3xf32>
    }
    %n = titan.constant dense<32> : tensor<i64>
    %g = titan.reshape %stack : tensor<1x4x3xf32> to tensor<4x3xf32>
