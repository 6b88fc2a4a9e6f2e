// What *plan* and the stages after it ask of a command, whatever runs it.
#ifndef KERNEL_INTERFACES_TD
#define KERNEL_INTERFACES_TD

include "mlir/IR/OpBase.td"

def CommandLikeOpInterface : OpInterface<"CommandLikeOpInterface"> {
  let cppNamespace = "::titan::kernel";
  let description = [{
    An op that becomes one command of the table: a kernel, a call, a copy. On tensors it is in destination style: result i is tied to the i-th operand
    that it writes, and continues that operand's value where it does not write. On buffers it has no results. An operand is a tensor or a buffer, or an
    index, which the command takes as a scalar. Its phase is that of `titan::ir::getPhase`.
  }];
  let methods = [
    InterfaceMethod<"The operands whose elements are read. The value that a written operand continues is read only where the command looks at it.",
                    "::llvm::SmallVector<::mlir::OpOperand *>", "getReads">,
    InterfaceMethod<"The operands that are written, in the order of the results.",
                    "::llvm::SmallVector<::mlir::OpOperand *>", "getWrites">,
    InterfaceMethod<[{
      May `read` and `write` be one buffer? Then each element is read no later than it is written, whatever units run at once.
    }], "bool", "walksAlike", (ins "::mlir::OpOperand &":$read, "::mlir::OpOperand &":$write), "", "return false;">
  ];
}

#endif // KERNEL_INTERFACES_TD
