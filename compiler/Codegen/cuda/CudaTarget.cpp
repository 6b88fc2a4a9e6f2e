#include "compiler/Codegen/cuda/CudaTarget.h"

#include "compiler/Codegen/Routines.h"
#include "compiler/Codegen/cuda/Assembler.h"
#include "compiler/Codegen/cuda/AttentionCall.h"
#include "compiler/Codegen/cuda/CudaArch.h"
#include "compiler/Codegen/cuda/CudaRoutines.h"
#include "compiler/Codegen/cuda/FusedKernel.h"
#include "compiler/Codegen/cuda/LowerToPtx.h"
#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "runtime/program/CardProducts.h"

#include <fmt/ranges.h>

#include <future>

using namespace mlir;

namespace titan::codegen {
namespace {

std::string alignmentsOf(OperandRange ins, OperandRange outs) {
  std::string text;
  for (OperandRange operands : {ins, outs})
    for (Value operand : operands)
      text += fmt::format(" {}", cuda::alignmentOf(operand));
  return text;
}

CompiledImage imageOf(Image::Kind kind, std::string arch, std::string bytes) {
  CompiledImage compiled;
  compiled.image.kind = kind;
  compiled.image.arch = std::move(arch);
  compiled.bytes = std::move(bytes);
  return compiled;
}

/// "titan_kernel_3 keeps 40 bytes of a thread in memory", of the kernel that keeps most.
std::optional<std::string> describeSpills(const cuda::Cubin& cubin, const std::string& arch) {
  const cuda::EntryUsage* worst = nullptr;
  size_t count = 0;
  for (const cuda::EntryUsage& entry : cubin.entries)
    if (entry.stackBytes > 0) {
      ++count;
      if (!worst || entry.stackBytes > worst->stackBytes)
        worst = &entry;
    }
  if (!worst)
    return std::nullopt;
  return fmt::format("{} kernels need more registers than {} has: {} keeps {} bytes of each thread "
                     "in memory",
                     count, arch, worst->name, worst->stackBytes);
}

std::vector<std::string> spilledIn(llvm::ArrayRef<cuda::Cubin> cubins) {
  std::vector<std::string> names;
  for (const cuda::Cubin& cubin : cubins)
    for (const cuda::EntryUsage& entry : cubin.entries)
      if (entry.stackBytes > 0 || entry.spillBytes > 0)
        names.push_back(entry.name);
  return names;
}

} // namespace

Result<TargetInfo> resolveCards(std::string_view archs) {
  TargetInfo info;
  info.kind = "cuda";
  info.cpu.clear();
  std::string named(archs);
  if (archs == "native")
    named = fmt::format("{}", fmt::join(TITAN_TRY(cuda::nativeArchs()), ","));
  info.archs = fmt::format("{}", fmt::join(TITAN_TRY(cuda::parseArchs(named)), ","));
  info.machine = cuda::cardModel();
  return info;
}

Status checkRecipeForCards(const Recipe& recipe) {
  if (const int64_t ranks = rankCount(recipe.mesh.axes); ranks > 1)
    return Error::badInput("mesh.axes has {} ranks, and a job for cuda runs on one card", ranks);
  if (recipe.mesh.isTree())
    return Error::badInput("mesh.reduce = \"tree\" is not available on cuda");
  return {};
}

Result<std::string> withoutAssembler(std::string_view archs) {
  if (archs != cuda::defaultArchs)
    return Error::environment("--arch={} takes an assembler: {}: install a CUDA toolkit, or the "
                              "wheel nvidia-nvjitlink",
                              archs, cuda::Assembler::whatIsMissing());
  return fmt::format("the job carries PTX alone, which the driver of a card assembles when it "
                     "starts: {}",
                     cuda::Assembler::whatIsMissing());
}

Result<std::unique_ptr<Target>> CudaTarget::create(TargetInfo info, MLIRContext* context) {
  if (!cuda::parseArchs(info.archs).ok())
    return Error::badInput("'titan.target' names {} '{}': no such card", info.kind, info.archs);
  if (!info.machine)
    info.machine = cuda::cardModel();
  return std::unique_ptr<Target>(new CudaTarget(std::move(info), context));
}

CudaTarget::CudaTarget(TargetInfo info, MLIRContext* context)
    : Target(std::move(info)), kernels_(context) {}

ProgramTarget CudaTarget::device() const { return {info().kind, "", {}}; }

const RoutineEmitter* CudaTarget::routine(Attribute routine) const {
  return cuda::findRoutine(routine);
}

LogicalResult CudaTarget::emit(kernel::FusedOp op, StringRef symbol) {
  return cuda::emitFusedKernel(kernels_, op, symbol);
}

LogicalResult CudaTarget::emit(kernel::CallOp op, StringRef symbol) {
  return cuda::emitRoutineKernel(kernels_, op, symbol);
}

std::string CudaTarget::variant(kernel::FusedOp op) const {
  return alignmentsOf(op.getIns(), op.getOuts());
}

std::string CudaTarget::variant(kernel::CallOp op) const {
  return alignmentsOf(op.getIns(), op.getOuts());
}

std::vector<GridLaunch> CudaTarget::launches(StringRef symbol) const {
  std::vector<GridLaunch> launches;
  for (const cuda::Entry& entry : kernels_.entries())
    if (cuda::isLaunchOf(entry, symbol))
      launches.push_back({entry.name, entry.blocks, entry.threads, entry.sharedBytes});
  return launches;
}

Launch CudaTarget::launch(const LoopNest&, const Cost&) const { return {}; }

/// What a CPU does for the command, with reference kernels.
Launch CudaTarget::launch(kernel::CallOp op, const Cost&) const {
  return {op.getGemm() ? op.getRoutine().getUnits() : 1, 1};
}

std::optional<LibraryCall> CudaTarget::library(kernel::CallOp op) const {
  if (!op.getGemm() || op.getGemm().hasPatches())
    return cuda::libraryAttention(op);
  LibraryCall call;
  call.routine = LibraryRoutine::Gemm;
  call.gemm = toGemm(op);
  if (!suitsCardLibrary(call.gemm))
    return std::nullopt;
  call.workspace = cardWorkspaceBytes;
  return call;
}

Result<std::string> CudaTarget::ptx() { return cuda::emitPtx(kernels_, cuda::ptxArch); }

/// A kernel that spills is emitted again with its loops kept: an assembler that unrolls them may
/// read further ahead than its registers last. Where that does not help, it is emitted without a
/// bound of its registers.
Result<std::vector<CompiledImage>> CudaTarget::finish() {
  std::string text = TITAN_TRY(ptx());
  std::vector<CompiledImage> images;
  if (std::unique_ptr<cuda::Assembler> assembler = cuda::Assembler::find()) {
    std::vector<cuda::Cubin> cubins = TITAN_TRY(assemble(*assembler, text));
    for (auto change : {&cuda::KernelModule::keepLoops, &cuda::KernelModule::freeRegisters})
      if ((kernels_.*change)(spilledIn(cubins))) {
        text = TITAN_TRY(ptx());
        cubins = TITAN_TRY(assemble(*assembler, text));
      }
    images = TITAN_TRY(keep(*assembler, text, std::move(cubins)));
  } else {
    note(TITAN_TRY(withoutAssembler(info().archs)));
  }
  images.push_back(imageOf(Image::Kind::Ptx, cuda::ptxArch, text));
  return images;
}

Result<std::string> CudaTarget::finishAsText() { return ptx(); }

namespace {

std::string cacheKey(const cuda::Assembler& assembler, const std::string& arch,
                     const std::string& ptx) {
  return fmt::format("{}\n{}\n{}", assembler.name(), arch, ptx);
}

} // namespace

Result<std::vector<cuda::Cubin>> CudaTarget::assemble(const cuda::Assembler& assembler,
                                                      const std::string& ptx) {
  std::vector<std::future<Result<cuda::Cubin>>> futures;
  for (const std::string& arch : TITAN_TRY(cuda::parseArchs(info().archs))) {
    const std::string key = cacheKey(assembler, arch, ptx);
    std::optional<std::string> found = cache() ? cache()->find(key) : std::nullopt;
    futures.push_back(
        std::async(found ? std::launch::deferred : std::launch::async, [&, arch, found]() {
          return found ? Result<cuda::Cubin>(cuda::Cubin{*found, "", {}})
                       : assembler.assemble(ptx, arch);
        }));
  }
  std::vector<cuda::Cubin> cubins;
  for (auto& future : futures)
    cubins.push_back(TITAN_TRY(future.get()));
  return cubins;
}

Result<std::vector<CompiledImage>> CudaTarget::keep(const cuda::Assembler& assembler,
                                                    const std::string& ptx,
                                                    std::vector<cuda::Cubin> cubins) {
  std::vector<CompiledImage> images;
  const std::vector<std::string> archs = TITAN_TRY(cuda::parseArchs(info().archs));
  for (auto [arch, cubin] : llvm::zip_equal(archs, cubins)) {
    if (std::optional<std::string> spills = describeSpills(cubin, arch))
      note(*spills);
    if (cache())
      cache()->store(cacheKey(assembler, arch, ptx), cubin.bytes);
    images.push_back(imageOf(Image::Kind::Cubin, arch, std::move(cubin.bytes)));
    images.back().log = std::move(cubin.log);
  }
  if (cache())
    cache()->trim();
  return images;
}

} // namespace titan::codegen
