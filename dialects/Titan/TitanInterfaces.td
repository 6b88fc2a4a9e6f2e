// The interfaces that carry the algorithms of the compiler, so that each pass is written once. Differentiable, Interpretable and Lowerable are
// attached by the layers that own them; the others are part of an op's definition.
#ifndef TITAN_INTERFACES_TD
#define TITAN_INTERFACES_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::titan::ir";
  let description = [{
    Reverse mode, one op at a time: given the adjoints of the results, build those of the operands. Rules live in
    compiler/Autodiff/rules, one file a family, and are attached as external models.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the adjoints of the operands that `adjoints.needs(i)` asks for and stores them with `adjoints.set(i, value)`.
      An operand that is left unset has a zero adjoint.
    }], "::llvm::LogicalResult", "buildAdjoints", (ins "::titan::ir::AdjointBuilder &":$adjoints)>
  ];
}

def ShardableOpInterface : OpInterface<"ShardableOpInterface"> {
  let cppNamespace = "::titan::ir";
  let description = [{
    The op's dimensions as factors: which operands and results share them and which are reduced. Splitting every operand
    along a factor, running the op on the pieces and recombining (concatenation for a parallel factor, sum for a reduction factor) gives
    the whole result. Used to find the batch axis, to shard, and to tile.
  }];
  let methods = [
    InterfaceMethod<"The factors of this op.", "::titan::ir::ShardingRule", "getShardingRule">
  ];
}

def UpdateOpInterface : OpInterface<"UpdateOpInterface"> {
  let cppNamespace = "::titan::ir";
  let description = [{
    An optimizer's update of one parameter by its gradient.
  }];
  let methods = [
    InterfaceMethod<"The parameter before the update.", "::mlir::Value", "getUpdatedParameter", (ins), "", "return $_op.getParam();">,
    InterfaceMethod<"Its gradient: the sum over all microbatches.", "::mlir::Value", "getAppliedGradient", (ins), "", "return $_op.getGradient();">
  ];
}

def InterpretableOpInterface : OpInterface<"InterpretableOpInterface"> {
  let cppNamespace = "::titan::ir";
  let description = [{
    The meaning of the op: computes its results from its operands in the reference interpreter. Implementations live in
    compiler/Interpreter/ops, one file a family, and are attached as external models.
  }];
  let methods = [
    InterfaceMethod<"Reads the operands' values from `frame` and sets the results'.",
                    "::llvm::LogicalResult", "interpret", (ins "::titan::interpreter::Frame &":$frame)>
  ];
}

def LowerableOpInterface : OpInterface<"LowerableOpInterface"> {
  let cppNamespace = "::titan::ir";
  let description = [{
    Replaces the op by `kernel` ops. Implementations live in compiler/Lower/rules, one file a family, and are attached as external models.
    One rule makes kernels for its op alone; the fusion pass merges them.
  }];
  let methods = [
    InterfaceMethod<"Builds kernel ops and replaces this op by their results.",
                    "::llvm::LogicalResult", "lower", (ins "::titan::lower::LoweringBuilder &":$lowering)>
  ];
}

def AccumulatingOpInterface : OpInterface<"AccumulatingOpInterface"> {
  let cppNamespace = "::titan::ir";
  let description = [{
    An op of one result that can add its terms to an operand of the result's type, the accumulator, in one buffer. With it the result is
    the accumulator plus what the op gives without it. Factors that are summed without an accumulator are whole with one: each piece would count it.
  }];
  let methods = [
    InterfaceMethod<"The accumulator; empty where the sum starts from zero. Can be assigned and cleared.",
                    "::mlir::MutableOperandRange", "getAccMutable">
  ];
  let extraClassDeclaration = [{
    /// The accumulator, or null.
    ::mlir::Value getAcc() {
      ::mlir::MutableOperandRange acc = getAccMutable();
      return acc.empty() ? ::mlir::Value() : acc[0].get();
    }
  }];
}

