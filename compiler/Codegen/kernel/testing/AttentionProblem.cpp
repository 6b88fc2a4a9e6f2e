#include "compiler/Codegen/kernel/testing/AttentionProblem.h"

#include "runtime/program/Random.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace titan::codegen::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int64_t seed = 11, step = 3, stream = 12345;
template <typename T> void put(std::string& bytes, int64_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}
template <typename T> T get(const std::string& bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

/// To nearest, ties to even.
uint16_t toBf16(float value) {
  auto bits = llvm::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

int64_t bytesOf(const std::string& element) {
  return element == "f64" || element == "i64" ? 8
         : element == "f32"                   ? 4
         : element == "bf16"                  ? 2
                                              : 1;
}

void write(std::string& bytes, const std::string& element, int64_t index, double value) {
  if (element == "f64")
    put(bytes, index, value);
  else if (element == "f32")
    put(bytes, index, static_cast<float>(value));
  else if (element == "bf16")
    put(bytes, index, toBf16(static_cast<float>(value)));
  else if (element == "i64")
    put(bytes, index, static_cast<int64_t>(value));
  else
    put(bytes, index, static_cast<int8_t>(value));
}

double read(const std::string& bytes, const std::string& element, int64_t index) {
  if (element == "f64")
    return get<double>(bytes, index);
  if (element == "f32")
    return get<float>(bytes, index);
  return llvm::bit_cast<float>(uint32_t{get<uint16_t>(bytes, index)} << 16);
}

std::string accumulationOf(const std::string& element) { return element == "f64" ? "f64" : "f32"; }

/// A value that the element type has.
double representable(const std::string& element, double value) {
  std::string bytes(8, '\0');
  write(bytes, element, 0, value);
  return read(bytes, element, 0);
}

std::string memrefOf(int64_t elements, const std::string& element) {
  return fmt::format("memref<{}x{}>", elements, element);
}

} // namespace

std::string AttentionProblem::View::text() const {
  return fmt::format("<operand = {}, offset = {}, batch = {}, row = {}, head = {}>", operand,
                     offset, batchStride, rowStride, width);
}

AttentionProblem::AttentionProblem(AttentionSpec spec, bool hasInputs) : spec_(spec) {
  AttentionSpec& s = spec_;
  s.keys = s.keys ? s.keys : s.queries;
  s.keyHeads = s.keyHeads ? s.keyHeads : s.heads;
  s.valueWidth = s.valueWidth ? s.valueWidth : s.width;
  s.scale = s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(s.width));
  if (hasInputs)
    drawInputs();
}

void AttentionProblem::drawInputs() {
  const AttentionSpec& s = spec_;
  std::mt19937 generator(5);
  auto draw = [&](int64_t count) {
    std::vector<double> values(count);
    for (double& value : values)
      value = representable(s.element, std::uniform_real_distribution<double>(-2, 2)(generator));
    return values;
  };
  inputs["query"] = draw(s.batch * s.queries * s.heads * s.width);
  inputs["key"] = draw(s.batch * s.keys * s.keyHeads * s.width);
  inputs["value"] = draw(s.batch * s.keys * s.keyHeads * s.valueWidth);
  inputs["dresult"] = draw(s.batch * s.queries * s.heads * s.valueWidth);
  int64_t maskElements = (s.maskBatch ? s.batch : 1) * (s.maskHeads ? s.heads : 1) *
                         (s.maskRows ? s.queries : 1) * s.keys;
  if (s.mask != AttentionSpec::Mask::None) {
    inputs["mask"] = draw(maskElements);
    if (s.mask == AttentionSpec::Mask::Boolean)
      for (double& value : inputs["mask"])
        value = value > -1;
  }
}

