#include "runtime/device/cuda/testing/probe/AttentionProbe.h"

#include "runtime/device/cuda/Owned.h"
#include "runtime/device/cuda/RepeatedFill.h"
#include "runtime/device/cuda/testing/probe/HostAttention.h"
#include "runtime/program/AttentionNeeds.h"
#include "runtime/program/DType.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace titan::cuda {
namespace {

using nlohmann::ordered_json;

constexpr const char* what = "probing attention";

/// A call and its gradient. With `joint` query, key and value are parts of one operand, as a
/// projection writes them, and so are their adjoints.
struct Shape {
  const char* name;
  int64_t batch, heads, keyHeads, queries, keys, width, valueWidth;
  bool causal, joint, checked;
  bool cut = false; ///< the gradient gets the workspace of half a batch
};
constexpr Shape shapes[] = {
    {"B2 H4 T128 D64 causal", 2, 4, 4, 128, 128, 64, 64, true, false, true},
    {"B2 H4 T128 D64 full", 2, 4, 4, 128, 128, 64, 64, false, false, true},
    {"B2 H8/2 T192 D64 causal", 2, 8, 2, 192, 192, 64, 64, true, false, true},
    {"B2 H4 T128 D128 causal", 2, 4, 4, 128, 128, 128, 128, true, false, true},
    {"B3 H6/2 T257 S129 D24/64 causal", 3, 6, 2, 257, 129, 24, 64, true, false, true},
    {"B4 H4 T200 D64 causal joint cut", 4, 4, 4, 200, 200, 64, 64, true, true, true, true},
    {"GPT-2: B64 H12 T1024 D64 causal joint", 64, 12, 12, 1024, 1024, 64, 64, true, true, false},
    {"Llama-1B: B16 H32/8 T2048 D64 causal", 16, 32, 8, 2048, 2048, 64, 64, true, false, false}};

Attention callOf(const Shape& s, bool backward) {
  Attention a;
  a.batch = s.batch, a.heads = s.heads, a.keyHeads = s.keyHeads;
  a.queries = s.queries, a.keys = s.keys, a.width = s.width, a.valueWidth = s.valueWidth;
  a.causal = s.causal, a.backward = backward;
  a.scale = 1 / std::sqrt(static_cast<double>(s.width));
  const auto contiguous = [](uint32_t operand, int64_t rows, int64_t heads, int64_t width) {
    return AttentionView{operand, 0, rows * heads * width, heads * width, width};
  };
  uint32_t next = 0;
  const auto three = [&](AttentionView& query, AttentionView& key, AttentionView& value) {
    if (s.joint) {
      const int64_t part = s.heads * s.width, row = 3 * part;
      query = {next, 0, s.queries * row, row, s.width};
      key = value = query;
      key.offset = part, value.offset = 2 * part;
      next += 1;
      return;
    }
    query = contiguous(next, s.queries, s.heads, s.width);
    key = contiguous(next + 1, s.keys, s.keyHeads, s.width);
    value = contiguous(next + 2, s.keys, s.keyHeads, s.valueWidth);
    next += 3;
  };
  three(a.query, a.key, a.value);
  a.result = contiguous(next++, s.queries, s.heads, s.valueWidth);
  a.logSumExp = next++;
  if (backward) {
    a.dresult = contiguous(next++, s.queries, s.heads, s.valueWidth);
    three(a.dquery, a.dkey, a.dvalue);
  }
  a.operands = next;
  return a;
}

/// A tensor, and where the call has it.
struct Placed {
  const char* name;
  AttentionView view;
  HostTensor* tensor;
  DType dtype = DType::BF16;

  int64_t offset(int64_t batch, int64_t row, int64_t head) const {
    return byteSize(dtype) * (view.offset + batch * view.batch + row * view.row + head * view.head);
  }
};

class Case {
public:
  Case(const Driver& driver, CUstream stream, const Shape& shape, int repeats)
      : driver_(driver), stream_(stream), shape_(shape), repeats_(repeats) {
    const auto queries = [&](int64_t width) {
      return HostTensor(shape.batch, shape.queries, shape.heads, width, shape.checked);
    };
    const auto keys = [&](int64_t width) {
      return HostTensor(shape.batch, shape.keys, shape.keyHeads, width, shape.checked);
    };
    host_ = {queries(shape.width),
             keys(shape.width),
             keys(shape.valueWidth),
             queries(shape.valueWidth),
             queries(shape.valueWidth),
             queries(shape.width),
             keys(shape.width),
             keys(shape.valueWidth),
             HostTensor(shape.batch, shape.heads, shape.queries, 1, shape.checked)};
    if (!shape.checked)
      return;
    uint64_t state = 1;
    for (HostTensor* tensor : {&host_.query, &host_.key, &host_.value, &host_.dresult})
      for (double& value : tensor->values) {
        state = state * 6364136223846793005 + 1442695040888963407;
        const float unit = static_cast<float>(state >> 40) * 0x1p-23f - 1;
        value = fromBFloat16(toBFloat16(2 * unit));
      }
    attend(callOf(shape, false), host_);
  }