def RandomOpInterface : OpInterface<"RandomOpInterface"> {
  let cppNamespace = "::titan::ir";
  let description = [{
    An op that draws random decisions, one for each element of a global tensor: a pure function of seed, stream, step and the element's row-major
    index. The local tensor of decisions is the window of the global one that begins at element `base`; without a window it is its own global tensor. Seed,
    step and base are optional operands, the window is an optional attribute, as in `titan.dropout`.
  }];
  let methods = [
    InterfaceMethod<"Does the op draw as it stands? Attention without dropout does not.", "bool", "draws", (ins), "", "return true;">,
    InterfaceMethod<"Does it draw in evaluation too, where seed and step count as 0? Dropout does not: there it keeps everything.",
                    "bool", "drawsInEvaluation", (ins), "", "return false;">,
    InterfaceMethod<"Ops of one stream draw alike.", "uint64_t", "getStream">,
    InterfaceMethod<"The shape of the tensor whose elements the decisions belong to.",
                    "::llvm::SmallVector<int64_t>", "getDrawnShape">,
    InterfaceMethod<"For each dimension of operand number `operand` the dimension of that tensor that it is, or -1. Empty: the operand says nothing of it.",
                    "::llvm::SmallVector<int64_t>", "getDrawnDims", (ins "unsigned":$operand)>,
    InterfaceMethod<[{
      Changes the op into its form without randomness: dropout keeps everything, numbers become their mean. Returns what its results are then:
      themselves, or values that they would be equal to.
    }], "::llvm::SmallVector<::mlir::Value>", "makeDeterministic">,
    InterfaceMethod<"The run's seed, an i64 scalar.", "::mlir::MutableOperandRange", "getSeedMutable">,
    InterfaceMethod<"The step, an i64 scalar.", "::mlir::MutableOperandRange", "getStepMutable">,
    InterfaceMethod<"The global index of the window's first element, an index; 0 without it.", "::mlir::MutableOperandRange", "getBaseMutable">,
    InterfaceMethod<"Where the tensor stands in the global one, or null.", "::titan::ir::WindowAttr", "getWindowAttr">,
    InterfaceMethod<"", "void", "setWindowAttr", (ins "::titan::ir::WindowAttr":$window)>
  ];
  let extraClassDeclaration = [{
    bool isSeeded() { return !getSeedMutable().empty(); }
    bool isPlaced() { return bool(getWindowAttr()); }
    void seed(::mlir::Value seed, ::mlir::Value step) {
      getSeedMutable().assign(seed);
      getStepMutable().assign(step);
    }
    /// `base` may be null: the window begins where the global tensor does.
    void place(::titan::ir::WindowAttr window, ::mlir::Value base) {
      setWindowAttr(window);
      if (base)
        getBaseMutable().assign(base);
    }
    /// The window begins where the global tensor does.
    void dropBase() { getBaseMutable().clear(); }
  }];
}

def ComputesNarrowOpInterface : OpInterface<"ComputesNarrowOpInterface"> {
  let cppNamespace = "::titan::ir";
  let description = [{
    An op that reads bf16 and sums in f32 under `precision.compute = "bf16"`: a product or what is made of products. All other ops compute in the
    model's own type.
  }];
  let methods = [
    InterfaceMethod<"The operands that are rounded to bf16, all of one element type.", "::llvm::SmallVector<unsigned>", "getNarrowOperands">,
    InterfaceMethod<"What becomes of result number `result` then.", "::titan::ir::ResultRounding", "getResultRounding", (ins "unsigned":$result)>
  ];
}

def EvaluatedOtherwiseOpInterface : OpInterface<"EvaluatedOtherwiseOpInterface"> {
  let cppNamespace = "::titan::ir";
  let description = [{
    An op that a model in evaluation computes otherwise than one in training: a norm whose statistics are then fixed.
  }];
  let methods = [
    InterfaceMethod<"Builds what its results are in evaluation; empty where that is what it computes anyway.",
                    "::llvm::SmallVector<::mlir::Value>", "buildEvaluation", (ins "::mlir::OpBuilder &":$builder)>
  ];
}

def CostedOpInterface : OpInterface<"CostedOpInterface"> {
  let cppNamespace = "::titan::ir";
  let description = [{
    What the op will cost as kernels, before there are any: by this *schedule* decides what to compute twice and where ops stand. It decides
    no bit. The defaults are those of an op that *lower* makes a kernel of its own for, which fusion may merge with others.
  }];
  let methods = [
    InterfaceMethod<"What is made of the op.", "::titan::ir::Work", "getWork", (ins), "", "return ::titan::ir::Work::Kernel;">,
    InterfaceMethod<"Floating-point operations: multiply-adds of products count as two, without those that a mask spares; other ops count one for each element read or written.",
                    "int64_t", "getFlops", (ins), "", "return ::titan::ir::largestExtent($_op.getOperation());">,
    InterfaceMethod<[{
      Those of them that the model itself asks for: of products, for the pairs that a mask allows. What the op computes again because it was not kept
      does not count, nor does pointwise work.
    }], "int64_t", "getModelFlops", (ins), "", "return 0;">,
    InterfaceMethod<"Is operand number `operand` read from memory? Else its reader can compute it, where it is pointwise.",
                    "bool", "readsFromMemory", (ins "unsigned":$operand), "", "return false;">,
    InterfaceMethod<"Is it read through strides, so that a part cut out of more need not be copied?",
                    "bool", "readsStrided", (ins "unsigned":$operand), "", "return false;">,
    InterfaceMethod<"May a result take its place, where it dies here?", "bool", "mayOverwrite", (ins "unsigned":$operand), "", "return true;">
  ];
}

#endif // TITAN_INTERFACES_TD
