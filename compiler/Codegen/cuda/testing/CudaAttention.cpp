#include "compiler/Codegen/cuda/testing/CudaAttention.h"

#include "compiler/Codegen/cuda/CudaArch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

namespace titan::codegen::cuda::testing {

AttentionSpec withBlocksOfCards(AttentionSpec spec) {
  const MachineModel card = cardModel();
  spec.rows = card.attentionRows;
  spec.rowsOfWide = card.attentionRowsOfWide;
  spec.blockKeys = card.attentionKeys;
  spec.padding = card.attentionPadding;
  return spec;
}

CudaAttention::CudaAttention(AttentionSpec spec) : AttentionProblem(withBlocksOfCards(spec)) {
  const std::string text = moduleText();
  Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(text);
  if (runner.ok())
    runner_ = runner.take();
  else
    ADD_FAILURE() << runner.error().message() << "\n" << text;
}

std::vector<std::string> CudaAttention::run(bool isBackward, const AttentionTensors& tensors,
                                            ptx::Order order) const {
  const std::vector<std::string> buffers = this->buffers(isBackward, tensors);
  const size_t ins = countIns(isBackward);
  ptx::Memory memory;
  std::vector<uint64_t> operands;
  auto bytesAt = [&](size_t i) {
    return memory.bytes(operands[i], static_cast<int64_t>(buffers[i].size()));
  };
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto size = static_cast<int64_t>(buffers[i].size());
    const int64_t offset = spec().offset.value_or(0);
    Result<uint64_t> address = memory.allocate(size + offset);
    EXPECT_TRUE(address.ok());
    operands.push_back(*address + static_cast<uint64_t>(offset));
    if (i >= ins)
      continue;
    std::memcpy(bytesAt(i).data(), buffers[i].data(), buffers[i].size());
    memory.markWritten(operands[i], size);
  }
  Result<std::vector<ptx::Counters>> counters =
      runner_->run(isBackward ? 1 : 0, operands, scalars(), order, memory);
  EXPECT_TRUE(counters.ok()) << (counters.ok() ? "" : counters.error().message());
  if (counters.ok())
    counters_ = counters.take();
  std::vector<std::string> outs;
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::string bytes(bytesAt(i).begin(), bytesAt(i).end());
    if (i >= ins)
      outs.push_back(std::move(bytes));
    else
      EXPECT_EQ(bytes, buffers[i]) << "in " << i << " was written";
  }
  return outs;
}

AttentionTensors CudaAttention::forward(ptx::Order order) const {
  return unpack(false, run(false, inputs, order));
}

AttentionTensors CudaAttention::backward(ptx::Order order) const {
  return backwardOf(forward(order), order);
}

AttentionTensors CudaAttention::backwardOf(AttentionTensors forward, ptx::Order order) const {
  forward.insert(inputs.begin(), inputs.end());
  return unpack(true, run(true, forward, order));
}

void CudaAttention::check(double tolerance) const {
  const AttentionSpec& s = spec();
  SCOPED_TRACE(fmt::format("B {} H {} G {} T {} S {} D {} E {} {}{}", s.batch, s.heads, s.keyHeads,
                           s.queries, s.keys, s.width, s.valueWidth, s.element,
                           s.causal ? " causal" : ""));
  if (!runner_)
    return;
  const AttentionTensors expected = reference();
  AttentionTensors found;
  for (ptx::Order order : {ptx::Order::Ascending, ptx::Order::Descending, ptx::Order::Random}) {
    AttentionTensors tensors = forward(order);
    tensors.merge(backwardOf(tensors, order));
    if (order == ptx::Order::Ascending)
      found = tensors;
    EXPECT_EQ(tensors, found) << "in order " << static_cast<int>(order);
  }
  codegen::testing::expectClose(found, expected, tolerance);
  expectAssembles(runner_->ptx());
}

} // namespace titan::codegen::cuda::testing