  Result<ordered_json> run(const AttentionLibrary& library, bool backward) {
    const Attention call = callOf(shape_, backward);
    if (backward && shape_.checked) {
      // As the forward pass would have left them.
      for (double& value : host_.result.values)
        value = fromBFloat16(toBFloat16(static_cast<float>(value)));
      attendBackward(call, host_);
    }
    const int64_t planned = backward && shape_.cut ? attentionWorkspace(call, call.batch / 2)
                                                   : plannedAttentionWorkspace(call);
    ordered_json found = {{"call", shape_.name}, {"backward", backward}, {"planned", planned}};
    const Result<std::vector<AttentionOffer>> offers = library.offers(call, planned);
    if (!offers.ok()) {
      found["refused"] = offers.error().message();
      return found;
    }
    TITAN_TRY(allocate(call, planned));
    // Of the others the time alone is of interest, on calls that take some.
    const size_t most = shape_.checked ? 2 : offers->size();
    for (const AttentionOffer& offer : std::span(*offers).first(std::min(most, offers->size())))
      found["offers"].push_back(TITAN_TRY(runOffer(call, offer, planned)));
    return found;
  }

private:
  std::vector<Placed> ins(const Attention& a) {
    std::vector<Placed> ins = {{"query", a.query, &host_.query},
                               {"key", a.key, &host_.key},
                               {"value", a.value, &host_.value}};
    if (a.backward) {
      ins.push_back({"result", a.result, &host_.result});
      ins.push_back({"dresult", a.dresult, &host_.dresult});
      ins.push_back(statistics(a));
    }
    return ins;
  }
  std::vector<Placed> outs(const Attention& a) {
    if (a.backward)
      return {{"dquery", a.dquery, &host_.dquery},
              {"dkey", a.dkey, &host_.dkey},
              {"dvalue", a.dvalue, &host_.dvalue}};
    return {{"result", a.result, &host_.result}, statistics(a)};
  }
  Placed statistics(const Attention& a) {
    return {"log_sum_exp",
            {a.logSumExp, 0, a.heads * a.queries, a.queries, 1},
            &host_.logSumExp,
            DType::F32};
  }

  Status allocate(const Attention& call, int64_t workspace) {
    bytes_.assign(call.operands, 0);
    for (const std::vector<Placed>& list : {ins(call), outs(call)})
      for (const Placed& placed : list) {
        const HostTensor& t = *placed.tensor;
        int64_t& bytes = bytes_[placed.view.operand];
        bytes = std::max(bytes, placed.offset(t.batch - 1, t.rows - 1, t.heads - 1) +
                                    t.width * byteSize(placed.dtype));
      }
    bytes_.push_back(workspace);
    memory_.clear();
    operands_.clear();
    for (int64_t bytes : bytes_) {
      CUdeviceptr address = 0;
      TITAN_TRY(driver_.need(driver_.cuMemAlloc_v2(&address, static_cast<size_t>(bytes)), what));
      memory_.emplace_back(driver_, address);
      operands_.push_back(static_cast<int64_t>(address));
    }
    return shape_.checked ? uploadIns(call) : fillIns(call);
  }

  Status uploadIns(const Attention& call) {
    std::vector<std::string> operands(call.operands);
    for (const Placed& placed : ins(call)) {
      const HostTensor& t = *placed.tensor;
      std::string& bytes = operands[placed.view.operand];
      bytes.resize(static_cast<size_t>(bytes_[placed.view.operand]));
      for (int64_t b = 0; b < t.batch; ++b)
        for (int64_t row = 0; row < t.rows; ++row)
          for (int64_t head = 0; head < t.heads; ++head)
            for (int64_t i = 0; i < t.width; ++i) {
              const auto value = static_cast<float>(t.at(b, row, head)[i]);
              char* to = bytes.data() + placed.offset(b, row, head) + i * byteSize(placed.dtype);
              const uint16_t narrow = toBFloat16(value);
              if (placed.dtype == DType::BF16)
                std::memcpy(to, &narrow, sizeof narrow);
              else
                std::memcpy(to, &value, sizeof value);
            }
    }
    for (size_t i = 0; i < operands.size(); ++i)
      if (!operands[i].empty())
        TITAN_TRY(fillRepeatedly(driver_, stream_, at(i), bytes_[i], operands[i], what));
    return {};
  }

