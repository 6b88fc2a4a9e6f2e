// The kernel dialect: declaration, enums and attributes.
#ifndef KERNEL_DIALECT_TD
#define KERNEL_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::titan::kernel";
  let summary = "Fused kernels without a schedule, and library calls, both in destination style";
  let description = [{
    *lower* turns every titan op into `kernel.fused` (an iteration space and a scalar body with declared reductions: no tile, no vector, no
    thread in it) or `kernel.call` (a library routine with its epilogue and its fixed tile grid). Up to *plan* operands are tensors and each result
    is tied to the `outs` operand at its position; *plan* turns them into buffers (memrefs with an offset in the arena), and there are no results.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasRegionArgAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::titan::ir::TitanDialect"];
}

// The four shapes of loops that codegen knows. A space is [outer..., rows..., inner...]; extents of 1 count for nothing.
//   flat       no reduction.
//   row        every reduction is over the same trailing dimensions, `inner`; `rows` is empty. The units of work are the points of `outer`.
//   column     at least one reduction is over `rows`, dimensions that stand together and are followed by `inner` (which may not be empty); all such
//              reductions are over the same `rows`. Other reductions are over `inner` (row reductions), and feed from no column reduction. What a
//              column reduction gives depends on `rows` no more, and feeds only values that do not: one sweep down the rows, then an
//              epilogue over `inner`. The units of work are the points of `outer`.
//   transpose  no reduction; some operand is not contiguous along the innermost dimension.
def Kernel_Class : I32EnumAttr<"KernelClass", "the shape of a fused kernel's loops", [
    I32EnumAttrCase<"Flat", 0, "flat">, I32EnumAttrCase<"Row", 1, "row">,
    I32EnumAttrCase<"Column", 2, "column">, I32EnumAttrCase<"Transpose", 3, "transpose">]> {
  let cppNamespace = "::titan::kernel";
  let genSpecializedAttr = 0;
}
def Kernel_ClassAttr : EnumAttr<Kernel_Dialect, Kernel_Class, "class">;

def Kernel_ReduceKind : I32EnumAttr<"ReduceKind", "how a body reduction combines", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Mul", 1, "mul">,
    I32EnumAttrCase<"Max", 2, "max">, I32EnumAttrCase<"Min", 3, "min">]> {
  let cppNamespace = "::titan::kernel";
  let genSpecializedAttr = 0;
}
def Kernel_ReduceKindAttr : EnumAttr<Kernel_Dialect, Kernel_ReduceKind, "reduce">;

def Kernel_RoutineAttrInterface : AttrInterface<"RoutineAttrInterface"> {
  let cppNamespace = "::titan::kernel";
  let description = "What `kernel.call` calls: the routine's parameters, and what it does with the operands.";
  let methods = [
    InterfaceMethod<"Does `call` have the operands that the routine takes? Emits an error if not.",
                    "::llvm::LogicalResult", "verifyCall", (ins "::mlir::Operation *":$call)>,
    InterfaceMethod<"Does the routine read what `outs` number `i` holds before the call?", "bool", "readsOut", (ins "unsigned":$i)>,
    InterfaceMethod<"The units of work that threads share; how they are shared never decides bits.", "int64_t", "getUnits">
  ];
}

