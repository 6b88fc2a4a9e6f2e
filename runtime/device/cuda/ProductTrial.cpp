#include "runtime/device/cuda/ProductTrial.h"

#include "runtime/device/cuda/RepeatedFill.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace titan::cuda {
namespace {

constexpr const char* what = "testing a product";

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

/// That have values of their own: A, B, bias, C.
constexpr uint64_t operands = 4;

/// Added to sums, or what they are added to.
constexpr ProductTrial::Integers added = {1000, 1};

/// Of A and B. No sum of k products leaves the integers that f32 has, in any order.
std::pair<ProductTrial::Integers, ProductTrial::Integers> operandIntegers(const Gemm& gemm,
                                                                          F32Products f32) {
  const auto k = static_cast<double>(gemm.k);
  if (gemm.a == DType::BF16) {
    constexpr double exact = int64_t{1} << 22, most = 256; // 8 bits and the next power of two
    const auto each = static_cast<float>(std::clamp(std::floor(std::sqrt(exact / k)), 1.0, most));
    return {{each, 1}, {each, 1}};
  }
  // 12 bits, which tf32 has not, or 11, which it has; so few of the other operand that the sums
  // stay small.
  const float most = f32 == F32Products::Whole ? 4095 : 2047;
  constexpr double terms = 2048;
  return {{most, 1}, {1, std::min(1.0, terms / k)}};
}

} // namespace

Status ProductTrial::fill(CUdeviceptr address, int64_t bytes, DType dtype, uint64_t salt,
                          Integers integers, Values values) {
  // Repeated: a prime number, so that rows differ.
  constexpr int64_t elements = 65521;
  const int64_t size = byteSize(dtype), count = std::min(elements, bytes / size);
  std::vector<char> block(static_cast<size_t>(count * size));
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = mix(mix(salt) + static_cast<uint64_t>(i));
    const float unit = static_cast<float>(bits >> 40) * 0x1p-23f - 1; // [-1, 1)
    const bool kept = static_cast<double>(bits & 0xffffff) < 0x1p24 * integers.share;
    const float integer = kept ? std::round(unit * integers.most) : 0;
    const float value = values == Values::Real ? unit : integer;
    if (dtype == DType::BF16) {
      const uint16_t rounded = toBFloat16(value);
      std::memcpy(block.data() + i * size, &rounded, sizeof rounded);
    } else {
      std::memcpy(block.data() + i * size, &value, sizeof value);
    }
  }
  return fillRepeatedly(driver_, stream_, address, bytes, {block.data(), block.size()}, what);
}

Status ProductTrial::fillOperands(Values values, uint64_t round) {
  const auto [ofA, ofB] = operandIntegers(gemm_, f32_);
  const ProductAddresses& at = place_.addresses;
  const uint64_t salt = round * operands;
  TITAN_TRY(fill(at.a, place_.aBytes, gemm_.a, salt + 1, ofA, values));
  TITAN_TRY(fill(at.b, place_.bBytes, gemm_.b, salt + 2, ofB, values));
  return gemm_.bias ? fill(at.bias, place_.biasBytes, gemm_.c, salt + 3, added, values) : Status();
}

/// What is added to, or NaN that has to go.
Status ProductTrial::fillResult(Values values) {
  constexpr unsigned char nan = 0xff;
  if (!gemm_.accumulate)
    return driver_.need(driver_.cuMemsetD8Async(place_.addresses.c, nan,
                                                static_cast<size_t>(place_.cBytes), stream_),
                        what);
  return fill(place_.addresses.c, place_.cBytes, gemm_.c, 4, added, values);
}

Status ProductTrial::fillWorkspace(unsigned char garbage) {
  if (place_.workspaceBytes == 0)
    return {};
  return driver_.need(driver_.cuMemsetD8Async(place_.addresses.workspace, garbage,
                                              static_cast<size_t>(place_.workspaceBytes), stream_),
                      what);
}

