#include "compiler/Codegen/cuda/testing/CudaGemm.h"

#include "runtime/program/DType.h"

#include <gtest/gtest.h>

#include <cstring>

namespace titan::codegen::cuda::testing {

CudaGemm::CudaGemm(const GemmCase& gemm, unsigned seed) : case_(gemm) {
  Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(moduleText(gemm));
  if (!runner.ok()) {
    ADD_FAILURE() << runner.error().message();
    return;
  }
  runner_ = std::move(*runner);
  gemm_ = llvm::cast<kernel::CallOp>(runner_->kernels()[0]).getGemm();
  std::mt19937 generator(seed);
  a_.emplace(gemm.batch * gemm_.getStrideA(), gemm.bf16, generator);
  b_.emplace(gemm.batch * gemm_.getStrideB(), gemm.bf16 && !gemm.roundsB, generator);
  start_.emplace(gemm.batch * gemm_.getStrideC(), gemm.toBf16, generator);
  bias_.emplace(gemm.n, gemm.toBf16, generator);
}

void CudaGemm::eachElement(const std::function<void(const Element&)>& visit) const {
  for (int64_t batch = 0; batch < case_.batch; ++batch)
    for (int64_t i = 0; i < case_.m; ++i)
      for (int64_t j = 0; j < case_.n; ++j)
        visit({batch, i, j, batch * gemm_.getStrideC() + i * gemm_.getLdc() + j});
}

int64_t CudaGemm::placeOfA(const Element& element, int64_t k) const {
  const int64_t lda = gemm_.getLda();
  return element.batch * gemm_.getStrideA() +
         (case_.transposeA ? k * lda + element.i : element.i * lda + k);
}

int64_t CudaGemm::placeOfB(const Element& element, int64_t k) const {
  const int64_t ldb = gemm_.getLdb();
  return element.batch * gemm_.getStrideB() +
         (case_.transposeB ? element.j * ldb + k : k * ldb + element.j);
}

float CudaGemm::a(const Element& element, int64_t k) const { return a_->at(placeOfA(element, k)); }

float CudaGemm::b(const Element& element, int64_t k) const {
  const float value = b_->at(placeOfB(element, k));
  return case_.roundsB ? fromBFloat16(toBFloat16(value)) : value;
}

void CudaGemm::setA(const Element& element, int64_t k, float value) {
  a_->set(placeOfA(element, k), value);
}

void CudaGemm::setB(const Element& element, int64_t k, float value) {
  b_->set(placeOfB(element, k), value);
}

float CudaGemm::finish(const Element& element, float sum) const {
  if (case_.accumulate)
    sum = start_->at(element.at) + sum;
  if (case_.bias)
    sum = sum + bias_->at(element.j);
  if (case_.relu)
    sum = sum < 0 ? 0.0F : sum; // NaN stays
  return case_.toBf16 ? fromBFloat16(toBFloat16(sum)) : sum;
}

std::vector<float> CudaGemm::run(ptx::Order order) {
  Matrix result = *start_;
  auto bytesOf = [](const Matrix& matrix) {
    return static_cast<int64_t>(matrix.values.size() * (matrix.bf16 ? 2 : 4));
  };
  ptx::Memory memory;
  std::vector<uint64_t> operands;
  const int64_t offset = case_.offset ? *case_.offset : 0;
  auto place = [&](Matrix& matrix) {
    const uint64_t address = *memory.allocate(bytesOf(matrix) + offset) + uint64_t(offset);
    std::memcpy(memory.bytes(address, bytesOf(matrix)).data(), matrix.data(), bytesOf(matrix));
    memory.markWritten(address, bytesOf(matrix));
    operands.push_back(address);
  };
  place(*a_);
  place(*b_);
  place(result);
  if (case_.bias)
    place(*bias_);
  Result<std::vector<ptx::Counters>> counters = runner_->run(0, operands, {}, order, memory);
  EXPECT_TRUE(counters.ok()) << counters.error().message() << "\n" << ptx();
  if (counters.ok())
    counters_ = counters->back();
  std::memcpy(result.data(), memory.bytes(operands[2], bytesOf(result)).data(), bytesOf(result));
  std::vector<float> values;
  for (int64_t i = 0; i < case_.batch * gemm_.getStrideC(); ++i)
    values.push_back(result.at(i));
  return values;
}

std::string CudaGemm::untouched(const std::vector<float>& found) const {
  for (int64_t i = 0; i < static_cast<int64_t>(found.size()); ++i)
    if (i % gemm_.getLdc() >= case_.n && found[i] != start_->at(i))
      return fmt::format("element {} is {}, not {}", i, found[i], start_->at(i));
  return {};
}

} // namespace titan::codegen::cuda::testing
