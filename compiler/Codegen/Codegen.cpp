#include "compiler/Codegen/Codegen.h"

#include "compiler/Codegen/CommandTable.h"
#include "compiler/Codegen/cpu/ObjectFile.h"
#include "compiler/Support/RecipeAttribute.h"

#include "mlir/IR/Diagnostics.h"

#include <filesystem>

using namespace mlir;

namespace titan {
namespace {

// Parts of the payload start at multiples of this, so that a mapped job needs no copy of them.
constexpr int64_t payloadAlignment = 64;

StateKind toKind(ir::StateKind kind) {
  switch (kind) {
  case ir::StateKind::Param:
    return StateKind::Param;
  case ir::StateKind::Buffer:
    return StateKind::Buffer;
  case ir::StateKind::Slot:
    return StateKind::Slot;
  case ir::StateKind::Ema:
    return StateKind::Ema;
  case ir::StateKind::Counter:
    return StateKind::Counter;
  }
  return StateKind::Param;
}

/// Builds the program of one module; kernels are collected in `table`.
class ModuleBuilder {
public:
  ModuleBuilder(ModuleOp module, const CodegenOptions& options, const TargetInfo& target)
      : module(module), options(options), target(target), table(module.getContext(), target) {}

  LogicalResult build() {
    FailureOr<Recipe> recipe = getRecipe(module);
    FailureOr<memory::ModulePlan> plan = memory::readPlan(module);
    if (failed(recipe) || failed(plan))
      return failure();
    Program& program = compiled.program;
    if (auto model = module->getAttrOfType<StringAttr>(ir::tag::model))
      program.model = model.getValue();
    program.recipe = toJson(*recipe);
    program.optimizer = recipe->optimizer.kind;
    program.target = target.kind;
    program.cpu = target.cpu;
    program.cpuFeatures = requiredFeatures(target);
    program.compilerVersion = options.compilerVersion;
    program.arenaBytes = plan->arenaBytes;
    program.stateBytes = plan->stateBytes;
    program.bindingBytes = plan->bindingBytes;
    program.temporaryBytes = plan->temporaryBytes;
    for (const memory::StatePlan& state : plan->states)
      if (failed(addState(state)))
        return failure();
    for (const memory::ConstantPlan& constant : plan->constants)
      if (failed(addConstant(constant)))
        return failure();
    for (const memory::FunctionPlan& function : plan->functions) {
      FailureOr<Function> built = codegen::buildFunction(function, table);
      if (failed(built))
        return failure();
      program.functions.push_back(std::move(*built));
    }
    table.finish(program);
    return success();
  }

  ModuleOp kernels() { return table.module(); }
  CompiledModule& result() { return compiled; }

private:
  LogicalResult addState(const memory::StatePlan& plan) {
    ir::StateOp source = plan.state;
    std::optional<DType> dtype = codegen::dtypeOf(source.getTensorType().getElementType());
    if (!dtype)
      return source.emitOpError("has elements of type ")
             << source.getTensorType().getElementType() << ", which no checkpoint holds";
    State state;
    state.name = source.getName();
    state.kind = toKind(source.getKind());
    state.dtype = *dtype;
    state.shape = codegen::shapeOf(source.getTensorType());
    state.trainable = source.getTrainable();
    if (std::optional<ArrayAttr> aliases = source.getAliases())
      for (auto alias : aliases->getAsRange<StringAttr>())
        state.aliases.push_back(alias.getValue().str());
    state.sourceName = source.getSourceName().value_or("");
    if (auto layout = source.getSourceLayout())
      state.sourceLayout.assign(layout->begin(), layout->end());
    state.offset = plan.offset;
    state.bytes = plan.bytes;
    if (auto file = dyn_cast<ir::FileInitAttr>(source.getInit()))
      state.init = fileInit(file);
    else if (auto rule = dyn_cast<ir::RuleInitAttr>(source.getInit()))
      state.init = ruleInit(rule);
    else
      return source.emitOpError("starts neither from a file nor by a rule");
    compiled.program.states.push_back(std::move(state));
    return success();
  }