std::string AttentionProblem::moduleText() const {
  std::string text;
  for (bool isBackward : {false, true}) {
    Call c = call(isBackward);
    std::string arguments, ins, inTypes, outs, outTypes;
    const std::string place =
        spec_.offset ? fmt::format(" {{kernel.offset = {} : i64}}", *spec_.offset) : "";
    auto declare = [&](const Operand& operand, std::string& names, std::string& types) {
      std::string name = fmt::format("%p{}", ins.size() + outs.size());
      std::string type = memrefOf(operand.elements, operand.element);
      arguments += (arguments.empty() ? "" : ", ") + name + ": " + type + place;
      names += (names.empty() ? "" : ", ") + name;
      types += (types.empty() ? "" : ", ") + type;
    };
    for (const Operand& in : c.ins)
      declare(in, ins, inTypes);
    for (const Operand& out : c.outs)
      declare(out, outs, outTypes);
    text += fmt::format(
        "func.func @f{}({}, %scalar: index) {{\nkernel.call {} ins({} : {}) outs({} : {}){}\n"
        "return\n}}\n",
        isBackward, arguments, c.routine, ins, inTypes, outs, outTypes,
        spec_.window >= 0 ? " scalars(%scalar)" : "");
  }
  return text;
}

AttentionProblem::View AttentionProblem::view(const std::string& name, size_t operand) const {
  const AttentionSpec& s = spec_;
  bool ofKeys = name.ends_with("key") || name.ends_with("value");
  bool ofValues = name.ends_with("value") || name.ends_with("result");
  bool isStatistic = name == "logSumExp" || name == "largest";
  View v = {name,
            operand,
            0,
            0,
            0,
            ofKeys ? s.keyHeads : s.heads,
            isStatistic ? 1
            : ofValues  ? s.valueWidth
                        : s.width,
            ofKeys ? s.keys : s.queries};
  if (isStatistic) { // [batch, head, query]
    v.rows = s.heads * s.queries;
    v.heads = v.width = 1;
  }
  v.rowStride = v.heads * v.width;
  v.batchStride = v.rows * v.rowStride;
  return v;
}

std::vector<AttentionProblem::View>
AttentionProblem::projection(const std::string& prefix, std::vector<Operand>& operands) const {
  std::vector<View> views;
  int64_t row = 0;
  for (const char* name : {"query", "key", "value"}) {
    views.push_back(
        view(prefix + name, spec_.isPacked ? operands.size() : operands.size() + views.size()));
    row += views.back().rowStride;
  }
  if (!spec_.isPacked) {
    for (const View& v : views)
      operands.push_back({spec_.element, spec_.batch * v.batchStride});
    return views;
  }
  int64_t offset = 0;
  for (View& v : views) {
    v.offset = offset;
    offset += v.rowStride;
    v.rowStride = row;
    v.batchStride = spec_.queries * row;
  }
  operands.push_back({spec_.element, spec_.batch * spec_.queries * row});
  return views;
}

