// One negative test for each numbered constraint of the titan dialect; the label is the constraint's.
// RUN: titan-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{(C1) type 'tensor<?xf32>' is not a tensor of static shape}}
titan.state @state_C1 : tensor<?xf32> {kind = #titan<kind param>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}

// -----

// expected-error @+1 {{(C2) only a param is trainable, this is a buffer}}
titan.state @state_C2 : tensor<2xf32> {kind = #titan<kind buffer>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}

// -----

// expected-error @+1 {{(C3) a counter is tensor<i64>, not 'tensor<2xi64>'}}
titan.state @state_C3 : tensor<2xi64> {kind = #titan<kind counter>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}

// -----

// expected-error @+1 {{(C4) #titan.source<"w", at = [0]> is no box of 2 dimensions}}
titan.state @state_C4 : tensor<2x3xf32> {kind = #titan<kind param>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, sources = [#titan.source<"w", at = [0]>]}

// -----

// expected-error @+1 {{(C4) #titan.source<"w", at = [1, 0], extent = [2, 3]> leaves 'tensor<2x3xf32>'}}
titan.state @state_C4_box : tensor<2x3xf32> {kind = #titan<kind param>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, sources = [#titan.source<"w", at = [1, 0], extent = [2, 3]>]}

// -----

// expected-error @+1 {{(C4) dims of #titan.source<"w", dims = [0, 0]> are not different dimensions of the 2 of the initializer}}
titan.state @state_C4_dims : tensor<2x3xf32> {kind = #titan<kind param>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, sources = [#titan.source<"w", dims = [0, 0]>]}

// -----

// expected-error @+1 {{(C5) init has 20 bytes, [2, 3] of 'f32' needs 24}}
titan.state @state_C5 : tensor<2x3xf32> {kind = #titan<kind param>, init = #titan.init_file<"w.bin", offset = 0, bytes = 20, digest = 1>}

// -----

// expected-error @+1 {{(C5) init stores a tensor of [-1]}}
titan.state @state_C5_shape : tensor<2x3xf32> {kind = #titan<kind param>, init = #titan.init_file<"w.bin", offset = 0, bytes = 24, digest = 1, shape = [-1]>}

// -----

// expected-error @+1 {{(C5) init stores 2 ranges, the sources name 1 initializers}}
titan.state @state_C5_ranges : tensor<2x3xf32> {kind = #titan<kind param>, init = #titan.init_file<["w.bin", offset = 0, bytes = 24, digest = 1], ["w.bin", offset = 24, bytes = 24, digest = 1]>}

// -----

// expected-error @+1 {{(C7) #titan.source<"v", at = [0, 1], extent = [2, 2]> overlaps another source}}
titan.state @state_C7_overlap : tensor<2x3xf32> {kind = #titan<kind param>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, sources = [#titan.source<"w", extent = [2, 2]>, #titan.source<"v", at = [0, 1], extent = [2, 2]>]}

// -----

// expected-error @+1 {{(C7) sources cover 4 of 6 elements}}
titan.state @state_C7_gap : tensor<2x3xf32> {kind = #titan<kind param>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, sources = [#titan.source<"w", extent = [2, 2]>]}

// -----

// expected-error @+1 {{(C7) #titan.source<"w", from = [1, 0]> leaves the stored tensor of [2, 3]}}
titan.state @state_C7_stored : tensor<2x3xf32> {kind = #titan<kind param>, init = #titan.init_file<"w.bin", offset = 0, bytes = 24, digest = 1>, sources = [#titan.source<"w", from = [1, 0]>]}

// -----

// expected-error @+2 {{a source has at, from, extent and dims, each once}}
titan.state @state_source : tensor<2x3xf32> {kind = #titan<kind param>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  sources = [#titan.source<"w", rows = [1]>]}

// -----

// expected-error @+1 {{init is neither #titan.init_file nor #titan.init_rule}}
titan.state @state_init : tensor<2xf32> {kind = #titan<kind param>, init = 1 : i64}

// -----

// expected-error @+1 {{init rule 'gamma' is not one of constant, normal, uniform}}
titan.state @init_rule : tensor<2xf32> {kind = #titan<kind param>, init = #titan.init_rule<"gamma", 0.0 : f64, 1.0 : f64>}

// -----

func.func @reshape_C1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) reshapes 6 elements to 8}}
  %r = titan.reshape %x : tensor<2x3xf32> to tensor<8xf32>
  return
}

// -----

func.func @transpose_C1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) [0, 2] does not permute 2 dimensions}}
  %r = titan.transpose %x [0, 2] : tensor<2x3xf32> to tensor<3x2xf32>
  return
}

// -----

func.func @transpose_C2(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C2) the permuted type is 'tensor<3x2xf32>', not 'tensor<2x3xf32>'}}
  %r = titan.transpose %x [1, 0] : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_C1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) dims [1, 0] do not map}}
  %r = titan.broadcast %x [1, 0] : tensor<2x3xf32> to tensor<3x2xf32>
  return
}

// -----

func.func @broadcast_C2(%x: tensor<3xf32>) {
  // expected-error @+1 {{(C2) operand dimension 0 has extent 3, result dimension 1 has 4}}
  %r = titan.broadcast %x [1] : tensor<3xf32> to tensor<2x4xf32>
  return
}

// -----

func.func @concat_C1(%x: tensor<2x3xf32>, %y: tensor<4x3xf32>) {
  // expected-error @+1 {{(C1) joins 'tensor<2x3xf32>' and 'tensor<4x3xf32>' along 1}}
  %r = titan.concat %x, %y dim 1 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @concat_C2_dim(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C2) dim 2 is outside the rank 2}}
  %r = titan.concat %x dim 2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @concat_C2_extent(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>) {
  // expected-error @+1 {{(C2) the joined type is 'tensor<2x4xf32>'}}
  %r = titan.concat %x, %y dim 1 : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @slice_C1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) needs one offset and one positive stride for each of 2 dimensions}}
  %r = titan.slice %x offsets [0, 0] strides [1, 0] : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @slice_C2(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C2) dimension 1 reads element 4 of 3}}
  %r = titan.slice %x offsets [0, 0] strides [1, 2] : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @reverse_C1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) dims [1, 0] are no increasing dimensions of 'tensor<2x3xf32>'}}
  %r = titan.reverse %x [1, 0] : tensor<2x3xf32>
  return
}

