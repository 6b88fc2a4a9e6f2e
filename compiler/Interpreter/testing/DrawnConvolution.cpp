#include "compiler/Interpreter/testing/DrawnConvolution.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <numeric>

namespace titan::interpreter::testing {

namespace {

int64_t product(llvm::ArrayRef<int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

} // namespace

std::string tensorType(llvm::ArrayRef<int64_t> shape, const std::string& element) {
  return fmt::format("tensor<{}{}{}>", fmt::join(shape, "x"), shape.empty() ? "" : "x", element);
}

DrawnConvolution DrawnConvolution::draw(std::mt19937& generator, int64_t channels,
                                        int64_t products) {
  const auto below = [&](int64_t count) { return static_cast<int64_t>(generator() % count); };
  const auto drawChannels = [&] {
    return 1 + below(below(2) == 0 ? std::min<int64_t>(channels, 4) : channels);
  };
  DrawnConvolution c;
  const int64_t rank = 1 + below(3);
  const bool isDepthwise = below(4) == 0;
  int64_t inputs = isDepthwise ? 1 : drawChannels();
  int64_t outputs = isDepthwise ? 1 + below(5) / 4 : drawChannels();
  if (isDepthwise)
    c.groups = 1 + drawChannels();
  else
    c.groups = below(3) == 0 ? 2 + below(3) : 1;
  const int64_t batch = 1 + below(3);
  Shape extents, taps, positions;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t tap = 1 + below(below(4) == 0 ? 7 : 3), stride = 1 + below(3),
                  dilation = 1 + below(3);
    const int64_t low = below(4), high = below(4), covered = dilation * (tap - 1) + 1;
    const int64_t extent = std::max<int64_t>(1, covered - low - high) + below(rank == 1   ? 60
                                                                              : rank == 2 ? 12
                                                                                          : 6);
    taps.push_back(tap);
    extents.push_back(extent);
    c.strides.push_back(stride);
    c.low.push_back(low);
    c.high.push_back(high);
    c.dilations.push_back(dilation);
    positions.push_back((low + extent + high - covered) / stride + 1);
  }
  while (batch * product(positions) * product(taps) * c.groups * inputs * outputs > products &&
         c.groups * inputs * outputs > 1) {
    int64_t& most =
        std::max({std::ref(c.groups), std::ref(inputs), std::ref(outputs)}, std::less<int64_t>());
    most = (most + 1) / 2;
  }
  const auto shape = [](int64_t first, const Shape& space, int64_t last) {
    Shape result = {first};
    result.insert(result.end(), space.begin(), space.end());
    result.push_back(last);
    return result;
  };
  c.operand = shape(batch, extents, c.groups * inputs);
  c.kernel = shape(c.groups * outputs, taps, inputs);
  c.result = shape(batch, positions, c.groups * outputs);
  return c;
}

std::string DrawnConvolution::windows() const {
  return fmt::format(
      " strides [{}] low [{}] high [{}] dilations [{}] groups {} : ", fmt::join(strides, ", "),
      fmt::join(low, ", "), fmt::join(high, ", "), fmt::join(dilations, ", "), groups);
}

std::string DrawnConvolution::forward(const std::string& operands, const std::string& from,
                                      const std::string& to) const {
  return fmt::format("titan.convolution {}{}({}, {}) -> {}", operands, windows(),
                     tensorType(operand, from), tensorType(kernel, from), tensorType(result, to));
}

std::string DrawnConvolution::inputGrad(const std::string& operands, const std::string& from,
                                        const std::string& to) const {
  return fmt::format("titan.convolution_input_grad {}{}({}, {}) -> {}", operands, windows(),
                     tensorType(result, from), tensorType(kernel, from), tensorType(operand, to));
}

std::string DrawnConvolution::kernelGrad(const std::string& operands,
                                         const std::string& accumulator, const std::string& from,
                                         const std::string& to) const {
  const std::string type = tensorType(kernel, to);
  const bool accumulates = !accumulator.empty();
  return fmt::format("titan.convolution_kernel_grad {}{}{}({}, {}{}{}) -> {}", operands,
                     accumulates ? " acc " + accumulator : "", windows(), tensorType(operand, from),
                     tensorType(result, from), accumulates ? ", " : "", accumulates ? type : "",
                     type);
}

} // namespace titan::interpreter::testing
