// RUN: titan-opt %s --split-input-file --titan-plan-verify-offsets --verify-diagnostics

module attributes {kernel.arena = {bindings = 64 : i64, bytes = 256 : i64, constants = 0 : i64, states = 0 : i64, temporaries = 192 : i64}} {
  func.func @shared_bytes(%x: memref<4xf32> {kernel.offset = 0 : i64, titan.input = "x"}, %y: memref<4xf32> {kernel.offset = 64 : i64, titan.output = "y"}) {
    // expected-note @below {{the other, at 128, live in [0, 1]}}
    %a = kernel.buffer 128 : memref<4xf32>
    kernel.copy %x to %a : memref<4xf32> to memref<4xf32>
    // expected-error @below {{temporary at 128, live in [1, 2], shares bytes with another that is live then}}
    %b = kernel.buffer 128 : memref<4xf32>
    kernel.copy %a to %b : memref<4xf32> to memref<4xf32>
    kernel.copy %b to %y : memref<4xf32> to memref<4xf32>
    return
  }
}

// -----

module attributes {kernel.arena = {bindings = 192 : i64, bytes = 640 : i64, constants = 0 : i64, states = 0 : i64, temporaries = 448 : i64}} {
  func.func @begins_within_another(%x: memref<32xf32> {kernel.offset = 0 : i64, titan.input = "x"}, %z: memref<4xf32> {kernel.offset = 128 : i64, titan.input = "z"},
                 %u: memref<32xf32> {kernel.offset = 192 : i64, titan.output = "u"}, %v: memref<4xf32> {kernel.offset = 320 : i64, titan.output = "v"}) {
    // expected-note @below {{the other, at 384, live in [0, 2]}}
    %a = kernel.buffer 384 : memref<32xf32>
    kernel.copy %x to %a : memref<32xf32> to memref<32xf32>
    // expected-error @below {{temporary at 448, live in [1, 3], shares bytes with another that is live then}}
    %b = kernel.buffer 448 : memref<4xf32>
    kernel.copy %z to %b : memref<4xf32> to memref<4xf32>
    kernel.copy %a to %u : memref<32xf32> to memref<32xf32>
    kernel.copy %b to %v : memref<4xf32> to memref<4xf32>
    return
  }
}

// -----

module attributes {kernel.arena = {bindings = 192 : i64, bytes = 640 : i64, constants = 0 : i64, states = 0 : i64, temporaries = 448 : i64}} {
  func.func @ends_within_another(%x: memref<32xf32> {kernel.offset = 0 : i64, titan.input = "x"}, %z: memref<4xf32> {kernel.offset = 128 : i64, titan.input = "z"},
                 %u: memref<32xf32> {kernel.offset = 192 : i64, titan.output = "u"}, %v: memref<4xf32> {kernel.offset = 320 : i64, titan.output = "v"}) {
    // expected-note @below {{the other, at 448, live in [0, 3]}}
    %b = kernel.buffer 448 : memref<4xf32>
    kernel.copy %z to %b : memref<4xf32> to memref<4xf32>
    // expected-error @below {{temporary at 384, live in [1, 2], shares bytes with another that is live then}}
    %a = kernel.buffer 384 : memref<32xf32>
    kernel.copy %x to %a : memref<32xf32> to memref<32xf32>
    kernel.copy %a to %u : memref<32xf32> to memref<32xf32>
    kernel.copy %b to %v : memref<4xf32> to memref<4xf32>
    return
  }
}

// -----

module attributes {kernel.arena = {bindings = 64 : i64, bytes = 128 : i64, constants = 0 : i64, states = 64 : i64, temporaries = 0 : i64}} {
  titan.state @w : tensor<4xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, kernel.offset = 0 : i64}
  func.func @early_write(%w: memref<4xf32> {kernel.offset = 0 : i64, titan.state = @w}, %x: memref<4xf32> {kernel.offset = 64 : i64, titan.input = "x"}) {
    // expected-error @below {{writes state @w before the phase 'update'}}
    kernel.copy %x to %w : memref<4xf32> to memref<4xf32>
    return
  }
}

// -----

module attributes {kernel.arena = {bindings = 128 : i64, bytes = 128 : i64, constants = 0 : i64, states = 0 : i64, temporaries = 0 : i64}} {
  func.func @writes_input(%x: memref<4xf32> {kernel.offset = 0 : i64, titan.input = "x"}, %y: memref<4xf32> {kernel.offset = 64 : i64, titan.input = "y"}) {
    // expected-error @below {{writes 'y', which belongs to the caller}}
    kernel.copy %x to %y : memref<4xf32> to memref<4xf32>
    return
  }
}