def Kernel_PatchesAttr : AttrDef<Kernel_Dialect, "Patches"> {
  let mnemonic = "patches";
  let summary = "where the elements of a matrix stand whose lines, or whose columns, are several dimensions: the windows of a convolution";
  let description = [{
    Line i is a number with the digits of `lineExtents`, most significant first, column j one with those of `columnExtents`. Element (i, j) of the matrix is
    that at `offset` + the sum of all digits times their strides. Elements may stand in several places of the matrix. Neighbouring columns of the last digit are neighbours in memory.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$lineExtents, ArrayRefParameter<"int64_t">:$lineStrides,
                        ArrayRefParameter<"int64_t">:$columnExtents, ArrayRefParameter<"int64_t">:$columnStrides, "int64_t":$offset);
  let assemblyFormat = [{
    `<` `lines` `=` `[` $lineExtents `]` `by` ` ` `[` $lineStrides `]` `,` `columns` `=` `[` $columnExtents `]` `by` ` ` `[` $columnStrides `]` `,`
    `offset` `=` $offset `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getLines() const;
    int64_t getColumns() const;
    /// Columns that are neighbours in memory.
    int64_t getRun() const { return getColumnExtents().back(); }
    /// The element at line `line` and column `column`.
    int64_t at(int64_t line, int64_t column) const;
    /// One more than the last element that the matrix has.
    int64_t getSpan() const;
  }];
}

def Kernel_GemmAttr : AttrDef<Kernel_Dialect, "Gemm", [DeclareAttrInterfaceMethods<Kernel_RoutineAttrInterface>]> {
  let mnemonic = "gemm";
  let summary = "C[m, n] (+)= op(A) op(B) over a batch, row-major, on a fixed tile grid; see Gemm in runtime/program/Program.h";
  let description = [{
    `ins` are A, B and, with `bias`, the bias [n], of C's type. With `accumulate` the `outs` operand holds the value that is added to. Products of
    bf16 are summed in f32; an f32 B beside a bf16 A is rounded to bf16 as it is read, and a bf16 C is rounded last, after bias and relu.
    Leading dimensions and batch strides count elements. K is never split; a tile is `tile_m` x `tile_n`.

    With `patchesA` A has its elements where that says, and `lda` says nothing; B likewise. Neither is transposed then.
  }];
  let parameters = (ins "int64_t":$batch, "int64_t":$m, "int64_t":$n, "int64_t":$k,
    "int64_t":$lda, "int64_t":$ldb, "int64_t":$ldc,
    "int64_t":$strideA, "int64_t":$strideB, "int64_t":$strideC,
    "bool":$transposeA, "bool":$transposeB, "bool":$accumulate, "bool":$bias, "bool":$relu,
    "int64_t":$tileM, "int64_t":$tileN,
    OptionalParameter<"::titan::kernel::PatchesAttr">:$patchesA, OptionalParameter<"::titan::kernel::PatchesAttr">:$patchesB);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = "bool hasPatches() const { return getPatchesA() || getPatchesB(); }";
}

include "dialects/Kernel/Attention.td"
include "dialects/Kernel/Recurrence.td"

defvar Kernel_countsOfRows = [{
  /// Of the result, or of the gradient: as many as there are indices.
  int64_t getAllRows() const { return getOuter() * getRows() * getInner(); }
  int64_t getTableRows() const { return getOuter() * getEntries() * getInner(); }
}];

def Kernel_EmbeddingAttr : AttrDef<Kernel_Dialect, "Embedding", [DeclareAttrInterfaceMethods<Kernel_RoutineAttrInterface>]> {
  let mnemonic = "embedding";
  let summary = "row `index[i]` of a table of `entries` rows of `width` elements becomes row i of the result, for `rows` indices";
  let description = [{
    `ins` are the table and the indices, `outs` is the result, of the table's element type. An index below 0 counts as 0, one from `entries` on as the last. A
    unit is one row.

    With `outer` and `inner` the table is [outer, entries, inner, width], and index [o, j, i] of [outer, rows, inner] names the row [o, index, i] of it.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$entries, "int64_t":$width, DefaultValuedParameter<"int64_t", "1">:$outer,
                        DefaultValuedParameter<"int64_t", "1">:$inner);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = Kernel_countsOfRows;
}

def Kernel_EmbeddingGradAttr : AttrDef<Kernel_Dialect, "EmbeddingGrad", [DeclareAttrInterfaceMethods<Kernel_RoutineAttrInterface>]> {
  let mnemonic = "embedding_grad";
  let summary = "adds row i of a gradient to row `index[i]` of a table of `entries` rows of `width` elements, for `rows` indices in order";
  let description = [{
    `ins` are the gradient of the rows and the indices, clamped as in `embedding`; `outs` is the table's gradient, in f32 or f64. With `accumulate` it holds the value
    that is added to, otherwise it starts from zero. Nothing is added to row `padding`; -1: to every row. A unit is `columns` columns (the last one may have
    fewer) of all rows.

    With `sorted` the order is another one: rows are sorted by index, stably, and cut into tiles of `tileRows`. What a tile has for one index is summed in
    order, these sums are added tile by tile, and the whole to what is there. Two outs more are workspace: `getOrderElements()` numbers of type i32, and the
    sums of two indices of each tile, in the type of the table's gradient. A CPU's kernel keeps the order of rows and leaves the workspace alone.

    `outer` and `inner` are those of `embedding`; rows and entries of the order and the padding are then those of the whole table.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$entries, "int64_t":$width, "bool":$accumulate, "int64_t":$columns,
                        DefaultValuedParameter<"int64_t", "-1">:$padding, DefaultValuedParameter<"bool", "false">:$sorted,
                        DefaultValuedParameter<"int64_t", "1">:$outer, DefaultValuedParameter<"int64_t", "1">:$inner);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = Kernel_countsOfRows # [{
    /// Of `sorted`: rows of a tile, rows that one block of a card sorts, and values of a digit.
    static constexpr int64_t tileRows = 256, sortRows = 2048, digitValues = 256;
    int64_t getTiles() const;
    int64_t getSortBlocks() const;
    /// Two permutations of the rows, and how often each block of the sort has each digit.
    int64_t getOrderElements() const;
    /// Two sums a tile, of `width` elements.
    int64_t getSumElements() const;
  }];
}

include "dialects/Kernel/Scatter.td"
include "dialects/Kernel/TopK.td"

#endif // KERNEL_DIALECT_TD
