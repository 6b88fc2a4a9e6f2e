// Which plans of a library may compute an attention call. One is admitted when
//
//   (a) the planned workspace is enough for it (CardAttention asks before it builds the plan),
//   (b) two runs, with other garbage in the workspace, give the same bits, and
//   (c) its results are those of the generated kernels but for roundings to bf16: both mean the
//       same by scale, causal limit, groups and statistics.
//
// A trial writes to the operands' places in the arena, so it stands before state is loaded.
#pragma once

#include "runtime/device/cuda/CardAttention.h"

namespace titan::cuda {

class AttentionTrial {
public:
  /// sqrt(sum of squared differences / sum of squares) of a tensor, at most. Probabilities and
  /// their adjoints are rounded to bf16 at places of the implementation's choice: about 1/200.
  static constexpr double mostDistance = 1.0 / 32;

  /// All of these outlive the trial.
  AttentionTrial(const Driver& driver, const BitsDigest& digest, CUstream stream,
                 const Attention& attention, const AttentionPlace& place)
      : driver_(driver), digest_(digest), stream_(stream), attention_(attention), place_(place) {}

  /// Why the plan is not admitted; empty: it is. The errors of the driver.
  Result<std::string> refusal(const AttentionPlan& plan);

private:
  /// A tensor that the call writes.
  struct Written {
    const char* name;
    AttentionView view;
    int64_t heads, rows, width;
    DType dtype;
  };
  /// The ends of an operand.
  struct Sample {
    std::string head, tail;
    int64_t tailOffset = 0; ///< bytes
    /// Null: it is not in the sample.
    const char* at(int64_t offset, int64_t bytes) const;
  };

  std::vector<Written> written() const;
  /// Operands that are written, each once.
  std::vector<uint32_t> outs() const;
  Status fillIns();
  Status fillOuts();
  Status fillWorkspace(unsigned char garbage);
  Result<Sample> read(uint32_t operand);
  /// What the generated kernels make of the inputs.
  Status findExpected();
  /// "the value's adjoint differs ...", or empty.
  Result<std::string> difference();
  CUdeviceptr at(uint32_t operand) const {
    return static_cast<CUdeviceptr>(place_.operands[operand]);
  }

  const Driver& driver_;
  const BitsDigest& digest_;
  CUstream stream_;
  const Attention& attention_;
  const AttentionPlace& place_;
  std::vector<Sample> expected_; ///< as outs(); empty: not known yet
};

} // namespace titan::cuda
