// Every op of the titan dialect at least once: the round trip of its syntax, and the instances that its meaning
// (test/interpreter/references.json), its gradient and its sharding rule are tested on. One op a function.
// RUN: titan-opt %s --verify-roundtrip | titan-opt | FileCheck %s

// CHECK-LABEL: func.func @neg
// CHECK: titan.neg %{{.*}} : tensor<3x4xf32>
func.func @neg(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.neg %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @neg_integer(%x: tensor<6xi32>) -> tensor<6xi32> {
  %r = titan.neg %x : tensor<6xi32>
  return %r : tensor<6xi32>
}
func.func @abs(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.abs %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @sign(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.sign %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @floor(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.floor %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @ceil(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.ceil %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @round(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.round %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
// CHECK-LABEL: func.func @detach
// CHECK: titan.detach %{{.*}} : tensor<3x4xf32>
func.func @detach(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.detach %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @exp(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.exp %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @expm1(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.expm1 %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @log(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.log %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @log1p(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.log1p %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @sqrt(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.sqrt %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @rsqrt(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.rsqrt %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @sin(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.sin %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @cos(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.cos %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @atan(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.atan %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @tanh(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.tanh %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @sigmoid(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.sigmoid %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @erf(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.erf %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @relu(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.relu %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @silu(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.silu %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @softplus(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.softplus %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @not(%x: tensor<6xi1>) -> tensor<6xi1> {
  %r = titan.not %x : tensor<6xi1>
  return %r : tensor<6xi1>
}
// CHECK: titan.gelu erf %{{.*}} : tensor<3x4xf32>
func.func @gelu_erf(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.gelu erf %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @gelu_tanh(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.gelu tanh %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @leaky_relu(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.leaky_relu %x alpha 0.1 : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @elu(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.elu %x alpha 1.5 : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @hard_sigmoid(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.hard_sigmoid %x alpha 0.2 beta 0.5 : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @is_finite(%x: tensor<6xf32>) -> tensor<6xi1> {
  %r = titan.is_finite %x : tensor<6xf32>
  return %r : tensor<6xi1>
}
func.func @convert_float(%x: tensor<3x4xf32>) -> tensor<3x4xf64> {
  %r = titan.convert %x : tensor<3x4xf32> to tensor<3x4xf64>
  return %r : tensor<3x4xf64>
}
func.func @convert_to_integer(%x: tensor<6xf32>) -> tensor<6xi32> {
  %r = titan.convert %x : tensor<6xf32> to tensor<6xi32>
  return %r : tensor<6xi32>
}
func.func @convert_to_boolean(%x: tensor<6xf32>) -> tensor<6xi1> {
  %r = titan.convert %x : tensor<6xf32> to tensor<6xi1>
  return %r : tensor<6xi1>
}
func.func @convert_boolean(%x: tensor<6xi1>) -> tensor<6xf32> {
  %r = titan.convert %x : tensor<6xi1> to tensor<6xf32>
  return %r : tensor<6xf32>
}
func.func @convert_narrowing(%x: tensor<6xi64>) -> tensor<6xi8> {
  %r = titan.convert %x : tensor<6xi64> to tensor<6xi8>
  return %r : tensor<6xi8>
}

func.func @add(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.add %x, %y : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @add_integer(%x: tensor<6xi64>, %y: tensor<6xi64>) -> tensor<6xi64> {
  %r = titan.add %x, %y : tensor<6xi64>
  return %r : tensor<6xi64>
}
func.func @sub(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.sub %x, %y : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @mul(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.mul %x, %y : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @square(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.mul %x, %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @div(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.div %x, %y : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @div_integer(%x: tensor<6xi64>, %y: tensor<6xi64>) -> tensor<6xi64> {
  %r = titan.div %x, %y : tensor<6xi64>
  return %r : tensor<6xi64>
}
func.func @max(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.max %x, %y : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @min(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.min %x, %y : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @pow(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.pow %x, %y : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
// CHECK: titan.rem %{{.*}}, %{{.*}} : tensor<3x4xf32>
func.func @rem(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.rem %x, %y : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @and(%x: tensor<6xi1>, %y: tensor<6xi1>) -> tensor<6xi1> {
  %r = titan.and %x, %y : tensor<6xi1>
  return %r : tensor<6xi1>
}
func.func @or(%x: tensor<6xi1>, %y: tensor<6xi1>) -> tensor<6xi1> {
  %r = titan.or %x, %y : tensor<6xi1>
  return %r : tensor<6xi1>
}
// CHECK: titan.compare lt %{{.*}}, %{{.*}} : tensor<6xf32>
func.func @compare_lt(%x: tensor<6xf32>, %y: tensor<6xf32>) -> tensor<6xi1> {
  %r = titan.compare lt %x, %y : tensor<6xf32>
  return %r : tensor<6xi1>
}
func.func @compare_eq(%x: tensor<6xi64>, %y: tensor<6xi64>) -> tensor<6xi1> {
  %r = titan.compare eq %x, %y : tensor<6xi64>
  return %r : tensor<6xi1>
}
func.func @select(%c: tensor<3x4xi1>, %x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.select %c, %x, %y : tensor<3x4xi1>, tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

func.func @constant() -> tensor<2x3xf32> {
  %r = titan.constant dense<[[1.0, -2.5, 3.0], [0.0, 1.0e3, 7.0]]> : tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
func.func @constant_splat() -> tensor<4x2xf32> {
  %r = titan.constant dense<0.5> : tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}
func.func @barrier(%x: tensor<3x4xf32>, %y: tensor<2xf32>) -> (tensor<3x4xf32>, tensor<2xf32>) {
  %r:2 = titan.barrier %x, %y id 1 : tensor<3x4xf32>, tensor<2xf32>
  return %r#0, %r#1 : tensor<3x4xf32>, tensor<2xf32>
}
func.func @reshape(%x: tensor<4x6xf32>) -> tensor<2x12xf32> {
  %r = titan.reshape %x : tensor<4x6xf32> to tensor<2x12xf32>
  return %r : tensor<2x12xf32>
}
func.func @reshape_merge(%x: tensor<4x3x2xf32>) -> tensor<12x2xf32> {
  %r = titan.reshape %x : tensor<4x3x2xf32> to tensor<12x2xf32>
  return %r : tensor<12x2xf32>
}
// CHECK: titan.transpose %{{.*}} [2, 0, 1] : tensor<2x3x4xf32> to tensor<4x2x3xf32>
func.func @transpose(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %r = titan.transpose %x [2, 0, 1] : tensor<2x3x4xf32> to tensor<4x2x3xf32>
  return %r : tensor<4x2x3xf32>
}
func.func @broadcast(%x: tensor<4xf32>) -> tensor<2x4x3xf32> {
  %r = titan.broadcast %x [1] : tensor<4xf32> to tensor<2x4x3xf32>
  return %r : tensor<2x4x3xf32>
}
func.func @concat(%x: tensor<4x2xf32>, %y: tensor<4x3xf32>) -> tensor<4x5xf32> {
  %r = titan.concat %x, %y dim 1 : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}
func.func @slice(%x: tensor<4x9xf32>) -> tensor<4x3xf32> {
  %r = titan.slice %x offsets [0, 1] strides [1, 3] : tensor<4x9xf32> to tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
// CHECK: titan.reverse %{{.*}} [0, 2] : tensor<4x3x5xf32>
func.func @reverse(%x: tensor<4x3x5xf32>) -> tensor<4x3x5xf32> {
  %r = titan.reverse %x [0, 2] : tensor<4x3x5xf32>
  return %r : tensor<4x3x5xf32>
}
func.func @reverse_middle(%x: tensor<2x5x3xf64>) -> tensor<2x5x3xf64> {
  %r = titan.reverse %x [1] : tensor<2x5x3xf64>
  return %r : tensor<2x5x3xf64>
}
func.func @reverse_integer(%x: tensor<7xi64>) -> tensor<7xi64> {
  %r = titan.reverse %x [0] : tensor<7xi64>
  return %r : tensor<7xi64>
}
func.func @pad(%x: tensor<4x3xf32>) -> tensor<4x9xf32> {
  %r = titan.pad %x low [0, 1] interior [0, 2] {value = 2.5 : f64} : tensor<4x3xf32> to tensor<4x9xf32>
  return %r : tensor<4x9xf32>
}
func.func @iota() -> tensor<4x3xi64> {
  %r = titan.iota 1 : tensor<4x3xi64>
  return %r : tensor<4x3xi64>
}

func.func @contract(%x: tensor<4x6xf32>, %w: tensor<8x6xf32>) -> tensor<4x8xf32> {
  %r = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<4x6xf32>, tensor<8x6xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
// CHECK: titan.contract %{{.*}}, %{{.*}} acc %{{.*}} batch [] x [] contracting [0] x [0]
func.func @contract_acc(%x: tensor<4x6xf32>, %w: tensor<4x2xf32>, %a: tensor<6x2xf32>) -> tensor<6x2xf32> {
  %r = titan.contract %x, %w acc %a batch [] x [] contracting [0] x [0] : (tensor<4x6xf32>, tensor<4x2xf32>, tensor<6x2xf32>) -> tensor<6x2xf32>
  return %r : tensor<6x2xf32>
}
func.func @contract_batched(%x: tensor<3x2x4x6xf32>, %w: tensor<6x2x5x3xf32>) -> tensor<2x3x4x5xf32> {
  %r = titan.contract %x, %w batch [1, 0] x [1, 3] contracting [3] x [0] : (tensor<3x2x4x6xf32>, tensor<6x2x5x3xf32>) -> tensor<2x3x4x5xf32>
  return %r : tensor<2x3x4x5xf32>
}
func.func @contract_two(%x: tensor<4x2x3xf32>, %w: tensor<3x5x2xf32>) -> tensor<4x5xf32> {
  %r = titan.contract %x, %w batch [] x [] contracting [1, 2] x [2, 0] : (tensor<4x2x3xf32>, tensor<3x5x2xf32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// CHECK: titan.reduce sum %{{.*}} [0, 2] : tensor<4x3x2xf32> to tensor<3xf32>
func.func @reduce_sum(%x: tensor<4x3x2xf32>) -> tensor<3xf32> {
  %r = titan.reduce sum %x [0, 2] : tensor<4x3x2xf32> to tensor<3xf32>
  return %r : tensor<3xf32>
}
func.func @reduce_sum_integer(%x: tensor<6xi64>) -> tensor<i64> {
  %r = titan.reduce sum %x [0] : tensor<6xi64> to tensor<i64>
  return %r : tensor<i64>
}
func.func @reduce_max(%x: tensor<4x6xf32>) -> tensor<4xf32> {
  %r = titan.reduce max %x [1] : tensor<4x6xf32> to tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @reduce_min(%x: tensor<4x6xf32>) -> tensor<6xf32> {
  %r = titan.reduce min %x [0] : tensor<4x6xf32> to tensor<6xf32>
  return %r : tensor<6xf32>
}
func.func @reduce_prod(%x: tensor<4x3x2xf32>) -> tensor<3xf32> {
  %r = titan.reduce prod %x [0, 2] : tensor<4x3x2xf32> to tensor<3xf32>
  return %r : tensor<3xf32>
}
func.func @argmax(%x: tensor<4x6xf32>) -> tensor<4xi64> {
  %r = titan.argmax %x dim 1 : tensor<4x6xf32> to tensor<4xi64>
  return %r : tensor<4xi64>
}
func.func @exact_sum(%x: tensor<4x6xf32>) -> tensor<10xi64> {
  %r = titan.exact_sum %x : tensor<4x6xf32> to tensor<10xi64>
  return %r : tensor<10xi64>
}
func.func @exact_value(%words: tensor<10xi64>) -> tensor<f32> {
  %r = titan.exact_value %words : tensor<10xi64> to tensor<f32>
  return %r : tensor<f32>
}

func.func @softmax(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = titan.softmax %x dim 1 : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
func.func @softmax_first(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.softmax %x dim 0 : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func @log_softmax(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = titan.log_softmax %x dim 1 : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
func.func @layer_norm(%x: tensor<4x2x3xf32>, %s: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> (tensor<4x2x3xf32>, tensor<4xf32>, tensor<4xf32>) {
  %r, %mean, %rstd = titan.layer_norm %x scale %s bias %b over [1, 2] epsilon 1.0e-5 : (tensor<4x2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<4x2x3xf32>, tensor<4xf32>, tensor<4xf32>)
  return %r, %mean, %rstd : tensor<4x2x3xf32>, tensor<4xf32>, tensor<4xf32>
}
func.func @layer_norm_groups(%x: tensor<2x3x2x2x3xf32>) -> (tensor<2x3x2x2x3xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %r, %mean, %rstd = titan.layer_norm %x over [1, 2, 4] epsilon 1.0e-5 : (tensor<2x3x2x2x3xf32>) -> (tensor<2x3x2x2x3xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
  return %r, %mean, %rstd : tensor<2x3x2x2x3xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
func.func @layer_norm_middle(%x: tensor<2x3x4xf32>, %s: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<2x3x4xf32> {
  %r, %mean, %rstd = titan.layer_norm %x scale %s bias %b over [1] epsilon 1.0e-5 : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
  return %r : tensor<2x3x4xf32>
}
func.func @layer_norm_ends(%x: tensor<20x3x4xf32>, %s: tensor<20x4xf32>) -> (tensor<20x3x4xf32>, tensor<3xf32>) {
  %r, %mean, %rstd = titan.layer_norm %x scale %s over [0, 2] epsilon 1.0e-2 : (tensor<20x3x4xf32>, tensor<20x4xf32>) -> (tensor<20x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r, %rstd : tensor<20x3x4xf32>, tensor<3xf32>
}
func.func @layer_norm_bias(%x: tensor<4x6xf32>, %b: tensor<6xf32>) -> tensor<4x6xf32> {
  %r, %mean, %rstd = titan.layer_norm %x bias %b over [1] epsilon 1.0e-5 : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>)
  return %r : tensor<4x6xf32>
}
func.func @rms_norm(%x: tensor<4x2x3xf32>, %s: tensor<2x3xf32>) -> (tensor<4x2x3xf32>, tensor<4xf32>) {
  %r, %rstd = titan.rms_norm %x scale %s axis 1 epsilon 1.0e-5 : (tensor<4x2x3xf32>, tensor<2x3xf32>) -> (tensor<4x2x3xf32>, tensor<4xf32>)
  return %r, %rstd : tensor<4x2x3xf32>, tensor<4xf32>
}
func.func @rms_norm_plain(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r, %rstd = titan.rms_norm %x axis 1 epsilon 1.0e-5 : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4xf32>)
  return %r : tensor<4x6xf32>
}
// CHECK: titan.embedding %{{.*}}, %{{.*}} : (tensor<5x6xf32>, tensor<2x4xi64>) -> tensor<2x4x6xf32>
func.func @embedding(%t: tensor<5x6xf32>, %i: tensor<2x4xi64>) -> tensor<2x4x6xf32> {
  %r = titan.embedding %t, %i : (tensor<5x6xf32>, tensor<2x4xi64>) -> tensor<2x4x6xf32>
  return %r : tensor<2x4x6xf32>
}
func.func @embedding_scalars(%t: tensor<5xf32>, %i: tensor<4xi32>) -> tensor<4xf32> {
  %r = titan.embedding %t, %i : (tensor<5xf32>, tensor<4xi32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @embedding_grad(%d: tensor<2x4x6xf32>, %i: tensor<2x4xi64>) -> tensor<5x6xf32> {
  %r = titan.embedding_grad %d, %i rows 5 : (tensor<2x4x6xf32>, tensor<2x4xi64>) -> tensor<5x6xf32>
  return %r : tensor<5x6xf32>
}
// CHECK: titan.embedding %{{.*}}, %{{.*}} padding 1 : (tensor<5x6xf32>, tensor<2x4xi64>) -> tensor<2x4x6xf32>
func.func @embedding_padding(%t: tensor<5x6xf32>, %i: tensor<2x4xi64>) -> tensor<2x4x6xf32> {
  %r = titan.embedding %t, %i padding 1 : (tensor<5x6xf32>, tensor<2x4xi64>) -> tensor<2x4x6xf32>
  return %r : tensor<2x4x6xf32>
}
// CHECK: titan.embedding_grad %{{.*}}, %{{.*}} rows 5 padding 1
func.func @embedding_grad_padding(%d: tensor<2x4x6xf32>, %i: tensor<2x4xi64>) -> tensor<5x6xf32> {
  %r = titan.embedding_grad %d, %i rows 5 padding 1 : (tensor<2x4x6xf32>, tensor<2x4xi64>) -> tensor<5x6xf32>
  return %r : tensor<5x6xf32>
}
// CHECK: titan.embedding_grad %{{.*}}, %{{.*}} acc %{{.*}} rows 5
func.func @embedding_grad_acc(%d: tensor<2x4x6xf32>, %i: tensor<2x4xi64>, %a: tensor<5x6xf32>) -> tensor<5x6xf32> {
  %r = titan.embedding_grad %d, %i acc %a rows 5 : (tensor<2x4x6xf32>, tensor<2x4xi64>, tensor<5x6xf32>) -> tensor<5x6xf32>
  return %r : tensor<5x6xf32>
}
// CHECK: titan.gather %{{.*}}, %{{.*}} dim 1 : (tensor<2x5x3xf32>, tensor<2x4x3xi64>) -> tensor<2x4x3xf32>
func.func @gather(%x: tensor<2x5x3xf32>, %i: tensor<2x4x3xi64>) -> tensor<2x4x3xf32> {
  %r = titan.gather %x, %i dim 1 : (tensor<2x5x3xf32>, tensor<2x4x3xi64>) -> tensor<2x4x3xf32>
  return %r : tensor<2x4x3xf32>
}
func.func @gather_last(%x: tensor<3x5xf32>, %i: tensor<3x8xi32>) -> tensor<3x8xf32> {
  %r = titan.gather %x, %i dim 1 : (tensor<3x5xf32>, tensor<3x8xi32>) -> tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}
func.func @gather_shared(%x: tensor<2x5x3xf64>, %i: tensor<2x4xi64>) -> tensor<2x4x3xf64> {
  %r = titan.gather %x, %i dim 1 : (tensor<2x5x3xf64>, tensor<2x4xi64>) -> tensor<2x4x3xf64>
  return %r : tensor<2x4x3xf64>
}
func.func @gather_boolean(%x: tensor<6xi1>, %i: tensor<4xi64>) -> tensor<4xi1> {
  %r = titan.gather %x, %i dim 0 : (tensor<6xi1>, tensor<4xi64>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}
// CHECK: titan.scatter none %{{.*}}, %{{.*}}, %{{.*}} dim 1 : (tensor<2x5x3xf32>, tensor<2x4x3xi64>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32>
func.func @scatter_none(%x: tensor<2x5x3xf32>, %i: tensor<2x4x3xi64>, %u: tensor<2x4x3xf32>) -> tensor<2x5x3xf32> {
  %r = titan.scatter none %x, %i, %u dim 1 : (tensor<2x5x3xf32>, tensor<2x4x3xi64>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32>
  return %r : tensor<2x5x3xf32>
}
func.func @scatter_add(%x: tensor<2x5x3xf32>, %i: tensor<2x4x3xi64>, %u: tensor<2x4x3xf32>) -> tensor<2x5x3xf32> {
  %r = titan.scatter add %x, %i, %u dim 1 : (tensor<2x5x3xf32>, tensor<2x4x3xi64>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32>
  return %r : tensor<2x5x3xf32>
}
func.func @scatter_mul(%x: tensor<2x5x3xf32>, %i: tensor<2x4x3xi64>, %u: tensor<2x4x3xf32>) -> tensor<2x5x3xf32> {
  %r = titan.scatter mul %x, %i, %u dim 1 : (tensor<2x5x3xf32>, tensor<2x4x3xi64>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32>
  return %r : tensor<2x5x3xf32>
}
func.func @scatter_max(%x: tensor<2x5x3xf32>, %i: tensor<2x4x3xi64>, %u: tensor<2x4x3xf32>) -> tensor<2x5x3xf32> {
  %r = titan.scatter max %x, %i, %u dim 1 : (tensor<2x5x3xf32>, tensor<2x4x3xi64>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32>
  return %r : tensor<2x5x3xf32>
}
func.func @scatter_min(%x: tensor<2x5x3xf32>, %i: tensor<2x4x3xi64>, %u: tensor<2x4x3xf32>) -> tensor<2x5x3xf32> {
  %r = titan.scatter min %x, %i, %u dim 1 : (tensor<2x5x3xf32>, tensor<2x4x3xi64>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32>
  return %r : tensor<2x5x3xf32>
}
func.func @scatter_rows(%x: tensor<5x3xf32>, %i: tensor<4xi64>, %u: tensor<4x3xf32>) -> tensor<5x3xf32> {
  %r = titan.scatter none %x, %i, %u dim 0 : (tensor<5x3xf32>, tensor<4xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
  return %r : tensor<5x3xf32>
}
func.func @scatter_rows_add(%x: tensor<5x3xf64>, %i: tensor<4xi32>, %u: tensor<4x3xf64>) -> tensor<5x3xf64> {
  %r = titan.scatter add %x, %i, %u dim 0 : (tensor<5x3xf64>, tensor<4xi32>, tensor<4x3xf64>) -> tensor<5x3xf64>
  return %r : tensor<5x3xf64>
}
func.func @scatter_shared(%x: tensor<2x5x3xf32>, %i: tensor<2x4xi64>, %u: tensor<2x4x3xf32>) -> tensor<2x5x3xf32> {
  %r = titan.scatter mul %x, %i, %u dim 1 : (tensor<2x5x3xf32>, tensor<2x4xi64>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32>
  return %r : tensor<2x5x3xf32>
}
func.func @scatter_integer(%x: tensor<6xi64>, %i: tensor<4xi64>, %u: tensor<4xi64>) -> tensor<6xi64> {
  %r = titan.scatter add %x, %i, %u dim 0 : (tensor<6xi64>, tensor<4xi64>, tensor<4xi64>) -> tensor<6xi64>
  return %r : tensor<6xi64>
}
func.func @scatter_boolean(%x: tensor<6xi1>, %i: tensor<4xi64>, %u: tensor<4xi1>) -> tensor<6xi1> {
  %r = titan.scatter none %x, %i, %u dim 0 : (tensor<6xi1>, tensor<4xi64>, tensor<4xi1>) -> tensor<6xi1>
  return %r : tensor<6xi1>
}
// CHECK: titan.top_k %{{.*}} : (tensor<2x3x7xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xi64>)
func.func @top_k(%x: tensor<2x3x7xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xi64>) {
  %v, %i = titan.top_k %x : (tensor<2x3x7xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xi64>)
  return %v, %i : tensor<2x3x4xf32>, tensor<2x3x4xi64>
}
// CHECK: titan.top_k %{{.*}} smallest : (tensor<4x6xf64>) -> (tensor<4x6xf64>, tensor<4x6xi64>)
func.func @top_k_smallest(%x: tensor<4x6xf64>) -> (tensor<4x6xf64>, tensor<4x6xi64>) {
  %v, %i = titan.top_k %x smallest : (tensor<4x6xf64>) -> (tensor<4x6xf64>, tensor<4x6xi64>)
  return %v, %i : tensor<4x6xf64>, tensor<4x6xi64>
}
func.func @top_k_integer(%x: tensor<9xi32>) -> (tensor<5xi32>, tensor<5xi64>) {
  %v, %i = titan.top_k %x : (tensor<9xi32>) -> (tensor<5xi32>, tensor<5xi64>)
  return %v, %i : tensor<5xi32>, tensor<5xi64>
}
// CHECK: titan.attention %{{.*}}, %{{.*}}, %{{.*}} scale 7.500000e-01 :
func.func @attention(%q: tensor<2x4x4x3xf32>, %k: tensor<2x5x2x3xf32>, %v: tensor<2x5x2x2xf32>) -> (tensor<2x4x4x2xf32>, tensor<2x4x4xf32>) {
  %r, %lse = titan.attention %q, %k, %v scale 0.75
      : (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>) -> (tensor<2x4x4x2xf32>, tensor<2x4x4xf32>)
  return %r, %lse : tensor<2x4x4x2xf32>, tensor<2x4x4xf32>
}
// CHECK: titan.attention {{.*}} scale 7.500000e-01 causal :
func.func @attention_causal(%q: tensor<2x4x2x3xf32>, %k: tensor<2x4x2x3xf32>, %v: tensor<2x4x2x3xf32>) -> (tensor<2x4x2x3xf32>, tensor<2x2x4xf32>) {
  %r, %lse = titan.attention %q, %k, %v scale 0.75 causal
      : (tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>) -> (tensor<2x4x2x3xf32>, tensor<2x2x4xf32>)
  return %r, %lse : tensor<2x4x2x3xf32>, tensor<2x2x4xf32>
}
func.func @attention_causal_more_keys(%q: tensor<1x3x2x2xf32>, %k: tensor<1x5x1x2xf32>, %v: tensor<1x5x1x2xf32>) -> tensor<1x3x2x2xf32> {
  %r, %lse = titan.attention %q, %k, %v scale 0.75 causal
      : (tensor<1x3x2x2xf32>, tensor<1x5x1x2xf32>, tensor<1x5x1x2xf32>) -> (tensor<1x3x2x2xf32>, tensor<1x2x3xf32>)
  return %r : tensor<1x3x2x2xf32>
}
func.func @attention_causal_more_queries(%q: tensor<1x5x2x2xf32>, %k: tensor<1x3x1x2xf32>, %v: tensor<1x3x1x2xf32>) -> tensor<1x5x2x2xf32> {
  %r, %lse = titan.attention %q, %k, %v scale 0.75 causal
      : (tensor<1x5x2x2xf32>, tensor<1x3x1x2xf32>, tensor<1x3x1x2xf32>) -> (tensor<1x5x2x2xf32>, tensor<1x2x5xf32>)
  return %r : tensor<1x5x2x2xf32>
}
// CHECK: titan.attention {{.*}} mask %{{.*}} scale
func.func @attention_mask(%q: tensor<2x4x4x3xf32>, %k: tensor<2x5x2x3xf32>, %v: tensor<2x5x2x2xf32>, %m: tensor<2x1x4x5xi1>) -> (tensor<2x4x4x2xf32>, tensor<2x4x4xf32>) {
  %r, %lse = titan.attention %q, %k, %v mask %m scale 0.75
      : (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>, tensor<2x1x4x5xi1>) -> (tensor<2x4x4x2xf32>, tensor<2x4x4xf32>)
  return %r, %lse : tensor<2x4x4x2xf32>, tensor<2x4x4xf32>
}
func.func @attention_bias(%q: tensor<2x3x2x3xf32>, %k: tensor<2x4x2x3xf32>, %v: tensor<2x4x2x2xf32>, %m: tensor<1x2x1x4xf32>) -> tensor<2x3x2x2xf32> {
  %r, %lse, %max = titan.attention %q, %k, %v mask %m scale 0.75 causal
      : (tensor<2x3x2x3xf32>, tensor<2x4x2x3xf32>, tensor<2x4x2x2xf32>, tensor<1x2x1x4xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x2x3xf32>, tensor<2x2x3xf32>)
  return %r : tensor<2x3x2x2xf32>
}
func.func @attention_bias_dropout(%q: tensor<2x3x2x3xf32>, %k: tensor<2x4x1x3xf32>, %v: tensor<2x4x1x2xf32>, %m: tensor<2x1x3x4xf32>) -> tensor<2x3x2x2xf32> {
  %r, %lse, %max = titan.attention %q, %k, %v mask %m scale 0.75 causal {p = 0.25 : f64, stream = 9 : i64}
      : (tensor<2x3x2x3xf32>, tensor<2x4x1x3xf32>, tensor<2x4x1x2xf32>, tensor<2x1x3x4xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x2x3xf32>, tensor<2x2x3xf32>)
  return %r : tensor<2x3x2x2xf32>
}
func.func @attention_low(%q: tensor<2x4x4x3xf32>, %k: tensor<2x5x2x3xf32>, %v: tensor<2x5x2x2xf32>, %m: tensor<2x1x4x5xf32>) -> (tensor<2x4x4x2xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>) {
  %r, %lse, %max = titan.attention %q, %k, %v mask %m scale 0.75
      : (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>, tensor<2x1x4x5xf32>) -> (tensor<2x4x4x2xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>)
  return %r, %lse, %max : tensor<2x4x4x2xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>
}
// CHECK: titan.attention {{.*}} mask %{{.*}} scale 7.500000e-01 {fill = -1.000000e+09 : f64} :
func.func @attention_fill(%q: tensor<2x4x4x3xf32>, %k: tensor<2x5x2x3xf32>, %v: tensor<2x5x2x2xf32>, %m: tensor<2x1x4x5xi1>) -> (tensor<2x4x4x2xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>) {
  %r, %lse, %max = titan.attention %q, %k, %v mask %m scale 0.75 {fill = -1.0e9 : f64}
      : (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>, tensor<2x1x4x5xi1>) -> (tensor<2x4x4x2xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>)
  return %r, %lse, %max : tensor<2x4x4x2xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>
}
func.func @attention_dropout(%q: tensor<2x4x4x3xf32>, %k: tensor<2x5x2x3xf32>, %v: tensor<2x5x2x2xf32>) -> tensor<2x4x4x2xf32> {
  %r, %lse = titan.attention %q, %k, %v scale 0.75 {p = 0.25 : f64, stream = 9 : i64}
      : (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>) -> (tensor<2x4x4x2xf32>, tensor<2x4x4xf32>)
  return %r : tensor<2x4x4x2xf32>
}
func.func @attention_grad(%q: tensor<2x4x4x3xf32>, %k: tensor<2x5x2x3xf32>, %v: tensor<2x5x2x2xf32>, %y: tensor<2x4x4x2xf32>, %l: tensor<2x4x4xf32>, %d: tensor<2x4x4x2xf32>) -> (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>) {
  %dq, %dk, %dv = titan.attention_grad %q, %k, %v result %y, %l, %d scale 0.75
      : (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>, tensor<2x4x4x2xf32>, tensor<2x4x4xf32>, tensor<2x4x4x2xf32>) -> (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>)
  return %dq, %dk, %dv : tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>
}
func.func @attention_grad_causal(%q: tensor<2x4x2x3xf32>, %k: tensor<2x4x2x3xf32>, %v: tensor<2x4x2x3xf32>, %y: tensor<2x4x2x3xf32>, %l: tensor<2x2x4xf32>, %d: tensor<2x4x2x3xf32>) -> (tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>) {
  %dq, %dk, %dv = titan.attention_grad %q, %k, %v result %y, %l, %d scale 0.75 causal
      : (tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>, tensor<2x2x4xf32>, tensor<2x4x2x3xf32>) -> (tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>)
  return %dq, %dk, %dv : tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>
}
func.func @attention_grad_mask(%q: tensor<2x4x4x3xf32>, %k: tensor<2x5x2x3xf32>, %v: tensor<2x5x2x2xf32>, %y: tensor<2x4x4x2xf32>, %l: tensor<2x4x4xf32>, %d: tensor<2x4x4x2xf32>, %m: tensor<2x1x4x5xi1>) -> (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>) {
  %dq, %dk, %dv = titan.attention_grad %q, %k, %v result %y, %l, %d mask %m scale 0.75
      : (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>, tensor<2x4x4x2xf32>, tensor<2x4x4xf32>, tensor<2x4x4x2xf32>, tensor<2x1x4x5xi1>) -> (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>)
  return %dq, %dk, %dv : tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>
}
func.func @attention_grad_low(%q: tensor<2x4x4x3xf32>, %k: tensor<2x5x2x3xf32>, %v: tensor<2x5x2x2xf32>, %y: tensor<2x4x4x2xf32>, %l: tensor<2x4x4xf32>, %x: tensor<2x4x4xf32>, %d: tensor<2x4x4x2xf32>, %m: tensor<2x1x4x5xf32>) -> (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>) {
  %dq, %dk, %dv = titan.attention_grad %q, %k, %v result %y, %l, %d largest %x mask %m scale 0.75
      : (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>, tensor<2x4x4x2xf32>, tensor<2x4x4xf32>, tensor<2x4x4x2xf32>, tensor<2x4x4xf32>, tensor<2x1x4x5xf32>) -> (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>)
  return %dq, %dk, %dv : tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>
}
func.func @attention_grad_fill(%q: tensor<2x4x4x3xf32>, %k: tensor<2x5x2x3xf32>, %v: tensor<2x5x2x2xf32>, %y: tensor<2x4x4x2xf32>, %l: tensor<2x4x4xf32>, %x: tensor<2x4x4xf32>, %d: tensor<2x4x4x2xf32>, %m: tensor<2x1x4x5xi1>) -> (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>) {
  %dq, %dk, %dv = titan.attention_grad %q, %k, %v result %y, %l, %d largest %x mask %m scale 0.75 {fill = -1.0e9 : f64}
      : (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>, tensor<2x4x4x2xf32>, tensor<2x4x4xf32>, tensor<2x4x4x2xf32>, tensor<2x4x4xf32>, tensor<2x1x4x5xi1>) -> (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>)
  return %dq, %dk, %dv : tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>
}
func.func @attention_grad_dropout(%q: tensor<2x4x4x3xf32>, %k: tensor<2x5x2x3xf32>, %v: tensor<2x5x2x2xf32>, %y: tensor<2x4x4x2xf32>, %l: tensor<2x4x4xf32>, %d: tensor<2x4x4x2xf32>) -> (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>) {
  %dq, %dk, %dv = titan.attention_grad %q, %k, %v result %y, %l, %d scale 0.75 {p = 0.25 : f64, stream = 9 : i64}
      : (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>, tensor<2x4x4x2xf32>, tensor<2x4x4xf32>, tensor<2x4x4x2xf32>) -> (tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>)
  return %dq, %dk, %dv : tensor<2x4x4x3xf32>, tensor<2x5x2x3xf32>, tensor<2x5x2x2xf32>
}
func.func @rotary(%x: tensor<2x3x2x6xf32>, %c: tensor<3x2xf32>, %s: tensor<3x2xf32>) -> tensor<2x3x2x6xf32> {
  %r = titan.rotary %x, %c, %s : (tensor<2x3x2x6xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<2x3x2x6xf32>
  return %r : tensor<2x3x2x6xf32>
}
// CHECK: titan.rotary %{{.*}}, %{{.*}}, %{{.*}} interleaved :
func.func @rotary_interleaved(%x: tensor<2x3x2x6xf32>, %c: tensor<2x3x3xf32>, %s: tensor<2x3x3xf32>) -> tensor<2x3x2x6xf32> {
  %r = titan.rotary %x, %c, %s interleaved : (tensor<2x3x2x6xf32>, tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x2x6xf32>
  return %r : tensor<2x3x2x6xf32>
}
// CHECK: titan.dropout %{{.*}} p 2.500000e-01 stream 7
func.func @dropout(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = titan.dropout %x p 0.25 stream 7 : tensor<4x6xf32> to tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
// CHECK: titan.dropout %{{.*}} seed %{{.*}} step %{{.*}} base %{{.*}} {window = #titan.window<[8, 6], multiple = 24>}
func.func @dropout_window(%x: tensor<4x6xf32>, %seed: tensor<i64>, %step: tensor<i64>, %i: index) -> tensor<4x6xf32> {
  %c24 = arith.constant 24 : index
  %base = arith.muli %i, %c24 : index
  %r = titan.dropout %x p 0.25 stream 7 seed %seed step %step base %base
      {window = #titan.window<[8, 6], multiple = 24>} : tensor<4x6xf32> to tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// CHECK: titan.dropout %{{.*}} p 2.500000e-01 stream 7 shared [1, 3] : tensor<4x2x6x3xf32>
func.func @dropout_shared(%x: tensor<4x2x6x3xf32>) -> tensor<4x2x6x3xf32> {
  %r = titan.dropout %x p 0.25 stream 7 shared [1, 3] : tensor<4x2x6x3xf32> to tensor<4x2x6x3xf32>
  return %r : tensor<4x2x6x3xf32>
}
func.func @dropout_shared_window(%x: tensor<4x6x2xf32>, %seed: tensor<i64>, %step: tensor<i64>, %i: index) -> tensor<4x6x2xf32> {
  %c4 = arith.constant 4 : index
  %base = arith.muli %i, %c4 : index
  %r = titan.dropout %x p 0.25 stream 7 shared [1, 2] seed %seed step %step base %base
      {window = #titan.window<[8, 1, 1], multiple = 4>} : tensor<4x6x2xf32> to tensor<4x6x2xf32>
  return %r : tensor<4x6x2xf32>
}
// CHECK: titan.random {{ *}}uniform stream 7 : tensor<4x6xf32>
func.func @random_uniform() -> tensor<4x6xf32> {
  %r = titan.random uniform stream 7 : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
func.func @random_normal() -> tensor<4x7xf32> {
  %r = titan.random normal stream 7 : tensor<4x7xf32>
  return %r : tensor<4x7xf32>
}
func.func @random_normal_f64() -> tensor<5xf64> {
  %r = titan.random normal stream 7 : tensor<5xf64>
  return %r : tensor<5xf64>
}
// CHECK: titan.random {{ *}}normal stream 7 seed %{{.*}} step %{{.*}} base %{{.*}} {window = #titan.window<[8, 7], multiple = 28>}
func.func @random_window(%seed: tensor<i64>, %step: tensor<i64>, %i: index) -> tensor<4x7xf32> {
  %c28 = arith.constant 28 : index
  %base = arith.muli %i, %c28 : index
  %r = titan.random normal stream 7 seed %seed step %step base %base {window = #titan.window<[8, 7], multiple = 28>} : tensor<4x7xf32>
  return %r : tensor<4x7xf32>
}

func.func @cross_entropy(%x: tensor<4x6xf32>, %t: tensor<4xi64>) -> tensor<4xf32> {
  %r = titan.cross_entropy %x, %t ignore_index -100 label_smoothing 0.0 : (tensor<4x6xf32>, tensor<4xi64>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @cross_entropy_smoothing(%x: tensor<4x2x6xf32>, %t: tensor<4x2xi64>) -> tensor<4x2xf32> {
  %r = titan.cross_entropy %x, %t ignore_index 0 label_smoothing 0.1 : (tensor<4x2x6xf32>, tensor<4x2xi64>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}
func.func @cross_entropy_grad(%x: tensor<4x6xf32>, %t: tensor<4xi64>, %d: tensor<4xf32>) -> tensor<4x6xf32> {
  %r = titan.cross_entropy_grad %x, %t, %d ignore_index -100 label_smoothing 0.1 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
func.func @bce_with_logits(%x: tensor<3x4xf32>, %t: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = titan.bce_with_logits %x, %t : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// CHECK: titan.schedule cosine %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}
func.func @schedule_cosine(%s: tensor<i64>, %lr: tensor<f32>, %w: tensor<i64>, %n: tensor<i64>, %m: tensor<f32>) -> tensor<f32> {
  %r = titan.schedule cosine %s, %lr, %w, %n, %m
  return %r : tensor<f32>
}
func.func @schedule_linear(%s: tensor<i64>, %lr: tensor<f32>, %w: tensor<i64>, %n: tensor<i64>, %m: tensor<f32>) -> tensor<f32> {
  %r = titan.schedule linear %s, %lr, %w, %n, %m
  return %r : tensor<f32>
}
func.func @schedule_wsd(%s: tensor<i64>, %lr: tensor<f32>, %w: tensor<i64>, %n: tensor<i64>, %m: tensor<f32>) -> tensor<f32> {
  %r = titan.schedule wsd %s, %lr, %w, %n, %m
  return %r : tensor<f32>
}
func.func @schedule_constant(%s: tensor<i64>, %lr: tensor<f32>, %w: tensor<i64>, %n: tensor<i64>, %m: tensor<f32>) -> tensor<f32> {
  %r = titan.schedule constant %s, %lr, %w, %n, %m
  return %r : tensor<f32>
}
func.func @sgd(%p: tensor<5xf32>, %g: tensor<5xf32>, %lr: tensor<f32>, %wd: tensor<f32>, %scale: tensor<f32>, %apply: tensor<i1>) -> tensor<5xf32> {
  %r = titan.sgd %p, %g lr %lr weight_decay %wd scale %scale apply %apply {momentum = 0.0 : f64, nesterov = false, lr_scale = 0.5 : f64} : (tensor<5xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}
func.func @sgd_momentum(%p: tensor<5xf32>, %g: tensor<5xf32>, %v: tensor<5xf32>, %lr: tensor<f32>, %wd: tensor<f32>, %scale: tensor<f32>, %apply: tensor<i1>) -> (tensor<5xf32>, tensor<5xf32>) {
  %r:2 = titan.sgd %p, %g momentum_buffer %v lr %lr weight_decay %wd scale %scale apply %apply {momentum = 0.9 : f64, nesterov = false, lr_scale = 1.0 : f64} : (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<5xf32>, tensor<5xf32>)
  return %r#0, %r#1 : tensor<5xf32>, tensor<5xf32>
}
func.func @sgd_nesterov(%p: tensor<5xf32>, %g: tensor<5xf32>, %v: tensor<5xf32>, %lr: tensor<f32>, %wd: tensor<f32>, %scale: tensor<f32>, %apply: tensor<i1>) -> (tensor<5xf32>, tensor<5xf32>) {
  %r:2 = titan.sgd %p, %g momentum_buffer %v lr %lr weight_decay %wd scale %scale apply %apply {momentum = 0.9 : f64, nesterov = true, lr_scale = 1.0 : f64} : (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<5xf32>, tensor<5xf32>)
  return %r#0, %r#1 : tensor<5xf32>, tensor<5xf32>
}
func.func @adam(%p: tensor<5xf32>, %g: tensor<5xf32>, %m: tensor<5xf32>, %v: tensor<5xf32>, %lr: tensor<f32>, %wd: tensor<f32>, %scale: tensor<f32>, %t: tensor<i64>, %apply: tensor<i1>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %r:3 = titan.adam %p, %g, %m, %v lr %lr weight_decay %wd scale %scale t %t apply %apply {beta1 = 0.9 : f64, beta2 = 0.99 : f64, epsilon = 1.0e-8 : f64, decoupled = false, lr_scale = 1.0 : f64} : tensor<5xf32>
  return %r#0, %r#1, %r#2 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
}
func.func @adamw(%p: tensor<5xf32>, %g: tensor<5xf32>, %m: tensor<5xf32>, %v: tensor<5xf32>, %lr: tensor<f32>, %wd: tensor<f32>, %scale: tensor<f32>, %t: tensor<i64>, %apply: tensor<i1>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %r:3 = titan.adam %p, %g, %m, %v lr %lr weight_decay %wd scale %scale t %t apply %apply {beta1 = 0.9 : f64, beta2 = 0.99 : f64, epsilon = 1.0e-8 : f64, decoupled = true, lr_scale = 2.0 : f64} : tensor<5xf32>
  return %r#0, %r#1, %r#2 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
}
// CHECK: titan.convolution %{{.*}}, %{{.*}} strides [2, 1] low [1, 0] high [1, 1] dilations [1, 2] groups 1 :
func.func @convolution(%x: tensor<2x5x6x3xf32>, %w: tensor<4x3x2x3xf32>) -> tensor<2x3x5x4xf32> {
  %r = titan.convolution %x, %w strides [2, 1] low [1, 0] high [1, 1] dilations [1, 2] groups 1
      : (tensor<2x5x6x3xf32>, tensor<4x3x2x3xf32>) -> tensor<2x3x5x4xf32>
  return %r : tensor<2x3x5x4xf32>
}
// CHECK: titan.convolution_input_grad %{{.*}}, %{{.*}} strides [2, 1] low [1, 0] high [1, 1] dilations [1, 2] groups 1 :
func.func @convolution_input_grad(%d: tensor<2x3x5x4xf32>, %w: tensor<4x3x2x3xf32>) -> tensor<2x5x6x3xf32> {
  %r = titan.convolution_input_grad %d, %w strides [2, 1] low [1, 0] high [1, 1] dilations [1, 2] groups 1
      : (tensor<2x3x5x4xf32>, tensor<4x3x2x3xf32>) -> tensor<2x5x6x3xf32>
  return %r : tensor<2x5x6x3xf32>
}
// CHECK: titan.convolution_kernel_grad %{{.*}}, %{{.*}} strides [2, 1] low [1, 0] high [1, 1] dilations [1, 2] groups 1 :
func.func @convolution_kernel_grad(%x: tensor<2x5x6x3xf32>, %d: tensor<2x3x5x4xf32>) -> tensor<4x3x2x3xf32> {
  %r = titan.convolution_kernel_grad %x, %d strides [2, 1] low [1, 0] high [1, 1] dilations [1, 2] groups 1
      : (tensor<2x5x6x3xf32>, tensor<2x3x5x4xf32>) -> tensor<4x3x2x3xf32>
  return %r : tensor<4x3x2x3xf32>
}
func.func @convolution_kernel_grad_acc(%x: tensor<2x5x6x3xf32>, %d: tensor<2x3x5x4xf32>, %a: tensor<4x3x2x3xf32>) -> tensor<4x3x2x3xf32> {
  %r = titan.convolution_kernel_grad %x, %d acc %a strides [2, 1] low [1, 0] high [1, 1] dilations [1, 2] groups 1
      : (tensor<2x5x6x3xf32>, tensor<2x3x5x4xf32>, tensor<4x3x2x3xf32>) -> tensor<4x3x2x3xf32>
  return %r : tensor<4x3x2x3xf32>
}
func.func @convolution_groups(%x: tensor<2x4x5x4xf32>, %w: tensor<6x2x3x2xf32>) -> tensor<2x4x3x6xf32> {
  %r = titan.convolution %x, %w strides [1, 2] low [0, 1] high [1, 1] dilations [1, 1] groups 2
      : (tensor<2x4x5x4xf32>, tensor<6x2x3x2xf32>) -> tensor<2x4x3x6xf32>
  return %r : tensor<2x4x3x6xf32>
}
func.func @convolution_input_grad_groups(%d: tensor<2x4x3x6xf32>, %w: tensor<6x2x3x2xf32>) -> tensor<2x4x5x4xf32> {
  %r = titan.convolution_input_grad %d, %w strides [1, 2] low [0, 1] high [1, 1] dilations [1, 1] groups 2
      : (tensor<2x4x3x6xf32>, tensor<6x2x3x2xf32>) -> tensor<2x4x5x4xf32>
  return %r : tensor<2x4x5x4xf32>
}
func.func @convolution_kernel_grad_groups(%x: tensor<2x4x5x4xf32>, %d: tensor<2x4x3x6xf32>) -> tensor<6x2x3x2xf32> {
  %r = titan.convolution_kernel_grad %x, %d strides [1, 2] low [0, 1] high [1, 1] dilations [1, 1] groups 2
      : (tensor<2x4x5x4xf32>, tensor<2x4x3x6xf32>) -> tensor<6x2x3x2xf32>
  return %r : tensor<6x2x3x2xf32>
}
func.func @convolution_depthwise(%x: tensor<2x5x4x3xf32>, %w: tensor<3x3x3x1xf32>) -> tensor<2x5x2x3xf32> {
  %r = titan.convolution %x, %w strides [1, 2] low [1, 1] high [1, 0] dilations [1, 1] groups 3
      : (tensor<2x5x4x3xf32>, tensor<3x3x3x1xf32>) -> tensor<2x5x2x3xf32>
  return %r : tensor<2x5x2x3xf32>
}
func.func @convolution_input_grad_depthwise(%d: tensor<2x5x2x3xf32>, %w: tensor<3x3x3x1xf32>) -> tensor<2x5x4x3xf32> {
  %r = titan.convolution_input_grad %d, %w strides [1, 2] low [1, 1] high [1, 0] dilations [1, 1] groups 3
      : (tensor<2x5x2x3xf32>, tensor<3x3x3x1xf32>) -> tensor<2x5x4x3xf32>
  return %r : tensor<2x5x4x3xf32>
}
func.func @convolution_kernel_grad_depthwise(%x: tensor<2x5x4x3xf32>, %d: tensor<2x5x2x3xf32>) -> tensor<3x3x3x1xf32> {
  %r = titan.convolution_kernel_grad %x, %d strides [1, 2] low [1, 1] high [1, 0] dilations [1, 1] groups 3
      : (tensor<2x5x4x3xf32>, tensor<2x5x2x3xf32>) -> tensor<3x3x3x1xf32>
  return %r : tensor<3x3x3x1xf32>
}
func.func @convolution_kernel_grad_depthwise_acc(%x: tensor<2x5x4x3xf32>, %d: tensor<2x5x2x3xf32>, %a: tensor<3x3x3x1xf32>) -> tensor<3x3x3x1xf32> {
  %r = titan.convolution_kernel_grad %x, %d acc %a strides [1, 2] low [1, 1] high [1, 0] dilations [1, 1] groups 3
      : (tensor<2x5x4x3xf32>, tensor<2x5x2x3xf32>, tensor<3x3x3x1xf32>) -> tensor<3x3x3x1xf32>
  return %r : tensor<3x3x3x1xf32>
}
func.func @convolution_line(%x: tensor<3x9x2xf32>, %w: tensor<4x3x2xf32>) -> tensor<3x2x4xf32> {
  %r = titan.convolution %x, %w strides [3] low [0] high [0] dilations [2] groups 1
      : (tensor<3x9x2xf32>, tensor<4x3x2xf32>) -> tensor<3x2x4xf32>
  return %r : tensor<3x2x4xf32>
}
func.func @convolution_input_grad_line(%d: tensor<3x2x4xf32>, %w: tensor<4x3x2xf32>) -> tensor<3x9x2xf32> {
  %r = titan.convolution_input_grad %d, %w strides [3] low [0] high [0] dilations [2] groups 1
      : (tensor<3x2x4xf32>, tensor<4x3x2xf32>) -> tensor<3x9x2xf32>
  return %r : tensor<3x9x2xf32>
}
func.func @convolution_kernel_grad_line(%x: tensor<3x9x2xf32>, %d: tensor<3x2x4xf32>) -> tensor<4x3x2xf32> {
  %r = titan.convolution_kernel_grad %x, %d strides [3] low [0] high [0] dilations [2] groups 1
      : (tensor<3x9x2xf32>, tensor<3x2x4xf32>) -> tensor<4x3x2xf32>
  return %r : tensor<4x3x2xf32>
}
func.func @convolution_cropped(%x: tensor<1x3x3x2xf32>, %w: tensor<3x1x1x2xf32>) -> tensor<1x6x6x3xf32> {
  %r = titan.convolution %x, %w strides [1, 1] low [2, 1] high [1, 2] dilations [1, 1] groups 1
      : (tensor<1x3x3x2xf32>, tensor<3x1x1x2xf32>) -> tensor<1x6x6x3xf32>
  return %r : tensor<1x6x6x3xf32>
}
func.func @convolution_input_grad_cropped(%d: tensor<1x6x6x3xf32>, %w: tensor<3x1x1x2xf32>) -> tensor<1x3x3x2xf32> {
  %r = titan.convolution_input_grad %d, %w strides [1, 1] low [2, 1] high [1, 2] dilations [1, 1] groups 1
      : (tensor<1x6x6x3xf32>, tensor<3x1x1x2xf32>) -> tensor<1x3x3x2xf32>
  return %r : tensor<1x3x3x2xf32>
}
func.func @convolution_kernel_grad_cropped(%x: tensor<1x3x3x2xf32>, %d: tensor<1x6x6x3xf32>) -> tensor<3x1x1x2xf32> {
  %r = titan.convolution_kernel_grad %x, %d strides [1, 1] low [2, 1] high [1, 2] dilations [1, 1] groups 1
      : (tensor<1x3x3x2xf32>, tensor<1x6x6x3xf32>) -> tensor<3x1x1x2xf32>
  return %r : tensor<3x1x1x2xf32>
}
func.func @convolution_volume(%x: tensor<1x3x4x3x2xf32>, %w: tensor<3x2x2x2x2xf32>) -> tensor<1x2x3x2x3xf32> {
  %r = titan.convolution %x, %w strides [2, 1, 2] low [1, 0, 1] high [0, 1, 1] dilations [1, 2, 1] groups 1
      : (tensor<1x3x4x3x2xf32>, tensor<3x2x2x2x2xf32>) -> tensor<1x2x3x2x3xf32>
  return %r : tensor<1x2x3x2x3xf32>
}
func.func @convolution_input_grad_volume(%d: tensor<1x2x3x2x3xf32>, %w: tensor<3x2x2x2x2xf32>) -> tensor<1x3x4x3x2xf32> {
  %r = titan.convolution_input_grad %d, %w strides [2, 1, 2] low [1, 0, 1] high [0, 1, 1] dilations [1, 2, 1] groups 1
      : (tensor<1x2x3x2x3xf32>, tensor<3x2x2x2x2xf32>) -> tensor<1x3x4x3x2xf32>
  return %r : tensor<1x3x4x3x2xf32>
}
func.func @convolution_kernel_grad_volume(%x: tensor<1x3x4x3x2xf32>, %d: tensor<1x2x3x2x3xf32>) -> tensor<3x2x2x2x2xf32> {
  %r = titan.convolution_kernel_grad %x, %d strides [2, 1, 2] low [1, 0, 1] high [0, 1, 1] dilations [1, 2, 1] groups 1
      : (tensor<1x3x4x3x2xf32>, tensor<1x2x3x2x3xf32>) -> tensor<3x2x2x2x2xf32>
  return %r : tensor<3x2x2x2x2xf32>
}
// CHECK: titan.pool max %{{.*}} window [1, 3, 2, 1] strides [1, 2, 2, 1] low [0, 1, 0, 0] high [0, 1, 1, 0] dilations [1, 1, 1, 1] : tensor<2x6x5x3xf32> to tensor<2x3x3x3xf32>
func.func @pool_max(%x: tensor<2x6x5x3xf32>) -> tensor<2x3x3x3xf32> {
  %r = titan.pool max %x window [1, 3, 2, 1] strides [1, 2, 2, 1] low [0, 1, 0, 0] high [0, 1, 1, 0] dilations [1, 1, 1, 1]
      : tensor<2x6x5x3xf32> to tensor<2x3x3x3xf32>
  return %r : tensor<2x3x3x3xf32>
}
// CHECK: titan.max_pool_grad %{{.*}}, %{{.*}} window [1, 3, 2, 1] strides [1, 2, 2, 1] low [0, 1, 0, 0] high [0, 1, 1, 0] dilations [1, 1, 1, 1] :
func.func @max_pool_grad(%x: tensor<2x6x5x3xf32>, %d: tensor<2x3x3x3xf32>) -> tensor<2x6x5x3xf32> {
  %r = titan.max_pool_grad %x, %d window [1, 3, 2, 1] strides [1, 2, 2, 1] low [0, 1, 0, 0] high [0, 1, 1, 0] dilations [1, 1, 1, 1]
      : (tensor<2x6x5x3xf32>, tensor<2x3x3x3xf32>) -> tensor<2x6x5x3xf32>
  return %r : tensor<2x6x5x3xf32>
}
func.func @pool_max_overlapping(%x: tensor<2x7x3xf32>) -> tensor<2x5x3xf32> {
  %r = titan.pool max %x window [1, 3, 1] strides [1, 1, 1] low [0, 1, 0] high [0, 1, 0] dilations [1, 2, 1]
      : tensor<2x7x3xf32> to tensor<2x5x3xf32>
  return %r : tensor<2x5x3xf32>
}
func.func @max_pool_grad_overlapping(%x: tensor<2x7x3xf32>, %d: tensor<2x5x3xf32>) -> tensor<2x7x3xf32> {
  %r = titan.max_pool_grad %x, %d window [1, 3, 1] strides [1, 1, 1] low [0, 1, 0] high [0, 1, 0] dilations [1, 2, 1]
      : (tensor<2x7x3xf32>, tensor<2x5x3xf32>) -> tensor<2x7x3xf32>
  return %r : tensor<2x7x3xf32>
}
func.func @pool_max_integer(%x: tensor<2x4x4x1xi8>) -> tensor<2x4x4x1xi8> {
  %r = titan.pool max %x window [1, 2, 2, 1] strides [1, 1, 1, 1] low [0, 1, 1, 0] high [0, 0, 0, 0] dilations [1, 1, 1, 1]
      : tensor<2x4x4x1xi8> to tensor<2x4x4x1xi8>
  return %r : tensor<2x4x4x1xi8>
}
func.func @pool_sum(%x: tensor<2x5x6x3xf32>) -> tensor<2x3x5x3xf32> {
  %r = titan.pool sum %x window [1, 3, 2, 1] strides [1, 2, 1, 1] low [0, 1, 0, 0] high [0, 1, 1, 0] dilations [1, 1, 2, 1]
      : tensor<2x5x6x3xf32> to tensor<2x3x5x3xf32>
  return %r : tensor<2x3x5x3xf32>
}
func.func @pool_sum_channels(%x: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  %r = titan.pool sum %x window [1, 1, 3] strides [1, 1, 1] low [0, 0, 1] high [0, 0, 1] dilations [1, 1, 1]
      : tensor<2x3x5xf32> to tensor<2x3x5xf32>
  return %r : tensor<2x3x5xf32>
}
// CHECK: titan.batch_norm %{{.*}} scale %{{.*}} bias %{{.*}} dim 1 epsilon 1.000000e-02 momentum 1.000000e-01 :
func.func @batch_norm(%x: tensor<3x4x2xf32>, %s: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<3x4x2xf32>, tensor<4xf32>, tensor<4xf32>) {
  %r, %m, %v = titan.batch_norm %x scale %s bias %b dim 1 epsilon 0.01 momentum 0.1
      : (tensor<3x4x2xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4x2xf32>, tensor<4xf32>, tensor<4xf32>)
  return %r, %m, %v : tensor<3x4x2xf32>, tensor<4xf32>, tensor<4xf32>
}
// CHECK: running %{{.*}}, %{{.*}} dim 3 epsilon 1.000000e-05 momentum 3.000000e-01 unbiased :
func.func @batch_norm_running(%x: tensor<2x3x5x6xf32>, %s: tensor<6xf32>, %b: tensor<6xf32>, %rm: tensor<6xf32>, %rv: tensor<6xf32>) -> (tensor<2x3x5x6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %r, %m, %v = titan.batch_norm %x scale %s bias %b running %rm, %rv dim 3 epsilon 1.0e-5 momentum 0.3 unbiased
      : (tensor<2x3x5x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<2x3x5x6xf32>, tensor<6xf32>, tensor<6xf32>)
  return %r, %m, %v : tensor<2x3x5x6xf32>, tensor<6xf32>, tensor<6xf32>
}
// CHECK: titan.recurrence lstm %{{.*}}, %{{.*}} initial %{{.*}} bias %{{.*}} order [0, 1, 2, 3] :
func.func @recurrence_lstm(%p: tensor<4x3x20xf32>, %r: tensor<20x5xf32>, %h: tensor<3x5xf32>, %c: tensor<3x5xf32>, %b: tensor<20xf32>) -> (tensor<4x3x5xf32>, tensor<4x3x20xf32>, tensor<4x3x5xf32>) {
  %y, %k:2 = titan.recurrence lstm %p, %r initial %h, %c bias %b order [0, 1, 2, 3]
      : (tensor<4x3x20xf32>, tensor<20x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<20xf32>) -> (tensor<4x3x5xf32>, tensor<4x3x20xf32>, tensor<4x3x5xf32>)
  return %y, %k#0, %k#1 : tensor<4x3x5xf32>, tensor<4x3x20xf32>, tensor<4x3x5xf32>
}
// CHECK: titan.recurrence lstm %{{.*}}, %{{.*}} initial %{{.*}} order [0, 2, 3, 1] reverse :
func.func @recurrence_lstm_onnx(%p: tensor<2x3x20xf32>, %r: tensor<20x5xf32>, %h: tensor<3x5xf32>, %c: tensor<3x5xf32>) -> (tensor<2x3x5xf32>, tensor<2x3x20xf32>, tensor<2x3x5xf32>) {
  %y, %k:2 = titan.recurrence lstm %p, %r initial %h, %c order [0, 2, 3, 1] reverse
      : (tensor<2x3x20xf32>, tensor<20x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<2x3x5xf32>, tensor<2x3x20xf32>, tensor<2x3x5xf32>)
  return %y, %k#0, %k#1 : tensor<2x3x5xf32>, tensor<2x3x20xf32>, tensor<2x3x5xf32>
}
func.func @recurrence_gru(%p: tensor<4x3x15xf32>, %r: tensor<15x5xf32>, %h: tensor<3x5xf32>, %b: tensor<15xf32>) -> (tensor<4x3x5xf32>, tensor<4x3x15xf32>, tensor<4x3x5xf32>) {
  %y, %k:2 = titan.recurrence gru %p, %r initial %h bias %b order [0, 1, 2] reverse
      : (tensor<4x3x15xf32>, tensor<15x5xf32>, tensor<3x5xf32>, tensor<15xf32>) -> (tensor<4x3x5xf32>, tensor<4x3x15xf32>, tensor<4x3x5xf32>)
  return %y, %k#0, %k#1 : tensor<4x3x5xf32>, tensor<4x3x15xf32>, tensor<4x3x5xf32>
}
func.func @recurrence_gru_reset_before(%p: tensor<4x3x15xf32>, %r: tensor<15x5xf32>, %h: tensor<3x5xf32>, %b: tensor<15xf32>) -> (tensor<4x3x5xf32>, tensor<4x3x15xf32>) {
  %y, %k = titan.recurrence gru_reset_before %p, %r initial %h bias %b order [1, 0, 2]
      : (tensor<4x3x15xf32>, tensor<15x5xf32>, tensor<3x5xf32>, tensor<15xf32>) -> (tensor<4x3x5xf32>, tensor<4x3x15xf32>)
  return %y, %k : tensor<4x3x5xf32>, tensor<4x3x15xf32>
}
func.func @recurrence_tanh(%p: tensor<4x3x5xf32>, %r: tensor<5x5xf32>, %h: tensor<3x5xf32>, %b: tensor<5xf32>) -> tensor<4x3x5xf32> {
  %y = titan.recurrence tanh %p, %r initial %h bias %b order [0]
      : (tensor<4x3x5xf32>, tensor<5x5xf32>, tensor<3x5xf32>, tensor<5xf32>) -> tensor<4x3x5xf32>
  return %y : tensor<4x3x5xf32>
}
func.func @recurrence_relu(%p: tensor<4x3x5xf32>, %r: tensor<5x5xf32>, %h: tensor<3x5xf32>) -> tensor<4x3x5xf32> {
  %y = titan.recurrence relu %p, %r initial %h order [0] reverse
      : (tensor<4x3x5xf32>, tensor<5x5xf32>, tensor<3x5xf32>) -> tensor<4x3x5xf32>
  return %y : tensor<4x3x5xf32>
}
func.func @recurrence_one_step(%p: tensor<1x2x68xf32>, %r: tensor<68x17xf32>, %h: tensor<2x17xf32>, %c: tensor<2x17xf32>, %b: tensor<68xf32>) -> (tensor<1x2x17xf32>, tensor<1x2x68xf32>, tensor<1x2x17xf32>) {
  %y, %k:2 = titan.recurrence lstm %p, %r initial %h, %c bias %b order [0, 1, 2, 3]
      : (tensor<1x2x68xf32>, tensor<68x17xf32>, tensor<2x17xf32>, tensor<2x17xf32>, tensor<68xf32>) -> (tensor<1x2x17xf32>, tensor<1x2x68xf32>, tensor<1x2x17xf32>)
  return %y, %k#0, %k#1 : tensor<1x2x17xf32>, tensor<1x2x68xf32>, tensor<1x2x17xf32>
}
func.func @recurrence_f64(%p: tensor<3x2x15xf64>, %r: tensor<15x5xf64>, %h: tensor<2x5xf64>, %b: tensor<15xf64>) -> (tensor<3x2x5xf64>, tensor<3x2x15xf64>, tensor<3x2x5xf64>) {
  %y, %k:2 = titan.recurrence gru %p, %r initial %h bias %b order [1, 0, 2]
      : (tensor<3x2x15xf64>, tensor<15x5xf64>, tensor<2x5xf64>, tensor<15xf64>) -> (tensor<3x2x5xf64>, tensor<3x2x15xf64>, tensor<3x2x5xf64>)
  return %y, %k#0, %k#1 : tensor<3x2x5xf64>, tensor<3x2x15xf64>, tensor<3x2x5xf64>
}
// CHECK: titan.recurrence_grad lstm %{{.*}} initial %{{.*}} result %{{.*}} kept %{{.*}} adjoint %{{.*}} order [0, 1, 2, 3] :
func.func @recurrence_grad_lstm(%r: tensor<20x5xf32>, %h: tensor<3x5xf32>, %c: tensor<3x5xf32>, %y: tensor<4x3x5xf32>, %g: tensor<4x3x20xf32>, %k: tensor<4x3x5xf32>, %dy: tensor<4x3x5xf32>) -> (tensor<4x3x20xf32>, tensor<3x5xf32>, tensor<3x5xf32>) {
  %dp, %d:2 = titan.recurrence_grad lstm %r initial %h, %c result %y kept %g, %k adjoint %dy order [0, 1, 2, 3]
      : (tensor<20x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<4x3x5xf32>, tensor<4x3x20xf32>, tensor<4x3x5xf32>, tensor<4x3x5xf32>) -> (tensor<4x3x20xf32>, tensor<3x5xf32>, tensor<3x5xf32>)
  return %dp, %d#0, %d#1 : tensor<4x3x20xf32>, tensor<3x5xf32>, tensor<3x5xf32>
}
// CHECK: titan.recurrence_grad lstm %{{.*}} initial %{{.*}} result %{{.*}} kept %{{.*}} adjoint %{{.*}} cells %{{.*}} order [0, 2, 3, 1] reverse :
func.func @recurrence_grad_lstm_cells(%r: tensor<20x5xf32>, %h: tensor<2x5xf32>, %c: tensor<2x5xf32>, %y: tensor<3x2x5xf32>, %g: tensor<3x2x20xf32>, %k: tensor<3x2x5xf32>, %dy: tensor<3x2x5xf32>, %dc: tensor<3x2x5xf32>) -> (tensor<3x2x20xf32>, tensor<2x5xf32>, tensor<2x5xf32>) {
  %dp, %d:2 = titan.recurrence_grad lstm %r initial %h, %c result %y kept %g, %k adjoint %dy cells %dc order [0, 2, 3, 1] reverse
      : (tensor<20x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<3x2x5xf32>, tensor<3x2x20xf32>, tensor<3x2x5xf32>, tensor<3x2x5xf32>, tensor<3x2x5xf32>) -> (tensor<3x2x20xf32>, tensor<2x5xf32>, tensor<2x5xf32>)
  return %dp, %d#0, %d#1 : tensor<3x2x20xf32>, tensor<2x5xf32>, tensor<2x5xf32>
}
func.func @recurrence_grad_gru(%r: tensor<15x5xf32>, %h: tensor<3x5xf32>, %y: tensor<4x3x5xf32>, %g: tensor<4x3x15xf32>, %k: tensor<4x3x5xf32>, %dy: tensor<4x3x5xf32>) -> (tensor<4x3x15xf32>, tensor<4x3x15xf32>, tensor<3x5xf32>) {
  %dp, %ds, %d = titan.recurrence_grad gru %r initial %h result %y kept %g, %k adjoint %dy order [0, 1, 2] reverse
      : (tensor<15x5xf32>, tensor<3x5xf32>, tensor<4x3x5xf32>, tensor<4x3x15xf32>, tensor<4x3x5xf32>, tensor<4x3x5xf32>) -> (tensor<4x3x15xf32>, tensor<4x3x15xf32>, tensor<3x5xf32>)
  return %dp, %ds, %d : tensor<4x3x15xf32>, tensor<4x3x15xf32>, tensor<3x5xf32>
}
func.func @recurrence_grad_gru_reset_before(%r: tensor<15x5xf32>, %h: tensor<3x5xf32>, %y: tensor<4x3x5xf32>, %g: tensor<4x3x15xf32>, %dy: tensor<4x3x5xf32>) -> (tensor<4x3x15xf32>, tensor<3x5xf32>) {
  %dp, %d = titan.recurrence_grad gru_reset_before %r initial %h result %y kept %g adjoint %dy order [1, 0, 2]
      : (tensor<15x5xf32>, tensor<3x5xf32>, tensor<4x3x5xf32>, tensor<4x3x15xf32>, tensor<4x3x5xf32>) -> (tensor<4x3x15xf32>, tensor<3x5xf32>)
  return %dp, %d : tensor<4x3x15xf32>, tensor<3x5xf32>
}
func.func @recurrence_grad_tanh(%r: tensor<5x5xf32>, %h: tensor<3x5xf32>, %y: tensor<4x3x5xf32>, %dy: tensor<4x3x5xf32>) -> (tensor<4x3x5xf32>, tensor<3x5xf32>) {
  %dp, %d = titan.recurrence_grad tanh %r initial %h result %y adjoint %dy order [0] reverse
      : (tensor<5x5xf32>, tensor<3x5xf32>, tensor<4x3x5xf32>, tensor<4x3x5xf32>) -> (tensor<4x3x5xf32>, tensor<3x5xf32>)
  return %dp, %d : tensor<4x3x5xf32>, tensor<3x5xf32>
}
func.func @recurrence_grad_relu(%r: tensor<5x5xf32>, %h: tensor<3x5xf32>, %y: tensor<4x3x5xf32>, %dy: tensor<4x3x5xf32>) -> (tensor<4x3x5xf32>, tensor<3x5xf32>) {
  %dp, %d = titan.recurrence_grad relu %r initial %h result %y adjoint %dy order [0]
      : (tensor<5x5xf32>, tensor<3x5xf32>, tensor<4x3x5xf32>, tensor<4x3x5xf32>) -> (tensor<4x3x5xf32>, tensor<3x5xf32>)
  return %dp, %d : tensor<4x3x5xf32>, tensor<3x5xf32>
}
func.func @recurrence_grad_one_step(%r: tensor<68x17xf32>, %h: tensor<2x17xf32>, %c: tensor<2x17xf32>, %y: tensor<1x2x17xf32>, %g: tensor<1x2x68xf32>, %k: tensor<1x2x17xf32>, %dy: tensor<1x2x17xf32>) -> (tensor<1x2x68xf32>, tensor<2x17xf32>, tensor<2x17xf32>) {
  %dp, %d:2 = titan.recurrence_grad lstm %r initial %h, %c result %y kept %g, %k adjoint %dy order [0, 1, 2, 3]
      : (tensor<68x17xf32>, tensor<2x17xf32>, tensor<2x17xf32>, tensor<1x2x17xf32>, tensor<1x2x68xf32>, tensor<1x2x17xf32>, tensor<1x2x17xf32>) -> (tensor<1x2x68xf32>, tensor<2x17xf32>, tensor<2x17xf32>)
  return %dp, %d#0, %d#1 : tensor<1x2x68xf32>, tensor<2x17xf32>, tensor<2x17xf32>
}
func.func @recurrence_grad_f64(%r: tensor<15x5xf64>, %h: tensor<2x5xf64>, %y: tensor<3x2x5xf64>, %g: tensor<3x2x15xf64>, %k: tensor<3x2x5xf64>, %dy: tensor<3x2x5xf64>) -> (tensor<3x2x15xf64>, tensor<3x2x15xf64>, tensor<2x5xf64>) {
  %dp, %ds, %d = titan.recurrence_grad gru %r initial %h result %y kept %g, %k adjoint %dy order [0, 1, 2]
      : (tensor<15x5xf64>, tensor<2x5xf64>, tensor<3x2x5xf64>, tensor<3x2x15xf64>, tensor<3x2x5xf64>, tensor<3x2x5xf64>) -> (tensor<3x2x15xf64>, tensor<3x2x15xf64>, tensor<2x5xf64>)
  return %dp, %ds, %d : tensor<3x2x15xf64>, tensor<3x2x15xf64>, tensor<2x5xf64>
}

// CHECK-LABEL: titan.state @fc.weight : tensor<2x3xf32>
// CHECK-SAME: init = #titan.init_file<"w.bin", offset = 64, bytes = 24, digest = 17, shape = [3, 2]>, kind = #titan<kind param>
// CHECK-SAME: sources = [#titan.source<"w", dims = [1, 0]>]
titan.state @fc.weight : tensor<2x3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_file<"w.bin", offset = 64, bytes = 24, digest = 17, shape = [3, 2]>, sources = [#titan.source<"w", dims = [1, 0]>]}
// CHECK: titan.state @gates : tensor<4x3xf32>
// CHECK-SAME: init = #titan.init_file<["w.bin", offset = 0, bytes = 48, digest = 1, shape = [1, 4, 3]], ["v.bin", offset = 64, bytes = 24, digest = 2, shape = [3, 2]]>
// CHECK-SAME: #titan.source<"W", at = [2, 0], from = [0, 1, 0], extent = [2, 3], dims = [1, 2]>
titan.state @gates : tensor<4x3xf32> {kind = #titan<kind param>,
  init = #titan.init_file<["w.bin", offset = 0, bytes = 48, digest = 1, shape = [1, 4, 3]], ["v.bin", offset = 64, bytes = 24, digest = 2, shape = [3, 2]]>,
  sources = [#titan.source<"W", at = [2, 0], from = [0, 1, 0], extent = [2, 3], dims = [1, 2]>, #titan.source<"V", extent = [2, 3], dims = [1, 0]>]}
titan.state @mean : tensor<3xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
titan.state @counter.step : tensor<i64> {kind = #titan<kind counter>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, canonical_name = "step"}
