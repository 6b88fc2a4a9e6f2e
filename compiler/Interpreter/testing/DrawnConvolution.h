// Convolutions drawn at random, as text: any window, uneven padding, groups, depthwise ones.
#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <random>
#include <string>
#include <vector>

namespace titan::interpreter::testing {

struct DrawnConvolution {
  using Shape = std::vector<int64_t>;

  Shape operand, kernel, result; ///< channels last
  Shape strides, low, high, dilations;
  int64_t groups = 1;

  /// Up to `channels` of a group, of 1 to 3 dimensions of space; the forward pass has at most
  /// `products` multiply-adds.
  static DrawnConvolution draw(std::mt19937& generator, int64_t channels, int64_t products);

  /// `titan.<mnemonic> <operands> strides ... : (types) -> type`; operands of one element type, and
  /// a result of `to`. Behind them an accumulator of the result's type, where there is one.
  std::string forward(const std::string& operands, const std::string& from,
                      const std::string& to) const;
  std::string inputGrad(const std::string& operands, const std::string& from,
                        const std::string& to) const;
  std::string kernelGrad(const std::string& operands, const std::string& accumulator,
                         const std::string& from, const std::string& to) const;

private:
  std::string windows() const;
};

std::string tensorType(llvm::ArrayRef<int64_t> shape, const std::string& element);

} // namespace titan::interpreter::testing
