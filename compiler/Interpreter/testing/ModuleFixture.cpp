#include "compiler/Interpreter/testing/ModuleFixture.h"

#include "compiler/Interpreter/RandomArguments.h"
#include "dialects/Accum/Accum.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace titan::interpreter::testing {

DialectRegistry moduleRegistry(RegisterInterfaces more) {
  DialectRegistry registry;
  registry.insert<ir::TitanDialect, accum::AccumDialect, dist::DistDialect, kernel::KernelDialect,
                  func::FuncDialect, arith::ArithDialect, math::MathDialect>();
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

std::string ModuleFixture::readFile(StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(llvm::Twine(TITAN_SOURCE_DIR "/") + path);
  EXPECT_TRUE(file) << path.str();
  return file ? (*file)->getBuffer().str() : std::string();
}

std::string ModuleFixture::replaceAll(std::string text, StringRef from, StringRef to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
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