AttentionProblem::Call AttentionProblem::call(bool isBackward) const {
  const AttentionSpec& s = spec_;
  Call c;
  c.views = projection("", c.ins);
  int64_t resultElements = s.batch * s.queries * s.heads * s.valueWidth;
  Operand result = {s.element, resultElements};
  Operand logSumExp = {accumulationOf(s.element), s.batch * s.queries * s.heads};
  std::string gradient, resultText, largest;
  size_t logSumExpAt;
  int64_t sums = 0;
  bool isWide = std::max(s.width, s.valueWidth) > (isBackward ? 128 : 256);
  int64_t rows = isWide ? s.rowsOfWide : s.rows;
  if (isBackward) {
    View resultView = view("result", c.ins.size()), dresult = view("dresult", c.ins.size() + 1);
    c.ins.insert(c.ins.end(), {result, result});
    logSumExpAt = c.ins.size();
    c.ins.push_back(logSumExp);
    c.views.insert(c.views.end(), {resultView, dresult, view("logSumExp", logSumExpAt)});
    if (keepsLargest()) {
      largest = fmt::format(", largest = {}", c.ins.size());
      c.views.push_back(view("largest", c.ins.size()));
      c.ins.push_back(logSumExp);
    }
    c.outViews = projection("d", c.outs);
    auto padded = [&](int64_t width) {
      return s.padding == 0 ? width : (width + s.padding - 1) / s.padding * s.padding;
    };
    bool sumsInOuts = s.element == logSumExp.element && padded(s.width) == s.width &&
                      padded(s.valueWidth) == s.valueWidth;
    bool inPlace = (s.padding == 0 || sumsInOuts) && !s.hasWorkspace;
    int64_t workspace = inPlace ? -1 : static_cast<int64_t>(c.outs.size());
    if (!inPlace) {
      sums = s.batch * s.keyHeads * s.keys * (padded(s.width) + padded(s.valueWidth));
      c.outs.push_back({logSumExp.element, sums});
    }
    gradient = fmt::format(", gradient = <dresult = {}, dquery = {}, dkey = {}, dvalue = {}, "
                           "workspace = {}>",
                           dresult.text(), c.outViews[0].text(), c.outViews[1].text(),
                           c.outViews[2].text(), workspace);
    resultText = resultView.text();
  } else {
    c.outViews = {view("result", 0), view("logSumExp", 1)};
    c.outs = {result, logSumExp};
    if (keepsLargest()) {
      largest = ", largest = 2";
      c.outViews.push_back(view("largest", 2));
      c.outs.push_back(logSumExp);
    }
    resultText = c.outViews[0].text();
    logSumExpAt = 1;
  }
  std::string mask, dropout;
  if (s.mask != AttentionSpec::Mask::None) {
    bool isBoolean = s.mask == AttentionSpec::Mask::Boolean;
    int64_t row = s.keys, head = (s.maskRows ? s.queries : 1) * row,
            batch = (s.maskHeads ? s.heads : 1) * head;
    mask = fmt::format(", mask = <operand = {}, boolean = {}, batch = {}, head = {}, row = {}{}>",
                       c.ins.size(), isBoolean, s.maskBatch ? batch : 0, s.maskHeads ? head : 0,
                       s.maskRows ? row : 0,
                       s.fill != 0 ? fmt::format(", fill = {:.17e} : f64", s.fill) : "");
    c.ins.push_back(
        {isBoolean ? "i1" : logSumExp.element, static_cast<int64_t>(inputs.at("mask").size())});
  }
  if (s.p > 0) {
    int64_t global[] = {s.batch, s.heads, s.queries, s.keys};
    const int64_t multiple = elementsOfWindow();
    if (s.window >= 0)
      global[s.window] *= 2;
    dropout = fmt::format(", dropout = <p = {} : f64, stream = {}, seed = {}, step = {}, "
                          "global = [{}, {}, {}, {}], multiple = {}>",
                          s.p, stream, c.ins.size(), c.ins.size() + 1, global[0], global[1],
                          global[2], global[3], multiple);
    c.ins.insert(c.ins.end(), {{"i64", 1}, {"i64", 1}});
  }
  c.routine = fmt::format(
      "#kernel.attention<batch = {}, heads = {}, keyHeads = {}, queries = {}, keys = {}, width = "
      "{}, "
      "valueWidth = {}, element = {}, scale = {:.17e} : f64, causal = {}, query = {}, key = {}, "
      "value = {}, result = {}, logSumExp = {}{}, blocks = <rows = {}, keys = {}, padding = {}, "
      "workspace = {}>{}{}{}>",
      s.batch, s.heads, s.keyHeads, s.queries, s.keys, s.width, s.valueWidth, s.element, s.scale,
      s.causal, c.views[0].text(), c.views[1].text(), c.views[2].text(), resultText, logSumExpAt,
      largest, rows, std::min(rows, s.blockKeys), s.padding, sums, mask, dropout, gradient);
  return c;
}

std::vector<std::string> AttentionProblem::buffers(bool isBackward, const AttentionTensors& tensors,
                                                   size_t guard, char filler) const {
  Call c = call(isBackward);
  std::vector<std::string> buffers;
  for (const std::vector<Operand>* list : {&c.ins, &c.outs})
    for (const Operand& operand : *list)
      buffers.emplace_back(operand.elements * bytesOf(operand.element) + guard, filler);
  for (const View& v : c.views) {
    const std::vector<double>& values = tensors.at(v.name);
    const std::string& element = c.ins[v.operand].element;
    int64_t inner = v.heads * v.width;
    for (size_t i = 0; i < values.size(); ++i) {
      int64_t row = static_cast<int64_t>(i) / inner;
      write(buffers[v.operand], element,
            v.offset + row / v.rows * v.batchStride + row % v.rows * v.rowStride +
                static_cast<int64_t>(i) % inner,
            values[i]);
    }
  }
  size_t next = c.ins.size() - (spec_.p > 0 ? 2 : 0);
  if (spec_.p > 0) {
    write(buffers[next], "i64", 0, seed);
    write(buffers[next + 1], "i64", 0, step);
  }
  if (auto mask = tensors.find("mask"); mask != tensors.end())
    for (size_t i = 0; i < mask->second.size(); ++i)
      write(buffers[next - 1], c.ins[next - 1].element, static_cast<int64_t>(i), mask->second[i]);
  return buffers;
}