// -----

module attributes {kernel.arena = {bindings = 64 : i64, bytes = 64 : i64, constants = 0 : i64, states = 0 : i64, temporaries = 0 : i64}} {
  // expected-error @below {{binding 'x' at offset 4 is not aligned to 64 bytes}}
  func.func @unaligned(%x: memref<4xf32> {kernel.offset = 4 : i64, titan.input = "x"}) {
    return
  }
}

// -----

module attributes {kernel.arena = {bindings = 64 : i64, bytes = 64 : i64, constants = 0 : i64, states = 0 : i64, temporaries = 0 : i64}} {
  // expected-error @below {{binding 'x' at [0, 400) leaves its region [0, 64)}}
  func.func @outside(%x: memref<100xf32> {kernel.offset = 0 : i64, titan.input = "x"}) {
    return
  }
}

// -----

module attributes {kernel.arena = {bindings = 64 : i64, bytes = 128 : i64, constants = 0 : i64, states = 0 : i64, temporaries = 64 : i64}} {
  func.func @no_offset(%x: memref<4xf32> {kernel.offset = 0 : i64, titan.output = "x"}) {
    // expected-error @below {{buffer has no offset in the arena: run the stage 'plan' first}}
    %a = kernel.buffer -1 : memref<4xf32>
    kernel.copy %a to %x : memref<4xf32> to memref<4xf32>
    return
  }
}

// -----

module attributes {kernel.arena = {bindings = 64 : i64, bytes = 192 : i64, constants = 0 : i64, states = 0 : i64, temporaries = 128 : i64}} {
  func.func @output_shares(%x: memref<4xf32> {kernel.offset = 0 : i64, titan.input = "x"}, %y: memref<4xf32> {kernel.offset = 64 : i64, titan.output = "y"}) {
    // expected-error @below {{temporary at 64 shares bytes with output 'y'}}
    %a = kernel.buffer 64 : memref<4xf32>
    kernel.copy %x to %a : memref<4xf32> to memref<4xf32>
    kernel.copy %a to %y : memref<4xf32> to memref<4xf32>
    return
  }
}

// -----

module attributes {kernel.arena = {bindings = 64 : i64, bytes = 128 : i64, constants = 0 : i64, states = 0 : i64, temporaries = 64 : i64}} {
  // expected-error @below {{output 'z' shares bytes with output 'y'}}
  func.func @outputs_share(%x: memref<4xf32> {kernel.offset = 0 : i64, titan.input = "x"}, %y: memref<4xf32> {kernel.offset = 64 : i64, titan.output = "y"}, %z: memref<4xf32> {kernel.offset = 64 : i64, titan.output = "z"}) {
    kernel.copy %x to %y : memref<4xf32> to memref<4xf32>
    kernel.copy %x to %z : memref<4xf32> to memref<4xf32>
    return
  }
}

// -----

// A source where other ranks cannot read it.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>, kernel.arena = {bindings = 0 : i64, bytes = 8192 : i64, constants = 0 : i64, staging = 4096 : i64, staging_offset = 0 : i64, states = 0 : i64, temporaries = 4096 : i64}} {
  func.func @source_outside() {
    // expected-error @below {{source of a collective at [4096, 4112) leaves its region [0, 4096)}}
    %s = kernel.buffer 4096 : memref<4xf32>
    %r = kernel.buffer 4160 : memref<4xf32>
    %t = dist.start all_reduce ins(%s : memref<4xf32>) outs(%r : memref<4xf32>) axes ["replicate"] order rank
    dist.wait %t ins(%s : memref<4xf32>) outs(%r : memref<4xf32>)
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>, kernel.arena = {bindings = 64 : i64, bytes = 128 : i64, constants = 0 : i64, states = 0 : i64, temporaries = 64 : i64}} {
  func.func @source_of_the_caller(%x: memref<4xf32> {kernel.offset = 0 : i64, titan.input = "x"}) {
    %r = kernel.buffer 64 : memref<4xf32>
    // expected-error @below {{has a source that is no temporary: other ranks cannot read it}}
    %t = dist.start all_reduce ins(%x : memref<4xf32>) outs(%r : memref<4xf32>) axes ["replicate"] order rank
    dist.wait %t ins(%x : memref<4xf32>) outs(%r : memref<4xf32>)
    return
  }
}

