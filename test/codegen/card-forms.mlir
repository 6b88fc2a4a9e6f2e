// RUN: titan-opt %s --titan-codegen-card-forms | FileCheck %s

// Clamps that keep NaN, in each spelling.
// CHECK-LABEL: @clamps
func.func @clamps(%x: vector<8xf32>) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
  %low = arith.constant dense<-1.0> : vector<8xf32>
  %high = arith.constant 2.0 : f32
  %highs = vector.broadcast %high : f32 to vector<8xf32>
  // CHECK: %[[A:.*]] = arith.maximumf %arg0, %{{.*}}
  %0 = arith.cmpf olt, %x, %low : vector<8xf32>
  %a = arith.select %0, %low, %x : vector<8xi1>, vector<8xf32>
  // CHECK: %[[B:.*]] = arith.maximumf %arg0, %{{.*}}
  %1 = arith.cmpf uge, %x, %low : vector<8xf32>
  %b = arith.select %1, %x, %low : vector<8xi1>, vector<8xf32>
  // CHECK: %[[C:.*]] = arith.minimumf %arg0, %{{.*}}
  %2 = arith.cmpf ogt, %x, %highs : vector<8xf32>
  %c = arith.select %2, %highs, %x : vector<8xi1>, vector<8xf32>
  // CHECK: %[[D:.*]] = arith.minimumf %arg0, %{{.*}}
  %3 = arith.cmpf olt, %highs, %x : vector<8xf32>
  %d = arith.select %3, %highs, %x : vector<8xi1>, vector<8xf32>
  // CHECK: return %[[A]], %[[B]], %[[C]], %[[D]]
  return %a, %b, %c, %d : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
}

// A select that makes a limit of NaN, one at zero, one that clamps nothing, f64.
// CHECK-LABEL: @others
func.func @others(%x: f32, %y: f64) -> (f32, f32, f32, f64) {
  // CHECK-NOT: arith.maximumf
  // CHECK-NOT: arith.minimumf
  %low = arith.constant -1.0 : f32
  %zero = arith.constant 0.0 : f32
  %wide = arith.constant -1.0 : f64
  %0 = arith.cmpf ult, %x, %low : f32
  %a = arith.select %0, %low, %x : f32
  %1 = arith.cmpf olt, %x, %zero : f32
  %b = arith.select %1, %zero, %x : f32
  %2 = arith.cmpf olt, %x, %low : f32
  %c = arith.select %2, %zero, %x : f32
  %3 = arith.cmpf olt, %y, %wide : f64
  %d = arith.select %3, %wide, %y : f64
  return %a, %b, %c, %d : f32, f32, f32, f64
}

// CHECK-LABEL: @label
// CHECK-SAME: %[[BASE:.*]]: index, %[[LABEL:.*]]: i64
func.func @label(%base: index, %label: i64) -> vector<4xi1> {
  %steps = arith.constant dense<[0, 1, 2, 3]> : vector<4xindex>
  %bases = vector.broadcast %base : index to vector<4xindex>
  %places = arith.addi %bases, %steps : vector<4xindex>
  %numbers = arith.index_cast %places : vector<4xindex> to vector<4xi64>
  %labels = vector.broadcast %label : i64 to vector<4xi64>
  // CHECK-DAG: %[[EACH:.*]] = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  // CHECK-DAG: %[[NONE:.*]] = arith.constant -1 : i32
  // CHECK-DAG: %[[WIDE:.*]] = arith.index_cast %[[BASE]] : index to i64
  // CHECK: %[[PLACE:.*]] = arith.subi %[[LABEL]], %[[WIDE]] : i64
  // CHECK: %[[IS:.*]] = arith.cmpi ult, %[[PLACE]], %{{.*}} : i64
  // CHECK: %[[SHORT:.*]] = arith.trunci %[[PLACE]] : i64 to i32
  // CHECK: %[[LANE:.*]] = arith.select %[[IS]], %[[SHORT]], %[[NONE]] : i32
  // CHECK: %[[LANES:.*]] = vector.broadcast %[[LANE]] : i32 to vector<4xi32>
  // CHECK: arith.cmpi eq, %[[LANES]], %[[EACH]] : vector<4xi32>
  %hit = arith.cmpi eq, %numbers, %labels : vector<4xi64>
  return %hit : vector<4xi1>
}

// Other steps, another order: as they are.
// CHECK-LABEL: @others_of_lanes
func.func @others_of_lanes(%base: index, %label: index) -> (vector<4xi1>, vector<4xi1>) {
  // CHECK-NOT: i32
  %steps = arith.constant dense<[0, 2, 4, 6]> : vector<4xindex>
  %ones = arith.constant dense<[0, 1, 2, 3]> : vector<4xindex>
  %bases = vector.broadcast %base : index to vector<4xindex>
  %labels = vector.broadcast %label : index to vector<4xindex>
  %places = arith.addi %bases, %steps : vector<4xindex>
  %near = arith.addi %bases, %ones : vector<4xindex>
  %hit = arith.cmpi eq, %places, %labels : vector<4xindex>
  %below = arith.cmpi slt, %near, %labels : vector<4xindex>
  return %hit, %below : vector<4xi1>, vector<4xi1>
}
