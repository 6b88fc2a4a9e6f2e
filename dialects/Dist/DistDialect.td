// The dist dialect: declaration, the mesh, enums and types.
#ifndef DIST_DIALECT_TD
#define DIST_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::titan::dist";
  let summary = "One program for all ranks: their mesh, and the collectives between them";
  let description = [{
    A module with the attribute `dist.mesh` is the program of each rank of that mesh. Ranks are numbered row-major in it. The same ops run on
    every rank, in the same order; what differs is `dist.coordinate`, the data, and the parts of states that a rank holds (`#titan.placement`).

    A collective names `axes`. Its groups are the ranks that differ on these axes only, each in row-major order: the *group order*.

    A collective is one op up to *schedule*, which halves it: `dist.start` says that the sources are ready, `dist.wait` that the results are there.

    Sums are of f32, f64, i64 or bf16 (added in f32, rounded once).
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

//===----------------------------------------------------------------------===//
// Attributes and types
//===----------------------------------------------------------------------===//

def Dist_MeshAttr : AttrDef<Dist_Dialect, "Mesh"> {
  let mnemonic = "mesh";
  let summary = "the ranks of the job: named axes and their extents, the first varies slowest";
  let description = [{
    ```mlir
    module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 4]>}
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes, ArrayRefParameter<"int64_t">:$extents);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The number of ranks.
    int64_t getRanks() const;
    /// The position of `axis` in the mesh, or nothing.
    std::optional<unsigned> find(::llvm::StringRef axis) const;
    /// The ranks of a group on `axes`, which are the mesh's.
    int64_t groupSize(::mlir::ArrayAttr axes) const;
  }];
}

def Dist_PlacementAttr : AttrDef<Dist_Dialect, "Placement"> {
  let mnemonic = "placement";
  let summary = "what of a value each rank has, axis by axis, while placements propagate";
  let description = [{
    On an axis that it does not name a value is the same on all ranks. On the others it is

    - `shard(d)`: cut along dimension d, in equal parts, one a rank;
    - `partial`: a term on each rank; the value is their sum;
    - `iteration`: in the body of a loop whose iterations are divided among the ranks, what the rank's own iteration makes.

    `dist.placement` on a function's argument and `dist.placements`, one a result, on an op say it, between *seed-placements* and *partition*. Without them
    a value is replicated. (A state's parts are `#titan.placement` on its symbol.)

    ```mlir
    %s = accum.loop ... {dist.placements = [#dist.placement<["replicate" = partial, "shard" = partial]>]}
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes, ArrayRefParameter<"int64_t">:$dims);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// In place of a dimension.
    static constexpr int64_t partial = -1, iteration = -2;
  }];
}

def Dist_Collective : I32EnumAttr<"Collective", "what ranks exchange", [
    I32EnumAttrCase<"AllGather", 0, "all_gather">, I32EnumAttrCase<"ReduceScatter", 1, "reduce_scatter">,
    I32EnumAttrCase<"AllReduce", 2, "all_reduce">]> {
  let cppNamespace = "::titan::dist";
  let genSpecializedAttr = 0;
}
def Dist_CollectiveAttr : EnumAttr<Dist_Dialect, Dist_Collective, "collective">;

def Dist_Order : I32EnumAttr<"Order", "how the terms of a sum are added", [
    I32EnumAttrCase<"Rank", 0, "rank">, I32EnumAttrCase<"Tree", 1, "tree">]> {
  let cppNamespace = "::titan::dist";
  let genSpecializedAttr = 0;
}
def Dist_OrderAttr : EnumAttr<Dist_Dialect, Dist_Order, "order">;

def Dist_TokenType : TypeDef<Dist_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "a collective that was started";
}

#endif // DIST_DIALECT_TD
