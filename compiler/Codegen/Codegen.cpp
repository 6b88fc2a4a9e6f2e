#include "compiler/Codegen/Codegen.h"

#include "compiler/Codegen/CommandTable.h"
#include "compiler/Codegen/StateTable.h"
#include "compiler/Codegen/Targets.h"
#include "compiler/Support/RecipeAttribute.h"
#include "runtime/program/HostStates.h"
#include "runtime/program/Text.h"

#include "mlir/IR/Diagnostics.h"

#include <filesystem>
#include <map>
#include <tuple>

using namespace mlir;

namespace titan {
namespace {

/// Builds the program of one module; kernels are collected in `table`.
class ModuleBuilder {
public:
  ModuleBuilder(ModuleOp module, const CodegenOptions& options, codegen::Target& target,
                codegen::Target* reference)
      : module(module), options(options), target(target), reference(reference),
        table(target, reference) {}

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
    program.mesh = recipe->mesh.axes;
    program.target = target.device();
    if (reference) {
      program.target.cpu = reference->device().cpu;
      program.target.features = reference->device().features;
    }
    program.compilerVersion = options.compilerVersion;
    program.arenaBytes = plan->arenaBytes;
    program.stateBytes = plan->stateBytes;
    program.bindingBytes = plan->bindingBytes;
    program.temporaryBytes = plan->temporaryBytes;
    program.stagingOffset = plan->stagingOffset;
    program.stagingBytes = plan->stagingBytes;
    for (const memory::StatePlan& state : plan->states)
      if (failed(addState(state)))
        return failure();
    for (const memory::ConstantPlan& constant : plan->constants)
      if (failed(addConstant(constant)))
        return failure();
    table.setWorkspaceOffset(llvm::alignTo(plan->arenaBytes, target.machine().arenaAlignment));
    codegen::CollectiveTable collectives(program.mesh);
    for (const memory::FunctionPlan& function : plan->functions) {
      FailureOr<Function> built = codegen::buildFunction(function, *recipe, table, collectives);
      if (failed(built))
        return failure();
      program.functions.push_back(std::move(*built));
    }
    compiled.hostSymbols = table.hostSymbols();
    table.finish(program);
    collectives.finish(program);
    return success();
  }

  /// BadInput where the products' workspace is what does not fit.
  Status checkLimit() const {
    const Program& program = compiled.program;
    const int64_t limit = TITAN_TRY(parseRecipeJson(program.recipe)).memory.limit;
    const int64_t needed = deviceBytes(program);
    if (limit == 0 || needed <= limit)
      return {};
    return Error::badInput(
        "the plan needs {} with the workspace of libraries, memory.limit is {}: "
        "use a smaller batch.micro with the same batch.global, or a higher limit",
        readableBytes(needed), readableBytes(limit));
  }

  /// Puts the code where the job carries it.
  Status addImages(codegen::CodeCache* cache) {
    for (codegen::Target* each : {&target, reference})
      if (each)
        each->setCache(cache);
    std::vector<codegen::CompiledImage> images = TITAN_TRY(target.finish());
    if (reference)
      llvm::append_range(images, TITAN_TRY(reference->finish()));
    for (codegen::CompiledImage& compiledImage : images) {
      Image& image = compiledImage.image;
      image.bytes = static_cast<int64_t>(compiledImage.bytes.size());
      image.digest = digest128(compiledImage.bytes);
      if (image.kind != Image::Kind::Object) {
        PayloadPart part;
        part.size = image.bytes;
        part.bytes = compiledImage.bytes;
        image.offset = addPart(std::move(part));
      }
      compiled.program.images.push_back(image);
    }
    compiled.images = std::move(images);
    return {};
  }

  bool refusesInput() const { return table.refusesInput(); }
  CompiledModule& result() { return compiled; }

private:
  LogicalResult addState(const memory::StatePlan& plan) {
    FailureOr<State> state = codegen::describeState(plan.state, compiled.program.mesh);
    if (failed(state))
      return failure();
    state->offset = plan.offset;
    if (state->init.kind == Init::Kind::External && options.embedWeights)
      embed(state->init);
    compiled.program.states.push_back(std::move(*state));
    return success();
  }

