// Where gradients stop.
#ifndef TITAN_OPS_DETACH_TD
#define TITAN_OPS_DETACH_TD

include "dialects/Titan/ops/Base.td"

def Titan_DetachOp : Titan_TensorOp<"detach", [SameOperandsAndResultShape, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<EvaluatedOtherwiseOpInterface>]> {
  let summary = "x, through which no gradient passes";
  let description = [{
    The model's `detach()`. What reaches the loss through it alone is not trained. It is in models only: differentiation replaces it by its operand.
  }];
  let opArguments = (ins Titan_FloatTensor:$operand);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
  let extraClassDeclaration = Titan_workIsView;
}

#endif // TITAN_OPS_DETACH_TD
