#include "compiler/Codegen/cpu/testing/AttentionCase.h"

#include "compiler/Codegen/cpu/CpuFeatures.h"
#include "compiler/Codegen/cpu/MatrixUnit.h"

#include <gtest/gtest.h>

#include <chrono>

namespace titan::codegen::testing {
namespace {

// Bytes behind each buffer that no kernel may touch.
constexpr size_t guardBytes = 256;
constexpr char guardByte = 0x5a;

/// Attention has rows of tiles in vectors. Where tiles are emulated, LLVM halves those that the CPU
/// is too narrow for.
VectorShape shapeOf(MatrixUnitKind unit, const TargetInfo& target) {
  VectorShape shape = shapeWith(unit, target);
  if (unit == MatrixUnitKind::Emulated)
    shape.width = MatrixTile::columns;
  return shape;
}

} // namespace

AttentionCase::AttentionCase(AttentionSpec spec, std::string_view arch,
                             std::optional<MatrixUnitKind> unit)
    : AttentionProblem(spec) {
  auto target = resolveCpu(arch);
  const std::string text = moduleText();
  auto begin = std::chrono::steady_clock::now();
  auto runner = unit ? KernelRunner::compile(text, *target, shapeOf(*unit, *target))
                     : KernelRunner::compile(text, *target);
  compileSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!runner.ok())
    ADD_FAILURE() << runner.error().message() << "\n" << text;
  else
    runner_ = std::move(*runner);
}

std::vector<std::string> AttentionCase::run(bool isBackward, int64_t units,
                                            const AttentionTensors& tensors, int repeats,
                                            double* seconds) const {
  std::vector<std::string> buffers = this->buffers(isBackward, tensors, guardBytes, guardByte);
  std::vector<char*> operands;
  for (std::string& buffer : buffers)
    operands.push_back(buffer.data());
  const std::vector<int64_t> scalars = this->scalars();
  for (int i = 0; i < repeats; ++i) {
    auto begin = std::chrono::steady_clock::now();
    runner_->run(isBackward ? 1 : 0, operands, scalars, units);
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (seconds)
      *seconds = i == 0 ? taken.count() : std::min(*seconds, taken.count());
  }
  std::vector<std::string> outs;
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(buffers[i].substr(buffers[i].size() - guardBytes), std::string(guardBytes, guardByte))
        << "operand " << i << " is written beyond its end";
    if (i >= countIns(isBackward))
      outs.push_back(buffers[i]);
  }
  return outs;
}

AttentionTensors AttentionCase::forward(int64_t units) const {
  return unpack(false, run(false, units, inputs, 1, nullptr));
}

AttentionTensors AttentionCase::backward(int64_t units) const {
  AttentionTensors tensors = forward();
  tensors.insert(inputs.begin(), inputs.end());
  return unpack(true, run(true, units, tensors, 1, nullptr));
}

double AttentionCase::seconds(bool isBackward, int repeats) const {
  AttentionTensors tensors = forward();
  tensors.insert(inputs.begin(), inputs.end());
  double seconds = 0;
  run(isBackward, 0, tensors, repeats, &seconds);
  return seconds;
}

} // namespace titan::codegen::testing
