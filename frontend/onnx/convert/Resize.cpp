// Resize and Upsample: along each axis a product with a matrix that is known at compile time, in
// which every rule for coordinates, edges and weights ends. Whole-numbered repetition is a
// broadcast.
#include "frontend/Decimal.h"
#include "frontend/onnx/convert/Conversion.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

enum class Interpolation { Nearest, Linear, Cubic };

/// How outputs are sampled, the same along all axes.
struct Sampling {
  Interpolation interpolation = Interpolation::Nearest;
  std::string coordinates; ///< coordinate_transformation_mode
  std::string nearest;     ///< nearest_mode
  double cubicA = -0.75;
  bool excludesOutside = false;
  bool reachesCorners = false; ///< align_corners takes the last element to the last, as in PyTorch
};

/// One resized axis.
struct Axis {
  int64_t dim, in, out;
  double scale; ///< out / in as the node says it, of which `out` may be a rounding

  /// Where element `i` of the result lies in the operand.
  double coordinate(const Sampling& sampling, int64_t i) const {
    const auto x = static_cast<double>(i);
    const double half = (x + 0.5) / scale - 0.5;
    if (sampling.coordinates == "asymmetric")
      return x / scale;
    const double extent = static_cast<double>(in) * scale; // of which `out` is the floor
    if (sampling.coordinates == "align_corners") {
      const double last = (sampling.reachesCorners ? static_cast<double>(out) : extent) - 1;
      return out > 1 ? x * static_cast<double>(in - 1) / last : 0;
    }
    if (sampling.coordinates == "pytorch_half_pixel")
      return out > 1 ? half : 0;
    if (sampling.coordinates == "tf_half_pixel_for_nn")
      return (x + 0.5) / scale;
    if (sampling.coordinates == "half_pixel_symmetric") {
      const double middle = static_cast<double>(in) / 2;
      return middle * (1 - static_cast<double>(out) / extent) + half;
    }
    return half;
  }

  int64_t clamped(int64_t i) const { return std::clamp<int64_t>(i, 0, in - 1); }
};

int64_t nearestIndex(const std::string& mode, double x) {
  // Coordinates are rational numbers: what is as near to an integer as rounding puts it is one.
  const double whole = std::round(x);
  if (std::abs(x - whole) < 1e-9)
    return static_cast<int64_t>(whole);
  if (mode == "floor")
    return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil")
    return static_cast<int64_t>(std::ceil(x));
  const double below = std::floor(x);
  if (std::abs(x - below - 0.5) < 1e-9)
    return static_cast<int64_t>(mode == "round_prefer_ceil" ? below + 1 : below);
  return static_cast<int64_t>(whole);
}

