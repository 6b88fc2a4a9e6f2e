// RUN: titan-opt %s --titan-schedule-split-collectives --titan-schedule-prefetch-gathers --remarks-filter=schedule 2> %t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: sed 's/prefetch = 1/prefetch = 2/' %s | titan-opt --titan-schedule-split-collectives --titan-schedule-prefetch-gathers | FileCheck %s --check-prefix=TWO
// RUN: sed 's/prefetch = 1/prefetch = 0/' %s | titan-opt --titan-schedule-split-collectives --titan-schedule-prefetch-gathers | FileCheck %s --check-prefix=NONE

module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
    titan.recipe = {batch = {micro = 8 : i64, global = 64 : i64}, mesh = {axes = {replicate = 2 : i64, shard = 2 : i64}, prefetch = 1 : i64}}} {

// Each starts before the wait of the one before, casts of parts in front.
// REMARK: Bytes=32, Remark="all_gather of a over shard: nothing is computed while it is under way"
// REMARK: Flop={{[1-9][0-9]*}}, Remark="all_gather of b over shard is under way while others compute"
// CHECK-LABEL: func.func @gathers
// CHECK: %[[TA:.*]] = dist.start all_gather ins(%arg0
// CHECK: %[[TB:.*]] = dist.start all_gather ins(%arg1
// CHECK: %[[A:.*]] = dist.wait %[[TA]]
// CHECK-NEXT: titan.contract %{{.*}}, %[[A]]
// CHECK: %[[NARROW:.*]] = titan.convert %arg2
// CHECK: %[[TC:.*]] = dist.start all_gather ins(%[[NARROW]]
// CHECK: %[[B:.*]] = dist.wait %[[TB]]
// CHECK-NEXT: titan.contract %{{.*}}, %[[B]]
// CHECK: %[[C:.*]] = dist.wait %[[TC]]
// CHECK-NEXT: titan.convert %[[C]]
// TWO-LABEL: func.func @gathers
// TWO: dist.start all_gather ins(%arg0
// TWO: dist.start all_gather ins(%arg1
// TWO: titan.convert %arg2
// TWO: dist.start all_gather
// TWO: dist.wait
// TWO-NEXT: titan.contract
// TWO: dist.wait
// TWO-NEXT: titan.contract
// TWO: dist.wait
// NONE-LABEL: func.func @gathers
// NONE: dist.start all_gather ins(%arg0
// NONE-NEXT: dist.wait
// NONE: dist.start all_gather ins(%arg1
// NONE-NEXT: dist.wait
func.func @gathers(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>, %c: tensor<2x4xf32>, %x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %fa = dist.all_gather %a axes ["shard"] dims [0] {path = ["a"], phase = #titan<phase forward>} : tensor<2x4xf32> to tensor<4x4xf32>
  %y = titan.contract %x, %fa batch [] x [] contracting [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %fb = dist.all_gather %b axes ["shard"] dims [0] {path = ["b"], phase = #titan<phase forward>} : tensor<2x4xf32> to tensor<4x4xf32>
  %z = titan.contract %y, %fb batch [] x [] contracting [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %nc = titan.convert %c {phase = #titan<phase backward>} : tensor<2x4xf32> to tensor<2x4xbf16>
  %fc = dist.all_gather %nc axes ["shard"] dims [0] {path = ["c"], phase = #titan<phase backward>} : tensor<2x4xbf16> to tensor<4x4xbf16>
  %wc = titan.convert %fc {phase = #titan<phase backward>} : tensor<4x4xbf16> to tensor<4x4xf32>
  return %z, %wc : tensor<4x4xf32>, tensor<4x4xf32>
}

// One starts behind what makes its source. Sums, and gathers of what the update makes, are not started early.
// REMARK: Remark="all_gather of b over shard: nothing is computed while it is under way"
// CHECK-LABEL: func.func @late
// CHECK: dist.start all_gather ins(%arg0
// CHECK-NEXT: dist.wait
// CHECK: %[[Y:.*]] = titan.contract
// CHECK: dist.start all_gather ins(%[[Y]]
// CHECK-NEXT: dist.wait
// CHECK-NEXT: titan.contract
// CHECK: dist.start reduce_scatter
// CHECK-NEXT: dist.wait
// CHECK: dist.start all_gather {{.*}} {path = ["u"]
// CHECK-NEXT: dist.wait
func.func @late(%a: tensor<2x4xf32>, %x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %fa = dist.all_gather %a axes ["shard"] dims [0] {path = ["a"], phase = #titan<phase forward>} : tensor<2x4xf32> to tensor<4x4xf32>
  %y = titan.contract %x, %fa batch [] x [] contracting [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %fy = dist.all_gather %y axes ["shard"] dims [0] {path = ["b"], phase = #titan<phase forward>} : tensor<4x4xf32> to tensor<8x4xf32>
  %z = titan.contract %fy, %x batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %p = dist.reduce_scatter sum %z axes ["shard"] dims [0] order rank {path = ["z"], phase = #titan<phase backward>} : tensor<8x4xf32> to tensor<4x4xf32>
  %q = dist.reduce_scatter sum %p axes ["shard"] dims [0] order rank {path = ["p"], phase = #titan<phase backward>} : tensor<4x4xf32> to tensor<2x4xf32>
  %u = dist.all_gather %q axes ["shard"] dims [0] {path = ["u"], phase = #titan<phase update>} : tensor<2x4xf32> to tensor<4x4xf32>
  return %u : tensor<4x4xf32>
}

}
