// Target "other": nothing outside of this file knows it.
#include "test/foreign/Foreign.h"

#include "compiler/Codegen/Targets.h"
#include "compiler/Codegen/cpu/CpuTarget.h"

using namespace mlir;

namespace titan::foreign {
namespace {

using codegen::Cost;

/// Kernels are the CPU's. A command goes to at most three threads, and products to none but them.
class OtherTarget : public codegen::CpuTarget {
public:
  static Result<TargetInfo> resolve(std::string_view arch) {
    TargetInfo info = TITAN_TRY(codegen::resolveCpu(arch));
    info.kind = "other";
    info.machine->flopsPerByte = 40;
    info.machine->gridGranule = 48;
    info.machine->gridCallNs = 2000;
    info.machine->smallKernelPoints = 256;
    info.machine->embeddingGradColumns = 32;
    info.machine->arenaAlignment = 256;
    return info;
  }
  static Result<std::unique_ptr<codegen::Target>> create(TargetInfo info, MLIRContext* context) {
    info = TITAN_TRY(checked(std::move(info)));
    return std::unique_ptr<codegen::Target>(new OtherTarget(std::move(info), context));
  }

  Launch launch(const codegen::LoopNest& nest, const Cost& cost) const override {
    return inThree(CpuTarget::launch(nest, cost));
  }
  Launch launch(kernel::CallOp op, const Cost& cost) const override {
    return inThree(CpuTarget::launch(op, cost));
  }
  std::optional<LibraryCall> library(kernel::CallOp) const override { return std::nullopt; }

private:
  using CpuTarget::CpuTarget;
  static Launch inThree(Launch launch) {
    launch.grain = std::max<int64_t>(1, llvm::divideCeilSigned(launch.units, 3));
    return launch;
  }
};

} // namespace

void addOtherTarget() {
  codegen::addTargetKind({"other", OtherTarget::resolve, OtherTarget::create});
}

} // namespace titan::foreign