  /// For its time: numbers of which no kernel takes a shortcut.
  Status fillIns(const Attention& call) {
    std::string block(2 * 65521, '\0');
    for (size_t i = 0; i < block.size(); i += 2) {
      const uint16_t value = toBFloat16(static_cast<float>(i * 40503 % 65536) / 32768 - 1);
      std::memcpy(block.data() + i, &value, sizeof value);
    }
    const float logarithm = std::log(static_cast<float>(call.keys));
    for (const Placed& placed : ins(call)) {
      const uint32_t operand = placed.view.operand;
      const std::string_view bytes = {reinterpret_cast<const char*>(&logarithm), sizeof logarithm};
      TITAN_TRY(fillRepeatedly(driver_, stream_, at(operand), bytes_[operand],
                               placed.dtype == DType::F32 ? bytes : block, what));
    }
    return {};
  }

  Result<ordered_json> runOffer(const Attention& call, const AttentionOffer& offer,
                                int64_t planned) {
    ordered_json found = {{"name", offer.name}, {"workspace", offer.workspace}};
    if (offer.workspace > planned)
      return found;
    const Result<std::unique_ptr<AttentionPlan>> plan = offer.build();
    if (!plan.ok()) {
      found["fails"] = plan.error().message();
      return found;
    }
    std::vector<std::string> results;
    for (unsigned char garbage : {0xff, 0x5a}) {
      TITAN_TRY(clear(call, garbage));
      const Answer answer = (*plan)->queue(operands_, stream_);
      if (!answer.ok()) {
        found["fails"] = fmt::format("{}: {}", answer.entry, (*plan)->said());
        return found;
      }
      results.push_back(TITAN_TRY(download(call)));
    }
    found["same_bits"] = results[0] == results[1];
    TITAN_TRY(clear(call, 0));
    if (const Status recorded = runInGraph(**plan); !recorded.ok())
      found["fails_in_a_graph"] = recorded.error().message();
    else
      found["same_bits_in_a_graph"] = results[0] == TITAN_TRY(download(call));
    if (shape_.checked)
      for (const Placed& placed : outs(call))
        found["errors"][placed.name] = errorOf(call, placed, results[0]);
    const double seconds = TITAN_TRY(timeOf(**plan));
    found["seconds"] = seconds;
    found["flops_per_second"] = flopsOf(call) / seconds;
    return found;
  }

  /// NaN that has to go, and garbage in the workspace.
  Status clear(const Attention& call, unsigned char garbage) {
    for (const Placed& placed : outs(call))
      TITAN_TRY(fill(placed.view.operand, 0xff));
    return fill(call.operands, garbage);
  }
  Status fill(uint32_t operand, unsigned char byte) {
    return driver_.need(
        driver_.cuMemsetD8Async(at(operand), byte, static_cast<size_t>(bytes_[operand]), stream_),
        what);
  }

  /// What is written, operand by operand.
  Result<std::string> download(const Attention& call) {
    std::string all;
    uint32_t last = call.operands;
    for (const Placed& placed : outs(call)) {
      if (placed.view.operand == last)
        continue;
      last = placed.view.operand;
      std::string bytes(static_cast<size_t>(bytes_[last]), '\0');
      TITAN_TRY(driver_.need(
          driver_.cuMemcpyDtoHAsync_v2(bytes.data(), at(last), bytes.size(), stream_), what));
      TITAN_TRY(driver_.need(driver_.cuStreamSynchronize(stream_), what));
      all += bytes;
    }
    return all;
  }

  Status runInGraph(const AttentionPlan& plan) {
    TITAN_TRY(driver_.need(
        driver_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), what));
    const Answer queued = plan.queue(operands_, stream_);
    CUgraph graph = nullptr;
    TITAN_TRY(driver_.need(driver_.cuStreamEndCapture(stream_, &graph), what));
    const OwnedGraph owned(driver_, graph);
    TITAN_TRY(driver_.need(queued, what));
    CUgraphExec exec = nullptr;
    TITAN_TRY(driver_.need(driver_.cuGraphInstantiateWithFlags(&exec, graph, 0), what));
    const OwnedGraphExec instance(driver_, exec);
    TITAN_TRY(driver_.need(driver_.cuGraphLaunch(exec, stream_), what));
    return driver_.need(driver_.cuStreamSynchronize(stream_), what);
  }

