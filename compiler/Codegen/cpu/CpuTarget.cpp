#include "compiler/Codegen/cpu/CpuTarget.h"

#include "compiler/Codegen/Routines.h"
#include "compiler/Codegen/cpu/CpuClass.h"
#include "compiler/Codegen/cpu/CpuRoutines.h"
#include "compiler/Codegen/cpu/GemmKernel.h"
#include "compiler/Codegen/cpu/ObjectFile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace titan::codegen {
namespace {

const CpuRoutine* findRoutine(Attribute routine) {
  auto* table = routine.getDialect().getRegisteredInterface<CpuRoutineTable>();
  return table ? table->find(routine) : nullptr;
}

/// Is the generated kernel the faster one for this product? Decided from its extents by committed
/// measurements (compiler/Codegen/RATIONALE.md), never by timing.
bool prefersGenerated(const Gemm& gemm, const MachineModel& machine) {
  // The library gives f32, of operands of one type.
  if (gemm.c == DType::BF16 || gemm.a != gemm.b)
    return true;
  // Faster on every shape measured: bf16, and y = x W^T.
  if (gemm.a == DType::BF16 || (gemm.transposeB && !gemm.transposeA))
    return true;
  // Each operand is copied once for the other's extent of C: narrow ones pay too little for it.
  const bool isGradient = gemm.transposeA;
  const int64_t columns = isGradient ? machine.libraryGradientColumns : machine.libraryColumns;
  if (gemm.m > machine.libraryRows && gemm.n > columns &&
      !(isGradient && gemm.m > machine.libraryGradientRows))
    return true;
  // Up to here the library's packing and dispatch cost more than its kernel gains.
  return gemm.m * gemm.n * gemm.k <= machine.libraryWork;
}

} // namespace

Result<std::unique_ptr<Target>> CpuTarget::create(TargetInfo info, MLIRContext* context) {
  return std::unique_ptr<Target>(TITAN_TRY(createCpu(std::move(info), context)));
}

Result<std::unique_ptr<CpuTarget>> CpuTarget::createCpu(TargetInfo info, MLIRContext* context) {
  info = TITAN_TRY(checked(std::move(info)));
  return std::unique_ptr<CpuTarget>(new CpuTarget(std::move(info), context));
}

Result<TargetInfo> CpuTarget::checked(TargetInfo info) {
  if (info.cpu == "native") {
    TargetInfo native = TITAN_TRY(resolveCpu(info.cpu));
    info.cpu = native.cpu;
    info.features = native.features;
    if (!info.machine)
      info.machine = native.machine;
  }
  if (!isCpu(info.cpu))
    return Error::badInput("'titan.target' names {} '{}': no such CPU", info.kind, info.cpu);
  if (const std::string unknown = unknownFeature(info.features); !unknown.empty())
    return Error::badInput("'titan.target' names the feature '{}': LLVM knows none of this name; "
                           "features are written as in \"+avx2,-sse4a\"",
                           unknown);
  if (!info.machine)
    info.machine = machineOf(classOf(info, makerOf(info.cpu)));
  return info;
}

CpuTarget::CpuTarget(TargetInfo info, MLIRContext* context)
    : Target(std::move(info)), shape_(vectorShape(this->info())), builder_(context) {
  context
      ->loadDialect<func::FuncDialect, LLVM::LLVMDialect, scf::SCFDialect, vector::VectorDialect>();
  kernels_ = ModuleOp::create(builder_.getUnknownLoc());
  builder_.setInsertionPointToEnd(kernels_->getBody());
}

ProgramTarget CpuTarget::device() const {
  return {"cpu", info().cpu, CpuFeatures(info()).required()};
}

const RoutineEmitter* CpuTarget::routine(Attribute routine) const { return findRoutine(routine); }

LogicalResult CpuTarget::emit(kernel::FusedOp op, StringRef symbol) {
  return emitFusedKernel(builder_, op, symbol, shape_);
}

LogicalResult CpuTarget::emit(kernel::CallOp op, StringRef symbol) {
  return findRoutine(op.getRoutine())->emit(builder_, op, symbol, shape_);
}

Launch CpuTarget::launch(const LoopNest& nest, const Cost& cost) const {
  int64_t units = planUnits(nest, shape_).units;
  return {units, grainOf(cost, units, machine())};
}

Launch CpuTarget::launch(kernel::CallOp op, const Cost& cost) const {
  int64_t units = op.getRoutine().getUnits();
  return {units, grainOf(cost, units, machine())};
}

std::optional<LibraryCall> CpuTarget::library(kernel::CallOp op) const {
  if (!op.getGemm() || op.getGemm().hasPatches())
    return std::nullopt;
  LibraryCall call;
  call.routine = LibraryRoutine::Gemm;
  call.gemm = toGemm(op);
  call.generated = prefersGenerated(call.gemm, machine());
  return call;
}

Result<std::vector<CompiledImage>> CpuTarget::finish() {
  CompiledImage compiled;
  compiled.image.kind = Image::Kind::Object;
  compiled.image.arch = info().cpu;
  compiled.bytes = TITAN_TRY(emitKernelObjects(*kernels_, info(), cache()));
  return std::vector{std::move(compiled)};
}

Result<std::string> CpuTarget::finishAsText() { return emitKernelAssembly(*kernels_, info()); }

} // namespace titan::codegen
