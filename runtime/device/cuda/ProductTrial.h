// Which algorithms of a library a product may be computed by. One is admitted when
//
//   (a) the planned workspace is enough for it,
//   (b) two runs, with other garbage in the workspace, give the same bits, and
//   (c) on operands of small integers, whose sums are exact in any order, its result has the bits
//       of the generated product: it rounds where that does, whatever its order, and reads f32
//       whole (tf32 has too few bits for these integers) unless tf32 is allowed. Small results are
//       tried several times, since few elements show where it rounds.
//
// A trial writes to the operands' places in the arena, so it stands before state is loaded.
#pragma once

#include "runtime/device/cuda/BitsDigest.h"
#include "runtime/device/cuda/LtProduct.h"

#include <functional>
#include <optional>

namespace titan::cuda {

/// A command that runs the product, and how the job's own kernel does it.
struct ProductPlace {
  ProductAddresses addresses;
  int64_t aBytes = 0, bBytes = 0, cBytes = 0, biasBytes = 0, workspaceBytes = 0;
  std::function<Answer()> generate; ///< puts the generated product into the stream
};

class ProductTrial {
public:
  /// `share` of the elements are whole numbers up to `most` or their negatives, the others 0.
  struct Integers {
    float most;
    double share;
  };

  /// All of these outlive the trial.
  ProductTrial(const Driver& driver, const BitsDigest& digest, CUstream stream, const Gemm& gemm,
               F32Products f32, const LtLibrary& library, const LtProduct& product,
               const ProductPlace& place)
      : driver_(driver), digest_(digest), stream_(stream), gemm_(gemm), f32_(f32),
        library_(library), product_(product), place_(place) {}

  /// Why the algorithm is not admitted; empty: it is. The errors of the driver.
  Result<std::string> refusal(const LtAlgorithm& algorithm);
  /// Of one product on the card, the median of several.
  Result<double> seconds(const LtAlgorithm& algorithm, CUevent start, CUevent end);

private:
  enum class Values : uint8_t { Real, SmallIntegers };

  Status fill(CUdeviceptr address, int64_t bytes, DType dtype, uint64_t salt, Integers integers,
              Values values);
  Status fillOperands(Values values, uint64_t round = 0);
  Status fillResult(Values values);
  Status fillWorkspace(unsigned char garbage);
  /// The digest of the library's result; nothing, and `why`, where it refuses.
  Result<std::optional<std::string>> digestOf(const LtAlgorithm& algorithm, Values values,
                                              std::string& why);
  /// How often small integers are drawn.
  uint64_t rounds() const;
  /// The digest of the generated product of what is there: small integers of round `round`.
  Result<std::string> expected(uint64_t round);

  const Driver& driver_;
  const BitsDigest& digest_;
  CUstream stream_;
  const Gemm& gemm_;
  F32Products f32_;
  const LtLibrary& library_;
  const LtProduct& product_;
  const ProductPlace& place_;
  std::vector<std::string> expected_; ///< by round
};

} // namespace titan::cuda
