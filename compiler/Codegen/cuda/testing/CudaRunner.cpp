#include "compiler/Codegen/cuda/testing/CudaRunner.h"

#include "compiler/Codegen/cuda/CudaRoutines.h"
#include "compiler/Codegen/cuda/FusedKernel.h"
#include "compiler/Codegen/cuda/LowerToPtx.h"
#include "compiler/Codegen/cuda/testing/CaseRecorder.h"

#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>
#include <numeric>

using namespace mlir;

namespace titan::codegen::cuda::testing {

namespace {

std::string symbolOf(size_t kernel) { return fmt::format("titan_kernel_{}", kernel); }

} // namespace

CudaRunner::CudaRunner() {
  DialectRegistry registry;
  registry.insert<kernel::KernelDialect, func::FuncDialect>();
  context_ = std::make_unique<MLIRContext>(registry);
  context_->loadAllAvailableDialects();
}

Result<std::unique_ptr<CudaRunner>> CudaRunner::compile(std::string_view text) {
  std::unique_ptr<CudaRunner> runner(new CudaRunner());
  MLIRContext* context = runner->context_.get();
  runner->module_ = parseSourceString<ModuleOp>(StringRef(text.data(), text.size()), context);
  if (!runner->module_)
    return Error::badInput("the kernels do not parse");
  std::string message;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic& diagnostic) {
    message += diagnostic.str();
    return success();
  });
  KernelModule kernels(context);
  bool failedToEmit = false;
  runner->module_->walk([&](Operation* op) {
    const std::string symbol = symbolOf(runner->kernels_.size());
    if (auto fused = dyn_cast<kernel::FusedOp>(op))
      failedToEmit |= failed(emitFusedKernel(kernels, fused, symbol));
    else if (auto call = dyn_cast<kernel::CallOp>(op))
      failedToEmit |= failed(emitRoutineKernel(kernels, call, symbol));
    else
      return;
    runner->kernels_.push_back(op);
    const size_t known = runner->launchCount();
    const std::vector<Entry>& all = kernels.entries();
    runner->entries_.emplace_back(all.begin() + std::min(known, all.size()), all.end());
  });
  if (failedToEmit)
    return Error::badInput("{}", message);
  runner->ptx_ = TITAN_TRY(emitPtx(kernels, "sm_80"));
  runner->code_ = TITAN_TRY(ptx::parse(runner->ptx_));
  return runner;
}

size_t CudaRunner::launchCount() const {
  return std::accumulate(entries_.begin(), entries_.end(), size_t(0),
                         [](size_t sum, const auto& entries) { return sum + entries.size(); });
}

Result<std::vector<ptx::Counters>>
CudaRunner::run(size_t kernel, std::span<const uint64_t> operands, std::span<const int64_t> scalars,
                ptx::Order order, ptx::Memory& memory, int64_t ends) const {
  const bool isRecorded = order == ptx::Order::Ascending && ends == 0;
  CaseRecorder* recorder = isRecorded ? CaseRecorder::get() : nullptr;
  if (recorder)
    recorder->begin(ptx_, kernels_[kernel], entries_[kernel], operands, scalars, memory);
  std::vector<ptx::Counters> counters;
  for (const Entry& entry : entries_[kernel]) {
    ptx::Launch launch;
    launch.entry = entry.name;
    launch.grid[0] = static_cast<uint32_t>(entry.blocks);
    launch.block[0] = static_cast<uint32_t>(entry.threads);
    launch.sharedBytes = static_cast<uint32_t>(entry.sharedBytes);
    launch.arguments.assign(operands.begin(), operands.end());
    for (int64_t scalar : scalars)
      launch.arguments.push_back(static_cast<uint64_t>(scalar));
    for (int64_t block = 0; ends != 0 && block < entry.blocks; ++block)
      if (block < ends || block >= entry.blocks - ends)
        launch.blocks.push_back(static_cast<uint32_t>(block));
    launch.order = order;
    launch.seed = 7;
    counters.push_back(TITAN_TRY(ptx::run(*code_, launch, memory)));
  }
  if (recorder)
    recorder->end(memory);
  return counters;
}

std::vector<std::string> runOnBytes(const CudaRunner& runner, std::vector<std::string> bytes,
                                    size_t ins, ptx::Order order, ptx::Counters* counters,
                                    size_t kernel) {
  ptx::Memory memory;
  std::vector<uint64_t> operands;
  for (const std::string& content : bytes) {
    const auto size = static_cast<int64_t>(content.size());
    operands.push_back(memory.allocate(size).take());
    if (operands.size() > ins)
      continue;
    std::memcpy(memory.bytes(operands.back(), size).data(), content.data(), content.size());
    memory.markWritten(operands.back(), size);
  }
  Result<std::vector<ptx::Counters>> counted = runner.run(kernel, operands, {}, order, memory);
  EXPECT_TRUE(counted.ok()) << counted.error().message() << "\n" << runner.ptx();
  if (!counted.ok())
    return {};
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto size = static_cast<int64_t>(bytes[i].size());
    EXPECT_FALSE(memory.firstUnwritten(operands[i], size)) << "operand " << i;
    std::memcpy(bytes[i].data(), memory.bytes(operands[i], size).data(), bytes[i].size());
  }
  if (counters)
    *counters = counted->back();
  return bytes;
}

std::vector<std::string> runInAllOrders(const CudaRunner& runner,
                                        const std::vector<std::string>& bytes, size_t ins) {
  auto found = runOnBytes(runner, bytes, ins, ptx::Order::Ascending);
  for (ptx::Order order : {ptx::Order::Descending, ptx::Order::Random})
    EXPECT_EQ(runOnBytes(runner, bytes, ins, order), found);
  return found;
}

void expectAssembles(const std::string& ptx) {
  static const std::unique_ptr<Assembler> assembler = [] {
    std::unique_ptr<Assembler> found = Assembler::find();
    if (!found)
      fmt::print("not assembled: {}\n", Assembler::whatIsMissing());
    return found;
  }();
  if (!assembler)
    return;
  for (const char* arch : {"sm_80", "sm_90", "sm_120"}) {
    Result<Cubin> cubin = assembler->assemble(ptx, arch);
    ASSERT_TRUE(cubin.ok()) << cubin.error().message() << "\n" << ptx;
    EXPECT_FALSE(cubin->entries.empty()) << cubin->log;
    for (const EntryUsage& entry : cubin->entries) {
      EXPECT_EQ(entry.spillBytes, 0) << entry.name << " for " << arch;
      EXPECT_EQ(entry.stackBytes, 0) << entry.name << " for " << arch;
    }
  }
}

} // namespace titan::codegen::cuda::testing
