// What a call of the attention routine must be; the label in an error is the constraint of kernel.call.
// RUN: titan-opt %s --split-input-file --verify-diagnostics

func.func @extents(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C3) extents are positive, found 0}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 0, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 64, keys = 64, padding = 16, workspace = 0>>
      ins(%q, %q, %q : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @element(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C1) attends over elements of type 'i32'}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = i32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 64, keys = 64, padding = 16, workspace = 0>>
      ins(%q, %q, %q : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @heads(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C3) 2 query heads are no multiple of 3 key heads}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 3, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 64, keys = 64, padding = 16, workspace = 0>>
      ins(%q, %q, %q : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @dropout_dimension(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C1) drops elements of a tensor of rank 4, found rank 3 and multiple 0}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 64, keys = 64, padding = 16, workspace = 0>, dropout = <p = 0.5 : f64, stream = 7, seed = -1, step = -1, global = [2, 3, 3], multiple = 0>>
      ins(%q, %q, %q : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @operands(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C1) takes 3 ins, 2 outs and 0 scalars}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 64, keys = 64, padding = 16, workspace = 0>>
      ins(%q, %q, %q, %q : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @scalars(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C1) takes 3 ins, 2 outs and 1 scalars}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 64, keys = 64, padding = 16, workspace = 0>, dropout = <p = 0.5 : f64, stream = 7, seed = -1, step = -1, global = [1, 2, 3, 3], multiple = 18>>
      ins(%q, %q, %q : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @no_operand(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C1) has no log_sum_exp}}
  %y = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = -1, blocks = <rows = 64, keys = 64, padding = 16, workspace = 0>>
      ins(%q, %q, %q : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>) outs(%q : tensor<1x3x2x16xf32>) -> (tensor<1x3x2x16xf32>)
  return
}

// -----

func.func @mask_type(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C1) takes mask of type 'i1', but its operand is 'tensor<i64>'}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 64, keys = 64, padding = 16, workspace = 0>, mask = <operand = 3, boolean = true, batch = 0, head = 0, row = 3>>
      ins(%q, %q, %q, %n : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<i64>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @touches(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C1) touches 97 elements of query, which has 96}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 1, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 64, keys = 64, padding = 16, workspace = 0>>
      ins(%q, %q, %q : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @workspace(%q: tensor<1x3x2x8xf32>, %l: tensor<1x2x3xf32>) {
  // expected-error @+1 {{(C1) needs a workspace of 192 elements, found 0}}
  %y:3 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 8, valueWidth = 8,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 48, row = 16, head = 8>, key = <operand = 0, offset = 0, batch = 48, row = 16, head = 8>, value = <operand = 0, offset = 0, batch = 48, row = 16, head = 8>, result = <operand = 0, offset = 0, batch = 48, row = 16, head = 8>, logSumExp = 1, blocks = <rows = 64, keys = 64, padding = 16, workspace = 0>,
      gradient = <dresult = <operand = 0, offset = 0, batch = 48, row = 16, head = 8>, dquery = <operand = 0, offset = 0, batch = 48, row = 16, head = 8>, dkey = <operand = 1, offset = 0, batch = 48, row = 16, head = 8>, dvalue = <operand = 2, offset = 0, batch = 48, row = 16, head = 8>, workspace = -1>>
      ins(%q, %l : tensor<1x3x2x8xf32>, tensor<1x2x3xf32>) outs(%q, %q, %q : tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>)
      -> (tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>)
  return
}

// -----

func.func @block_extents(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C3) blocks are of positive extents, found #kernel.attention_blocks<rows = 64, keys = 0, padding = 16, workspace = 0>}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 64, keys = 0, padding = 16, workspace = 0>>
      ins(%q, %q, %q : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @block_keys(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C3) blocks of 64 rows are no multiple of 48 keys and of a padding of 16}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 64, keys = 48, padding = 16, workspace = 0>>
      ins(%q, %q, %q : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @block_padding(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C3) blocks of 40 rows are no multiple of 8 keys and of a padding of 16}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 40, keys = 8, padding = 16, workspace = 0>>
      ins(%q, %q, %q : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @block_of_decisions(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C3) blocks of 12 keys are no multiple of 8}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 48, keys = 12, padding = 16, workspace = 0>>
      ins(%q, %q, %q : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @forward_workspace(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C1) needs a workspace of 0 elements, found 32}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 64, keys = 64, padding = 16, workspace = 32>>
      ins(%q, %q, %q : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @workspace_operand(%q: tensor<1x3x2x8xf32>, %l: tensor<1x2x3xf32>) {
  // expected-error @+1 {{(C1) has a workspace of 192 elements, but its operand is -1}}
  %y:3 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 8, valueWidth = 8,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 48, row = 16, head = 8>, key = <operand = 0, offset = 0, batch = 48, row = 16, head = 8>, value = <operand = 0, offset = 0, batch = 48, row = 16, head = 8>, result = <operand = 0, offset = 0, batch = 48, row = 16, head = 8>, logSumExp = 1, blocks = <rows = 64, keys = 64, padding = 16, workspace = 192>,
      gradient = <dresult = <operand = 0, offset = 0, batch = 48, row = 16, head = 8>, dquery = <operand = 0, offset = 0, batch = 48, row = 16, head = 8>, dkey = <operand = 1, offset = 0, batch = 48, row = 16, head = 8>, dvalue = <operand = 2, offset = 0, batch = 48, row = 16, head = 8>, workspace = -1>>
      ins(%q, %l : tensor<1x3x2x8xf32>, tensor<1x2x3xf32>) outs(%q, %q, %q : tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>)
      -> (tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>)
  return
}

// -----

func.func @largest(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C1) has a largest score in operand 2 without a mask of numbers}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, largest = 2, blocks = <rows = 64, keys = 64, padding = 16, workspace = 0>>
      ins(%q, %q, %q : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @fill(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C1) fills with -1.000000e+09 : f64 beside a floating mask}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 64, keys = 64, padding = 16, workspace = 0>, mask = <operand = 3, boolean = false, batch = 0, head = 0, row = 3, fill = -1.0e9 : f64>>
      ins(%q, %q, %q, %n : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<i64>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @no_largest(%q: tensor<1x3x2x16xf32>, %l: tensor<1x2x3xf32>, %n: tensor<i64>, %i: index) {
  // expected-error @+1 {{(C1) has no largest}}
  %y:2 = kernel.call #kernel.attention<batch = 1, heads = 2, keyHeads = 2, queries = 3, keys = 3, width = 16, valueWidth = 16,
      element = f32, scale = 0.25 : f64, causal = true, query = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>,
      key = <operand = 1, offset = 0, batch = 96, row = 32, head = 16>, value = <operand = 2, offset = 0, batch = 96, row = 32, head = 16>,
      result = <operand = 0, offset = 0, batch = 96, row = 32, head = 16>, logSumExp = 1, blocks = <rows = 64, keys = 64, padding = 16, workspace = 0>, mask = <operand = 3, boolean = false, batch = 0, head = 0, row = 3>>
      ins(%q, %q, %q, %n : tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<1x3x2x16xf32>, tensor<i64>) outs(%q, %l : tensor<1x3x2x16xf32>, tensor<1x2x3xf32>) -> (tensor<1x3x2x16xf32>, tensor<1x2x3xf32>)
  return
}
