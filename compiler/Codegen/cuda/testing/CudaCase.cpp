#include "compiler/Codegen/cuda/testing/CudaCase.h"

#include <gtest/gtest.h>

#include <cstring>

namespace titan::codegen::cuda::testing {

using codegen::testing::decode;
using codegen::testing::encode;

namespace {

/// Puts `content` `offset` bytes into an allocation of its own.
uint64_t place(ptx::Memory& memory, const std::string& content, int64_t offset) {
  const auto size = static_cast<int64_t>(content.size());
  Result<uint64_t> base = memory.allocate(size + offset);
  EXPECT_TRUE(base.ok());
  const uint64_t address = *base + static_cast<uint64_t>(offset);
  std::memcpy(memory.bytes(address, size).data(), content.data(), content.size());
  memory.markWritten(address, size);
  return address;
}

} // namespace

CudaCase::CudaCase(const KernelSpec& spec) : KernelData(spec) {
  const std::string text = moduleText(spec);
  Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(text);
  if (runner.ok())
    runner_ = runner.take();
  else
    ADD_FAILURE() << runner.error().message() << "\n" << text;
}

std::vector<std::string> CudaCase::run(ptx::Order order,
                                       std::vector<std::pair<size_t, size_t>> places) {
  ptx::Memory memory;
  std::vector<uint64_t> operands;
  for (size_t i = 0; i < ins_.size(); ++i)
    operands.push_back(
        place(memory, encode(spec_.ins[i].element, ins_[i]), spec_.ins[i].offset % 256));
  for (size_t i = 0; i < outs_.size(); ++i)
    operands.push_back(
        place(memory, encode(spec_.outs[i].element, outs_[i]), spec_.outs[i].offset % 256));
  for (auto [in, out] : places)
    operands[ins_.size() + out] = operands[in];
  Result<std::vector<ptx::Counters>> counters = runner_->run(0, operands, scalars_, order, memory);
  if (counters.ok())
    counters_ = counters->back();
  else
    ADD_FAILURE() << counters.error().message() << "\n" << runner_->ptx();
  auto bytesAt = [&](uint64_t address, const std::string& like) {
    std::span<char> bytes = memory.bytes(address, static_cast<int64_t>(like.size()));
    return std::string(bytes.begin(), bytes.end());
  };
  for (size_t i = 0; i < ins_.size(); ++i) {
    const std::string before = encode(spec_.ins[i].element, ins_[i]);
    const bool isOut = std::any_of(places.begin(), places.end(),
                                   [&](const auto& place) { return place.first == i; });
    if (!isOut)
      EXPECT_EQ(bytesAt(operands[i], before), before) << "in " << i << " was written";
  }
  std::vector<std::string> results;
  for (size_t i = 0; i < outs_.size(); ++i)
    results.push_back(bytesAt(operands[ins_.size() + i], encode(spec_.outs[i].element, outs_[i])));
  return results;
}

void CudaCase::checkValues(double tolerance) {
  if (!runner_)
    return;
  std::string space;
  for (int64_t extent : spec_.space)
    space += std::to_string(extent) + " ";
  SCOPED_TRACE("space " + space);
  std::vector<std::string> results = run();
  auto fused = llvm::cast<kernel::FusedOp>(runner_->kernels()[0]);
  std::vector<Elements> expected = codegen::testing::evaluateFused(fused, ins_, outs_, scalars_);
  for (size_t i = 0; i < results.size(); ++i) {
    Elements found = decode(spec_.outs[i].element, results[i]);
    for (size_t j = 0; j < found.size(); ++j)
      ASSERT_TRUE(codegen::testing::isClose(found[j], expected[i][j], tolerance))
          << "out " << i << ", element " << j << ": " << found[j] << ", expected " << expected[i][j]
          << "\n"
          << runner_->ptx();
  }
  for (ptx::Order order : {ptx::Order::Descending, ptx::Order::Random})
    EXPECT_EQ(run(order), results) << "in order " << static_cast<int>(order);
}

void CudaCase::check(double tolerance) {
  checkValues(tolerance);
  if (runner_)
    expectAssembles(runner_->ptx());
}

void CudaCase::checkInPlace(size_t in, size_t out) {
  if (!runner_)
    return;
  std::vector<std::string> apart = run();
  for (ptx::Order order : {ptx::Order::Ascending, ptx::Order::Descending, ptx::Order::Random})
    EXPECT_EQ(run(order, {{in, out}}), apart) << "in place, in order " << static_cast<int>(order);
}

} // namespace titan::codegen::cuda::testing