  static Init ruleInit(ir::RuleInitAttr rule) {
    Init init;
    init.kind = rule.getDistribution() == "normal"    ? Init::Kind::Normal
                : rule.getDistribution() == "uniform" ? Init::Kind::Uniform
                                                      : Init::Kind::Constant;
    init.a = rule.getA().getValueAsDouble();
    init.b = rule.getB().getValueAsDouble();
    return init;
  }

  Init fileInit(ir::FileInitAttr file) {
    Init init;
    init.kind = options.embedWeights ? Init::Kind::Payload : Init::Kind::External;
    init.digest = file.getDigest();
    init.permutation.assign(file.getPermutation().begin(), file.getPermutation().end());
    if (!options.embedWeights) {
      init.path = file.getPath();
      init.offset = static_cast<int64_t>(file.getOffset());
      return init;
    }
    PayloadPart part;
    part.size = static_cast<int64_t>(file.getBytes());
    part.path = (std::filesystem::path(options.weightsDirectory) / file.getPath().str()).string();
    part.fileOffset = file.getOffset();
    part.digest = file.getDigest();
    init.offset = addPart(std::move(part));
    return init;
  }

  LogicalResult addConstant(const memory::ConstantPlan& plan) {
    auto value = dyn_cast<DenseElementsAttr>(plan.value);
    if (!value)
      return module.emitError("a constant of type ") << plan.value.getType() << " has no data";
    PayloadPart part;
    part.size = plan.bytes;
    if (value.getElementType().isInteger(1)) {
      for (bool element : value.getValues<bool>())
        part.bytes.push_back(static_cast<char>(element));
    } else {
      ArrayRef<char> raw = value.getRawData();
      if (value.isSplat())
        for (int64_t i = 0; i < value.getNumElements(); ++i)
          part.bytes.append(raw.data(), raw.size());
      else
        part.bytes.assign(raw.data(), raw.size());
    }
    compiled.program.constants.push_back({plan.offset, plan.bytes, addPart(std::move(part))});
    return success();
  }

  /// Where the part starts in the payload.
  int64_t addPart(PayloadPart part) {
    part.offset =
        (compiled.payloadBytes + payloadAlignment - 1) / payloadAlignment * payloadAlignment;
    compiled.payloadBytes = part.offset + part.size;
    compiled.payload.push_back(std::move(part));
    return compiled.payload.back().offset;
  }

  ModuleOp module;
  const CodegenOptions& options;
  const TargetInfo& target;
  codegen::KernelTable table;
  CompiledModule compiled;
};

/// Runs the builder, and `emit` on its kernels, with diagnostics as one error.
template <typename Emit>
Result<CompiledModule> generate(ModuleOp planned, const CodegenOptions& options, Emit emit) {
  std::string message;
  ScopedDiagnosticHandler handler(planned.getContext(), [&](Diagnostic& diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && message.empty())
      message = diagnostic.str();
    return success();
  });
  FailureOr<TargetInfo> target = getTarget(planned);
  if (failed(target))
    return Error::badInput("{}", message);
  ModuleBuilder builder(planned, options, *target);
  if (failed(builder.build()))
    return Error::internal("code generation: {}", message);
  builder.result().object = TITAN_TRY(emit(builder.kernels(), *target));
  TITAN_TRY(verify(builder.result().program));
  return std::move(builder.result());
}

} // namespace

Result<CompiledModule> generateCode(ModuleOp planned, const CodegenOptions& options) {
  return generate(planned, options, codegen::emitKernelObject);
}

Result<std::string> printCode(ModuleOp planned, const CodegenOptions& options) {
  CompiledModule compiled = TITAN_TRY(generate(planned, options, codegen::emitKernelAssembly));
  return dump(compiled.program) + "\n" + compiled.object;
}

} // namespace titan
