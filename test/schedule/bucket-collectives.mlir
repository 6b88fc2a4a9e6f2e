// RUN: titan-opt %s --titan-schedule-bucket-collectives --remarks-filter=schedule 2> %t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: sed 's/bucket = 256/bucket = 0/' %s | titan-opt --titan-schedule-bucket-collectives | FileCheck %s --check-prefix=ALONE

module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
    titan.recipe = {batch = {micro = 8 : i64, global = 64 : i64}, mesh = {axes = {replicate = 2 : i64, shard = 2 : i64}, bucket = 256 : i64}}} {

// Gradients of 128 bytes, two to a bucket, where the second is ready; what adds them up moves behind it. The last is alone.
// REMARK: reduce_scatter of 2 tensors over shard at once: c, b
// CHECK-LABEL: func.func @sums
// CHECK: accum.loop
// CHECK: %[[C:.*]] = titan.contract
// CHECK-NEXT: %[[DX:.*]] = titan.exp
// CHECK-NEXT: %[[B:.*]] = titan.contract %[[DX]]
// CHECK-NEXT: %[[PAD:.*]] = titan.pad %[[B]]
// CHECK-NEXT: %[[P:.*]]:2 = dist.reduce_scatter sum %[[C]], %[[PAD]] axes ["shard"] dims [0, 1] order rank {path = ["c", "b"], phase = #titan<phase backward>}
// CHECK-NEXT: titan.add %{{.*}}, %[[P]]#0
// CHECK-NEXT: titan.tanh
// CHECK-NEXT: %[[A:.*]] = titan.contract
// CHECK-NEXT: dist.reduce_scatter sum %[[A]] axes ["shard"] dims [0] order rank {path = ["a"]
// CHECK: accum.yield
// ALONE-LABEL: func.func @sums
// ALONE: titan.contract
// ALONE-NEXT: dist.reduce_scatter {{.*}} {path = ["c"]
// ALONE: titan.contract
// ALONE: dist.reduce_scatter {{.*}} {path = ["b"]
// ALONE: titan.contract
// ALONE-NEXT: dist.reduce_scatter {{.*}} {path = ["a"]
func.func @sums(%x: tensor<2x8x4xf32>) -> (tensor<2x8xf32>, tensor<4x4xf32>, tensor<2x8xf32>) {
  %z0 = titan.constant dense<0.0> : tensor<2x8xf32>
  %z1 = titan.constant dense<0.0> : tensor<4x4xf32>
  %s:3 = accum.loop %i in 2 running slices(%xi = %x : tensor<2x8x4xf32>) accumulators(%a = %z0 : tensor<2x8xf32>, %b = %z1 : tensor<4x4xf32>, %c = %z0 : tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<4x4xf32>, tensor<2x8xf32>) {
    %y = titan.concat %xi, %xi dim 1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
    %five = titan.slice %y offsets [0, 0] strides [1, 1] : tensor<8x8xf32> to tensor<8x7xf32>
    %dc = titan.contract %xi, %y batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>} : (tensor<8x4xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %pc = dist.reduce_scatter sum %dc axes ["shard"] dims [0] order rank {path = ["c"], phase = #titan<phase backward>} : tensor<4x8xf32> to tensor<2x8xf32>
    %nc = titan.add %c, %pc {phase = #titan<phase backward>} : tensor<2x8xf32>
    %dx = titan.exp %xi {phase = #titan<phase backward>} : tensor<8x4xf32>
    %db = titan.contract %dx, %five batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>} : (tensor<8x4xf32>, tensor<8x7xf32>) -> tensor<4x7xf32>
    %dy = titan.tanh %dx {phase = #titan<phase backward>} : tensor<8x4xf32>
    %da = titan.contract %dy, %y batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>} : (tensor<8x4xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %pad = titan.pad %db low [0, 0] interior [0, 0] {phase = #titan<phase backward>} : tensor<4x7xf32> to tensor<4x8xf32>
    %pb, %pa = dist.reduce_scatter sum %pad, %da axes ["shard"] dims [1, 0] order rank {path = ["b", "a"], phase = #titan<phase backward>}
        : tensor<4x8xf32>, tensor<4x8xf32> to tensor<4x4xf32>, tensor<2x8xf32>
    %nb = titan.add %b, %pb {phase = #titan<phase backward>} : tensor<4x4xf32>
    %na = titan.add %a, %pa {phase = #titan<phase backward>} : tensor<2x8xf32>
    accum.yield %na, %nb, %nc : tensor<2x8xf32>, tensor<4x4xf32>, tensor<2x8xf32>
  }
  return %s#0, %s#1, %s#2 : tensor<2x8xf32>, tensor<4x4xf32>, tensor<2x8xf32>
}

// Parts that are summed over another axis follow the bucket they come from. Sums of another type are not of it.
// CHECK-LABEL: func.func @chained
// CHECK: %[[P:.*]]:2 = dist.reduce_scatter sum %arg0, %arg1
// CHECK-NEXT: %[[R:.*]]:2 = dist.all_reduce sum %[[P]]#0, %[[P]]#1 axes ["replicate"] order rank {path = ["a", "b"]
// CHECK-NEXT: dist.all_reduce sum %arg2 axes ["replicate"] order rank {path = ["n"]
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
func.func @chained(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %n: tensor<i64>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<i64>) {
  %pa = dist.reduce_scatter sum %a axes ["shard"] dims [0] order rank {path = ["a"], phase = #titan<phase backward>} : tensor<4x8xf32> to tensor<2x8xf32>
  %ra = dist.all_reduce sum %pa axes ["replicate"] order rank {path = ["a"], phase = #titan<phase backward>} : tensor<2x8xf32> to tensor<2x8xf32>
  %pb = dist.reduce_scatter sum %b axes ["shard"] dims [0] order rank {path = ["b"], phase = #titan<phase backward>} : tensor<4x8xf32> to tensor<2x8xf32>
  %rb = dist.all_reduce sum %pb axes ["replicate"] order rank {path = ["b"], phase = #titan<phase backward>} : tensor<2x8xf32> to tensor<2x8xf32>
  %rn = dist.all_reduce sum %n axes ["replicate"] order rank {path = ["n"], phase = #titan<phase backward>} : tensor<i64> to tensor<i64>
  return %ra, %rb, %rn : tensor<2x8xf32>, tensor<2x8xf32>, tensor<i64>
}

// What cannot wait ends a bucket.
// CHECK-LABEL: func.func @read
// CHECK: %[[A:.*]] = dist.all_reduce sum %arg0 axes ["shard"] order rank {path = ["a"]
// CHECK-NEXT: titan.contract %[[A]]
// CHECK-NEXT: dist.all_reduce sum %arg1 axes ["shard"] order rank {path = ["b"]
func.func @read(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %ra = dist.all_reduce sum %a axes ["shard"] order rank {path = ["a"], phase = #titan<phase backward>} : tensor<4x4xf32> to tensor<4x4xf32>
  %y = titan.contract %ra, %a batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %rb = dist.all_reduce sum %b axes ["shard"] order rank {path = ["b"], phase = #titan<phase backward>} : tensor<4x4xf32> to tensor<4x4xf32>
  return %y, %rb : tensor<4x4xf32>, tensor<4x4xf32>
}

// One exchange of all gradients is cut, the last computed first; the update's scalars stay together, whatever their types.
// REMARK: all_reduce of 2 tensors over replicate, shard at once: b, a
// CHECK-LABEL: func.func @cut
// CHECK: %[[C:.*]] = titan.contract
// CHECK-NEXT: dist.all_reduce sum %[[C]] axes ["replicate", "shard"] order rank {path = ["c"]
// CHECK-NEXT: %[[B:.*]] = titan.contract
// CHECK-NEXT: %[[A:.*]] = titan.contract
// CHECK-NEXT: dist.all_reduce sum %[[B]], %[[A]] axes ["replicate", "shard"] order rank {path = ["b", "a"]
// CHECK: dist.all_reduce sum %{{.*}}, %{{.*}} axes ["replicate", "shard"] order rank {path = ["loss", "count"], phase = #titan<phase update>}
func.func @cut(%x: tensor<4x4xf32>, %y: tensor<16x4xf32>, %loss: tensor<f32>, %count: tensor<i64>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<16x4xf32>, tensor<f32>, tensor<i64>) {
  %c = titan.contract %y, %x batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<16x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32>
  %b = titan.contract %c, %y batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>} : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
  %a = titan.contract %b, %x batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %ra, %rb, %rc = dist.all_reduce sum %a, %b, %c axes ["replicate", "shard"] order rank {path = ["a", "b", "c"], phase = #titan<phase backward>}
      : tensor<4x4xf32>, tensor<4x4xf32>, tensor<16x4xf32> to tensor<4x4xf32>, tensor<4x4xf32>, tensor<16x4xf32>
  %l, %n = dist.all_reduce sum %loss, %count axes ["replicate", "shard"] order rank {path = ["loss", "count"], phase = #titan<phase update>} : tensor<f32>, tensor<i64> to tensor<f32>, tensor<i64>
  return %ra, %rb, %rc, %l, %n : tensor<4x4xf32>, tensor<4x4xf32>, tensor<16x4xf32>, tensor<f32>, tensor<i64>
}

// Gathers stand where the first of a bucket is read, casts of parts in front. One whose source is made behind that is by itself.
// REMARK: all_gather of 3 tensors over shard at once: w, b, v
// CHECK-LABEL: func.func @gathers
// CHECK: %[[NARROW:.*]] = titan.convert %arg2
// CHECK-NEXT: %[[W:.*]]:3 = dist.all_gather %arg0, %arg1, %[[NARROW]] axes ["shard"] dims [0, 0, 1] {path = ["w", "b", "v"], phase = #titan<phase forward>}
// CHECK-SAME: tensor<2x8xf32>, tensor<4xf32>, tensor<4x4xbf16> to tensor<4x8xf32>, tensor<8xf32>, tensor<4x8xbf16>
// CHECK-NEXT: titan.contract %{{.*}}, %[[W]]#0
// CHECK: titan.broadcast %[[W]]#1
// CHECK: titan.convert %[[W]]#2
// CHECK: dist.all_gather %{{.*}} axes ["shard"] dims [0] {path = ["u"]
// ALONE-LABEL: func.func @gathers
// ALONE: titan.contract
// ALONE: dist.all_gather {{.*}} {path = ["b"]
// ALONE: dist.all_gather {{.*}} {path = ["v"]
// ALONE: dist.all_gather {{.*}} {path = ["u"]
func.func @gathers(%w: tensor<2x8xf32>, %b: tensor<4xf32>, %v: tensor<4x4xf32>, %x: tensor<8x4xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>, tensor<16x8xf32>) {
  %fw = dist.all_gather %w axes ["shard"] dims [0] {path = ["w"], phase = #titan<phase forward>} : tensor<2x8xf32> to tensor<4x8xf32>
  %y = titan.contract %x, %fw batch [] x [] contracting [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %fb = dist.all_gather %b axes ["shard"] dims [0] {path = ["b"], phase = #titan<phase forward>} : tensor<4xf32> to tensor<8xf32>
  %rows = titan.broadcast %fb [1] : tensor<8xf32> to tensor<8x8xf32>
  %z = titan.add %y, %rows : tensor<8x8xf32>
  %nv = titan.convert %v : tensor<4x4xf32> to tensor<4x4xbf16>
  %fv = dist.all_gather %nv axes ["shard"] dims [1] {path = ["v"], phase = #titan<phase forward>} : tensor<4x4xbf16> to tensor<4x8xbf16>
  %wide = titan.convert %fv : tensor<4x8xbf16> to tensor<4x8xf32>
  %u = titan.contract %z, %z batch [] x [] contracting [1] x [1] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %fu = dist.all_gather %u axes ["shard"] dims [0] {path = ["u"], phase = #titan<phase forward>} : tensor<8x8xf32> to tensor<16x8xf32>
  return %z, %wide, %fu : tensor<8x8xf32>, tensor<4x8xf32>, tensor<16x8xf32>
}

// What a loop stacks is gathered for the update: never in front of a sum of gradients.
// CHECK-LABEL: func.func @rows
// CHECK: %[[L:.*]]:2 = accum.loop
// CHECK: dist.all_reduce sum %[[L]]#0
// CHECK: dist.all_gather %[[L]]#1
func.func @rows(%x: tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8x8xf32>) {
  %zero = titan.constant dense<0.0> : tensor<8xf32>
  %sum, %rows = accum.loop %i in 4 running stacked = 1 slices(%xi = %x : tensor<4x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>, tensor<4x8xf32>) {
    %next = titan.add %a, %xi {phase = #titan<phase backward>} : tensor<8xf32>
    accum.yield %next, %xi : tensor<8xf32>, tensor<8xf32>
  }
  %g = dist.all_reduce sum %sum axes ["shard"] order rank {path = ["w"], phase = #titan<phase backward>} : tensor<8xf32> to tensor<8xf32>
  %all = dist.all_gather %rows axes ["shard"] dims [0] {path = ["bn.running_mean"], phase = #titan<phase update>} : tensor<4x8xf32> to tensor<8x8xf32>
  return %g, %all : tensor<8xf32>, tensor<8x8xf32>
}

// What the update makes is gathered as it is ready; what cuts the padding off moves behind.
// CHECK-LABEL: func.func @updated
// CHECK: %[[A:.*]] = titan.contract
// CHECK-NEXT: %[[B:.*]] = titan.contract
// CHECK-NEXT: %[[W:.*]]:2 = dist.all_gather %[[A]], %[[B]] axes ["shard"] dims [0, 0] {path = ["a", "b"], phase = #titan<phase update>}
// CHECK-NEXT: %[[C:.*]] = titan.contract
// CHECK-NEXT: dist.all_gather %[[C]] axes ["shard"] dims [0] {path = ["c"]
// CHECK: titan.slice %[[W]]#0
func.func @updated(%x: tensor<4x4xf32>) -> (tensor<7x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %a = titan.contract %x, %x batch [] x [] contracting [1] x [0] {phase = #titan<phase update>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = titan.contract %a, %x batch [] x [] contracting [1] x [0] {phase = #titan<phase update>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = titan.contract %b, %x batch [] x [] contracting [1] x [0] {phase = #titan<phase update>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %g:3 = dist.all_gather %a, %b, %c axes ["shard"] dims [0, 0, 0] {path = ["a", "b", "c"], phase = #titan<phase update>}
      : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32> to tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  %true = titan.slice %g#0 offsets [0, 0] strides [1, 1] {phase = #titan<phase update>} : tensor<8x4xf32> to tensor<7x4xf32>
  return %true, %g#1, %g#2 : tensor<7x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// What has 16 bytes goes along with one of 512, which is too large; 32 bytes are a bucket.
// CHECK-LABEL: func.func @gathers_beside_a_large_one
// CHECK: dist.all_gather %arg0, %arg1 axes ["shard"] dims [0, 0] {path = ["large", "small"]
// CHECK: dist.all_gather %arg2 axes ["shard"] dims [0] {path = ["next"]
// CHECK: dist.all_gather %arg3 axes ["shard"] dims [0] {path = ["medium"]
func.func @gathers_beside_a_large_one(%large: tensor<8x8xf32>, %small: tensor<2xf32>, %next: tensor<8x8xf32>, %medium: tensor<4xf32>)
    -> (tensor<16x8xf32>, tensor<4xf32>, tensor<16x8xf32>, tensor<8xf32>) {
  %fl = dist.all_gather %large axes ["shard"] dims [0] {path = ["large"], phase = #titan<phase forward>} : tensor<8x8xf32> to tensor<16x8xf32>
  %l = titan.exp %fl : tensor<16x8xf32>
  %fs = dist.all_gather %small axes ["shard"] dims [0] {path = ["small"], phase = #titan<phase forward>} : tensor<2xf32> to tensor<4xf32>
  %s = titan.exp %fs : tensor<4xf32>
  %fn = dist.all_gather %next axes ["shard"] dims [0] {path = ["next"], phase = #titan<phase forward>} : tensor<8x8xf32> to tensor<16x8xf32>
  %n = titan.exp %fn : tensor<16x8xf32>
  %fm = dist.all_gather %medium axes ["shard"] dims [0] {path = ["medium"], phase = #titan<phase forward>} : tensor<4xf32> to tensor<8xf32>
  %m = titan.exp %fm : tensor<8xf32>
  return %l, %s, %n, %m : tensor<16x8xf32>, tensor<4xf32>, tensor<16x8xf32>, tensor<8xf32>
}

// A full one goes at once: what is small is beside the next.
// CHECK-LABEL: func.func @sums_beside_a_large_one
// CHECK: dist.all_reduce sum %{{[0-9]+}} axes ["shard"] order rank {path = ["large"]
// CHECK-NEXT: dist.all_reduce sum %{{[0-9]+}}, %{{[0-9]+}} axes ["shard"] order rank {path = ["small", "next"]
func.func @sums_beside_a_large_one(%large: tensor<16x8xf32>, %small: tensor<4xf32>, %next: tensor<16x8xf32>)
    -> (tensor<16x8xf32>, tensor<4xf32>, tensor<16x8xf32>) {
  %l = titan.exp %large {phase = #titan<phase backward>} : tensor<16x8xf32>
  %s = titan.exp %small {phase = #titan<phase backward>} : tensor<4xf32>
  %n = titan.exp %next {phase = #titan<phase backward>} : tensor<16x8xf32>
  %r:3 = dist.all_reduce sum %l, %s, %n axes ["shard"] order rank {path = ["large", "small", "next"], phase = #titan<phase backward>}
      : tensor<16x8xf32>, tensor<4xf32>, tensor<16x8xf32> to tensor<16x8xf32>, tensor<4xf32>, tensor<16x8xf32>
  return %r#0, %r#1, %r#2 : tensor<16x8xf32>, tensor<4xf32>, tensor<16x8xf32>
}

}
