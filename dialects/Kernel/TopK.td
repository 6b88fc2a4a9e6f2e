// The top_k routine of kernel.call.
#ifndef KERNEL_TOP_K_TD
#define KERNEL_TOP_K_TD

def Kernel_TopKAttr : AttrDef<Kernel_Dialect, "TopK", [DeclareAttrInterfaceMethods<Kernel_RoutineAttrInterface>]> {
  let mnemonic = "top_k";
  let summary = "titan.top_k of `rows` rows of `length` elements: the first `count` of each, largest or smallest first, and their i64 indices";
  let description = [{
    `ins` is the operand, `outs` are values and indices. A unit is one row, which it sorts by merging on its stack: so `length` is at most `mostLength`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$length, "int64_t":$count, "bool":$smallest);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    /// Two orders of i32 are half of a kernel's stack.
    static constexpr int64_t mostLength = int64_t(1) << 19;
  }];
}

#endif // KERNEL_TOP_K_TD