// -----

func.func @pad_C1(%x: tensor<3xf32>) {
  // expected-error @+1 {{(C1) needs one non-negative low and interior for each of 1 dimensions}}
  %r = titan.pad %x low [-1] interior [0] : tensor<3xf32> to tensor<5xf32>
  return
}

// -----

func.func @pad_C2(%x: tensor<3xf32>) {
  // expected-error @+1 {{(C2) dimension 0 writes element 5 of 5}}
  %r = titan.pad %x low [1] interior [1] : tensor<3xf32> to tensor<5xf32>
  return
}

// -----

func.func @iota_C1() {
  // expected-error @+1 {{(C1) dim 1 is outside the rank 1}}
  %r = titan.iota 1 : tensor<3xi64>
  return
}

// -----

func.func @contract_C1(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) batch and contracting dimensions do not pair up}}
  %r = titan.contract %x, %y batch [0] x [0] contracting [0] x [1] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @contract_C2(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) {
  // expected-error @+1 {{(C2) lhs dimension 1 has extent 3, rhs dimension 0 has 2}}
  %r = titan.contract %x, %y batch [] x [] contracting [1] x [0] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @contract_C3(%x: tensor<2x3xbf16>, %y: tensor<2x3xbf16>) {
  // expected-error @+1 {{(C3) 'bf16' and 'bf16' do not give 'bf16'}}
  %r = titan.contract %x, %y batch [] x [] contracting [1] x [1] : (tensor<2x3xbf16>, tensor<2x3xbf16>) -> tensor<2x2xbf16>
  return
}

// -----

func.func @contract_C4(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %a: tensor<2x3xf32>) {
  // expected-error @+1 {{(C4) the result's type is 'tensor<2x2xf32>'}}
  %r = titan.contract %x, %y acc %a batch [] x [] contracting [1] x [1] : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @reduce_C1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) dims [1, 0] are not increasing within the rank 2}}
  %r = titan.reduce sum %x [1, 0] : tensor<2x3xf32> to tensor<f32>
  return
}

// -----

func.func @reduce_C2(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C2) the reduced type is 'tensor<2xf32>'}}
  %r = titan.reduce sum %x [1] : tensor<2x3xf32> to tensor<3xf32>
  return
}

// -----

func.func @argmax_C1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) the result lacks dimension 1 only}}
  %r = titan.argmax %x dim 1 : tensor<2x3xf32> to tensor<3xi64>
  return
}

// -----

func.func @exact_sum_C1(%x: tensor<32769x65536xf32>) {
  // expected-error @+1 {{(C1) adds 2147549184 elements, more than 2147483648: words may overflow}}
  %r = titan.exact_sum %x : tensor<32769x65536xf32> to tensor<10xi64>
  return
}

// -----

func.func @exact_sum_C2(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C2) gives words of 'tensor<10xi64>'}}
  %r = titan.exact_sum %x : tensor<2x3xf32> to tensor<9xi64>
  return
}

// -----

func.func @exact_value_C1(%words: tensor<9xi64>) {
  // expected-error @+1 {{(C1) reads words of 'tensor<10xi64>'}}
  %r = titan.exact_value %words : tensor<9xi64> to tensor<f32>
  return
}

// -----

func.func @softmax_C1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) dim 2 is outside the rank 2}}
  %r = titan.softmax %x dim 2 : tensor<2x3xf32>
  return
}

// -----

func.func @log_softmax_C1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) dim -1 is outside the rank 2}}
  %r = titan.log_softmax %x dim -1 : tensor<2x3xf32>
  return
}

// -----

