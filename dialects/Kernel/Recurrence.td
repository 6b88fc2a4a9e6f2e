// The recurrence routine of kernel.call.
#ifndef KERNEL_RECURRENCE_TD
#define KERNEL_RECURRENCE_TD

def Kernel_RecurrenceAttr : AttrDef<Kernel_Dialect, "Recurrence", [DeclareAttrInterfaceMethods<Kernel_RoutineAttrInterface>]> {
  let mnemonic = "recurrence";
  let summary = "titan.recurrence or, with `gradient`, titan.recurrence_grad, for all steps of `samples` samples at a time";
  let description = [{
    | | ins | outs |
    |---|---|---|
    | forward | projected, panels, initial, bias | result, kept |
    | gradient | panels, initial, result, kept, dresult, dcells | dprojected, dsums, dinitial |

    in the shapes that titan.recurrence gives them, those that it has; `bias` and `dcells` tell of the optional ones. `element` is the type of projected, dprojected
    and dsums, and the one that factors of products are rounded to; all else is of the accumulation type.

    `panels` are the recurrent weights in the order in which products read them: for `columns` columns of a product all rows, one after the other. Forward they
    are [G, ceil(H / columns), H, columns], of element [g H + column, k] of the weights; backward [ceil(H / columns), G H, columns]. Columns beyond H may hold
    anything.

    A unit is `samples` samples; the last one may have fewer. Neither number decides bits.
  }];
  let parameters = (ins "::titan::ir::RecurrentCell":$cell, "int64_t":$steps, "int64_t":$batch, "int64_t":$width,
                        ArrayRefParameter<"int64_t">:$order, "bool":$reverse, "bool":$gradient, "bool":$bias, "bool":$dcells,
                        "::mlir::Type":$element, "int64_t":$samples, "int64_t":$columns);
  let assemblyFormat = [{
    `<` `cell` `=` $cell `,` `steps` `=` $steps `,` `batch` `=` $batch `,` `width` `=` $width `,` `order` `=` `[` $order `]` `,`
    `reverse` `=` $reverse `,` `gradient` `=` $gradient `,` `bias` `=` $bias `,` `dcells` `=` $dcells `,` `element` `=` $element `,`
    `samples` `=` $samples `,` `columns` `=` $columns `>`
  }];
  let extraClassDeclaration = [{
    ::titan::ir::RecurrenceShape getShape() const {
      return {getCell(), getSteps(), getBatch(), getWidth(), getOrder(), getReverse()};
    }
    /// The type of sums and states.
    ::mlir::FloatType getAccumulation() const;
    /// Panels beside each other that hold H columns.
    int64_t getPanels() const;
    ::llvm::SmallVector<int64_t> getPanelShape() const;
  }];
}

#endif // KERNEL_RECURRENCE_TD
