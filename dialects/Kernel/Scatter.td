// The scatter routine of kernel.call.
#ifndef KERNEL_SCATTER_TD
#define KERNEL_SCATTER_TD

def Kernel_ScatterAttr : AttrDef<Kernel_Dialect, "Scatter", [DeclareAttrInterfaceMethods<Kernel_RoutineAttrInterface>]> {
  let mnemonic = "scatter";
  let summary = "titan.scatter: updates [outer, rows, inner, width] meet elements [outer, entries, inner, width], row j the entry that index [o, j, i] names";
  let description = [{
    `ins` are the indices [outer, rows, inner] and the updates, `outs` holds the operand and then the result. Rows are applied in order; an index below 0 counts as
    0, one from `entries` on as the last. What combines is of integers, f32 or f64; `none` of any type.

    A unit is `columns` of the `width` elements (the last one may have fewer) of one o and i, and walks all rows.
  }];
  let parameters = (ins "::titan::ir::ScatterKind":$kind, "int64_t":$outer, "int64_t":$entries, "int64_t":$inner, "int64_t":$rows,
                        "int64_t":$width, "int64_t":$columns);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    /// The units of one o and i.
    int64_t getBlocks() const { return (getWidth() + getColumns() - 1) / getColumns(); }
  }];
}

#endif // KERNEL_SCATTER_TD