func.func @layer_norm_C1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) dims [2] are none, or not increasing within the rank 2}}
  %r, %m, %s = titan.layer_norm %x over [2] epsilon 1.0e-5 : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @layer_norm_C1_order(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) dims [1, 0] are none, or not increasing within the rank 2}}
  %r, %m, %s = titan.layer_norm %x over [1, 0] epsilon 1.0e-5 : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @layer_norm_C1_none(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) dims [] are none, or not increasing within the rank 2}}
  %r, %m, %s = titan.layer_norm %x over [] epsilon 1.0e-5 : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @layer_norm_C2(%x: tensor<2x3xf32>, %w: tensor<2xf32>) {
  // expected-error @+1 {{(C2) scale or bias 'tensor<2xf32>' for dimensions [1] of 'tensor<2x3xf32>'}}
  %r, %m, %s = titan.layer_norm %x scale %w over [1] epsilon 1.0e-5 : (tensor<2x3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @layer_norm_C2_apart(%x: tensor<2x3x4xf32>, %w: tensor<4x2xf32>) {
  // expected-error @+1 {{(C2) scale or bias 'tensor<4x2xf32>' for dimensions [0, 2] of 'tensor<2x3x4xf32>'}}
  %r, %m, %s = titan.layer_norm %x scale %w over [0, 2] epsilon 1.0e-5 : (tensor<2x3x4xf32>, tensor<4x2xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @layer_norm_C3(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C3) results do not match 'tensor<2x3xf32>' normalised over [1]}}
  %r, %m, %s = titan.layer_norm %x over [1] epsilon 1.0e-5 : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @dropout_C1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) p = 1.000000e+00 is outside [0, 1)}}
  %r = titan.dropout %x p 1.0 stream 1 : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @dropout_C2(%x: tensor<2x3xf32>, %seed: tensor<i64>) {
  // expected-error @+1 {{(C2) seed and step come together}}
  %r = titan.dropout %x p 0.5 stream 1 seed %seed : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @dropout_C2_base(%x: tensor<2x3xf32>, %i: index) {
  // expected-error @+1 {{(C2) base needs a window}}
  %r = titan.dropout %x p 0.5 stream 1 base %i : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @dropout_C3(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C3) [2, 3] is no window of}}
  %r = titan.dropout %x p 0.5 stream 1 {window = #titan.window<[8, 2], multiple = 1>} : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @dropout_C3_rank(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C3) [2, 3] is no window of}}
  %r = titan.dropout %x p 0.5 stream 1 {window = #titan.window<[8], multiple = 1>} : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @dropout_C4_positive(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C4) the window's multiple is 0}}
  %r = titan.dropout %x p 0.5 stream 1 {window = #titan.window<[8, 3], multiple = 0>} : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @dropout_C5(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C5) [0, 2] are not dimensions of a rank of 2, in ascending order}}
  %r = titan.dropout %x p 0.5 stream 1 shared [0, 2] : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @dropout_C5_order(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C5) [1, 1] are not dimensions}}
  %r = titan.dropout %x p 0.5 stream 1 shared [1, 1] : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

// The decisions are the window's elements, not those of the operand.
func.func @dropout_C3_shared(%x: tensor<2x3xf32>) {
  %0 = titan.dropout %x p 0.5 stream 1 shared [1] {window = #titan.window<[8, 1], multiple = 1>} : tensor<2x3xf32> to tensor<2x3xf32>
  // expected-error @+1 {{(C3) [1, 3] is no window of}}
  %1 = titan.dropout %x p 0.5 stream 1 shared [0] {window = #titan.window<[8, 1], multiple = 1>} : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @random_C2(%seed: tensor<i64>) {
  // expected-error @+1 {{(C2) seed and step come together}}
  %r = titan.random uniform stream 1 seed %seed : tensor<2x3xf32>
  return
}

// -----

func.func @random_C3() {
  // expected-error @+1 {{(C3) [2, 3] is no window of}}
  %r = titan.random uniform stream 1 {window = #titan.window<[8, 2], multiple = 1>} : tensor<2x3xf32>
  return
}

// -----

func.func @dropout_C4(%x: tensor<2x3xf32>, %i: index) {
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %0 = arith.muli %i, %c4 : index
  %base = arith.addi %0, %c6 : index
  // expected-error @+1 {{(C4) base is a multiple of 2, the window says 4}}
  %r = titan.dropout %x p 0.5 stream 1 base %base {window = #titan.window<[8, 3], multiple = 4>} : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @embedding_C2(%t: tensor<5x6xf32>, %i: tensor<4xi64>) {
  // expected-error @+1 {{(C2) padding 5 is no row of 'tensor<5x6xf32>'}}
  %r = titan.embedding %t, %i padding 5 : (tensor<5x6xf32>, tensor<4xi64>) -> tensor<4x6xf32>
  return
}

// -----

func.func @embedding_grad_C3(%d: tensor<4x6xf32>, %i: tensor<4xi64>) {
  // expected-error @+1 {{(C3) padding -1 is no row of 'tensor<5x6xf32>'}}
  %r = titan.embedding_grad %d, %i rows 5 padding -1 : (tensor<4x6xf32>, tensor<4xi64>) -> tensor<5x6xf32>
  return
}

// -----

// expected-error @+1 {{(C6) #titan.placement<["shard" = shard(2)]> cuts dimension 2 of 'tensor<4x2xf32>'}}
titan.state @w : tensor<4x2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(2)]>}

// -----

// expected-error @+2 {{mesh axis "shard" cuts twice}}
titan.state @w : tensor<4x2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0), "shard" = shard(1)]>}

// -----