/// Keys' cubic convolution (doi:10.1109/TASSP.1981.1163711) at distance `d` from a sample.
double cubicWeight(double a, double d) {
  d = std::abs(d);
  if (d <= 1)
    return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/// [out, in]: what each element of the result takes of each element of the operand.
std::vector<double> matrixOf(const Axis& axis, const Sampling& sampling) {
  std::vector<double> matrix(static_cast<size_t>(axis.out * axis.in), 0);
  for (int64_t i = 0; i < axis.out; ++i) {
    const double x = axis.coordinate(sampling, i), below = std::floor(x);
    const auto row = matrix.begin() + i * axis.in;
    const auto first = static_cast<int64_t>(below);
    if (sampling.interpolation == Interpolation::Nearest) {
      row[axis.clamped(nearestIndex(sampling.nearest, x))] = 1;
      continue;
    }
    const bool isCubic = sampling.interpolation == Interpolation::Cubic;
    double total = 0;
    for (int64_t tap = isCubic ? -1 : 0; tap <= (isCubic ? 2 : 1); ++tap) {
      const double distance = x - below - static_cast<double>(tap);
      const double weight =
          isCubic ? cubicWeight(sampling.cubicA, distance) : 1 - std::abs(distance);
      const bool isOutside = first + tap < 0 || first + tap >= axis.in;
      if (isOutside && sampling.excludesOutside)
        continue;
      row[axis.clamped(first + tap)] += weight;
      total += weight;
    }
    if (sampling.excludesOutside && total != 0)
      for (int64_t j = 0; j < axis.in; ++j)
        row[j] /= total;
  }
  return matrix;
}

/// The extent of one step if each element of the result is a copy and every element of the operand
/// gives `n` neighbours; 0 where it is not so.
int64_t repetitionOf(const Axis& axis, const std::vector<double>& matrix) {
  if (axis.out % axis.in != 0)
    return 0;
  const int64_t n = axis.out / axis.in;
  for (int64_t i = 0; i < axis.out; ++i)
    if (matrix[static_cast<size_t>(i * axis.in + i / n)] != 1)
      return 0;
  return n;
}

/// Each element along `dim` `n` times.
Value repeated(Conversion& c, Value x, int64_t dim, int64_t n) {
  Shape wide = c.shapeOf(x);
  Shape flat = wide;
  flat[static_cast<size_t>(dim)] *= n;
  wide.insert(wide.begin() + dim + 1, n);
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d < c.rankOf(x); ++d)
    dims.push_back(d <= dim ? d : d + 1);
  return c.reshape(c.broadcast(x, wide, dims), flat);
}

/// `x` times `matrix` [out, in] along `axis`.
Result<Value> sampled(Conversion& c, Value x, const Axis& axis, ArrayRef<double> matrix) {
  auto element = dyn_cast<FloatType>(tensorType(x).getElementType());
  if (!element)
    return c.error("dimension {} of integers goes from {} to {}: only repetition is supported",
                   axis.dim, axis.in, axis.out);
  auto type = RankedTensorType::get({axis.out, axis.in}, element);
  Value constant = c.TensorBuilder::constant(type, matrix);
  Value product = TITAN_TRY(c.contract(x, constant, {}, {}, axis.dim, 1));
  // What was summed over is the last dimension now.
  SmallVector<int64_t> back;
  for (int64_t d = 0, rank = c.rankOf(x); d < rank; ++d)
    back.push_back(d < axis.dim ? d : d == axis.dim ? rank - 1 : d - 1);
  return c.transposed(product, back);
}

Result<Sampling> samplingOf(Conversion& c) {
  Sampling sampling;
  const std::string mode = c.node.text("mode", "nearest");
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    return c.error("mode = '{}' is not supported: nearest, linear and cubic are", printable(mode));
  sampling.interpolation = mode == "nearest"  ? Interpolation::Nearest
                           : mode == "linear" ? Interpolation::Linear
                                              : Interpolation::Cubic;
  const bool isOld = c.node.opType == "Upsample" || c.node.opset < 11;
  sampling.coordinates =
      isOld ? "asymmetric" : c.node.text("coordinate_transformation_mode", "half_pixel");
  for (const char* known : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                            "align_corners", "asymmetric", "tf_half_pixel_for_nn"})
    if (sampling.coordinates == known)
      sampling.nearest = isOld ? "floor" : c.node.text("nearest_mode", "round_prefer_floor");
  if (sampling.nearest.empty())
    return c.error("coordinate_transformation_mode = '{}' is not supported",
                   printable(sampling.coordinates));
  if (sampling.nearest != "round_prefer_floor" && sampling.nearest != "round_prefer_ceil" &&
      sampling.nearest != "floor" && sampling.nearest != "ceil")
    return c.error("nearest_mode = '{}' is not known", printable(sampling.nearest));
  if (c.node.integer("antialias", 0) != 0)
    return c.error("antialias = 1 is not supported");
  const std::string policy = c.node.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch")
    return c.error("keep_aspect_ratio_policy = '{}' is not supported", printable(policy));
  sampling.cubicA = c.node.real("cubic_coeff_a", -0.75);
  sampling.excludesOutside = c.node.integer("exclude_outside", 0) != 0;
  sampling.reachesCorners = c.fromPyTorch;
  return sampling;
}

