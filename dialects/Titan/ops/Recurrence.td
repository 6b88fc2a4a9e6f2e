// Recurrent layers: the part of LSTM, GRU and RNN that goes from one step to the next, and its gradient.
#ifndef TITAN_OPS_RECURRENCE_TD
#define TITAN_OPS_RECURRENCE_TD

include "dialects/Titan/ops/Base.td"

class Titan_RecurrenceLikeOp<string mnemonic, list<Trait> traits>
    : Titan_TensorOp<mnemonic, !listconcat(traits, [ComputesNarrowOpInterface])> {
  let hasVerifier = 1;
  string commonDeclaration = Titan_worksFromMemory # [{
    ::titan::ir::RecurrenceShape getRecurrenceShape();
    int64_t getFlops() { return getRecurrenceShape().flops(); }
    int64_t getModelFlops() { return getFlops(); }
    ::llvm::SmallVector<unsigned> getNarrowOperands();
    ::titan::ir::ResultRounding getResultRounding(unsigned result);
  }];
  let extraClassDeclaration = commonDeclaration;
}

def Titan_RecurrenceOp : Titan_RecurrenceLikeOp<"recurrence", [AttrSizedOperandSegments]> {
  let summary = "all steps of a recurrent layer in one direction, behind the projection of its inputs";
  let description = [{
    projected [T, B, G H] holds the products of the inputs with their weights and all biases of the inputs; recurrent [G H, H] is what the last state is
    multiplied with. Row block `order[g]` of both, and of `bias` [G H], belongs to gate g. With s_g = recurrent_g h + bias_g, a_g = projected_g + s_g, and h, c
    the states of the step before:

    | cell | gates | next states |
    |---|---|---|
    | lstm | i, f, o = sigmoid(a), g = tanh(a); in the order i, f, g, o | c' = f c + i g, h' = o tanh(c') |
    | gru | r, z = sigmoid(a), n = tanh(projected_n + r s_n) | h' = (1 - z) n + z h |
    | gru_reset_before | r, z = sigmoid(a), n = tanh(projected_n + recurrent_n (r h) + bias_n) | h' = (1 - z) n + z h |
    | tanh, relu | the function of a | h' |

    (Hochreiter and Schmidhuber, Neural Computation 9(8); Cho et al., arXiv:1406.1078. `gru` is PyTorch's, ONNX has it with linear_before_reset.)

    `initial` are the states before the first step, h [B, H] and, for lstm, c [B, H]. With `reverse` the steps go from T - 1 to 0. `result` [T, B, H] is h of
    all steps. `kept` is what the gradient reads: for lstm the gates [T, B, G H] where `order` says and c of all steps [T, B, H]; for gru the gates, and
    s_n of all steps; for gru_reset_before the gates; nothing for tanh and relu.

    Sums of products are in f32 (f64 for f64), and so are states, gates and results. h, and r h, are rounded to the element type of `recurrent` before they are
    multiplied.

    Constraints:
    - (C1) projected has rank 3 and G H columns, recurrent is [G H, H], both of one element type; extents are positive.
    - (C2) `order` names each of the G row blocks once, that of n last.
    - (C3) `bias` is [G H], `initial` one or two [B, H], of the accumulation type.
    - (C4) the results have the shapes above, and the accumulation type.

    ```mlir
    %y, %gates, %cells = titan.recurrence lstm %x, %w initial %h, %c bias %b order [0, 1, 2, 3]
       : (tensor<7x3x24xf32>, tensor<24x6xf32>, tensor<3x6xf32>, tensor<3x6xf32>, tensor<24xf32>)
       -> (tensor<7x3x6xf32>, tensor<7x3x24xf32>, tensor<7x3x6xf32>)
    ```
  }];
  let opArguments = (ins Titan_RecurrentCellAttr:$cell, Titan_FloatTensor:$projected, Titan_FloatTensor:$recurrent,
                         Variadic<Titan_FloatTensor>:$initial, Optional<Titan_FloatTensor>:$bias,
                         DenseI64ArrayAttr:$order, UnitAttr:$reverse);
  let results = (outs Titan_FloatTensor:$result, Variadic<Titan_FloatTensor>:$kept);
  let assemblyFormat = [{
    $cell $projected `,` $recurrent `initial` $initial (`bias` $bias^)? `order` $order (`reverse` $reverse^)? attr-dict
    `:` functional-type(operands, results)
  }];
  /// Results have the types that follow from the operands.
  let builders = [OpBuilder<(ins "::titan::ir::RecurrentCell":$cell, "::mlir::Value":$projected, "::mlir::Value":$recurrent,
                                 "::mlir::ValueRange":$initial, "::mlir::Value":$bias, "::llvm::ArrayRef<int64_t>":$order, "bool":$reverse,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
}

def Titan_RecurrenceGradOp : Titan_RecurrenceLikeOp<"recurrence_grad", [AttrSizedOperandSegments]> {
  let summary = "adjoints of the projected inputs, the sums and the first states of titan.recurrence";
  let description = [{
    recurrent, initial, result and kept are those of `titan.recurrence`, dresult is the adjoint of its result and `dcells`, if there is one, that of c. `dprojected`
    [T, B, G H] is the adjoint of projected. `dsums`, for gru only, is that of s, which differs in the rows of n; elsewhere dprojected is both. `dinitial` are those of
    initial. The adjoints of recurrent and bias are sums of products and sums of dsums.

    The adjoints of sums are rounded to the element type of `recurrent` before they are multiplied with it.

    Constraints:
    - (C1) result has rank 3, recurrent is [G H, H]; extents are positive.
    - (C2) `order` names each of the G row blocks once, that of n last.
    - (C3) initial, result and kept have the types of `titan.recurrence`, dresult and dcells that of result; there is no dcells but for lstm.
    - (C4) dprojected and dsums are [T, B, G H] and have the element type of recurrent; dinitial have the types of initial.
  }];
  let opArguments = (ins Titan_RecurrentCellAttr:$cell, Titan_FloatTensor:$recurrent, Variadic<Titan_FloatTensor>:$initial,
                         Titan_FloatTensor:$result, Variadic<Titan_FloatTensor>:$kept, Titan_FloatTensor:$dresult,
                         Optional<Titan_FloatTensor>:$dcells, DenseI64ArrayAttr:$order, UnitAttr:$reverse);
  let results = (outs Titan_FloatTensor:$dprojected, Variadic<Titan_FloatTensor>:$dsums_and_dinitial);
  let assemblyFormat = [{
    $cell $recurrent `initial` $initial `result` $result (`kept` $kept^)? `adjoint` $dresult (`cells` $dcells^)? `order` $order
    (`reverse` $reverse^)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = commonDeclaration # [{
    /// Null where dprojected is dsums.
    ::mlir::Value getDsums();
    ::mlir::ResultRange getDinitial();
  }];
  let builders = [OpBuilder<(ins "::titan::ir::RecurrenceOp":$forward, "::mlir::Value":$dresult, "::mlir::Value":$dcells,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
}

#endif // TITAN_OPS_RECURRENCE_TD
