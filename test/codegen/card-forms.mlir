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

// Two bf16 of a register are widened by integers: the lower one is moved up, the upper one is what remains.
// CHECK-LABEL: @widen
// CHECK-SAME: %[[X:.*]]: vector<8xbf16>
func.func @widen(%x: vector<8xbf16>) -> vector<8xf32> {
  // CHECK-DAG: %[[HALF:.*]] = arith.constant dense<16> : vector<4xi32>
  // CHECK-DAG: %[[MASK:.*]] = arith.constant dense<-65536> : vector<4xi32>
  // CHECK: %[[PAIRS:.*]] = vector.bitcast %[[X]] : vector<8xbf16> to vector<4xi32>
  // CHECK: %[[LOWER:.*]] = arith.shli %[[PAIRS]], %[[HALF]]
  // CHECK: %[[UPPER:.*]] = arith.andi %[[PAIRS]], %[[MASK]]
  // CHECK: %[[BITS:.*]] = vector.interleave %[[LOWER]], %[[UPPER]] : vector<4xi32> -> vector<8xi32>
  // CHECK: arith.bitcast %[[BITS]] : vector<8xi32> to vector<8xf32>
  %y = arith.extf %x : vector<8xbf16> to vector<8xf32>
  return %y : vector<8xf32>
}

// An odd number, one, another width.
// CHECK-LABEL: @others_to_widen
func.func @others_to_widen(%x: vector<3xbf16>, %y: bf16, %z: vector<8xf16>) -> (vector<3xf32>, f32, vector<8xf32>) {
  // CHECK-COUNT-3: arith.extf
  %a = arith.extf %x : vector<3xbf16> to vector<3xf32>
  %b = arith.extf %y : bf16 to f32
  %c = arith.extf %z : vector<8xf16> to vector<8xf32>
  return %a, %b, %c : vector<3xf32>, f32, vector<8xf32>
}

// A number on the lane of a label, zeros on the others, is taken away where the label is among the lanes.
// CHECK-LABEL: @one_lane
// CHECK-SAME: %[[BASE:.*]]: index, %[[LABEL:.*]]: i64, %[[X:.*]]: vector<4xf32>
func.func @one_lane(%base: index, %label: i64, %x: vector<4xf32>) -> vector<4xf32> {
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %ones = arith.constant dense<1.0> : vector<4xf32>
  %steps = arith.constant dense<[0, 1, 2, 3]> : vector<4xindex>
  %bases = vector.broadcast %base : index to vector<4xindex>
  %places = arith.addi %bases, %steps : vector<4xindex>
  %numbers = arith.index_cast %places : vector<4xindex> to vector<4xi64>
  %labels = vector.broadcast %label : i64 to vector<4xi64>
  %hit = arith.cmpi eq, %numbers, %labels : vector<4xi64>
  // CHECK: %[[WIDE:.*]] = arith.index_cast %[[BASE]] : index to i64
  // CHECK: %[[PLACE:.*]] = arith.subi %[[LABEL]], %[[WIDE]] : i64
  // CHECK: %[[IS:.*]] = arith.cmpi ult, %[[PLACE]], %{{.*}} : i64
  // CHECK: %[[LESS:.*]] = scf.if %[[IS]] -> (vector<4xf32>)
  // CHECK: %[[SHORT:.*]] = arith.trunci %[[PLACE]] : i64 to i32
  // CHECK: %[[LANES:.*]] = vector.broadcast %[[SHORT]] : i32 to vector<4xi32>
  // CHECK: %[[LANE:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : vector<4xi32>
  // CHECK: %[[ONE:.*]] = arith.select %[[LANE]]
  // CHECK: %[[REST:.*]] = arith.subf %[[X]], %[[ONE]]
  // CHECK: scf.yield %[[REST]]
  // CHECK: else
  // CHECK: scf.yield %[[X]]
  // CHECK: return %[[LESS]]
  %one = arith.select %hit, %ones, %zeros : vector<4xi1>, vector<4xf32>
  %less = arith.subf %x, %one : vector<4xf32>
  return %less : vector<4xf32>
}

// It is added to a running sum likewise. Another sum may be -0, and becomes +0.
// CHECK-LABEL: @sums
// CHECK-SAME: %[[X:arg[0-9]+]]: vector<4xf32>, %[[SUM:arg[0-9]+]]: vector<4xf32>)
func.func @sums(%base: index, %label: index, %x: vector<4xf32>, %sum: vector<4xf32>) -> (vector<4xf32>, vector<4xf32>) {
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %steps = arith.constant dense<[0, 1, 2, 3]> : vector<4xindex>
  %bases = vector.broadcast %base : index to vector<4xindex>
  %places = arith.addi %bases, %steps : vector<4xindex>
  %labels = vector.broadcast %label : index to vector<4xindex>
  %hit = arith.cmpi eq, %places, %labels : vector<4xindex>
  // CHECK: %[[MORE:.*]] = scf.if
  // CHECK: arith.addf %[[SUM]], %{{.*}} {kernel.running_sum}
  // CHECK: else
  // CHECK: scf.yield %[[SUM]]
  // CHECK: %[[PLAIN:.*]] = arith.addf %[[SUM]], %{{.*}} : vector<4xf32>
  // CHECK: return %[[MORE]], %[[PLAIN]]
  %term = arith.select %hit, %x, %zeros : vector<4xi1>, vector<4xf32>
  %more = arith.addf %sum, %term {kernel.running_sum} : vector<4xf32>
  %plain = arith.addf %sum, %term : vector<4xf32>
  return %more, %plain : vector<4xf32>, vector<4xf32>
}

// Minus zero beside the label, lanes that are not numbered one by one, zero at the label.
// CHECK-LABEL: @others_of_one_lane
func.func @others_of_one_lane(%base: index, %label: index, %x: vector<4xf32>) -> (vector<4xf32>, vector<4xf32>, vector<4xf32>) {
  // CHECK-NOT: scf.if
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %minus = arith.constant dense<-0.0> : vector<4xf32>
  %steps = arith.constant dense<[0, 1, 2, 3]> : vector<4xindex>
  %even = arith.constant dense<[0, 2, 4, 6]> : vector<4xindex>
  %bases = vector.broadcast %base : index to vector<4xindex>
  %labels = vector.broadcast %label : index to vector<4xindex>
  %places = arith.addi %bases, %steps : vector<4xindex>
  %apart = arith.addi %bases, %even : vector<4xindex>
  %hit = arith.cmpi eq, %places, %labels : vector<4xindex>
  %other = arith.cmpi eq, %apart, %labels : vector<4xindex>
  %0 = arith.select %hit, %x, %minus : vector<4xi1>, vector<4xf32>
  %a = arith.subf %x, %0 : vector<4xf32>
  %1 = arith.select %other, %x, %zeros : vector<4xi1>, vector<4xf32>
  %b = arith.subf %x, %1 : vector<4xf32>
  %2 = arith.select %hit, %zeros, %x : vector<4xi1>, vector<4xf32>
  %c = arith.subf %x, %2 : vector<4xf32>
  return %a, %b, %c : vector<4xf32>, vector<4xf32>, vector<4xf32>
}
// CHECK-LABEL: @end
func.func @end() {
  return
}
