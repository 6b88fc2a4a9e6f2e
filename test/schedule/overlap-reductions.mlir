// RUN: titan-opt %s --titan-schedule-split-collectives --titan-schedule-overlap-reductions --titan-schedule-verify --remarks-filter=schedule 2> %t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: sed 's/prefetch = 1/prefetch = 2/' %s | titan-opt --titan-schedule-split-collectives --titan-schedule-overlap-reductions | FileCheck %s --check-prefix=TWO
// RUN: sed 's/prefetch = 1/prefetch = 0/' %s | titan-opt --titan-schedule-split-collectives --titan-schedule-overlap-reductions | FileCheck %s --check-prefix=NONE

module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
    titan.recipe = {batch = {micro = 8 : i64, global = 64 : i64}, mesh = {axes = {replicate = 2 : i64, shard = 2 : i64}, prefetch = 1 : i64}}} {

// A sum is awaited behind the start of the next one. Its square and the sum over another axis follow; all are there before the update begins.
// REMARK: Flop={{[1-9][0-9]*}}, Remark="reduce_scatter of a over shard is under way while others compute"
// REMARK: Remark="all_reduce of c over replicate: nothing is computed while it is under way"
// CHECK-LABEL: func.func @step
// CHECK: %[[A:.*]] = titan.contract
// CHECK: %[[TA:.*]] = dist.start reduce_scatter ins(%[[A]]
// CHECK-NOT: dist.wait
// CHECK: %[[B:.*]] = titan.contract %[[A]]
// CHECK: %[[TB:.*]] = dist.start reduce_scatter ins(%[[B]]
// CHECK-NEXT: %[[PA:.*]] = dist.wait %[[TA]]
// CHECK-NEXT: titan.mul %[[PA]], %[[PA]]
// CHECK-NEXT: %[[RA:.*]] = dist.start all_reduce ins(%[[PA]]
// CHECK-NEXT: %[[C:.*]] = titan.contract %[[B]]
// CHECK: %[[TC:.*]] = dist.start reduce_scatter ins(%[[C]]
// CHECK: dist.wait %[[TB]]
// CHECK: dist.wait %[[RA]]
// CHECK: %[[PC:.*]] = dist.wait %[[TC]]
// CHECK: dist.start all_reduce ins(%[[PC]]
// CHECK-NEXT: dist.wait
// CHECK: titan.exp {{.*}} {phase = #titan<phase update>}
// TWO-LABEL: func.func @step
// TWO-COUNT-3: dist.start reduce_scatter
// TWO: dist.wait
// NONE-LABEL: func.func @step
// NONE: dist.start reduce_scatter
// NONE-NEXT: dist.wait
// NONE: dist.start all_reduce
// NONE-NEXT: dist.wait
// NONE: dist.start reduce_scatter
// NONE-NEXT: dist.wait
func.func @step(%x: tensor<2x4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %z = titan.constant dense<0.0> : tensor<4x4xf32>
  %s = accum.loop %i in 2 running slices() accumulators(%acc = %z : tensor<4x4xf32>) -> (tensor<4x4xf32>) {
    %t = titan.exp %acc : tensor<4x4xf32>
    accum.yield %t : tensor<4x4xf32>
  }
  %a = titan.contract %s, %s batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %pa = dist.reduce_scatter sum %a axes ["shard"] dims [0] order rank {path = ["a"], phase = #titan<phase backward>} : tensor<4x4xf32> to tensor<2x4xf32>
  %square = titan.mul %pa, %pa {phase = #titan<phase backward>} : tensor<2x4xf32>
  %ra = dist.all_reduce sum %pa axes ["replicate"] order rank {path = ["a"], phase = #titan<phase backward>} : tensor<2x4xf32> to tensor<2x4xf32>
  %b = titan.contract %a, %s batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %pb = dist.reduce_scatter sum %b axes ["shard"] dims [0] order rank {path = ["b"], phase = #titan<phase backward>} : tensor<4x4xf32> to tensor<2x4xf32>
  %c = titan.contract %b, %s batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %pc = dist.reduce_scatter sum %c axes ["shard"] dims [0] order rank {path = ["c"], phase = #titan<phase backward>} : tensor<4x4xf32> to tensor<2x4xf32>
  %rc = dist.all_reduce sum %pc axes ["replicate"] order rank {path = ["c"], phase = #titan<phase backward>} : tensor<2x4xf32> to tensor<2x4xf32>
  %u = titan.exp %pb {phase = #titan<phase update>} : tensor<2x4xf32>
  return %u, %square, %ra, %rc, %pc : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// In a loop: what adds the sums up stands at its end. What cannot wait is waited for.
// CHECK-LABEL: func.func @loop
// CHECK: accum.loop
// CHECK: %[[T:.*]] = dist.start all_reduce
// CHECK: titan.contract %{{.*}}, %{{.*}} batch
// CHECK-NEXT: %[[R:.*]] = dist.wait %[[T]]
// CHECK-NEXT: titan.contract %[[R]]
// CHECK: %[[P:.*]] = dist.start reduce_scatter
// CHECK: titan.contract
// CHECK-NEXT: titan.reduce
// CHECK-NEXT: dist.wait %[[P]]
// CHECK-NEXT: titan.add
// CHECK-NEXT: accum.yield
func.func @loop(%x: tensor<2x4x4xf32>) -> (tensor<2x4xf32>, tensor<f32>) {
  %z = titan.constant dense<0.0> : tensor<2x4xf32>
  %n = titan.constant dense<0.0> : tensor<f32>
  %s:2 = accum.loop %i in 2 running slices(%xi = %x : tensor<2x4x4xf32>) accumulators(%acc = %z : tensor<2x4xf32>, %last = %n : tensor<f32>) -> (tensor<2x4xf32>, tensor<f32>) {
    %r = dist.all_reduce sum %xi axes ["shard"] order rank {path = ["r"], phase = #titan<phase backward>} : tensor<4x4xf32> to tensor<4x4xf32>
    %y = titan.contract %xi, %xi batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %w = titan.contract %r, %y batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %p = dist.reduce_scatter sum %w axes ["shard"] dims [0] order rank {path = ["w"], phase = #titan<phase backward>} : tensor<4x4xf32> to tensor<2x4xf32>
    %next = titan.add %acc, %p {phase = #titan<phase backward>} : tensor<2x4xf32>
    %v = titan.contract %w, %y batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %sum = titan.reduce sum %v [0, 1] {phase = #titan<phase backward>} : tensor<4x4xf32> to tensor<f32>
    accum.yield %next, %sum : tensor<2x4xf32>, tensor<f32>
  }
  return %s#0, %s#1 : tensor<2x4xf32>, tensor<f32>
}

}
