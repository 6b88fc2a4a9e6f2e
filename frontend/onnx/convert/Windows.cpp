#include "frontend/onnx/convert/Windows.h"

namespace titan::frontend {

void WindowDims::append(const Dim& dim) {
  taps.push_back(dim.taps);
  strides.push_back(dim.stride);
  low.push_back(dim.low);
  high.push_back(dim.high);
  dilations.push_back(dim.dilation);
  extents.push_back(dim.extent);
  declaredHigh.push_back(dim.high);
}

std::vector<double> WindowDims::shares(bool withPadding) const {
  std::vector<double> shares = {1};
  for (size_t d = 0; d < taps.size(); ++d) {
    const int64_t from = withPadding ? -low[d] : 0,
                  to = extents[d] + (withPadding ? declaredHigh[d] : 0);
    std::vector<double> longer;
    for (double share : shares)
      for (int64_t p = 0; p < positions[d]; ++p) {
        int64_t count = 0;
        for (int64_t t = 0; t < taps[d]; ++t) {
          const int64_t at = p * strides[d] + t * dilations[d] - low[d];
          count += at >= from && at < to ? 1 : 0;
        }
        longer.push_back(share / static_cast<double>(count));
      }
    shares = std::move(longer);
  }
  return shares;
}

namespace {

/// More than any extent, and far from what overflows in a product of two.
constexpr int64_t kMost = int64_t(1) << 30;

/// The lists of a node whose windows have `rank` dimensions.
struct Lists {
  std::vector<int64_t> strides, dilations, pads;
  std::string autoPad;
};

Result<Lists> listsOf(const Conversion& c, size_t rank) {
  const auto list = [&](const char* name, size_t length, int64_t otherwise,
                        int64_t least) -> Result<std::vector<int64_t>> {
    std::vector<int64_t> values =
        c.node.integers(name).value_or(std::vector<int64_t>(length, otherwise));
    if (values.size() != length)
      return c.error("{} has {} entries for {} dimensions of space", name, values.size(), rank);
    for (int64_t value : values)
      if (value < least || value > kMost)
        return c.error("{} = {}", name, toString(Shape(values.begin(), values.end())));
    return values;
  };
  Lists lists;
  lists.strides = TITAN_TRY(list("strides", rank, 1, 1));
  lists.dilations = TITAN_TRY(list("dilations", rank, 1, 1));
  lists.pads = TITAN_TRY(list("pads", 2 * rank, 0, 0));
  lists.autoPad = c.node.text("auto_pad", "NOTSET");
  if (lists.autoPad != "NOTSET" && lists.autoPad != "VALID" && lists.autoPad != "SAME_UPPER" &&
      lists.autoPad != "SAME_LOWER")
    return c.error("auto_pad = '{}' is not known", printable(lists.autoPad));
  if (lists.autoPad == "VALID")
    lists.pads.assign(2 * rank, 0);
  return lists;
}

bool isSame(const Lists& lists) { return lists.autoPad.starts_with("SAME"); }

/// Pads of `total` elements: the odd one stands at the end for SAME_UPPER.
void share(WindowDims::Dim& dim, int64_t total, bool upper) {
  dim.low = upper ? total / 2 : total - total / 2;
  dim.high = total - dim.low;
}

Result<WindowDims> dimsOf(const Conversion& c, const Shape& operand, const Shape& taps,
                          bool ceils) {
  const size_t rank = operand.size() - 2;
  const Lists lists = TITAN_TRY(listsOf(c, rank));
  WindowDims dims;
  for (size_t d = 0; d < rank; ++d) {
    if (taps[d] < 1 || taps[d] > kMost)
      return c.error("a window of {} in dimension {} of space", taps[d], d);
    WindowDims::Dim dim = {.taps = taps[d],
                           .stride = lists.strides[d],
                           .low = lists.pads[d],
                           .high = lists.pads[d + rank],
                           .dilation = lists.dilations[d],
                           .extent = operand[d + 2]};
    if (dim.taps > kMost / dim.dilation)
      return c.error("a window of {} with dilation {} in dimension {} of space", dim.taps,
                     dim.dilation, d);
    if (isSame(lists)) {
      const int64_t positions = (dim.extent + dim.stride - 1) / dim.stride;
      share(dim, std::max<int64_t>((positions - 1) * dim.stride + dim.covered() - dim.extent, 0),
            lists.autoPad == "SAME_UPPER");
    }
    // With ceil_mode the last window may reach out of the padded operand. Taps out there read
    // nothing: of a window that is larger than all of it those in it are left.
    const bool mayReachOut = ceils && !isSame(lists);
    if (mayReachOut && dim.dilation == 1 && dim.taps - dim.padded() < dim.stride)
      dim.taps = std::min(dim.taps, dim.padded());
    const int64_t room = dim.padded() - dim.covered();
    if (room < 0 && (!mayReachOut || -room >= dim.stride))
      return c.error("a window of {} is larger than the padded extent {} of dimension {} of space",
                     dim.covered(), dim.padded(), d);
    int64_t positions = room < 0 ? 0 : room / dim.stride + 1;
    dims.append(dim);
    // One window more begins before the end of the operand or its front padding.
    if (mayReachOut && room % dim.stride != 0 && positions * dim.stride < dim.extent + dim.low) {
      dims.high.back() += positions * dim.stride + dim.covered() - dim.padded();
      ++positions;
    }
    dims.positions.push_back(positions);
  }
  return dims;
}

} // namespace

Result<WindowDims> windowsOf(const Conversion& c, const Shape& operand, const Shape& taps) {
  if (auto declared = c.node.integers("kernel_shape"); declared && Shape(*declared) != taps)
    return c.error("kernel_shape = {} for a kernel of {}", toString(Shape(*declared)),
                   toString(taps));
  return dimsOf(c, operand, taps, /*ceils=*/false);
}

Result<WindowDims> poolWindowsOf(const Conversion& c, const Shape& operand) {
  const std::optional<std::vector<int64_t>> taps = c.node.integers("kernel_shape");
  if (!taps || taps->size() + 2 != operand.size())
    return c.error("kernel_shape has {} entries for {} dimensions of space",
                   taps ? taps->size() : 0, operand.size() - 2);
  WindowDims dims =
      TITAN_TRY(dimsOf(c, operand, Shape(*taps), c.node.integer("ceil_mode", 0) != 0));
  for (size_t d = 0; d < dims.taps.size(); ++d) {
    const ir::Windows windows = {dims.taps[d],      dims.strides[d], dims.low[d],
                                 dims.dilations[d], dims.extents[d], dims.positions[d]};
    if (auto position = windows.firstInPadding())
      return c.error("window {} of dimension {} of space lies in the padding alone", *position, d);
  }
  return dims;
}

Result<TransposedWindows> transposedWindowsOf(const Conversion& c, const Shape& operand,
                                              const Shape& taps) {
  const size_t rank = operand.size() - 2;
  const Lists lists = TITAN_TRY(listsOf(c, rank));
  const auto outputPadding =
      c.node.integers("output_padding").value_or(std::vector<int64_t>(rank, 0));
  const auto outputShape = c.node.integers("output_shape");
  if (outputPadding.size() != rank || (outputShape && outputShape->size() != rank))
    return c.error("output_padding or output_shape do not have {} entries", rank);
  TransposedWindows result;
  for (size_t d = 0; d < rank; ++d) {
    WindowDims::Dim dim = {.taps = taps[d],
                           .stride = lists.strides[d],
                           .low = lists.pads[d],
                           .high = lists.pads[d + rank],
                           .dilation = lists.dilations[d],
                           .extent = 0};
    const int64_t positions = operand[d + 2];
    int64_t added = outputPadding[d];
    if (dim.taps < 1 || dim.taps > kMost / dim.dilation || positions > kMost / dim.stride)
      return c.error("a window of {} with dilation {} and stride {} in dimension {} of space",
                     dim.taps, dim.dilation, dim.stride, d);
    const int64_t whole = (positions - 1) * dim.stride + dim.covered();
    if (outputShape || isSame(lists)) {
      const int64_t wanted = outputShape ? (*outputShape)[d] : positions * dim.stride;
      // What is wanted beyond the windows is as output_padding gives it.
      const int64_t total = whole + added - wanted;
      added -= std::min<int64_t>(total, 0);
      share(dim, std::max<int64_t>(total, 0), lists.autoPad == "SAME_UPPER");
    }
    if (added < 0)
      return c.error("output_padding = {}", toString(Shape(outputPadding)));
    const int64_t unpadded = std::min(added, dim.high);
    dim.high -= unpadded;
    added -= unpadded;
    // A stride of them would have room for one window more.
    const int64_t zeros = added < dim.stride ? 0 : added;
    const int64_t reached = whole + added - zeros;
    dim.extent = reached - dim.low - dim.high;
    if (dim.extent < 1)
      return c.error("pads {} and {} leave nothing of {} in dimension {} of space", dim.low,
                     dim.high, reached, d);
    result.windows.append(dim);
    result.windows.positions.push_back(positions);
    result.extents.push_back(dim.extent);
    result.zeros.push_back(zeros);
  }
  return result;
}

} // namespace titan::frontend