// -----

// A temporary of no collective has no business in staging.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>, kernel.arena = {bindings = 64 : i64, bytes = 8256 : i64, constants = 0 : i64, staging = 4096 : i64, staging_offset = 4096 : i64, states = 0 : i64, temporaries = 64 : i64}} {
  func.func @guest(%y: memref<4xf32> {kernel.offset = 0 : i64, titan.metric = "y"}) {
    // expected-error @below {{temporary at [4096, 4112) leaves its region [8192, 8256)}}
    %s = kernel.buffer 4096 : memref<4xf32>
    kernel.copy %s to %y : memref<4xf32> to memref<4xf32>
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>, kernel.arena = {bindings = 64 : i64, bytes = 8256 : i64, constants = 0 : i64, staging = 4096 : i64, staging_offset = 4096 : i64, states = 0 : i64, temporaries = 64 : i64}} {
  func.func @c6_writes_source(%y: memref<4xf32> {kernel.offset = 0 : i64, titan.metric = "y"}) {
    %s = kernel.buffer 4096 : memref<4xf32>
    %r = kernel.buffer 8192 : memref<4xf32>
    // expected-note @below {{the collective starts here}}
    %t = dist.start all_reduce ins(%s : memref<4xf32>) outs(%r : memref<4xf32>) axes ["replicate"] order rank
    kernel.copy %s to %y : memref<4xf32> to memref<4xf32>
    %v = kernel.cast_shape %s : memref<4xf32> to memref<2x2xf32>
    // expected-error @below {{writes to a source of a collective that is not waited for (C6)}}
    kernel.copy %y to %v : memref<4xf32> to memref<2x2xf32>
    dist.wait %t ins(%s : memref<4xf32>) outs(%r : memref<4xf32>)
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>, kernel.arena = {bindings = 64 : i64, bytes = 8192 : i64, constants = 0 : i64, staging = 4096 : i64, staging_offset = 4096 : i64, states = 0 : i64, temporaries = 0 : i64}} {
  func.func @c6_reads_result(%y: memref<4xf32> {kernel.offset = 0 : i64, titan.metric = "y"}, %z: memref<4xf32> {kernel.offset = 64 : i64, titan.metric = "z"}) {
    %s = kernel.buffer 4096 : memref<4xf32>
    %v = kernel.cast_shape %y : memref<4xf32> to memref<2x2xf32>
    // expected-note @below {{the collective starts here}}
    %t = dist.start all_reduce ins(%s : memref<4xf32>) outs(%y : memref<4xf32>) axes ["replicate"] order rank
    // expected-error @below {{touches a result of a collective that is not waited for (C6)}}
    kernel.copy %v to %z : memref<2x2xf32> to memref<4xf32>
    dist.wait %t ins(%s : memref<4xf32>) outs(%y : memref<4xf32>)
    return
  }
}

// -----

// Results that start on their way where another collective's lie.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>, kernel.arena = {bindings = 64 : i64, bytes = 8192 : i64, constants = 0 : i64, staging = 4096 : i64, staging_offset = 4096 : i64, states = 0 : i64, temporaries = 0 : i64}} {
  func.func @c6_two_collectives(%y: memref<4xf32> {kernel.offset = 0 : i64, titan.metric = "y"}) {
    %s = kernel.buffer 4096 : memref<4xf32>
    %v = kernel.cast_shape %y : memref<4xf32> to memref<2x2xf32>
    %q = kernel.cast_shape %s : memref<4xf32> to memref<2x2xf32>
    // expected-note @below {{the collective starts here}}
    %t = dist.start all_reduce ins(%s : memref<4xf32>) outs(%y : memref<4xf32>) axes ["replicate"] order rank
    // expected-error @below {{touches a result of a collective that is not waited for (C6)}}
    %u = dist.start all_reduce ins(%q : memref<2x2xf32>) outs(%v : memref<2x2xf32>) axes ["replicate"] order rank
    dist.wait %t ins(%s : memref<4xf32>) outs(%y : memref<4xf32>)
    dist.wait %u ins(%q : memref<2x2xf32>) outs(%v : memref<2x2xf32>)
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>, kernel.arena = {bindings = 64 : i64, bytes = 8192 : i64, constants = 0 : i64, staging = 4096 : i64, staging_offset = 4096 : i64, states = 0 : i64, temporaries = 0 : i64}} {
  func.func @results_meet(%y: memref<4xf32> {kernel.offset = 0 : i64, titan.metric = "y"}) {
    %s = kernel.buffer 4096 : memref<4xf32>
    %u = kernel.buffer 4160 : memref<4xf32>
    // expected-error @below {{gives two results at one place}}
    %t = dist.start all_reduce ins(%s, %u : memref<4xf32>, memref<4xf32>) outs(%y, %y : memref<4xf32>, memref<4xf32>) axes ["replicate"] order rank
    dist.wait %t ins(%s, %u : memref<4xf32>, memref<4xf32>) outs(%y, %y : memref<4xf32>, memref<4xf32>)
    return
  }
}

// -----

// One buffer may be in and out of an all_reduce, but not of two of its operands.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>, kernel.arena = {bindings = 0 : i64, bytes = 4096 : i64, constants = 0 : i64, staging = 4096 : i64, staging_offset = 0 : i64, states = 0 : i64, temporaries = 0 : i64}} {
  func.func @crosswise() {
    %s = kernel.buffer 0 : memref<4xf32>
    %u = kernel.buffer 64 : memref<4xf32>
    %i = dist.start all_reduce ins(%s, %u : memref<4xf32>, memref<4xf32>) outs(%s, %u : memref<4xf32>, memref<4xf32>) axes ["replicate"] order rank
    dist.wait %i ins(%s, %u : memref<4xf32>, memref<4xf32>) outs(%s, %u : memref<4xf32>, memref<4xf32>)
    // expected-error @below {{gives result 0 where source 1 lies}}
    %t = dist.start all_reduce ins(%s, %u : memref<4xf32>, memref<4xf32>) outs(%u, %s : memref<4xf32>, memref<4xf32>) axes ["replicate"] order rank
    dist.wait %t ins(%s, %u : memref<4xf32>, memref<4xf32>) outs(%u, %s : memref<4xf32>, memref<4xf32>)
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>, kernel.arena = {bindings = 64 : i64, bytes = 8192 : i64, constants = 0 : i64, staging = 4096 : i64, staging_offset = 4096 : i64, states = 0 : i64, temporaries = 0 : i64}} {
  func.func @c6_writes_result(%x: memref<4xf32> {kernel.offset = 0 : i64, titan.input = "x"}, %y: memref<4xf32> {kernel.offset = 64 : i64, titan.metric = "y"}) {
    %s = kernel.buffer 4096 : memref<4xf32>
    %v = kernel.cast_shape %y : memref<4xf32> to memref<2x2xf32>
    // expected-note @below {{the collective starts here}}
    %t = dist.start all_reduce ins(%s : memref<4xf32>) outs(%y : memref<4xf32>) axes ["replicate"] order rank
    // expected-error @below {{touches a result of a collective that is not waited for (C6)}}
    kernel.copy %x to %v : memref<4xf32> to memref<2x2xf32>
    dist.wait %t ins(%s : memref<4xf32>) outs(%y : memref<4xf32>)
    return
  }
}

// -----

// One buffer as source and result: nothing may read it, not even what may read a source.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>, kernel.arena = {bindings = 64 : i64, bytes = 8192 : i64, constants = 0 : i64, staging = 4096 : i64, staging_offset = 4096 : i64, states = 0 : i64, temporaries = 0 : i64}} {
  func.func @c6_in_place_reads(%y: memref<4xf32> {kernel.offset = 0 : i64, titan.metric = "y"}) {
    %s = kernel.buffer 4096 : memref<4xf32>
    %v = kernel.cast_shape %s : memref<4xf32> to memref<2x2xf32>
    // expected-note @below {{the collective starts here}}
    %t = dist.start all_reduce ins(%s : memref<4xf32>) outs(%s : memref<4xf32>) axes ["replicate"] order rank
    // expected-error @below {{touches a result of a collective that is not waited for (C6)}}
    kernel.copy %v to %y : memref<2x2xf32> to memref<4xf32>
    dist.wait %t ins(%s : memref<4xf32>) outs(%s : memref<4xf32>)
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>, kernel.arena = {bindings = 64 : i64, bytes = 8192 : i64, constants = 0 : i64, staging = 4096 : i64, staging_offset = 4096 : i64, states = 0 : i64, temporaries = 0 : i64}} {
  func.func @c6_in_place_writes(%x: memref<4xf32> {kernel.offset = 0 : i64, titan.input = "x"}) {
    %s = kernel.buffer 4096 : memref<4xf32>
    %v = kernel.cast_shape %s : memref<4xf32> to memref<2x2xf32>
    // expected-note @below {{the collective starts here}}
    %t = dist.start all_reduce ins(%s : memref<4xf32>) outs(%s : memref<4xf32>) axes ["replicate"] order rank
    // expected-error @below {{touches a result of a collective that is not waited for (C6)}}
    kernel.copy %x to %v : memref<4xf32> to memref<2x2xf32>
    dist.wait %t ins(%s : memref<4xf32>) outs(%s : memref<4xf32>)
    return
  }
}

// -----

// Only an all_reduce has ins and outs of one size: a rank's part over the whole is none in place.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>, kernel.arena = {bindings = 0 : i64, bytes = 4096 : i64, constants = 0 : i64, staging = 4096 : i64, staging_offset = 0 : i64, states = 0 : i64, temporaries = 0 : i64}} {
  func.func @part_over_whole() {
    %c0 = arith.constant 0 : index
    %s = kernel.buffer 0 : memref<4xf32>
    %p = kernel.rows %s[%c0] : memref<4xf32> to memref<2xf32>
    // expected-error @below {{gives result 0 where source 0 lies}}
    %t = dist.start reduce_scatter ins(%s : memref<4xf32>) outs(%p : memref<2xf32>) axes ["replicate"] dims [0] order rank
    dist.wait %t ins(%s : memref<4xf32>) outs(%p : memref<2xf32>)
    return
  }
}

