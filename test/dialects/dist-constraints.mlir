// RUN: titan-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{mesh axis "shard" is there twice}}
module attributes {dist.mesh = #dist.mesh<["shard" = 2, "shard" = 2]>} {
}

// -----

// expected-error @+1 {{mesh axis "shard" has 0 ranks}}
module attributes {dist.mesh = #dist.mesh<["shard" = 0]>} {
}

// -----

// expected-error @+1 {{'dist.mesh' is a #dist.mesh on a module}}
func.func @mesh_on_function() attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
  return
}

// -----

// expected-error @+1 {{'dist.grid' is not an attribute of the dist dialect}}
module attributes {dist.grid = 2} {
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @coordinate_C1() {
  // expected-error @+1 {{(C1) the module's mesh has no axis "expert"}}
  %c = dist.coordinate "expert"
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @take_shard_C1(%w: tensor<8xf32>) {
  // expected-error @+1 {{(C1) names no axis}}
  %p = dist.take_shard %w axes [] dim 0 : tensor<8xf32> to tensor<8xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @take_shard_C2_dim(%w: tensor<8xf32>) {
  // expected-error @+1 {{(C2) dim 1 of 'tensor<8xf32>'}}
  %p = dist.take_shard %w axes ["shard"] dim 1 : tensor<8xf32> to tensor<2xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @take_shard_C2_extent(%w: tensor<6xf32>) {
  // expected-error @+1 {{(C2) extent 6 of dim 0 is no multiple of 4 ranks}}
  %p = dist.take_shard %w axes ["shard"] dim 0 : tensor<6xf32> to tensor<2xf32>
  return
}
}

// -----

func.func @collective_C1_no_mesh(%x: tensor<8xf32>) {
  // expected-error @+1 {{(C1) the module has no 'dist.mesh'}}
  %s = dist.all_reduce sum %x axes ["shard"] order rank : tensor<8xf32> to tensor<8xf32>
  return
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @collective_C1_unknown(%x: tensor<8xf32>) {
  // expected-error @+1 {{(C1) axis "expert" is not one of}}
  %s = dist.all_reduce sum %x axes ["expert"] order rank : tensor<8xf32> to tensor<8xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @collective_C1_order(%x: tensor<8xf32>) {
  // expected-error @+1 {{(C1) axis "replicate" is out of the mesh's order}}
  %s = dist.all_reduce sum %x axes ["shard", "replicate"] order rank : tensor<8xf32> to tensor<8xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @collective_C1_one_rank(%x: tensor<8xf32>) {
  // expected-error @+1 {{(C1) axis "tensor" has one rank}}
  %s = dist.all_reduce sum %x axes ["tensor"] order rank : tensor<8xf32> to tensor<8xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @collective_C2_count(%x: tensor<8xf32>) {
  // expected-error @+1 {{(C2) has 1 operands, 2 results}}
  %s:2 = dist.all_reduce sum %x axes ["shard"] order rank : tensor<8xf32> to tensor<8xf32>, tensor<8xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @all_gather_C2_dims(%x: tensor<8xf32>) {
  // expected-error @+1 {{(C2) has 2 dims for 1 operands of an all_gather}}
  %s = dist.all_gather %x axes ["shard"] dims [0, 0] : tensor<8xf32> to tensor<32xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @all_gather_C2_shape(%x: tensor<8xf32>) {
  // expected-error @+1 {{(C2) gives 'tensor<16xf32>' for 'tensor<8xf32>', expected 'tensor<32xf32>'}}
  %s = dist.all_gather %x axes ["shard"] dims [0] : tensor<8xf32> to tensor<16xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @reduce_scatter_C2_extent(%x: tensor<6xf32>) {
  // expected-error @+1 {{(C2) extent 6 of dim 0 is no multiple of 12 ranks}}
  %s = dist.reduce_scatter sum %x axes ["replicate", "shard"] dims [0] order rank : tensor<6xf32> to tensor<1xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @all_reduce_C2_element_type(%x: tensor<8xi1>) {
  // expected-error @+1 {{(C2) sums 'tensor<8xi1>': f32, f64, bf16 and i64 are summed}}
  %s = dist.all_reduce sum %x axes ["shard"] order rank : tensor<8xi1> to tensor<8xi1>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @all_reduce_C3(%x: tensor<8xf32>) {
  // expected-error @+1 {{(C3) a tree over a group of 3 ranks: take a power of two}}
  %s = dist.all_reduce sum %x axes ["replicate"] order tree : tensor<8xf32> to tensor<8xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @start_C3_order(%x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-error @+1 {{(C3) an all_reduce has an order}}
  %t = dist.start all_reduce ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) axes ["shard"]
  dist.wait %t ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @start_C3_no_order(%x: memref<8xf32>, %y: memref<32xf32>) {
  // expected-error @+1 {{(C3) an all_gather has no order}}
  %t = dist.start all_gather ins(%x : memref<8xf32>) outs(%y : memref<32xf32>) axes ["shard"] dims [0] order rank
  dist.wait %t ins(%x : memref<8xf32>) outs(%y : memref<32xf32>)
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
%x = arith.constant dense<0.0> : tensor<8xf32>
// expected-error @+1 {{(C4) stands in builtin.module, not in a function or an accum.loop}}
%s = dist.all_reduce sum %x axes ["shard"] order rank : tensor<8xf32> to tensor<8xf32>
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @start_C5_none(%x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-error @+1 {{(C5) one wait has the token, in the same block}}
  %t = dist.start all_reduce ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) axes ["shard"] order rank
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @start_C5_two(%x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-error @+1 {{(C5) one wait has the token, in the same block}}
  %t = dist.start all_reduce ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) axes ["shard"] order rank
  dist.wait %t ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  dist.wait %t ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @start_C5_block(%x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-error @+1 {{(C5) one wait has the token, in the same block}}
  %t = dist.start all_reduce ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) axes ["shard"] order rank
  accum.loop %i in 2 running {
    dist.wait %t ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  }
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @start_C6_source_is_written(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>) {
  %t = dist.start all_reduce ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) axes ["shard"] order rank
  // expected-error @+1 {{(C6) writes what a collective in flight reads}}
  kernel.copy %z to %x : memref<8xf32> to memref<8xf32>
  dist.wait %t ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @start_C6_result_is_read(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>) {
  %t = dist.start all_reduce ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) axes ["shard"] order rank
  accum.loop %i in 2 running {
    // expected-error @+1 {{(C6) uses what a collective in flight writes}}
    kernel.copy %y to %z : memref<8xf32> to memref<8xf32>
  }
  dist.wait %t ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @start_C6_in_place(%x: memref<8xf32>, %z: memref<8xf32>) {
  %t = dist.start all_reduce ins(%x : memref<8xf32>) outs(%x : memref<8xf32>) axes ["shard"] order rank
  // expected-error @+1 {{(C6) uses what a collective in flight writes}}
  kernel.copy %x to %z : memref<8xf32> to memref<8xf32>
  dist.wait %t ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @wait_C1_token(%t: !dist.token, %x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-error @+1 {{(C1) waits for a token that no start gives}}
  dist.wait %t ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @wait_C1_buffers(%x: memref<8xf32>, %y: memref<8xf32>) {
  %t = dist.start all_reduce ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) axes ["shard"] order rank
  // expected-error @+1 {{(C1) names other buffers than its start}}
  dist.wait %t ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 3, "shard" = 4, "tensor" = 1]>} {
func.func @wait_C2(%x: tensor<8xf32>, %y: tensor<8xf32>) {
  %t = dist.start all_reduce ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>) axes ["shard"] order rank
  // expected-error @+1 {{(C2) on tensors the results have the types of outs, on buffers there are none}}
  dist.wait %t ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>)
  return
}
}

// -----

// expected-error @+1 {{'dist.placements' is a list, a #dist.placement for each result}}
func.func @placements_of_results() attributes {dist.placements = [#dist.placement<["shard" = partial]>]} {
  return
}

// -----

// expected-error @+1 {{argument 0: 'dist.placement', a #dist.placement, is the one attribute of dist on arguments}}
func.func @attribute_of_an_argument(%x: tensor<4xf32> {dist.placement = 3}) {
  return
}

// -----

// expected-error @+1 {{a placement has axis "shard" twice}}
func.func @axis_twice(%x: tensor<4xf32> {dist.placement = #dist.placement<["shard" = partial, "shard" = shard(0)]>}) {
  return
}

// -----

// expected-error @+1 {{a placement cuts dimension -3}}
func.func @negative_dim(%x: tensor<4xf32> {dist.placement = #dist.placement<["shard" = shard(-3)]>}) {
  return
}

// -----

// expected-error @+1 {{expected shard(d), partial or iteration}}
func.func @unknown_word(%x: tensor<4xf32> {dist.placement = #dist.placement<["shard" = replicate]>}) {
  return
}
