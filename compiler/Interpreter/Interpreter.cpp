#include "compiler/Interpreter/Interpreter.h"

#include "compiler/Interpreter/Models.h"
#include "dialects/Accum/Accum.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Kernel/Kernel.h"

using namespace mlir;

namespace titan::interpreter {

void registerInterpreterModels(DialectRegistry& registry) {
  registry.addExtension(+[](MLIRContext* context, ir::TitanDialect*) {
    attachElementwise(context);
    attachShape(context);
    attachContraction(context);
    attachConvolution(context);
    attachPool(context);
    attachReduction(context);
    attachExactSum(context);
    attachNormalization(context);
    attachIndexing(context);
    attachScatter(context);
    attachAttention(context);
    attachRecurrence(context);
    attachRandom(context);
    attachLoss(context);
    attachOptimizer(context);
  });
  registry.addExtension(+[](MLIRContext* context, accum::AccumDialect*) { attachAccum(context); });
  registry.addExtension(+[](MLIRContext* context, dist::DistDialect*) { attachDist(context); });
  registry.addExtension(
      +[](MLIRContext* context, kernel::KernelDialect*) { attachKernel(context); });
  registry.addExtension(+[](MLIRContext* context, arith::ArithDialect*) { attachArith(context); });
  registry.addExtension(+[](MLIRContext* context, math::MathDialect*) { attachMath(context); });
}

FailureOr<SmallVector<Tensor>> run(func::FuncOp function, ArrayRef<Tensor> arguments, Engine engine,
                                   Rank* rank) {
  Frame frame(engine, rank);
  for (auto [argument, tensor] : llvm::zip_equal(function.getArguments(), arguments))
    frame.set(argument, tensor);
  Block& block = function.getBody().front();
  if (failed(frame.run(block)))
    return failure();
  SmallVector<Tensor> results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(frame.get(value));
  return results;
}

namespace {

/// The tensor for the argument of type `type` under `name`, or an error that says what is there.
FailureOr<Tensor> find(func::FuncOp function, StringRef what, const NamedTensors& tensors,
                       const std::string& name, Type type) {
  auto found = tensors.find(name);
  if (found == tensors.end())
    return function.emitError() << "@" << function.getName() << " needs " << what << " '" << name
                                << "'";
  auto tensorType = cast<RankedTensorType>(type);
  const Tensor& tensor = found->second;
  if (tensor.shape() != tensorType.getShape() ||
      tensor.isFloat() != isa<FloatType>(tensorType.getElementType()))
    return function.emitError() << what << " '" << name << "' is " << tensor.type() << ", @"
                                << function.getName() << " takes " << type;
  return tensor;
}

} // namespace

FailureOr<Results> run(func::FuncOp function, const Arguments& arguments, Engine engine) {
  SmallVector<Tensor> values;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    Type type = function.getArgumentTypes()[i];
    FailureOr<Tensor> value = failure();
    if (auto state = function.getArgAttrOfType<FlatSymbolRefAttr>(i, ir::tag::state))
      value = find(function, "state", arguments.states, state.getValue().str(), type);
    else if (auto input = function.getArgAttrOfType<StringAttr>(i, ir::tag::input))
      value = find(function, "input", arguments.inputs, input.str(), type);
    else if (auto control = function.getArgAttrOfType<StringAttr>(i, ir::tag::control))
      value = find(function, "control", arguments.controls, control.str(), type);
    else
      return function.emitError() << "argument " << i << " of @" << function.getName()
                                  << " has no titan tag";
    if (failed(value))
      return failure();
    values.push_back(*value);
  }
  FailureOr<SmallVector<Tensor>> run = interpreter::run(function, values, engine);
  if (failed(run))
    return failure();
  Results results;
  for (auto [i, tensor] : llvm::enumerate(*run)) {
    if (auto state = function.getResultAttrOfType<FlatSymbolRefAttr>(i, ir::tag::state))
      results.states[state.getValue().str()] = tensor;
    else if (auto w = function.getResultAttrOfType<FlatSymbolRefAttr>(i, ir::tag::gradient))
      results.gradients[w.getValue().str()] = tensor;
    else if (auto metric = function.getResultAttrOfType<StringAttr>(i, ir::tag::metric))
      results.metrics[metric.str()] = tensor;
    else if (auto output = function.getResultAttrOfType<StringAttr>(i, ir::tag::output))
      results.outputs[output.str()] = tensor;
  }
  return results;
}

} // namespace titan::interpreter