std::vector<int64_t> AttentionProblem::scalars() const {
  std::vector<int64_t> scalars =
      spec_.p > 0 ? std::vector<int64_t>{stream} : std::vector<int64_t>();
  if (spec_.window >= 0)
    scalars.insert(scalars.begin(), spec_.microbatch * elementsOfWindow());
  return scalars;
}

AttentionTensors AttentionProblem::unpack(bool isBackward,
                                          const std::vector<std::string>& outs) const {
  Call c = call(isBackward);
  AttentionTensors tensors;
  for (const View& v : c.outViews) {
    std::vector<double>& values = tensors[v.name];
    values.resize(spec_.batch * v.rows * v.heads * v.width);
    int64_t inner = v.heads * v.width;
    for (size_t i = 0; i < values.size(); ++i) {
      int64_t row = static_cast<int64_t>(i) / inner;
      values[i] = read(outs[v.operand], c.outs[v.operand].element,
                       v.offset + row / v.rows * v.batchStride + row % v.rows * v.rowStride +
                           static_cast<int64_t>(i) % inner);
    }
  }
  return tensors;
}

double AttentionProblem::flops(bool isBackward) const {
  const AttentionSpec& s = spec_;
  double pairs = static_cast<double>(s.queries) * static_cast<double>(s.keys);
  if (s.causal) {
    pairs = 0;
    for (int64_t i = 0; i < s.queries; ++i)
      pairs += static_cast<double>(std::min(s.keys, i + 1));
  }
  double width = isBackward ? 3 * s.width + 2 * s.valueWidth : s.width + s.valueWidth;
  return 2 * pairs * width * static_cast<double>(s.batch * s.heads);
}

double AttentionProblem::score(int64_t b, int64_t h, int64_t i, int64_t j) const {
  const AttentionSpec& s = spec_;
  if (s.causal && j > i)
    return -infinity;
  int64_t g = h / (s.heads / s.keyHeads);
  const double* q = &inputs.at("query")[((b * s.queries + i) * s.heads + h) * s.width];
  const double* k = &inputs.at("key")[((b * s.keys + j) * s.keyHeads + g) * s.width];
  double sum = 0;
  for (int64_t d = 0; d < s.width; ++d)
    sum += q[d] * k[d];
  sum *= s.scale;
  if (s.mask == AttentionSpec::Mask::None)
    return sum;
  if (s.mask == AttentionSpec::Mask::Additive) // where the score may be lost
    return representable(accumulationOf(s.element), sum + mask(b, h, i, j));
  if (mask(b, h, i, j) != 0)
    return sum;
  return s.fill != 0 ? s.fill : -infinity;
}

double AttentionProblem::mask(int64_t b, int64_t h, int64_t i, int64_t j) const {
  const AttentionSpec& s = spec_;
  if (s.mask == AttentionSpec::Mask::None)
    return 0;
  int64_t row = s.maskBatch ? b : 0;
  row = s.maskHeads ? row * s.heads + h : row;
  row = s.maskRows ? row * s.queries + i : row;
  return inputs.at("mask")[row * s.keys + j];
}

/// Elements of the global tensor from the beginning of one window to that of the next.
int64_t AttentionProblem::elementsOfWindow() const {
  const int64_t extents[] = {spec_.batch, spec_.heads, spec_.queries, spec_.keys};
  int64_t elements = spec_.window < 0 ? 0 : 1;
  for (int64_t d = std::max<int64_t>(spec_.window, 0); d < 4; ++d)
    elements *= extents[d];
  return elements;
}

