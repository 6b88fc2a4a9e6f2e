// Passes of the stage `lower`: titan ops become kernels, kernels are fused.
#ifndef LOWER_PASSES_TD
#define LOWER_PASSES_TD

include "dialects/PassFacts.td"

class Lower_Pass<string name> : TitanPass<"titan-lower-" # name, "::mlir::func::FuncOp"> {
  let dependentDialects = ["::titan::kernel::KernelDialect"];
}

def NarrowMoves : Lower_Pass<"narrow-moves"> {
  let summary = "moves values before they are widened";
  let description = [{
    A reshape, transposition, slice or concatenation of widened values is the widened value of theirs: half the bytes move, and what moves the narrow values as
    well (the gradient of a projection, for a product in bf16 and for the sum of the bias gradient in f32) shares the result.

    Before: values may be widened, then moved. After: they are moved, then widened.

    ```mlir
    %a = titan.convert %x : tensor<4x6xbf16> to tensor<4x6xf32>
    %b = titan.reshape %a : tensor<4x6xf32> to tensor<24xf32>
    // becomes
    %a = titan.reshape %x : tensor<4x6xbf16> to tensor<24xbf16>
    %b = titan.convert %a : tensor<24xbf16> to tensor<24xf32>
    ```

    Example: test/lower/narrow-moves.mlir.
  }];
}

def FormCones : Lower_Pass<"form-cones"> {
  let summary = "makes one kernel of elementwise ops that only one of them reads";
  let facts = [IsOptional, MovesRounding];
  let description = [{
    Elementwise ops of one shape and phase of which all but the last are read by each other alone (a maximum fanout-free cone) become one kernel: fusion would come
    to the same, pair by pair. Broadcasts and constants that only elementwise ops read become operands and constants of their kernels. Single ops stay as they are.
    A cone that equals one before it gets a copy of its kernel.

    Before and after: titan tensor ops, and kernels where elementwise ops were.

    ```mlir
    %a = titan.mul %x, %y : tensor<4xf32>
    %b = titan.add %a, %x : tensor<4xf32>
    // becomes
    %o = kernel.empty : tensor<4xf32>
    %b = kernel.fused flat [4] ins(%x, %y : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) maps [...] -> (tensor<4xf32>) {
    ^bb0(%p: f32, %q: f32):
      %m = arith.mulf %p, %q : f32
      %s = arith.addf %m, %p : f32
      kernel.yield %s : f32
    }
    ```

    Example: test/lower/form-cones.mlir.
  }];
}

def FormKernels : Lower_Pass<"form-kernels"> {
  let summary = "replaces every titan op by kernels";
  let facts = [MovesRounding];
  let description = [{
    One op at a time, by its LowerableOpInterface. Before: titan tensor ops. After: `kernel` ops only, one kernel.fused or kernel.call for most ops, several where
    the op's definition fixes stages (a reduction's chunks, the pieces of a concatenation). `titan.barrier` stays: the recomputed kernels behind it must not be
    merged with the first ones. Collectives that *schedule* left whole are halved.

    ```mlir
    %y = titan.relu %x : tensor<4xf32>
    // becomes
    %o = kernel.empty : tensor<4xf32>
    %y = kernel.fused flat [4] ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) maps [...] -> (tensor<4xf32>) {
    ^bb0(%v: f32):
      %zero = arith.constant 0.0 : f32
      %m = arith.maximumf %v, %zero : f32
      kernel.yield %m : f32
    }
    ```

    Example: test/lower/form-kernels.mlir.
  }];
  let dependentDialects = ["::titan::kernel::KernelDialect", "::titan::dist::DistDialect"];
}

def AbsorbViews : Lower_Pass<"absorb-views"> {
  let summary = "lets attention read and write parts of larger tensors in place";
  let description = [{
    A copy kernel between attention and a tensor that holds the same elements at strides is not needed: `#kernel.view` says where they are. Query, key and
    value that are slices of one projection are read there; adjoints that are copied side by side into one tensor are written there.

    Before: operands and results of `kernel.call #kernel.attention` are copied where a slice, a transposition or a concatenation stood. After: they are
    views wherever the elements of a head are contiguous. No bit changes. A missed remark says which copy stays and why.

    Example: test/lower/absorb-views.mlir.
  }];
}

