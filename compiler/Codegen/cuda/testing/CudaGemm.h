// A matrix product compiled for a card, on the interpreter, with its operands.
#pragma once

#include "compiler/Codegen/cuda/testing/CudaRunner.h"
#include "compiler/Codegen/kernel/testing/GemmCase.h"

#include <functional>

namespace titan::codegen::cuda::testing {

using codegen::testing::GemmCase;
using codegen::testing::Matrix;

class CudaGemm {
public:
  /// Operands are random; a failure to compile fails the test.
  explicit CudaGemm(const GemmCase& gemm, unsigned seed = 7);
  bool ok() const { return runner_ != nullptr; }

  /// An element of C: its product of the batch, row, column, and where it lies in C.
  struct Element {
    int64_t batch, i, j, at;
  };
  void eachElement(const std::function<void(const Element&)>& visit) const;
  /// The factors of term k of an element, as they are multiplied.
  float a(const Element& element, int64_t k) const;
  float b(const Element& element, int64_t k) const;
  void setA(const Element& element, int64_t k, float value);
  void setB(const Element& element, int64_t k, float value);
  /// What C holds after a product whose sum is `sum`.
  float finish(const Element& element, float sum) const;

  /// C after a run, with what lies between its rows.
  std::vector<float> run(ptx::Order order = ptx::Order::Ascending);
  /// Which element between the rows of C has changed; empty: none.
  std::string untouched(const std::vector<float>& found) const;
  /// Of the newest run.
  const ptx::Counters& counters() const { return counters_; }
  const std::string& ptx() const { return runner_->ptx(); }

private:
  int64_t placeOfA(const Element& element, int64_t k) const;
  int64_t placeOfB(const Element& element, int64_t k) const;

  GemmCase case_;
  std::unique_ptr<CudaRunner> runner_;
  kernel::GemmAttr gemm_;
  std::optional<Matrix> a_, b_, start_, bias_;
  ptx::Counters counters_;
};

} // namespace titan::codegen::cuda::testing