  /// Lets the job carry what `init` stores; what several states are made of, once.
  void embed(Init& init) {
    init.kind = Init::Kind::Payload;
    for (StoredRange& range : init.stored) {
      auto [known, isNew] = embedded.try_emplace({range.path, range.offset, range.bytes}, 0);
      if (isNew) {
        PayloadPart part;
        part.size = range.bytes;
        part.path = (std::filesystem::path(options.weightsDirectory) / range.path).string();
        part.fileOffset = static_cast<uint64_t>(range.offset);
        part.digest = range.digest;
        known->second = addPart(std::move(part));
      }
      range.path.clear();
      range.offset = known->second;
    }
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
    part.offset = alignedPart(compiled.payloadBytes);
    compiled.payloadBytes = part.offset + part.size;
    compiled.payload.push_back(std::move(part));
    return compiled.payload.back().offset;
  }

  ModuleOp module;
  const CodegenOptions& options;
  codegen::Target& target;
  codegen::Target* reference; ///< null: none
  codegen::KernelTable table;
  CompiledModule compiled;
  /// Where ranges of files (path, offset, bytes) start in the payload.
  std::map<std::tuple<std::string, int64_t, int64_t>, int64_t> embedded;
};

/// The CPU that compiles.
Result<std::unique_ptr<codegen::Target>> createReference(MLIRContext* context) {
  return codegen::createTarget(TITAN_TRY(codegen::resolveTarget("cpu", "native")), context);
}

/// Builds the program and its kernels, with diagnostics as one error, and hands them to
/// `finish(builder, target)`.
template <typename Finish>
auto generate(ModuleOp planned, const CodegenOptions& options, Finish finish)
    -> decltype(finish(std::declval<ModuleBuilder&>(), std::declval<codegen::Target&>())) {
  std::string message;
  ScopedDiagnosticHandler handler(planned.getContext(), [&](Diagnostic& diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return failure(); // a remark, for who asked for it
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  FailureOr<TargetInfo> info = getTarget(planned);
  if (failed(info))
    return Error::badInput("{}", message);
  std::unique_ptr<codegen::Target> target =
      TITAN_TRY(codegen::createTarget(std::move(*info), planned.getContext()));
  std::unique_ptr<codegen::Target> reference;
  if (options.referenceKernels)
    reference = TITAN_TRY(createReference(planned.getContext()));
  ModuleBuilder builder(planned, options, *target, reference.get());
  if (failed(builder.build()))
    return builder.refusesInput() ? Error::badInput("{}", message)
                                  : Error::internal("code generation: {}", message);
  TITAN_TRY(builder.checkLimit());
  TITAN_TRY(verify(builder.result().program));
  return finish(builder, *target);
}

} // namespace

Result<CompiledModule> generateCode(ModuleOp planned, const CodegenOptions& options) {
  return generate(planned, options,
                  [&](ModuleBuilder& builder, codegen::Target& target) -> Result<CompiledModule> {
                    std::optional<codegen::CodeCache> cache;
                    if (!options.cache.empty())
                      cache.emplace(options.cache, options.buildIdentity);
                    TITAN_TRY(builder.addImages(cache ? &*cache : nullptr));
                    CompiledModule& compiled = builder.result();
                    compiled.notes = target.notes();
                    if (cache)
                      llvm::append_range(compiled.notes, cache->notes());
                    return std::move(compiled);
                  });
}

Result<std::string> printCode(ModuleOp planned, const CodegenOptions& options) {
  return generate(planned, options,
                  [](ModuleBuilder& builder, codegen::Target& target) -> Result<std::string> {
                    const std::string text = TITAN_TRY(target.finishAsText());
                    return dump(builder.result().program) + "\n" + text;
                  });
}

} // namespace titan
