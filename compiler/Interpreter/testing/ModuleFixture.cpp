#include "compiler/Interpreter/testing/ModuleFixture.h"

#include "compiler/Interpreter/RandomArguments.h"
#include "dialects/Accum/Accum.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace titan::interpreter::testing {

DialectRegistry moduleRegistry(RegisterInterfaces more) {
  DialectRegistry registry;
  registry.insert<ir::TitanDialect, accum::AccumDialect, kernel::KernelDialect, func::FuncDialect,
                  arith::ArithDialect, math::MathDialect>();
  registerInterpreterModels(registry);
  if (more)
    more(registry);
  return registry;
}

ModuleFixture::ModuleFixture(RegisterInterfaces more) : context(moduleRegistry(more)) {
  context.loadAllAvailableDialects();
  context.getDiagEngine().registerHandler([this](Diagnostic& diagnostic) {
    message = diagnostic.str();
    return success();
  });
}

OwningOpRef<ModuleOp> ModuleFixture::parse(StringRef text) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module) << message;
  return module;
}

Tensor ModuleFixture::floats(ArrayRef<int64_t> shape, ArrayRef<double> values) {
  return Tensor::of(RankedTensorType::get(shape, Float32Type::get(&context)), values);
}

Tensor ModuleFixture::integer(int64_t value) {
  return Tensor::scalar(IntegerType::get(&context, 64), value);
}

Arguments ModuleFixture::namedArguments(func::FuncOp function, int64_t integerBound) {
  Arguments arguments;
  RandomOptions options;
  options.integerBound = integerBound;
  for (auto [i, tensor] : llvm::enumerate(randomArguments(function, options))) {
    if (auto state = function.getArgAttrOfType<FlatSymbolRefAttr>(i, ir::tag::state))
      arguments.states[state.getValue().str()] = tensor;
    else if (auto input = function.getArgAttrOfType<StringAttr>(i, ir::tag::input))
      arguments.inputs[input.str()] = tensor;
    else
      arguments.controls[function.getArgAttrOfType<StringAttr>(i, ir::tag::control).str()] = tensor;
  }
  return arguments;
}

} // namespace titan::interpreter::testing