/// The real numbers of operand `i`. Error: it is computed by the model.
Result<std::vector<double>> reals(Conversion& c, size_t i, const char* what) {
  const HostTensor* host = c.constant(i);
  if (!host)
    return c.error("{} are computed by the model", what);
  std::vector<double> values;
  for (int64_t k = 0; k < host->size(); ++k)
    values.push_back(host->real(k));
  return values;
}

/// The axes whose extents change. `sizes` or `scales` have one entry for each of all dimensions, or
/// for each of `axes`.
Result<std::vector<Axis>> axesOf(Conversion& c, const Shape& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  const bool isOld = c.node.opType == "Upsample" || c.node.opset < 11;
  std::vector<double> scales, sizes;
  const auto isGiven = [&](size_t i) {
    const HostTensor* host = c.has(i) ? c.constant(i) : nullptr;
    return c.has(i) && (!host || host->size() > 0);
  };
  if (isGiven(isOld ? 1 : 2)) {
    scales = TITAN_TRY(reals(c, isOld ? 1 : 2, "scales"));
  } else if (!isOld && isGiven(3)) {
    sizes = TITAN_TRY(reals(c, 3, "sizes"));
  }
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  if (auto given = c.node.integers("axes")) {
    dims = *given;
    for (int64_t& dim : dims)
      dim = TITAN_TRY(normalizeAxis(c.node, dim, rank));
  }
  const std::vector<double>& numbers = sizes.empty() ? scales : sizes;
  if (numbers.size() != dims.size())
    return c.error("{} {} for {} dimensions", numbers.size(), sizes.empty() ? "scales" : "sizes",
                   dims.size());
  std::vector<Axis> axes;
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t in = shape[static_cast<size_t>(dims[k])];
    const double number = numbers[k];
    constexpr double most = 1 << 30;
    if (!(number > 0) || number > most || number * (sizes.empty() ? double(in) : 1) > most)
      return c.error("{} {} of dimension {} with extent {}", sizes.empty() ? "scale" : "size",
                     number, dims[k], in);
    // 0.6 is stored as 0.60000002, and 10 times that as it was meant is 6.
    const double written =
        sizes.empty() ? asWritten(static_cast<float>(number)) : number / static_cast<double>(in);
    const auto out =
        sizes.empty() ? static_cast<int64_t>(std::floor(written * static_cast<double>(in) + 1e-9))
                      : static_cast<int64_t>(number);
    if (out < 1)
      return c.error("scale {} leaves nothing of dimension {} with extent {}", number, dims[k], in);
    if (out != in || written != 1)
      axes.push_back({.dim = dims[k], .in = in, .out = out, .scale = written});
  }
  return axes;
}

Status resize(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  const Sampling sampling = TITAN_TRY(samplingOf(c));
  for (const Axis& axis : TITAN_TRY(axesOf(c, c.shapeOf(x)))) {
    Shape shape = c.shapeOf(x);
    shape[static_cast<size_t>(axis.dim)] = axis.out;
    TITAN_TRY(checkedElementCount(shape, c.node.shown()));
    TITAN_TRY(checkedElementCount(Shape{axis.out, axis.in}, c.node.shown()));
    const std::vector<double> matrix = matrixOf(axis, sampling);
    if (const int64_t n = repetitionOf(axis, matrix))
      x = n == 1 ? x : repeated(c, x, axis.dim, n);
    else
      x = TITAN_TRY(sampled(c, x, axis, matrix));
  }
  return c.give(x);
}

} // namespace

ArrayRef<ConverterEntry> resizeConverters() {
  static const ConverterEntry table[] = {
      {"Resize", 10, resize, "static sizes, without antialiasing and crops"},
      {"Upsample", 9, resize, "static scales"},
  };
  return table;
}

} // namespace titan::frontend