def FuseKernels : Lower_Pass<"fuse-kernels"> {
  let summary = "merges kernels with the kernels that read their results";
  let facts = [IsOptional];
  let description = [{
    Equal kernels become one first: the optimizer's scalars of all parameters of a group. A producer is evaluated inside its consumer where one iteration
    space serves both, the result fits one of codegen's classes, every reduction keeps its order, and nothing expensive is computed twice. A result that
    others need as well is written by the merged kernel. Where a collective starts or is awaited between two kernels they stay apart: what *schedule* put
    there runs while bytes travel. See README.md.

    Before and after: the same values, bit for bit. A remark names each merge by module paths; a missed remark says why a producer stayed apart.

    Example: test/lower/fuse-kernels.mlir.
  }];
  let options = [
    Option<"maxOperands", "max-operands", "unsigned", "24", "largest number of operands of a merged kernel">
  ];
}

def FuseEpilogues : Lower_Pass<"fuse-epilogues"> {
  let summary = "moves bias, relu and rounding into the matrix product before them";
  let facts = [IsOptional];
  let description = [{
    A kernel that adds a row vector to the result of a `kernel.call`, applies relu to it, or both, and is the only reader of that result becomes the call's
    epilogue. Both are elementwise after the complete sum, so that no bit changes.

    Where every kernel that reads a product begins by rounding it to bf16, behind one bias of bf16 and relu or none, the call gives the rounded value and the kernels keep the rest
    of their bodies. A kernel that only rounds a weight for such products goes: they round it while they read it.

    Before: the bias is added by a kernel of its own. After: by the call, while the tile is in cache.

    Example: test/lower/fuse-epilogues.mlir.
  }];
}

def PadRows : Lower_Pass<"pad-rows"> {
  let summary = "lets rows of temporaries begin where wide accesses may";
  let facts = [IsOptional];
  let description = [{
    A row of 50257 elements of bf16 ends two bytes behind a multiple of 16: the next one begins where no access of 16 bytes may, and a library's product of such
    matrices is slow. So a temporary of which a product or a reduction reads or writes rows gets a longer innermost dimension. What is added is never read and
    never written: iteration spaces stay, and a product's leading dimension says where rows begin.

    Before: innermost dimensions are as long as rows. After: those of 128 bytes or more are multiples of the machine's `row_alignment`, of 4 KiB or more of its
    `long_row_alignment`, where every op that uses the temporary is a kernel, a product or a cast that keeps rows. States, batches, constants and results are as
    they were. No bit changes. A missed remark says what keeps rows as they are.

    Example: test/lower/pad-rows.mlir.
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", "0", "bytes; 0: the machine's">,
    Option<"longAlignment", "long-alignment", "int64_t", "0", "bytes; 0: the machine's">,
    Option<"shortestRow", "shortest-row", "int64_t", "128", "bytes: beside fewer, what is added would show">
  ];
}

def RemoveBarriers : Lower_Pass<"remove-barriers"> {
  let summary = "replaces every titan.barrier by its operands";
  let description = [{
    Before: barriers keep recomputed chains apart from what they recompute. After: there is none, and no pass merges equal kernels any more.

    Example: test/lower/remove-barriers.mlir.
  }];
}

def ClassifyKernels : Lower_Pass<"classify-kernels"> {
  let summary = "sets the class of every fused kernel";
  let description = [{
    Before: classes may be those of kernels before their merging. After: `kernel_class` is what the body's reductions and the operands' maps say
    (KernelDialect.td).

    Example: test/lower/classify-kernels.mlir.
  }];
}

def VerifyLowered : Lower_Pass<"verify-kernels"> {
  let summary = "states what holds after lower";
  let description = [{
    Functions hold func, accum and kernel ops, halves of collectives and index arithmetic only; there is no titan op and no barrier; every fused kernel has the class that its body has; kernels write to
    kernel.empty or to a value that they continue. Between two neighbouring starts and waits there are products of as many FLOP as *schedule* noted
    (`kernel.products`): no merge and no move went over one.

    Example: test/lower/verify-invalid.mlir.
  }];
}

#endif // LOWER_PASSES_TD
