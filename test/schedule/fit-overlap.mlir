// A limit lowers what is on its way before anything is computed again. Without the stages behind it the pass goes by its estimate.
// RUN: sed -e 's/LIMIT/200000/' %s | titan-opt --titan-schedule-bucket-collectives --titan-schedule-split-collectives --titan-schedule-prefetch-gathers --titan-schedule-fit-memory --remarks-filter=schedule 2> %t.free | FileCheck %s --check-prefix=FREE
// RUN: not grep lowers %t.free
// RUN: sed -e 's/LIMIT/70000/' %s | titan-opt --titan-schedule-bucket-collectives --titan-schedule-split-collectives --titan-schedule-prefetch-gathers --titan-schedule-fit-memory --remarks-filter=schedule 2> %t.less | FileCheck %s --check-prefix=LESS
// RUN: FileCheck %s --check-prefix=PREFETCH < %t.less
// RUN: sed -e 's/LIMIT/60000/' %s | titan-opt --titan-schedule-bucket-collectives --titan-schedule-split-collectives --titan-schedule-prefetch-gathers --titan-schedule-fit-memory --remarks-filter=schedule 2> %t.least | FileCheck %s --check-prefix=LEAST
// RUN: FileCheck %s --check-prefixes=PREFETCH,BUCKET < %t.least

// FREE: dist.start all_gather ins(%arg0, %arg1
// FREE: dist.start all_gather ins(%arg2
// FREE: dist.wait
// LESS: dist.start all_gather ins(%arg0, %arg1
// LESS: dist.wait
// LESS: dist.start all_gather ins(%arg2
// LEAST: dist.start all_gather ins(%arg0 :
// LEAST: dist.wait
// LEAST: dist.start all_gather ins(%arg1
// LEAST: dist.wait
// LEAST: dist.start all_gather ins(%arg2
// PREFETCH: fit-memory {{.*}} Remark="memory.limit lowers mesh.prefetch from 1 to 0"
// BUCKET: fit-memory {{.*}} Remark="memory.limit lowers mesh.bucket from 32.0 KiB to 0 B"

module attributes {dist.mesh = #dist.mesh<["replicate" = 1, "shard" = 2]>,
    titan.recipe = {batch = {micro = 8 : i64, global = 16 : i64}, memory = {limit = LIMIT : i64},
        mesh = {axes = {replicate = 1 : i64, shard = 2 : i64}, strategy = "fsdp", bucket = 32768 : i64}}} {
func.func @step(%a: tensor<32x64xf32>, %b: tensor<32x64xf32>, %c: tensor<32x64xf32>, %x: tensor<8x64xf32>) -> (tensor<8x64xf32> {titan.metric = "y"}) {
  %fa = dist.all_gather %a axes ["shard"] dims [0] {path = ["a"], phase = #titan<phase forward>} : tensor<32x64xf32> to tensor<64x64xf32>
  %u = titan.contract %x, %fa batch [] x [] contracting [1] x [0] : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %fb = dist.all_gather %b axes ["shard"] dims [0] {path = ["b"], phase = #titan<phase forward>} : tensor<32x64xf32> to tensor<64x64xf32>
  %v = titan.contract %u, %fb batch [] x [] contracting [1] x [0] : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %fc = dist.all_gather %c axes ["shard"] dims [0] {path = ["c"], phase = #titan<phase forward>} : tensor<32x64xf32> to tensor<64x64xf32>
  %w = titan.contract %v, %fc batch [] x [] contracting [1] x [0] : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  return %w : tensor<8x64xf32>
}
}
