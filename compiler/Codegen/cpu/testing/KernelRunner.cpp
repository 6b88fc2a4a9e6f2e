#include "compiler/Codegen/cpu/testing/KernelRunner.h"

#include "compiler/Codegen/cpu/CpuRoutines.h"
#include "compiler/Codegen/cpu/CpuTarget.h"
#include "compiler/Codegen/cpu/GemmKernel.h"
#include "compiler/Codegen/cpu/MatrixUnit.h"
#include "compiler/Codegen/cpu/testing/EmulatedTiles.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace titan::codegen::testing {

VectorShape shapeWith(MatrixUnitKind unit, const TargetInfo& target) {
  VectorShape shape = vectorShape(target);
  shape.matrixUnit = unit;
  shape.machine.matrixExtent = shape.machine.matrixSums = shape.machine.matrixMultiplyAdds = 1;
  return shape;
}

KernelRunner::KernelRunner() {
  DialectRegistry registry;
  registry.insert<kernel::KernelDialect, func::FuncDialect>();
  registerCpuRoutines(registry);
  context_ = std::make_unique<MLIRContext>(registry);
  context_->loadAllAvailableDialects();
}

Result<std::unique_ptr<KernelRunner>> KernelRunner::compile(std::string_view text) {
  return compile(text, TITAN_TRY(resolveCpu("native")));
}

Result<std::unique_ptr<KernelRunner>> KernelRunner::compile(std::string_view text,
                                                            const TargetInfo& target) {
  VectorShape shape = vectorShape(target);
  if (shape.matrixUnit == MatrixUnitKind::Amx && whyNoTiles())
    shape.matrixUnit = MatrixUnitKind::None;
  return compile(text, target, shape);
}

Result<std::unique_ptr<KernelRunner>>
KernelRunner::compile(std::string_view text, const TargetInfo& target, const VectorShape& shape) {
  std::unique_ptr<KernelRunner> runner(new KernelRunner());
  MLIRContext* context = runner->context_.get();
  runner->module_ = parseSourceString<ModuleOp>(StringRef(text.data(), text.size()), context);
  if (!runner->module_)
    return Error::badInput("the kernels do not parse");

  std::unique_ptr<CpuTarget> cpu = TITAN_TRY(CpuTarget::createCpu(target, context));
  cpu->shape() = shape;
  bool failedToEmit = false;
  auto emit = [&](auto op, const auto& work) {
    std::string name = "kernel_" + std::to_string(runner->kernels_.size());
    failedToEmit |= failed(cpu->emit(op, name));
    runner->kernels_.push_back({op, nullptr, cpu->launch(work, Cost()).units});
  };
  runner->module_->walk([&](Operation* op) {
    if (auto fused = dyn_cast<kernel::FusedOp>(op))
      emit(fused, LoopNest(fused));
    else if (auto call = dyn_cast<kernel::CallOp>(op))
      emit(call, call);
  });
  if (failedToEmit)
    return Error::internal("a kernel is not emitted");
  const std::vector<CompiledImage> images = TITAN_TRY(cpu->finish());

  runner->code_ = std::make_unique<LoadedCode>(TITAN_TRY(LoadedCode::load(images[0].bytes)));
  for (size_t i = 0; i < runner->kernels_.size(); ++i)
    runner->kernels_[i].function = TITAN_TRY(runner->code_->kernel("kernel_" + std::to_string(i)));
  return runner;
}

void KernelRunner::run(size_t kernel, std::span<char* const> operands,
                       std::span<const int64_t> scalars, int64_t step) const {
  const Entry& entry = kernels_[kernel];
  if (step <= 0)
    step = std::max<int64_t>(entry.units, 1);
  for (int64_t end = entry.units; end > 0; end -= step)
    entry.function(operands.data(), scalars.data(), std::max<int64_t>(end - step, 0), end);
}

} // namespace titan::codegen::testing
