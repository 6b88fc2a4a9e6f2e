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
