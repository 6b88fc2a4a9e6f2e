#include "compiler/Codegen/cpu/testing/KernelRunner.h"

#include "compiler/Codegen/cpu/AttentionKernel.h"
#include "compiler/Codegen/cpu/EmbeddingKernel.h"
#include "compiler/Codegen/cpu/FusedKernel.h"
#include "compiler/Codegen/cpu/GemmKernel.h"
#include "compiler/Codegen/cpu/ObjectFile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace titan::codegen::testing {

KernelRunner::KernelRunner() : context_(std::make_unique<MLIRContext>()) {
  context_->loadDialect<kernel::KernelDialect, func::FuncDialect, LLVM::LLVMDialect,
                        scf::SCFDialect, vector::VectorDialect>();
}

Result<std::unique_ptr<KernelRunner>> KernelRunner::compile(std::string_view text) {
  return compile(text, TITAN_TRY(resolveTarget("cpu", "native")));
}

Result<std::unique_ptr<KernelRunner>> KernelRunner::compile(std::string_view text,
                                                            const TargetInfo& target) {
  std::unique_ptr<KernelRunner> runner(new KernelRunner());
  MLIRContext* context = runner->context_.get();
  runner->module_ = parseSourceString<ModuleOp>(StringRef(text.data(), text.size()), context);
  if (!runner->module_)
    return Error::badInput("the kernels do not parse");

  VectorShape shape = vectorShape(target);
  OpBuilder builder(context);
  OwningOpRef<ModuleOp> kernels(ModuleOp::create(builder.getUnknownLoc()));
  builder.setInsertionPointToEnd(kernels->getBody());
  bool failedToEmit = false;
  runner->module_->walk([&](Operation* op) {
    std::string name = "kernel_" + std::to_string(runner->kernels_.size());
    if (auto fused = dyn_cast<kernel::FusedOp>(op)) {
      failedToEmit |= failed(emitFusedKernel(builder, fused, name, shape));
      runner->kernels_.push_back({op, nullptr, planUnits(LoopNest(fused), shape).units});
    } else if (auto call = dyn_cast<kernel::CallOp>(op)) {
      if (call.getGemm())
        emitGemmKernel(builder, call, name, shape);
      else if (auto attention = dyn_cast<kernel::AttentionAttr>(call.getRoutine()))
        emitAttentionKernel(builder, op->getLoc(), attention, name, shape);
      else if (isa<kernel::EmbeddingAttr>(call.getRoutine()))
        emitEmbeddingKernel(builder, call, name);
      else
        emitEmbeddingGradKernel(builder, call, name);
      runner->kernels_.push_back({op, nullptr, call.getRoutine().getUnits()});
    }
  });
  if (failedToEmit)
    return Error::internal("a kernel is not emitted");
  std::string object = TITAN_TRY(emitKernelObject(*kernels, target));

  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return Error::internal("{}", llvm::toString(jit.takeError()));
  runner->jit_ = std::move(*jit);
  if (llvm::Error error =
          runner->jit_->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object, "kernels")))
    return Error::internal("{}", llvm::toString(std::move(error)));
  for (size_t i = 0; i < runner->kernels_.size(); ++i) {
    auto symbol = runner->jit_->lookup("kernel_" + std::to_string(i));
    if (!symbol)
      return Error::internal("{}", llvm::toString(symbol.takeError()));
    runner->kernels_[i].function = symbol->toPtr<KernelFunction>();
  }
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
