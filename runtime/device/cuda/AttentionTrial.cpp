#include "runtime/device/cuda/AttentionTrial.h"

#include "runtime/device/cuda/RepeatedFill.h"
#include "runtime/program/DType.h"
#include "runtime/program/Element.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace titan::cuda {
namespace {

constexpr const char* what = "testing attention";
/// Of each end of an operand, bytes that are compared with those of the generated kernels.
constexpr int64_t sampleBytes = int64_t{2} << 20;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// bf16 in [-most, most), a prime number of them, so that rows differ.
std::string numbers(uint32_t salt, float most) {
  constexpr size_t count = 65521;
  std::string bytes(count * sizeof(uint16_t), '\0');
  uint64_t state = 0x9e3779b97f4a7c15 * (salt + 1);
  for (size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const float unit = static_cast<float>(state >> 40) * 0x1p-23f - 1;
    const uint16_t rounded = toBFloat16(unit * most);
    std::memcpy(bytes.data() + i * sizeof rounded, &rounded, sizeof rounded);
  }
  return bytes;
}

/// With numbers up to it scaled scores have a standard deviation of 1: the variance of a uniform
/// number is most^2 / 3. Probabilities then differ, and no query attends to one key alone.
float mostOf(const Attention& a) {
  constexpr double least = 0x1p-6, most = 64;
  const double ofProduct = std::abs(a.scale) * std::sqrt(static_cast<double>(a.width));
  return static_cast<float>(std::clamp(std::sqrt(3 / ofProduct), least, most));
}

} // namespace

const char* AttentionTrial::Sample::at(int64_t offset, int64_t bytes) const {
  if (offset + bytes <= static_cast<int64_t>(head.size()))
    return head.data() + offset;
  return offset >= tailOffset ? tail.data() + (offset - tailOffset) : nullptr;
}

std::vector<AttentionTrial::Written> AttentionTrial::written() const {
  const Attention& a = attention_;
  if (a.backward)
    return {{"the query's adjoint", a.dquery, a.heads, a.queries, a.width, a.element},
            {"the key's adjoint", a.dkey, a.keyHeads, a.keys, a.width, a.element},
            {"the value's adjoint", a.dvalue, a.keyHeads, a.keys, a.valueWidth, a.element}};
  const AttentionView statistics = {a.logSumExp, 0, a.heads * a.queries, 1, a.queries};
  return {{"the result", a.result, a.heads, a.queries, a.valueWidth, a.element},
          {"the logarithm of sums", statistics, a.heads, a.queries, 1, DType::F32}};
}

std::vector<uint32_t> AttentionTrial::outs() const {
  std::vector<uint32_t> outs;
  for (const Written& tensor : written())
    if (std::ranges::find(outs, tensor.view.operand) == outs.end())
      outs.push_back(tensor.view.operand);
  return outs;
}

Status AttentionTrial::fillIns() {
  const Attention& a = attention_;
  std::vector<uint32_t> ins = {a.query.operand, a.key.operand, a.value.operand};
  if (a.backward)
    ins.insert(ins.end(), {a.result.operand, a.dresult.operand});
  const float most = mostOf(a);
  for (uint32_t in : ins)
    TITAN_TRY(fillRepeatedly(driver_, stream_, at(in), place_.bytes[in], numbers(in, most), what));
  if (!a.backward)
    return {};
  // Of scores near 0. Probabilities need not add up to 1 for their meaning to be tested.
  const float logarithm = std::log(static_cast<float>(a.keys));
  return fillRepeatedly(driver_, stream_, at(a.logSumExp), place_.bytes[a.logSumExp],
                        {reinterpret_cast<const char*>(&logarithm), sizeof logarithm}, what);
}

/// NaN that has to go.
Status AttentionTrial::fillOuts() {
  constexpr unsigned char nan = 0xff;
  for (uint32_t out : outs())
    TITAN_TRY(driver_.need(
        driver_.cuMemsetD8Async(at(out), nan, static_cast<size_t>(place_.bytes[out]), stream_),
        what));
  return {};
}

