#include "test/compiled/CompiledStep.h"

#include "compiler/Interpreter/RandomArguments.h"
#include "compiler/Pipeline/Pipeline.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Pass/PassManager.h"
#include "runtime/program/Random.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace titan::testing {

using interpreter::Tensor;
using interpreter::Tensors;

namespace {

template <typename T> void put(char* at, T value) { std::memcpy(at, &value, sizeof value); }
template <typename T> T get(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void store(const Tensor& tensor, char* at) {
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.element().isF32())
      put(at + 4 * i, static_cast<float>(tensor.floats()[i]));
    else if (tensor.element().isBF16())
      put(at + 2 * i, toBFloat16(static_cast<float>(tensor.floats()[i])));
    else
      put(at + 8 * i, tensor.integers()[i]);
  }
}

Tensor load(ShapedType type, const char* at) {
  Tensor tensor(type);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (type.getElementType().isF32())
      tensor.mutableFloats()[i] = get<float>(at + 4 * i);
    else if (type.getElementType().isBF16())
      tensor.mutableFloats()[i] = fromBFloat16(get<uint16_t>(at + 2 * i));
    else
      tensor.mutableIntegers()[i] = get<int64_t>(at + 8 * i);
  }
  return tensor;
}

} // namespace

Tensor wholeNumbers(ShapedType type, uint64_t stream) {
  Tensor tensor = interpreter::randomTensor(type, stream, {.integerBound = 4});
  if (tensor.isFloat())
    for (double& x : tensor.mutableFloats())
      x = std::round(x);
  return tensor;
}

Result<CompiledStep> CompiledStep::compile(ModuleOp module, const CodegenOptions& options) {
  OwningOpRef<ModuleOp> planned = module.clone();
  PassManager stages(module.getContext());
  addStages(stages, Stage::Shard, Stage::Plan);
  if (failed(stages.run(*planned)))
    return Error::internal("a stage behind shard fails");
  CompiledModule compiled = TITAN_TRY(generateCode(*planned, options));
  codegen::testing::LoadedCode code =
      TITAN_TRY(codegen::testing::LoadedCode::load(compiled.images[0].bytes));
  CompiledStep step(module.lookupSymbol<func::FuncOp>("step"), std::move(compiled),
                    std::move(code));
  for (const Kernel& kernel : step.program().kernels)
    step.kernels_.push_back(TITAN_TRY(step.code_->kernel(kernel.symbol)));
  return step;
}

void CompiledStep::spreadOverThreads() {
  for (Function& function : compiled_.program.functions)
    for (Command& command : function.commands)
      command.launch.grain = 1;
}

Result<std::vector<Tensors>> CompiledStep::run(ArrayRef<Tensors> arguments, int threads) {
  std::vector<std::string> arenas;
  for (const Tensors& mine : arguments)
    arenas.push_back(arenaOf(mine));
  const auto number = program().findFunction("step") - program().functions.data();
  runs_ = TITAN_TRY(runOnCpus(program(), kernels_, static_cast<uint32_t>(number), arenas, threads));
  std::vector<Tensors> results(runs_.size());
  for (auto [run, found] : llvm::zip_equal(runs_, results))
    for (auto [i, type] : llvm::enumerate(step_.getResultTypes()))
      found.push_back(load(
          cast<ShapedType>(type),
          run.arena.data() + offsetOf(step_.getResultAttr(i, ir::tag::state),
                                      step_.getResultAttrOfType<StringAttr>(i, ir::tag::output))));
  return results;
}

std::string CompiledStep::arenaOf(const Tensors& arguments) const {
  std::string arena(static_cast<size_t>(program().arenaBytes), '\xff');
  for (const Constant& constant : program().constants)
    for (const PayloadPart& part : compiled_.payload)
      if (part.offset == constant.payloadOffset)
        arena.replace(constant.offset, part.bytes.size(), part.bytes);
  func::FuncOp step = step_; // its methods are not const
  for (auto [i, tensor] : llvm::enumerate(arguments))
    store(tensor, arena.data() + offsetOf(step.getArgAttr(i, ir::tag::state),
                                          step.getArgAttrOfType<StringAttr>(i, ir::tag::input)));
  return arena;
}

/// Where the tagged value is in the arena.
int64_t CompiledStep::offsetOf(Attribute state, StringAttr binding) const {
  if (state)
    return program().findState(cast<FlatSymbolRefAttr>(state).getValue())->offset;
  for (const Binding& each : program().findFunction("step")->bindings)
    if (each.name == binding.getValue())
      return each.offset;
  llvm::report_fatal_error("no binding " + binding.getValue());
}

} // namespace titan::testing