double AttentionProblem::dropoutFactor(int64_t b, int64_t h, int64_t i, int64_t j) const {
  const AttentionSpec& s = spec_;
  if (s.p == 0)
    return 1;
  int64_t global[] = {s.batch, s.heads, s.queries, s.keys}, at[] = {b, h, i, j}, element = 0;
  if (s.window >= 0) {
    at[s.window] += s.microbatch * global[s.window];
    global[s.window] *= 2;
  }
  for (int d = 0; d < 4; ++d)
    element = element * global[d] + at[d];
  return dropoutKeeps(randomKey(seed, stream), step, element, keepThreshold(s.p)) ? 1 / (1 - s.p)
                                                                                  : 0;
}

AttentionTensors AttentionProblem::reference() const {
  const AttentionSpec& s = spec_;
  AttentionTensors t;
  for (const char* name : {"query", "key", "value"})
    t[std::string("d") + name].resize(inputs.at(name).size());
  t["result"].resize(inputs.at("dresult").size());
  t["logSumExp"].resize(s.batch * s.queries * s.heads);
  t["largest"].resize(s.batch * s.queries * s.heads);
  const double *query = inputs.at("query").data(), *key = inputs.at("key").data(),
               *value = inputs.at("value").data(), *dresult = inputs.at("dresult").data();
  double *dquery = t["dquery"].data(), *dkey = t["dkey"].data(), *dvalue = t["dvalue"].data(),
         *result = t["result"].data(), *logSumExp = t["logSumExp"].data(),
         *largests = t["largest"].data();
  std::vector<double> p(s.keys), dp(s.keys), factors(s.keys);
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.queries; ++i) {
        int64_t g = h / (s.heads / s.keyHeads), row = (b * s.queries + i) * s.heads + h;
        auto keyRow = [&](int64_t j) { return (b * s.keys + j) * s.keyHeads + g; };
        double largest = -infinity, total = 0;
        for (int64_t j = 0; j < s.keys; ++j) {
          p[j] = score(b, h, i, j);
          largest = std::max(largest, p[j]);
          factors[j] = dropoutFactor(b, h, i, j);
        }
        for (double& x : p)
          total += x = largest == -infinity ? 0 : std::exp(x - largest);
        for (double& x : p)
          x = total > 0 ? x / total : 0;
        int64_t statistic = (b * s.heads + h) * s.queries + i;
        double apart = keepsLargest() ? largest : 0;
        largests[statistic] = total > 0 ? apart : 0;
        logSumExp[statistic] = total > 0 ? (largest - apart) + std::log(total) : -infinity;
        double* y = result + row * s.valueWidth;
        const double* dy = dresult + row * s.valueWidth;
        double delta = 0;
        for (int64_t j = 0; j < s.keys; ++j) {
          const double* v = value + keyRow(j) * s.valueWidth;
          double* dv = dvalue + keyRow(j) * s.valueWidth;
          dp[j] = 0;
          for (int64_t e = 0; e < s.valueWidth; ++e) {
            y[e] += p[j] * factors[j] * v[e];
            dv[e] += p[j] * factors[j] * dy[e];
            dp[j] += dy[e] * v[e] * factors[j];
          }
          delta += dp[j] * p[j];
        }
        for (int64_t j = 0; j < s.keys; ++j) {
          double ds = s.scale * p[j] * (dp[j] - delta);
          if (s.fill != 0 && mask(b, h, i, j) == 0)
            ds = 0;
          for (int64_t d = 0; d < s.width; ++d) {
            dquery[row * s.width + d] += ds * key[keyRow(j) * s.width + d];
            dkey[keyRow(j) * s.width + d] += ds * query[row * s.width + d];
          }
        }
      }
  return t;
}

void expectClose(const AttentionTensors& found, const AttentionTensors& expected,
                 double tolerance) {
  for (const auto& [name, values] : found) {
    const std::vector<double>& wanted = expected.at(name);
    ASSERT_EQ(values.size(), wanted.size());
    double largest = 1;
    for (double value : wanted)
      largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] != wanted[i])
        ASSERT_LE(std::abs(values[i] - wanted[i]), tolerance * largest)
            << name << " " << i << ": " << values[i] << ", expected " << wanted[i];
  }
}

} // namespace titan::codegen::testing