// -----

// Rows of one buffer: another one may be written, the source's own not.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>, kernel.arena = {bindings = 128 : i64, bytes = 8192 : i64, constants = 0 : i64, staging = 4096 : i64, staging_offset = 4096 : i64, states = 0 : i64, temporaries = 0 : i64}} {
  func.func @c6_rows(%x: memref<4xf32> {kernel.offset = 0 : i64, titan.input = "x"}, %y: memref<4xf32> {kernel.offset = 64 : i64, titan.metric = "y"}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %both = kernel.buffer 4096 : memref<2x4xf32>
    %s = kernel.slice %both[%c0] : memref<2x4xf32> to memref<4xf32>
    %other = kernel.slice %both[%c1] : memref<2x4xf32> to memref<4xf32>
    %again = kernel.slice %both[%c0] : memref<2x4xf32> to memref<4xf32>
    // expected-note @below {{the collective starts here}}
    %t = dist.start all_reduce ins(%s : memref<4xf32>) outs(%y : memref<4xf32>) axes ["replicate"] order rank
    kernel.copy %x to %other : memref<4xf32> to memref<4xf32>
    // expected-error @below {{writes to a source of a collective that is not waited for (C6)}}
    kernel.copy %x to %again : memref<4xf32> to memref<4xf32>
    dist.wait %t ins(%s : memref<4xf32>) outs(%y : memref<4xf32>)
    return
  }
}

