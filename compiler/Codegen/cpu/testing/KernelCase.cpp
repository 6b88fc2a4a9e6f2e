#include "compiler/Codegen/cpu/testing/KernelCase.h"

#include "compiler/Codegen/cpu/CpuFeatures.h"

#include <gtest/gtest.h>

namespace titan::codegen::testing {
namespace {

// Bytes behind each buffer that no kernel may touch.
constexpr size_t guardBytes = 256;
constexpr char guardByte = 0x5a;

} // namespace

std::unique_ptr<KernelRunner> compile(const std::string& text) {
  Result<std::unique_ptr<KernelRunner>> runner = KernelRunner::compile(text);
  if (runner.ok())
    return runner.take();
  ADD_FAILURE() << runner.error().message() << "\n" << text;
  return nullptr;
}

KernelCase::KernelCase(const KernelSpec& spec, std::string_view arch) : KernelData(spec) {
  Result<TargetInfo> target = resolveCpu(arch);
  if (!target.ok()) {
    ADD_FAILURE() << target.error().message();
    return;
  }
  Result<std::unique_ptr<KernelRunner>> runner = KernelRunner::compile(moduleText(spec), *target);
  if (runner.ok())
    runner_ = runner.take();
  else
    ADD_FAILURE() << runner.error().message() << "\n" << moduleText(spec);
}

std::vector<std::string> KernelCase::run(int64_t step,
                                         std::vector<std::pair<size_t, size_t>> places) {
  std::vector<std::string> buffers;
  auto add = [&](const OperandSpec& spec, const Elements& values) {
    buffers.push_back(encode(spec.element, values) + std::string(guardBytes, guardByte));
  };
  for (size_t i = 0; i < ins_.size(); ++i)
    add(spec_.ins[i], ins_[i]);
  for (size_t i = 0; i < outs_.size(); ++i)
    add(spec_.outs[i], outs_[i]);
  std::vector<char*> operands;
  for (std::string& buffer : buffers)
    operands.push_back(buffer.data());
  for (auto [in, out] : places)
    operands[ins_.size() + out] = operands[in];
  runner_->run(0, operands, scalars_, step);
  for (auto [in, out] : places) {
    buffers[ins_.size() + out] = buffers[in];
    buffers[in] = encode(spec_.ins[in].element, ins_[in]) + std::string(guardBytes, guardByte);
  }
  std::vector<std::string> results;
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::string& buffer = buffers[i];
    EXPECT_TRUE(buffer.ends_with(std::string(guardBytes, guardByte)))
        << "operand " << i << " was written beyond its end";
    buffer.resize(buffer.size() - guardBytes);
    if (i >= ins_.size())
      results.push_back(buffer);
    else
      EXPECT_EQ(buffer, encode(spec_.ins[i].element, ins_[i])) << "in " << i << " was written";
  }
  return results;
}

void KernelCase::check(double tolerance) {
  if (!runner_)
    return;
  std::string space;
  for (int64_t extent : spec_.space)
    space += std::to_string(extent) + " ";
  SCOPED_TRACE("space " + space);
  std::vector<std::string> results = run();
  auto fused = llvm::cast<kernel::FusedOp>(runner_->kernels()[0].op);
  std::vector<Elements> expected = evaluateFused(fused, ins_, outs_, scalars_);
  for (size_t i = 0; i < results.size(); ++i) {
    Elements found = decode(spec_.outs[i].element, results[i]);
    for (size_t j = 0; j < found.size(); ++j) {
      double want = expected[i][j];
      ASSERT_TRUE(isClose(found[j], want, tolerance))
          << "out " << i << ", element " << j << ": " << found[j] << ", expected " << want;
    }
  }
  for (int64_t step : {1, 3})
    EXPECT_EQ(run(step), results) << "in calls of " << step << " units";
}

void KernelCase::checkInPlace(size_t in, size_t out) {
  if (!runner_)
    return;
  std::vector<std::string> apart = run();
  for (int64_t step : {0, 1, 3})
    EXPECT_EQ(run(step, {{in, out}}), apart) << "in place, in calls of " << step << " units";
}

} // namespace titan::codegen::testing
