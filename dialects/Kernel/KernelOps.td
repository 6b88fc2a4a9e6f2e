// The kernel dialect: what one launch computes, before anything is said about how.
#ifndef KERNEL_OPS_TD
#define KERNEL_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Kernel/KernelDialect.td"
include "dialects/Kernel/KernelInterfaces.td"
include "dialects/Titan/TitanDialect.td"

class Kernel_Op<string mnemonic, list<Trait> traits = []> : Op<Kernel_Dialect, mnemonic, traits>;

def Kernel_Buffer : AnyTypeOf<[AnyStaticShapeTensor, AnyStaticShapeMemRef]>;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def Kernel_FusedOp : Kernel_Op<"fused", [AttrSizedOperandSegments, IsolatedFromAbove, CommandLikeOpInterface,
    SingleBlockImplicitTerminator<"::titan::kernel::YieldOp">, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "evaluates a scalar body at every point of an iteration space";
  let description = [{
    Conceptually the body's values are arrays over `space`: argument i holds `ins[i]` read through its map, arith and math ops apply
    pointwise, `kernel.index` is a coordinate, and `kernel.reduce` combines over some of the dimensions (its value no longer depends on them). The j-th
    yielded value is written to `outs[j]` through its map (the maps of the outs follow those of the ins). Elements of `outs[j]` that no point maps to keep their value.

    Inside of the body no value may be needed before it is complete: a reduction's operands come first, as in any SSA block.

    Integers are signless in the body, whatever the operand's element type says: the sign is in the ops (`arith.extui`, `arith.divui`). An
    operand of element type i1 is stored as one byte, 0 or 1.

    Constraints:
    - (C1) `maps` has one entry per ins and outs, each from `space`'s dimensions to the operand's; results are affine, without symbols, and stay within the operand's extents.
    - (C2) body arguments are the element types of `ins` (integers signless), then `index` for each of `scalars`.
    - (C3) yielded types are the element types of `outs` (integers signless); on tensors the results have the types of `outs`, on memrefs there are none.
    - (C4) a yielded value depends on no dimension that its map lacks.
    - (C5) every map of `outs` is injective over the dimensions it uses: no two points write one element. A result may combine dimensions as digits
      of a mixed-radix number, `16 * chunk + row`.
    - (C6) the body holds arith, math and kernel body ops only.
    - (C7) on buffers an `outs` may be the buffer of an `ins` only if the two walk alike: both have the same shape and map; a dimension that the map lacks is
      reduced over, and nothing that is computed from that `ins` depends on it. So each element is read where it is written and nowhere else, and all
      reductions are complete before anything is written.

    ```mlir
    // softmax over the rows
    %y = kernel.fused row [64, 10] ins(%x : tensor<64x10xf32>) outs(%o : tensor<64x10xf32>)
        maps [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>] -> (tensor<64x10xf32>) {
    ^bb0(%v: f32):
      %max = kernel.reduce max %v over [1] : f32
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %sum = kernel.reduce add %e over [1] : f32
      %p = arith.divf %e, %sum : f32
      kernel.yield %p : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Kernel_Buffer>:$ins, Variadic<Kernel_Buffer>:$outs, Variadic<Index>:$scalars,
                       Kernel_ClassAttr:$kernel_class, DenseI64ArrayAttr:$space, AffineMapArrayAttr:$maps,
                       OptionalAttr<StrArrayAttr>:$path, OptionalAttr<Titan_PhaseAttr>:$phase);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $kernel_class $space (`ins` `(` $ins^ `:` type($ins) `)`)? `outs` `(` $outs `:` type($outs) `)`
    (`scalars` `(` $scalars^ `)`)? `maps` $maps attr-dict-with-keyword (`->` `(` type($results)^ `)`)? $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block& getBlock() { return getBody().front(); }
    ::mlir::AffineMap getInMap(unsigned i);
    ::mlir::AffineMap getOutMap(unsigned i);
    /// The dimensions of the space that `value` (of the body) depends on.
    ::llvm::SmallBitVector getDependence(::mlir::Value value);
    bool isOnBuffers() { return getNumResults() == 0; }
    ::llvm::SmallVector<::mlir::OpOperand *> getReads();
    ::llvm::SmallVector<::mlir::OpOperand *> getWrites();
    /// (C7), for one of the ins and one of the outs.
    bool walksAlike(::mlir::OpOperand &in, ::mlir::OpOperand &out);
  }];
}

def Kernel_YieldOp : Kernel_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"FusedOp">]> {
  let summary = "the values written to `outs`";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), "build($_builder, $_state, ::mlir::ValueRange());">];
}

def Kernel_CallOp : Kernel_Op<"call", [AttrSizedOperandSegments, CommandLikeOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a library or generated routine with its epilogue and its fixed division into units";
  let description = [{
    Constraints:
    - (C1) `ins`, `outs` and `scalars` are what `routine` takes; each holds at least the elements that the routine touches.
    - (C2) on tensors the results have the types of `outs`.
    - (C3) extents, leading dimensions and tiles are positive; a leading dimension is at least the row length.

    ```mlir
    %c = kernel.call #kernel.gemm<batch = 1, m = 64, n = 128, k = 784, lda = 784, ldb = 784, ldc = 128, strideA = 0, strideB = 0,
        strideC = 0, transposeA = false, transposeB = true, accumulate = false, bias = false, relu = false, tileM = 64, tileN = 128>
        ins(%x, %w : tensor<64x784xf32>, tensor<128x784xf32>) outs(%o : tensor<64x128xf32>) -> (tensor<64x128xf32>)
    ```
  }];
  let arguments = (ins Variadic<Kernel_Buffer>:$ins, Variadic<Kernel_Buffer>:$outs, Variadic<Index>:$scalars,
                       Kernel_RoutineAttrInterface:$routine,
                       OptionalAttr<StrArrayAttr>:$path, OptionalAttr<Titan_PhaseAttr>:$phase);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let assemblyFormat = [{
    $routine `ins` `(` $ins `:` type($ins) `)` `outs` `(` $outs `:` type($outs) `)` (`scalars` `(` $scalars^ `)`)?
    attr-dict (`->` `(` type($results)^ `)`)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::OpOperand *> getReads();
    ::llvm::SmallVector<::mlir::OpOperand *> getWrites();
    /// The routine as a matrix product; null if it is another.
    ::titan::kernel::GemmAttr getGemm() { return ::llvm::dyn_cast<::titan::kernel::GemmAttr>(getRoutine()); }
  }];
}

//===----------------------------------------------------------------------===//
// Body of kernel.fused
//===----------------------------------------------------------------------===//

def Kernel_ReduceOp : Kernel_Op<"reduce", [Pure, SameOperandsAndResultType, ParentOneOf<["FusedOp"]>]> {
  let summary = "combines the value over the given dimensions of the space";
  let description = [{
    `add` and `mul` in the value's own type; the order is fixed by extents and target, never by the kernel around it. `max` and `min` propagate NaN.
    The identity of an empty reduction is 0, 1, -inf, +inf (integers: the extreme values).

    Constraints:
    - (C1) dims are strictly increasing and within the space.
  }];
  let arguments = (ins Kernel_ReduceKindAttr:$kind, AnyTypeOf<[F32, F64, I64, I32]>:$value, DenseI64ArrayAttr:$dims);
  let results = (outs AnyTypeOf<[F32, F64, I64, I32]>:$result);
  let assemblyFormat = "$kind $value `over` $dims attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Kernel_IndexOp : Kernel_Op<"index", [Pure, ParentOneOf<["FusedOp"]>]> {
  let summary = "the coordinate along one dimension of the space";
  let arguments = (ins I64Attr:$dim);
  let results = (outs Index:$result);
  let assemblyFormat = "$dim attr-dict";
  let hasVerifier = 1;
  let description = [{
    Constraints:
    - (C1) dim is within the space.
  }];
}

def Kernel_RandomHalfOp : Kernel_Op<"random_half", [Pure, ParentOneOf<["FusedOp"]>]> {
  let summary = "the 16-bit half that Philox4x32-7 gives element `base` + `element`, zero-extended to i32";
  let description = [{
    See runtime/program/Random.h. `seed` and `step` are the run's; the key is XXH3-64(seed, stream). Kept elements of a dropout are those below
    round((1 - p) * 65536). `base` is 0 where it is not given; `multiple` divides each of its values, so that codegen knows where blocks begin.
  }];
  let arguments = (ins I64:$seed, I64:$step, Index:$element, Optional<Index>:$base, I64Attr:$stream,
                       DefaultValuedAttr<I64Attr, "1">:$multiple);
  let results = (outs I32:$result);
  let assemblyFormat = "`stream` $stream `seed` $seed `step` $step `element` $element (`base` $base^)? attr-dict";
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

def Kernel_EmptyOp : Kernel_Op<"empty", [Pure]> {
  let summary = "a tensor to be written, of unspecified contents";
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Kernel_ConstantOp : Kernel_Op<"constant", [Pure]> {
  let summary = "a tensor known at compile time that is no splat";
  let description = [{
    Splats are written into kernel bodies. On a buffer, `at` is the byte offset in the arena, where the job copies the bytes at its start; equal
    constants share it. It is missing until *plan* has assigned offsets.

    Constraints:
    - (C1) value and result have the same shape and element type.

    ```mlir
    %c = kernel.constant dense<[1.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value, OptionalAttr<I64Attr>:$offset);
  let results = (outs Kernel_Buffer:$result);
  let assemblyFormat = "$value (`at` $offset^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Kernel_BufferOp : Kernel_Op<"buffer", [MemoryEffects<[MemAlloc<DefaultResource>]>]> {
  let summary = "a temporary at a fixed byte offset of the arena";
  let description = [{
    The offset is -1 until *plan* has assigned it. Each op is a buffer of its own: it is live from its first use to its last.
  }];
  let arguments = (ins I64Attr:$offset);
  let results = (outs AnyStaticShapeMemRef:$result);
  let assemblyFormat = "$offset attr-dict `:` type($result)";
}

def Kernel_SliceOp : Kernel_Op<"slice", [Pure]> {
  let summary = "element `index` along the first dimension, as a buffer";
  let description = [{
    The part of a batch that one microbatch sees.

    Constraints:
    - (C1) the result has the operand's shape without its first dimension, and its element type.
  }];
  let arguments = (ins AnyStaticShapeMemRef:$source, Index:$index);
  let results = (outs AnyStaticShapeMemRef:$result);
  let assemblyFormat = "$source `[` $index `]` attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def Kernel_RowsOp : Kernel_Op<"rows", [Pure]> {
  let summary = "neighbouring elements along the first dimension, from `first` on; moves nothing";
  let description = [{
    A part of a tensor whose place may differ from rank to rank: `first` is a sum of loop counters and coordinates, times constants. That it lies in
    the operand is the producer's to ensure.

    Constraints:
    - (C1) the result has the operand's shape but for its first dimension, of which it has no more, and its element type.

    ```mlir
    %r = kernel.rows %w[%first] : tensor<16x12xf32> to tensor<4x12xf32>
    ```
  }];
  let arguments = (ins Kernel_Buffer:$source, Index:$first);
  let results = (outs Kernel_Buffer:$result);
  let assemblyFormat = "$source `[` $first `]` attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def Kernel_CopyOp : Kernel_Op<"copy", [CommandLikeOpInterface]> {
  let summary = "copies a buffer";
  let description = [{
    What is left where *plan* cannot let a value be written where it belongs: a state that is still read, a value with two destinations.

    Constraints:
    - (C1) source and target have the same number of elements and the same element type.
  }];
  let arguments = (ins Arg<AnyStaticShapeMemRef, "", [MemRead]>:$source, Arg<AnyStaticShapeMemRef, "", [MemWrite]>:$target,
                       OptionalAttr<Titan_PhaseAttr>:$phase);
  let assemblyFormat = "$source `to` $target attr-dict `:` type($source) `to` type($target)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::OpOperand *> getReads() { return {&getSourceMutable()}; }
    ::llvm::SmallVector<::mlir::OpOperand *> getWrites() { return {&getTargetMutable()}; }
  }];
}

def Kernel_CastShapeOp : Kernel_Op<"cast_shape", [Pure]> {
  let summary = "the same contiguous elements under another shape; moves nothing";
  let description = [{
    What is left of `titan.reshape` after *lower*.

    Constraints:
    - (C1) the number of elements and the element type stay.
  }];
  let arguments = (ins Kernel_Buffer:$source);
  let results = (outs Kernel_Buffer:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // KERNEL_OPS_TD