Status AttentionTrial::fillWorkspace(unsigned char garbage) {
  const uint32_t workspace = attention_.operands;
  if (place_.operands.size() == workspace)
    return {};
  return driver_.need(driver_.cuMemsetD8Async(at(workspace), garbage,
                                              static_cast<size_t>(place_.bytes[workspace]),
                                              stream_),
                      what);
}

Result<AttentionTrial::Sample> AttentionTrial::read(uint32_t operand) {
  const int64_t bytes = place_.bytes[operand];
  Sample sample;
  sample.head.resize(static_cast<size_t>(std::min(bytes, sampleBytes)));
  sample.tailOffset = std::max<int64_t>(bytes - sampleBytes, 0);
  sample.tail.resize(static_cast<size_t>(bytes - sample.tailOffset));
  const auto copy = [&](std::string& into, int64_t offset) {
    return driver_.need(driver_.cuMemcpyDtoHAsync_v2(into.data(),
                                                     at(operand) + static_cast<uint64_t>(offset),
                                                     into.size(), stream_),
                        what);
  };
  TITAN_TRY(copy(sample.head, 0));
  TITAN_TRY(copy(sample.tail, sample.tailOffset));
  TITAN_TRY(driver_.need(driver_.cuStreamSynchronize(stream_), what));
  return sample;
}

Status AttentionTrial::findExpected() {
  if (!expected_.empty())
    return {};
  TITAN_TRY(fillIns());
  TITAN_TRY(fillOuts());
  TITAN_TRY(driver_.need(place_.generate(), what));
  for (uint32_t out : outs())
    expected_.push_back(TITAN_TRY(read(out)));
  return {};
}

Result<std::string> AttentionTrial::difference() {
  const std::vector<uint32_t> operands = outs();
  std::vector<Sample> found;
  for (uint32_t out : operands)
    found.push_back(TITAN_TRY(read(out)));
  for (const Written& tensor : written()) {
    const auto number = std::ranges::find(operands, tensor.view.operand) - operands.begin();
    const int64_t size = byteSize(tensor.dtype);
    double differences = 0, squares = 0;
    for (int64_t batch = 0; batch < attention_.batch; ++batch)
      for (int64_t row = 0; row < tensor.rows; ++row)
        for (int64_t head = 0; head < tensor.heads; ++head) {
          const int64_t offset = size * (tensor.view.offset + batch * tensor.view.batch +
                                         row * tensor.view.row + head * tensor.view.head);
          const char* a = found[number].at(offset, size * tensor.width);
          const char* b = expected_[number].at(offset, size * tensor.width);
          for (int64_t i = 0; a && i < tensor.width; ++i) {
            const double x = readElement(tensor.dtype, a + i * size),
                         y = readElement(tensor.dtype, b + i * size);
            differences += (x - y) * (x - y);
            squares += y * y;
          }
        }
    const double distance = differences == 0 ? 0 : std::sqrt(differences / squares);
    if (!(distance <= mostDistance)) // nor NaN
      return fmt::format("differs from the generated kernels: {} by {:.3g} of its norm",
                         tensor.name, std::isnan(distance) ? infinity : distance);
  }
  return std::string();
}

Result<std::string> AttentionTrial::refusal(const AttentionPlan& plan) {
  TITAN_TRY(findExpected());
  std::vector<std::string> first;
  for (unsigned char garbage : {0xff, 0x5a}) {
    TITAN_TRY(fillIns());
    TITAN_TRY(fillOuts());
    TITAN_TRY(fillWorkspace(garbage));
    if (const Answer answer = plan.queue(place_.operands, stream_); !answer.ok())
      return fmt::format("does not run: {}", plan.said().empty() ? answer.entry : plan.said());
    std::vector<std::string> digests;
    for (uint32_t out : outs())
      digests.push_back(TITAN_TRY(digest_.of(at(out), place_.bytes[out], stream_)));
    if (!first.empty() && first != digests)
      return std::string("gives other bits in a second run");
    first = std::move(digests);
  }
  return difference();
}

} // namespace titan::cuda