// -----

// In a loop between start and wait, at a place that is no constant: it may be the source's.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>, kernel.arena = {bindings = 128 : i64, bytes = 8192 : i64, constants = 0 : i64, staging = 4096 : i64, staging_offset = 4096 : i64, states = 0 : i64, temporaries = 0 : i64}} {
  func.func @c6_in_a_loop(%x: memref<4xf32> {kernel.offset = 0 : i64, titan.input = "x"}, %y: memref<4xf32> {kernel.offset = 64 : i64, titan.metric = "y"}) {
    %c0 = arith.constant 0 : index
    %both = kernel.buffer 4096 : memref<2x4xf32>
    %s = kernel.slice %both[%c0] : memref<2x4xf32> to memref<4xf32>
    // expected-note @below {{the collective starts here}}
    %t = dist.start all_reduce ins(%s : memref<4xf32>) outs(%y : memref<4xf32>) axes ["replicate"] order rank
    accum.loop %i in 2 running {
      %row = kernel.slice %both[%i] : memref<2x4xf32> to memref<4xf32>
      // expected-error @below {{writes to a source of a collective that is not waited for (C6)}}
      kernel.copy %x to %row : memref<4xf32> to memref<4xf32>
    }
    dist.wait %t ins(%s : memref<4xf32>) outs(%y : memref<4xf32>)
    return
  }
}