func.func @cross_entropy_C1(%x: tensor<2x3xf32>, %t: tensor<3xi64>) {
  // expected-error @+1 {{(C1) targets 'tensor<3xi64>' and loss 'tensor<2xf32>' do not fit logits 'tensor<2x3xf32>'}}
  %r = titan.cross_entropy %x, %t ignore_index -100 label_smoothing 0.0 : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @cross_entropy_C2(%x: tensor<2x3xf32>, %t: tensor<2xi64>) {
  // expected-error @+1 {{(C2) label_smoothing 1.500000e+00 is outside [0, 1]}}
  %r = titan.cross_entropy %x, %t ignore_index -100 label_smoothing 1.5 : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @cross_entropy_grad_C1(%x: tensor<2x3xf32>, %t: tensor<2xi64>, %d: tensor<3xf32>) {
  // expected-error @+1 {{(C1) targets 'tensor<2xi64>' and loss 'tensor<3xf32>' do not fit logits 'tensor<2x3xf32>'}}
  %r = titan.cross_entropy_grad %x, %t, %d ignore_index -100 label_smoothing 0.0 : (tensor<2x3xf32>, tensor<2xi64>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @sgd_C1(%p: tensor<5xf32>, %v: tensor<5xf32>, %s: tensor<f32>, %apply: tensor<i1>) {
  // expected-error @+1 {{(C1) momentum buffer operand and result come together}}
  %r = titan.sgd %p, %p momentum_buffer %v lr %s weight_decay %s scale %s apply %apply {momentum = 0.9 : f64, nesterov = false, lr_scale = 1.0 : f64} : (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<5xf32>
  return
}

// -----

func.func @adam_types(%p: tensor<5xf32>, %g: tensor<4xf32>, %s: tensor<f32>, %t: tensor<i64>, %apply: tensor<i1>) {
  // expected-note @-1 {{prior use here}}
  // expected-error @+1 {{use of value '%g' expects different type than prior uses: 'tensor<5xf32>' vs 'tensor<4xf32>'}}
  %r:3 = titan.adam %p, %g, %p, %p lr %s weight_decay %s scale %s t %t apply %apply {beta1 = 0.9 : f64, beta2 = 0.99 : f64, epsilon = 1.0e-8 : f64, decoupled = false, lr_scale = 1.0 : f64} : tensor<5xf32>
  return
}

// -----

// expected-error @+1 {{'titan.state' of an argument is a symbol reference}}
func.func @tag_C1_state(%x: tensor<2xf32> {titan.state = "w"}) {
  return
}

// -----

// expected-error @+1 {{'titan.metric' of a result is a string}}
func.func @tag_C1_metric(%x: tensor<f32>) -> (tensor<f32> {titan.metric = @loss}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{'titan.gradient' is not a tag of an argument}}
func.func @tag_C1_gradient(%x: tensor<f32> {titan.gradient = @w}) {
  return
}

// -----

// expected-error @+1 {{'titan.gradient' of a result is @w, which the module does not declare}}
func.func @tag_C1_declared(%x: tensor<f32>) -> (tensor<f32> {titan.gradient = @w}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{'titan.state' of an argument is @tag_C1_function, which the module does not declare}}
func.func @tag_C1_function(%x: tensor<f32> {titan.state = @tag_C1_function}) {
  return
}

// -----

func.func @rms_norm_C1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) axis 2 is outside the rank 2}}
  %r, %s = titan.rms_norm %x axis 2 epsilon 1.0e-5 : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @rms_norm_C2(%x: tensor<2x3xf32>, %w: tensor<2xf32>) {
  // expected-error @+1 {{(C2) scale 'tensor<2xf32>' does not have the shape of dimensions 1 on of 'tensor<2x3xf32>'}}
  %r, %s = titan.rms_norm %x scale %w axis 1 epsilon 1.0e-5 : (tensor<2x3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  return
}

// -----

func.func @rms_norm_C3(%x: tensor<2x3xbf16>) {
  // expected-error @+1 {{(C3) results do not match 'tensor<2x3xbf16>' normalised from 1}}
  %r, %s = titan.rms_norm %x axis 1 epsilon 1.0e-5 : (tensor<2x3xbf16>) -> (tensor<2x3xbf16>, tensor<2xbf16>)
  return
}

// -----

func.func @gather_C1_dim(%x: tensor<5x3xf32>, %i: tensor<4xi64>) {
  // expected-error @+1 {{(C1) dim 2 is outside the rank 2}}
  %r = titan.gather %x, %i dim 2 : (tensor<5x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
  return
}

// -----

func.func @gather_C1_indices(%x: tensor<5x3xf32>, %i: tensor<4x2xi64>) {
  // expected-error @+1 {{(C1) indices 'tensor<4x2xi64>' do not have the leading dimensions of 'tensor<5x3xf32>', 0 among them}}
  %r = titan.gather %x, %i dim 0 : (tensor<5x3xf32>, tensor<4x2xi64>) -> tensor<4x2xf32>
  return
}

// -----

func.func @gather_C2(%x: tensor<5x3xf32>, %i: tensor<4xi64>) {
  // expected-error @+1 {{(C2) the result's type is 'tensor<4x3xf32>'}}
  %r = titan.gather %x, %i dim 0 : (tensor<5x3xf32>, tensor<4xi64>) -> tensor<5x3xf32>
  return
}

// -----

func.func @scatter_C1_dim(%x: tensor<5x3xf32>, %i: tensor<4xi64>, %u: tensor<4x3xf32>) {
  // expected-error @+1 {{(C1) dim 2 is outside the rank 2}}
  %r = titan.scatter none %x, %i, %u dim 2 : (tensor<5x3xf32>, tensor<4xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @scatter_C1_updates(%x: tensor<5x3xf32>, %i: tensor<4xi64>, %u: tensor<4x2xf32>) {
  // expected-error @+1 {{(C1) updates 'tensor<4x2xf32>' do not fit 'tensor<5x3xf32>' along 0}}
  %r = titan.scatter none %x, %i, %u dim 0 : (tensor<5x3xf32>, tensor<4xi64>, tensor<4x2xf32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @scatter_C1_element(%x: tensor<5x3xf32>, %i: tensor<4xi64>, %u: tensor<4x3xf64>) {
  // expected-error @+1 {{(C1) updates 'tensor<4x3xf64>' do not fit 'tensor<5x3xf32>' along 0}}
  %r = titan.scatter none %x, %i, %u dim 0 : (tensor<5x3xf32>, tensor<4xi64>, tensor<4x3xf64>) -> tensor<5x3xf32>
  return
}

// -----

func.func @scatter_C2(%x: tensor<5x3xf32>, %i: tensor<4x2xi64>, %u: tensor<4x3xf32>) {
  // expected-error @+1 {{(C2) indices 'tensor<4x2xi64>' do not have the leading dimensions of 'tensor<4x3xf32>', 0 among them}}
  %r = titan.scatter none %x, %i, %u dim 0 : (tensor<5x3xf32>, tensor<4x2xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @scatter_C2_dim(%x: tensor<5x3xf32>, %i: tensor<5xi64>, %u: tensor<5x4xf32>) {
  // expected-error @+1 {{(C2) indices 'tensor<5xi64>' do not have the leading dimensions of 'tensor<5x4xf32>', 1 among them}}
  %r = titan.scatter none %x, %i, %u dim 1 : (tensor<5x3xf32>, tensor<5xi64>, tensor<5x4xf32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @scatter_C3(%x: tensor<5x3xf32>, %i: tensor<4xi64>, %u: tensor<4x3xf32>) {
  // expected-error @+1 {{(C3) the result has the type 'tensor<5x3xf32>'}}
  %r = titan.scatter none %x, %i, %u dim 0 : (tensor<5x3xf32>, tensor<4xi64>, tensor<4x3xf32>) -> tensor<5x3xf64>
  return
}

// -----

func.func @scatter_C3_boolean(%x: tensor<5xi1>, %i: tensor<4xi64>, %u: tensor<4xi1>) {
  // expected-error @+1 {{(C3) truth values are replaced only}}
  %r = titan.scatter add %x, %i, %u dim 0 : (tensor<5xi1>, tensor<4xi64>, tensor<4xi1>) -> tensor<5xi1>
  return
}

// -----

func.func @top_k_C1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) 'tensor<2x4xf32>' are no elements of the rows of 'tensor<2x3xf32>'}}
  %v, %i = titan.top_k %x : (tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<2x4xi64>)
  return
}

// -----

func.func @top_k_C1_element(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) 'tensor<2x3xf64>' are no elements of the rows of 'tensor<2x3xf32>'}}
  %v, %i = titan.top_k %x : (tensor<2x3xf32>) -> (tensor<2x3xf64>, tensor<2x3xi64>)
  return
}

// -----

func.func @top_k_C2(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C2) indices 'tensor<2x3xi64>' do not have the shape of 'tensor<2x2xf32>'}}
  %v, %i = titan.top_k %x : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x3xi64>)
  return
}

// -----

func.func @embedding_C1_scalar(%table: tensor<f32>, %ids: tensor<2xi64>) {
  // expected-error @+1 {{(C1) the table has no rows}}
  %r = titan.embedding %table, %ids : (tensor<f32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @embedding_C1_shape(%table: tensor<5x3xf32>, %ids: tensor<2x4xi64>) {
  // expected-error @+1 {{(C1) the result's type is 'tensor<2x4x3xf32>'}}
  %r = titan.embedding %table, %ids : (tensor<5x3xf32>, tensor<2x4xi64>) -> tensor<2x4x5xf32>
  return
}

// -----

func.func @embedding_grad_C1_indices(%d: tensor<2x4x3xf32>, %ids: tensor<2x5xi64>) {
  // expected-error @+1 {{(C1) dresult 'tensor<2x4x3xf32>' does not begin with the dimensions of 'tensor<2x5xi64>'}}
  %r = titan.embedding_grad %d, %ids rows 7 : (tensor<2x4x3xf32>, tensor<2x5xi64>) -> tensor<7x3xf32>
  return
}

// -----

func.func @embedding_grad_C1_result(%d: tensor<2x4x3xbf16>, %ids: tensor<2x4xi64>) {
  // expected-error @+1 {{(C1) 'tensor<7x3xbf16>' is no gradient of 7 rows for 'tensor<2x4x3xbf16>'}}
  %r = titan.embedding_grad %d, %ids rows 7 : (tensor<2x4x3xbf16>, tensor<2x4xi64>) -> tensor<7x3xbf16>
  return
}

// -----

func.func @embedding_grad_C2(%d: tensor<2x4x3xf32>, %ids: tensor<2x4xi64>, %acc: tensor<6x3xf32>) {
  // expected-error @+1 {{(C2) acc 'tensor<6x3xf32>' is not 'tensor<7x3xf32>'}}
  %r = titan.embedding_grad %d, %ids acc %acc rows 7 : (tensor<2x4x3xf32>, tensor<2x4xi64>, tensor<6x3xf32>) -> tensor<7x3xf32>
  return
}

// -----

func.func @attention_C1_rank(%q: tensor<2x3x8xf32>) {
  // expected-error @+1 {{(C1) 'tensor<2x3x8xf32>', 'tensor<2x3x8xf32>' and 'tensor<2x3x8xf32>' are not of rank 4 and one element type}}
  %o, %l = titan.attention %q, %q, %q scale 1.0 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @attention_C1_groups(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x3x8xf32>) {
  // expected-error @+1 {{(C1) query 'tensor<2x3x4x8xf32>', key 'tensor<2x5x3x8xf32>' and value 'tensor<2x5x3x8xf32>' do not fit together}}
  %o, %l = titan.attention %q, %k, %k scale 1.0 : (tensor<2x3x4x8xf32>, tensor<2x5x3x8xf32>, tensor<2x5x3x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_C2(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %m: tensor<2x4x2x5xi1>) {
  // expected-error @+1 {{(C2) mask 'tensor<2x4x2x5xi1>' does not fit scores [2, 4, 3, 5]}}
  %o, %l = titan.attention %q, %k, %k mask %m scale 1.0 : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2x4x2x5xi1>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_C3(%q: tensor<2x3x4x8xbf16>, %k: tensor<2x5x2x8xbf16>) {
  // expected-error @+1 {{(C3) results are 'tensor<2x3x4x8xbf16>' and 'tensor<2x4x3xf32>'}}
  %o, %l = titan.attention %q, %k, %k scale 1.0 : (tensor<2x3x4x8xbf16>, tensor<2x5x2x8xbf16>, tensor<2x5x2x8xbf16>) -> (tensor<2x3x4x8xbf16>, tensor<2x4x3xbf16>)
  return
}

// -----

func.func @attention_C2_fill(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %m: tensor<2x1x3x5xf32>) {
  // expected-error @+1 {{(C2) fills scores with -1.000000e+09 : f64, which is a finite number beside a boolean mask}}
  %o, %l, %x = titan.attention %q, %k, %k mask %m scale 1.0 {fill = -1.0e9 : f64} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2x1x3x5xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_C3_no_largest(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %m: tensor<2x1x3x5xf32>) {
  // expected-error @+1 {{(C3) has a largest score of 'tensor<2x4x3xf32>' beside this mask}}
  %o, %l = titan.attention %q, %k, %k mask %m scale 1.0 : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2x1x3x5xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_C3_largest(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>) {
  // expected-error @+1 {{(C3) has no largest score of 'tensor<2x4x3xf32>' beside this mask}}
  %o, %l, %x = titan.attention %q, %k, %k scale 1.0 : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_C4(%q: tensor<2x3x4x8xf32>, %n: tensor<i64>) {
  // expected-error @+1 {{(C4) has a seed or a window, but p = 0}}
  %o, %l = titan.attention %q, %q, %q seed %n step %n scale 1.0 : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<i64>, tensor<i64>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_grad_C5(%q: tensor<2x3x4x8xf32>, %l: tensor<2x4x3xf32>, %d: tensor<2x3x4x4xf32>) {
  // expected-error @+1 {{(C5) adjoints do not have the types of their values}}
  %dq, %dk, %dv = titan.attention_grad %q, %q, %q result %q, %l, %d scale 1.0 : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x4x3xf32>, tensor<2x3x4x4xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>)
  return
}

// -----

func.func @rotary_C1(%x: tensor<2x3x4x8xf32>, %c: tensor<4x4xf32>) {
  // expected-error @+1 {{(C1) cos 'tensor<4x4xf32>' and sin 'tensor<4x4xf32>' do not fit 'tensor<2x3x4x8xf32>'}}
  %r = titan.rotary %x, %c, %c : (tensor<2x3x4x8xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @rotary_C2(%x: tensor<2x3x4x8xf32>, %c: tensor<3x5xf32>) {
  // expected-error @+1 {{(C2) rotates 10 of 8 elements}}
  %r = titan.rotary %x, %c, %c : (tensor<2x3x4x8xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @cross_entropy_C1_scalar(%x: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{(C1) logits have no class dimension}}
  %r = titan.cross_entropy %x, %t ignore_index -100 label_smoothing 0.0 : (tensor<f32>, tensor<i64>) -> tensor<f32>
  return
}

// -----

func.func @concat_C1_nothing() {
  // expected-error @+1 {{(C1) has no operands}}
  %r = titan.concat dim 0 : () -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{'titan.model_flops' is an i64 on a function, at least 0}}
func.func @attribute_model_flops() attributes {titan.model_flops = -1 : i64} {
  return
}

// -----

// expected-error @+1 {{'titan.model_flops' is an i64 on a function, at least 0}}
func.func @attribute_model_flops_type() attributes {titan.model_flops = 1.0 : f64} {
  return
}

// -----

func.func @convolution_C1_rank(%x: tensor<2x6x3xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+1 {{(C1) operand, kernel and result have one rank of 3 or more, found 3, 4 and 3}}
  %r = titan.convolution %x, %w strides [1] low [0] high [0] dilations [1] groups 1 : (tensor<2x6x3xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

func.func @convolution_C1_list(%x: tensor<2x6x3xf32>, %w: tensor<4x3x3xf32>) {
  // expected-error @+1 {{(C1) has 1 dimensions of space, and a list of 2}}
  %r = titan.convolution %x, %w strides [1] low [0, 0] high [0] dilations [1] groups 1 : (tensor<2x6x3xf32>, tensor<4x3x3xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

func.func @convolution_C1_signs(%x: tensor<2x6x3xf32>, %w: tensor<4x3x3xf32>) {
  // expected-error @+1 {{(C1) strides [0] and dilations [1] are positive, padding [0] and [0] is not negative}}
  %r = titan.convolution %x, %w strides [0] low [0] high [0] dilations [1] groups 1 : (tensor<2x6x3xf32>, tensor<4x3x3xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

func.func @convolution_C2(%x: tensor<2x6x3xf32>, %w: tensor<4x3x3xf32>) {
  // expected-error @+1 {{(C2) 2 groups do not divide 3 channels into a kernel of 3, and 4 into one of 4}}
  %r = titan.convolution %x, %w strides [1] low [0] high [0] dilations [1] groups 2 : (tensor<2x6x3xf32>, tensor<4x3x3xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

func.func @convolution_C3(%x: tensor<2x6x3xbf16>, %w: tensor<4x3x3xbf16>) {
  // expected-error @+1 {{(C3) 'bf16' and 'bf16' do not give 'bf16'}}
  %r = titan.convolution %x, %w strides [1] low [0] high [0] dilations [1] groups 1 : (tensor<2x6x3xbf16>, tensor<4x3x3xbf16>) -> tensor<2x4x4xbf16>
  return
}

// -----

func.func @convolution_C4_batch(%x: tensor<2x6x3xf32>, %w: tensor<4x3x3xf32>) {
  // expected-error @+1 {{(C4) batches of 2 and 3 differ}}
  %r = titan.convolution %x, %w strides [1] low [0] high [0] dilations [1] groups 1 : (tensor<2x6x3xf32>, tensor<4x3x3xf32>) -> tensor<3x4x4xf32>
  return
}

// -----

func.func @convolution_C4_window(%x: tensor<2x6x3xf32>, %w: tensor<4x3x3xf32>) {
  // expected-error @+1 {{(C4) a window of 9 is larger than the padded extent 8 of dimension 0 of space}}
  %r = titan.convolution %x, %w strides [1] low [1] high [1] dilations [4] groups 1 : (tensor<2x6x3xf32>, tensor<4x3x3xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

func.func @convolution_input_grad_C4(%d: tensor<2x3x4xf32>, %w: tensor<4x3x3xf32>) {
  // expected-error @+1 {{(C4) dimension 0 of space has 2 positions, not 3}}
  %r = titan.convolution_input_grad %d, %w strides [2] low [0] high [0] dilations [1] groups 1 : (tensor<2x3x4xf32>, tensor<4x3x3xf32>) -> tensor<2x6x3xf32>
  return
}

// -----

func.func @convolution_kernel_grad_C4(%x: tensor<2x6x3xf32>, %d: tensor<2x4x4xf32>, %a: tensor<4x3x2xf32>) {
  // expected-error @+1 {{(C4) acc has the result's type 'tensor<4x3x3xf32>'}}
  %r = titan.convolution_kernel_grad %x, %d acc %a strides [1] low [0] high [0] dilations [1] groups 1 : (tensor<2x6x3xf32>, tensor<2x4x4xf32>, tensor<4x3x2xf32>) -> tensor<4x3x3xf32>
  return
}

// -----

func.func @pool_C1_list(%x: tensor<2x6x3xf32>) {
  // expected-error @+1 {{(C1) has 3 dimensions, and a list of 1}}
  %r = titan.pool sum %x window [2] strides [1, 1, 1] low [0, 0, 0] high [0, 0, 0] dilations [1, 1, 1] : tensor<2x6x3xf32> to tensor<2x5x3xf32>
  return
}

// -----

func.func @pool_C1_signs(%x: tensor<2x6x3xf32>) {
  // expected-error @+1 {{(C1) windows [1, 2, 1], strides [1, 1, 1] and dilations [1, 1, 1] are positive, padding [0, -1, 0] and [0, 0, 0] is not negative}}
  %r = titan.pool sum %x window [1, 2, 1] strides [1, 1, 1] low [0, -1, 0] high [0, 0, 0] dilations [1, 1, 1] : tensor<2x6x3xf32> to tensor<2x5x3xf32>
  return
}

// -----

func.func @pool_C2_window(%x: tensor<2x6x3xf32>) {
  // expected-error @+1 {{(C2) a window of 7 is larger than the padded extent 6 of dimension 1}}
  %r = titan.pool sum %x window [1, 7, 1] strides [1, 1, 1] low [0, 0, 0] high [0, 0, 0] dilations [1, 1, 1] : tensor<2x6x3xf32> to tensor<2x5x3xf32>
  return
}

// -----

func.func @pool_C2_result(%x: tensor<2x6x3xf32>) {
  // expected-error @+1 {{(C2) dimension 1 has 3 windows, not 5}}
  %r = titan.pool sum %x window [1, 2, 1] strides [1, 2, 1] low [0, 0, 0] high [0, 0, 0] dilations [1, 1, 1] : tensor<2x6x3xf32> to tensor<2x5x3xf32>
  return
}

// -----

func.func @pool_C3_kind(%x: tensor<2x6x3xf32>) {
  // expected-error @+1 {{(C3) min is neither sum nor max}}
  %r = titan.pool min %x window [1, 2, 1] strides [1, 1, 1] low [0, 0, 0] high [0, 0, 0] dilations [1, 1, 1] : tensor<2x6x3xf32> to tensor<2x5x3xf32>
  return
}

// -----

func.func @pool_C3_padding(%x: tensor<2x6x3xf32>) {
  // expected-error @+1 {{(C3) window 3 of dimension 1 lies in the padding alone}}
  %r = titan.pool max %x window [1, 2, 1] strides [1, 2, 1] low [0, 0, 0] high [0, 2, 0] dilations [1, 1, 1] : tensor<2x6x3xf32> to tensor<2x4x3xf32>
  return
}

// -----

func.func @max_pool_grad_C3(%x: tensor<2x6x3xf32>, %d: tensor<2x5x3xbf16>) {
  // expected-error @+1 {{(C3) the adjoint of 'tensor<2x6x3xf32>' is not 'tensor<2x6x3xf32>', of 'bf16'}}
  %r = titan.max_pool_grad %x, %d window [1, 2, 1] strides [1, 1, 1] low [0, 0, 0] high [0, 0, 0] dilations [1, 1, 1] : (tensor<2x6x3xf32>, tensor<2x5x3xbf16>) -> tensor<2x6x3xf32>
  return
}

// -----

func.func @pool_C2_rank(%x: tensor<2x6x3xf32>) {
  // expected-error @+1 {{(C2) 'tensor<2x6x3xf32>' and 'tensor<2x5xf32>' differ in rank}}
  %r = titan.pool sum %x window [1, 2, 1] strides [1, 1, 1] low [0, 0, 0] high [0, 0, 0] dilations [1, 1, 1] : tensor<2x6x3xf32> to tensor<2x5xf32>
  return
}

// -----

func.func @batch_norm_C1(%x: tensor<1x4xf32>, %s: tensor<4xf32>) {
  // expected-error @+1 {{(C1) the statistics of 1 elements for each index of dimension 1}}
  %r, %m, %v = titan.batch_norm %x scale %s bias %s dim 1 epsilon 0.01 momentum 0.1 : (tensor<1x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<1x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @batch_norm_C2_running(%x: tensor<3x4xf32>, %s: tensor<4xf32>) {
  // expected-error @+1 {{(C2) running are a mean and a variance, found 1}}
  %r, %m, %v = titan.batch_norm %x scale %s bias %s running %s dim 1 epsilon 0.01 momentum 0.1 : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @batch_norm_C2_batches(%x: tensor<3x4xf32>, %s: tensor<4xf32>, %n: tensor<i64>) {
  %r, %m, %v = titan.batch_norm %x scale %s bias %s running %s, %s batches %n dim 1 epsilon 0.01 momentum 0.1 : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>)
  // expected-error @+1 {{(C2) counts the batches of no running statistics}}
  %r1, %m1, %v1 = titan.batch_norm %x scale %s bias %s batches %n dim 1 epsilon 0.01 momentum 0.1 : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @batch_norm_C2(%x: tensor<3x4xf32>, %s: tensor<3xf32>) {
  // expected-error @+1 {{(C2) 'tensor<3xf32>' for 4 channels}}
  %r, %m, %v = titan.batch_norm %x scale %s bias %s dim 1 epsilon 0.01 momentum 0.1 : (tensor<3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @batch_norm_C3(%x: tensor<3x4xbf16>, %s: tensor<4xf32>) {
  // expected-error @+1 {{(C3) results are 'tensor<3x4xbf16>' and two of 'tensor<4xf32>'}}
  %r, %m, %v = titan.batch_norm %x scale %s bias %s dim 1 epsilon 0.01 momentum 0.1 : (tensor<3x4xbf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xbf16>, tensor<4xbf16>, tensor<4xbf16>)
  return
}

// -----

func.func @recurrence_C1(%p: tensor<4x3x20xf32>, %r: tensor<20x4xf32>, %s: tensor<3x4xf32>) {
  // expected-error @+1 {{(C1) takes [T, B, ...] and weights of 4 row blocks, found 'tensor<4x3x20xf32>' and 'tensor<20x4xf32>'}}
  %y, %k:2 = titan.recurrence lstm %p, %r initial %s, %s order [0, 1, 2, 3] : (tensor<4x3x20xf32>, tensor<20x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> (tensor<4x3x4xf32>, tensor<4x3x20xf32>, tensor<4x3x4xf32>)
  return
}

// -----

func.func @recurrence_C1_columns(%p: tensor<4x3x5xf32>, %r: tensor<4x4xf32>, %s: tensor<3x4xf32>) {
  // expected-error @+1 {{(C1) 'tensor<4x4xf32>' does not belong to 'tensor<4x3x5xf32>'}}
  %y = titan.recurrence tanh %p, %r initial %s order [0] : (tensor<4x3x5xf32>, tensor<4x4xf32>, tensor<3x4xf32>) -> tensor<4x3x4xf32>
  return
}

// -----

func.func @recurrence_C2(%p: tensor<4x3x16xf32>, %r: tensor<16x4xf32>, %s: tensor<3x4xf32>) {
  // expected-error @+1 {{(C2) 4 row blocks are not in the order [0, 1, 1, 3]}}
  %y, %k:2 = titan.recurrence lstm %p, %r initial %s, %s order [0, 1, 1, 3] : (tensor<4x3x16xf32>, tensor<16x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> (tensor<4x3x4xf32>, tensor<4x3x16xf32>, tensor<4x3x4xf32>)
  return
}

// -----

func.func @recurrence_C2_candidate(%p: tensor<4x3x12xf32>, %r: tensor<12x4xf32>, %s: tensor<3x4xf32>) {
  // expected-error @+1 {{(C2) the rows of n are not the last ones: order [2, 1, 0]}}
  %y, %k:2 = titan.recurrence gru %p, %r initial %s order [2, 1, 0] : (tensor<4x3x12xf32>, tensor<12x4xf32>, tensor<3x4xf32>) -> (tensor<4x3x4xf32>, tensor<4x3x12xf32>, tensor<4x3x4xf32>)
  return
}

// -----

func.func @recurrence_C3(%p: tensor<4x3x16xf32>, %r: tensor<16x4xf32>, %s: tensor<3x4xf32>) {
  // expected-error @+1 {{(C3) initial is 'tensor<3x4xf32>', 'tensor<3x4xf32>', found 'tensor<3x4xf32>'}}
  %y, %k:2 = titan.recurrence lstm %p, %r initial %s order [0, 1, 2, 3] : (tensor<4x3x16xf32>, tensor<16x4xf32>, tensor<3x4xf32>) -> (tensor<4x3x4xf32>, tensor<4x3x16xf32>, tensor<4x3x4xf32>)
  return
}

// -----

func.func @recurrence_C3_bias(%p: tensor<4x3x4xbf16>, %r: tensor<4x4xbf16>, %s: tensor<3x4xf32>, %b: tensor<4xbf16>) {
  // expected-error @+1 {{(C3) bias is 'tensor<4xf32>', found 'tensor<4xbf16>'}}
  %y = titan.recurrence tanh %p, %r initial %s bias %b order [0] : (tensor<4x3x4xbf16>, tensor<4x4xbf16>, tensor<3x4xf32>, tensor<4xbf16>) -> tensor<4x3x4xf32>
  return
}

// -----

func.func @recurrence_C4(%p: tensor<4x3x4xbf16>, %r: tensor<4x4xbf16>, %s: tensor<3x4xf32>) {
  // expected-error @+1 {{(C4) result is 'tensor<4x3x4xf32>', found 'tensor<4x3x4xbf16>'}}
  %y = titan.recurrence tanh %p, %r initial %s order [0] : (tensor<4x3x4xbf16>, tensor<4x4xbf16>, tensor<3x4xf32>) -> tensor<4x3x4xbf16>
  return
}

// -----

func.func @recurrence_C4_kept(%p: tensor<4x3x12xf32>, %r: tensor<12x4xf32>, %s: tensor<3x4xf32>) {
  // expected-error @+1 {{(C4) kept is 'tensor<4x3x12xf32>', 'tensor<4x3x4xf32>', found 'tensor<4x3x12xf32>'}}
  %y, %k = titan.recurrence gru %p, %r initial %s order [0, 1, 2] : (tensor<4x3x12xf32>, tensor<12x4xf32>, tensor<3x4xf32>) -> (tensor<4x3x4xf32>, tensor<4x3x12xf32>)
  return
}

// -----

func.func @recurrence_grad_C1(%r: tensor<4x5xf32>, %s: tensor<3x4xf32>, %y: tensor<4x3x4xf32>) {
  // expected-error @+1 {{(C1) takes [T, B, ...] and weights of 1 row blocks, found 'tensor<4x3x4xf32>' and 'tensor<4x5xf32>'}}
  %d:2 = titan.recurrence_grad tanh %r initial %s result %y adjoint %y order [0] : (tensor<4x5xf32>, tensor<3x4xf32>, tensor<4x3x4xf32>, tensor<4x3x4xf32>) -> (tensor<4x3x4xf32>, tensor<3x4xf32>)
  return
}

// -----

func.func @recurrence_grad_C2(%r: tensor<4x4xf32>, %s: tensor<3x4xf32>, %y: tensor<4x3x4xf32>) {
  // expected-error @+1 {{(C2) 1 row blocks are not in the order [1]}}
  %d:2 = titan.recurrence_grad tanh %r initial %s result %y adjoint %y order [1] : (tensor<4x4xf32>, tensor<3x4xf32>, tensor<4x3x4xf32>, tensor<4x3x4xf32>) -> (tensor<4x3x4xf32>, tensor<3x4xf32>)
  return
}

// -----

func.func @recurrence_grad_C3(%r: tensor<4x4xf32>, %s: tensor<3x4xf32>, %y: tensor<4x3x4xf32>) {
  // expected-error @+1 {{(C3) has no cells}}
  %d:2 = titan.recurrence_grad tanh %r initial %s result %y adjoint %y cells %y order [0] : (tensor<4x4xf32>, tensor<3x4xf32>, tensor<4x3x4xf32>, tensor<4x3x4xf32>, tensor<4x3x4xf32>) -> (tensor<4x3x4xf32>, tensor<3x4xf32>)
  return
}

// -----

func.func @recurrence_grad_C4(%r: tensor<4x4xf32>, %s: tensor<3x4xf32>, %y: tensor<4x3x4xf32>) {
  // expected-error @+1 {{(C4) has 1 results behind dprojected, found 2}}
  %d:3 = titan.recurrence_grad tanh %r initial %s result %y adjoint %y order [0] : (tensor<4x4xf32>, tensor<3x4xf32>, tensor<4x3x4xf32>, tensor<4x3x4xf32>) -> (tensor<4x3x4xf32>, tensor<4x3x4xf32>, tensor<3x4xf32>)
  return
}

// -----

func.func @recurrence_grad_C4_type(%r: tensor<4x4xbf16>, %s: tensor<3x4xf32>, %y: tensor<4x3x4xf32>) {
  // expected-error @+1 {{(C4) dprojected is 'tensor<4x3x4xbf16>', found 'tensor<4x3x4xf32>'}}
  %d:2 = titan.recurrence_grad tanh %r initial %s result %y adjoint %y order [0] : (tensor<4x4xbf16>, tensor<3x4xf32>, tensor<4x3x4xf32>, tensor<4x3x4xf32>) -> (tensor<4x3x4xf32>, tensor<3x4xf32>)
  return
}