Result<std::optional<std::string>> ProductTrial::digestOf(const LtAlgorithm& algorithm,
                                                          Values values, std::string& why) {
  TITAN_TRY(fillResult(values));
  const cublasStatus_t status = product_.queue(algorithm, place_.addresses, stream_);
  if (status != CUBLAS_STATUS_SUCCESS) {
    why = "refuses: " + library_.text(status);
    return std::optional<std::string>();
  }
  return std::optional(TITAN_TRY(digest_.of(place_.addresses.c, place_.cBytes, stream_)));
}

uint64_t ProductTrial::rounds() const {
  // A sum that is rounded to 12 bits first shows in one of some 32 elements of bf16.
  constexpr int64_t enough = 4096, most = 8;
  const int64_t results = gemm_.batch * gemm_.m * gemm_.n;
  return static_cast<uint64_t>(std::clamp(enough / results, int64_t{1}, most));
}

Result<std::string> ProductTrial::expected(uint64_t round) {
  if (round == expected_.size()) {
    TITAN_TRY(fillResult(Values::SmallIntegers));
    TITAN_TRY(driver_.need(place_.generate(), what));
    expected_.push_back(TITAN_TRY(digest_.of(place_.addresses.c, place_.cBytes, stream_)));
  }
  return expected_[round];
}

Result<std::string> ProductTrial::refusal(const LtAlgorithm& algorithm) {
  if (algorithm.workspace > place_.workspaceBytes)
    return fmt::format("needs {} bytes of workspace, and {} are planned", algorithm.workspace,
                       place_.workspaceBytes);
  constexpr unsigned char garbage[] = {0xff, 0x5a};
  std::array<std::string, std::size(garbage)> digests;
  std::string why;
  TITAN_TRY(fillOperands(Values::Real));
  for (size_t i = 0; i < digests.size(); ++i) {
    TITAN_TRY(fillWorkspace(garbage[i]));
    const auto digest = TITAN_TRY(digestOf(algorithm, Values::Real, why));
    if (!digest)
      return why;
    digests[i] = *digest;
  }
  if (digests[0] != digests[1])
    return std::string("gives other bits in a second run");
  // The bits do not depend on the workspace: what the last run left in it will do.
  for (uint64_t round = 0; round < rounds(); ++round) {
    TITAN_TRY(fillOperands(Values::SmallIntegers, round));
    const auto digest = TITAN_TRY(digestOf(algorithm, Values::SmallIntegers, why));
    if (!digest)
      return why;
    if (*digest != TITAN_TRY(expected(round)))
      return std::string("rounds otherwise than the generated product");
  }
  return std::string();
}

Result<double> ProductTrial::seconds(const LtAlgorithm& algorithm, CUevent start, CUevent end) {
  std::array<float, 5> milliseconds{};
  constexpr int runs = 10; // between two events, which take microseconds themselves
  const auto run = [&] {
    const cublasStatus_t status = product_.queue(algorithm, place_.addresses, stream_);
    return library_.need(status, "cublasLtMatmul");
  };
  TITAN_TRY(fillOperands(Values::Real));
  TITAN_TRY(fillResult(Values::Real));
  TITAN_TRY(run());
  for (float& time : milliseconds) {
    TITAN_TRY(driver_.need(driver_.cuEventRecord(start, stream_), what));
    for (int i = 0; i < runs; ++i)
      TITAN_TRY(run());
    TITAN_TRY(driver_.need(driver_.cuEventRecord(end, stream_), what));
    TITAN_TRY(driver_.need(driver_.cuStreamSynchronize(stream_), what));
    TITAN_TRY(driver_.need(driver_.cuEventElapsedTime(&time, start, end), what));
  }
  std::ranges::sort(milliseconds);
  return 1e-3 / runs * static_cast<double>(milliseconds[milliseconds.size() / 2]);
}

} // namespace titan::cuda