  /// The largest difference, and the norm of all beside that of what is right.
  ordered_json errorOf(const Attention& call, const Placed& placed, const std::string& results) {
    int64_t base = 0; // of the operand among the results
    for (const Placed& before : outs(call)) {
      if (before.view.operand == placed.view.operand)
        break;
      base += bytes_[before.view.operand];
    }
    const HostTensor& t = *placed.tensor;
    double most = 0, differences = 0, squares = 0;
    bool nan = false;
    for (int64_t b = 0; b < t.batch; ++b)
      for (int64_t row = 0; row < t.rows; ++row)
        for (int64_t head = 0; head < t.heads; ++head)
          for (int64_t i = 0; i < t.width; ++i) {
            const char* from =
                results.data() + base + placed.offset(b, row, head) + i * byteSize(placed.dtype);
            float value = 0;
            uint16_t narrow = 0;
            if (placed.dtype == DType::BF16) {
              std::memcpy(&narrow, from, sizeof narrow);
              value = fromBFloat16(narrow);
            } else {
              std::memcpy(&value, from, sizeof value);
            }
            const double expected = t.at(b, row, head)[i], difference = value - expected;
            nan |= std::isnan(difference);
            most = std::max(most, std::abs(difference));
            differences += difference * difference;
            squares += expected * expected;
          }
    if (nan)
      return "NaN";
    return {{"largest", most}, {"of_norm", std::sqrt(differences / squares)}};
  }

  Result<double> timeOf(const AttentionPlan& plan) {
    std::vector<double> taken;
    CUevent events[2] = {};
    for (CUevent& event : events)
      TITAN_TRY(driver_.need(driver_.cuEventCreate(&event, CU_EVENT_DEFAULT), what));
    const OwnedEvent start(driver_, events[0]), end(driver_, events[1]);
    for (int i = 0; i < repeats_; ++i) {
      TITAN_TRY(driver_.need(driver_.cuEventRecord(events[0], stream_), what));
      TITAN_TRY(driver_.need(plan.queue(operands_, stream_), what));
      TITAN_TRY(driver_.need(driver_.cuEventRecord(events[1], stream_), what));
      TITAN_TRY(driver_.need(driver_.cuEventSynchronize(events[1]), what));
      float milliseconds = 0;
      TITAN_TRY(
          driver_.need(driver_.cuEventElapsedTime(&milliseconds, events[0], events[1]), what));
      taken.push_back(1e-3 * static_cast<double>(milliseconds));
    }
    std::ranges::nth_element(taken, taken.begin() + taken.size() / 2);
    return taken[taken.size() / 2];
  }

  /// Pairs that the limit allows: two products forward, five backward.
  static double flopsOf(const Attention& a) {
    double pairs = 0;
    for (int64_t query = 0; query < a.queries; ++query)
      pairs += static_cast<double>(a.causal ? std::min(query + 1, a.keys) : a.keys);
    const auto width =
        static_cast<double>(a.backward ? 3 * a.width + 2 * a.valueWidth : a.width + a.valueWidth);
    return 2 * static_cast<double>(a.batch * a.heads) * pairs * width;
  }

  CUdeviceptr at(size_t operand) const { return static_cast<CUdeviceptr>(operands_[operand]); }

  const Driver& driver_;
  CUstream stream_;
  const Shape& shape_;
  int repeats_;
  HostAttention host_;
  std::vector<int64_t> bytes_; ///< of the operands, the workspace last
  std::vector<OwnedMemory> memory_;
  std::vector<int64_t> operands_;
};

} // namespace

Result<ordered_json> probeAttention(const Driver& driver, const Card& card, CUstream stream,
                                    int repeats) {
  const std::unique_ptr<AttentionLibrary> library = TITAN_TRY(loadCudnn(card));
  ordered_json found = {{"version", library->version()}};
  for (const Shape& shape : shapes) {
    Case probed(driver, stream, shape, repeats);
    for (bool backward : {false, true})
      found["calls"].push_back(TITAN_TRY(probed.run(*library, backward)));
  }
  return found;
}

} // namespace titan::cuda
