// Columns of one input look rows up in tables of different sizes: each is refused beyond its own, in every microbatch and in evaluation.
// RUN: rm -rf %t && mkdir -p %t && cd %t
// RUN: %python -c "import numpy as np; c = np.tile([3, 0, 8], (8, 1)); y = np.zeros((8, 2), 'f'); np.savez('good.npz', c=c, targets=y); c[5, 0] = 4; np.savez('first.npz', c=c, targets=y); c[5] = 3, 9, 9; np.savez('last.npz', c=c, targets=y)"
// RUN: titan-compile %s --set loss.kind=mse --set batch.micro=4 --set batch.global=8 -o job
// RUN: ./job train --data good.npz --steps 1 --out good
// RUN: %exits 1 ./job train --data first.npz --steps 1 --out first 2>&1 | FileCheck %s --check-prefix=FIRST
// RUN: %exits 1 ./job eval --ckpt good/checkpoints/step-00000001 --data first.npz 2>&1 | FileCheck %s --check-prefix=FIRST
// RUN: %exits 1 ./job train --data last.npz --steps 1 --out last 2>&1 | FileCheck %s --check-prefix=LAST
// FIRST: first.npz: array 'c', sample 5: value 4, element 0, is not in [0, 4)
// LAST: last.npz: array 'c', sample 5: value 9, element 1, is not in [0, 9)

module {
  titan.state @a : tensor<4x2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0, 0.5>}
  titan.state @b : tensor<9x2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0, 0.5>}

  func.func @model(%a: tensor<4x2xf32> {titan.state = @a}, %b: tensor<9x2xf32> {titan.state = @b},
                   %c: tensor<4x3xi64> {titan.input = "c"}) -> (tensor<4x2xf32> {titan.output = "y"}) {
    %first = titan.slice %c offsets [0, 0] strides [1, 1] : tensor<4x3xi64> to tensor<4x1xi64>
    %one = titan.reshape %first : tensor<4x1xi64> to tensor<4xi64>
    %others = titan.slice %c offsets [0, 1] strides [1, 1] : tensor<4x3xi64> to tensor<4x2xi64>
    %row = titan.embedding %a, %one : (tensor<4x2xf32>, tensor<4xi64>) -> tensor<4x2xf32>
    %rows = titan.embedding %b, %others : (tensor<9x2xf32>, tensor<4x2xi64>) -> tensor<4x2x2xf32>
    %sum = titan.reduce sum %rows [1] : tensor<4x2x2xf32> to tensor<4x2xf32>
    %y = titan.add %row, %sum : tensor<4x2xf32>
    return %y : tensor<4x2xf32>
  }
}
