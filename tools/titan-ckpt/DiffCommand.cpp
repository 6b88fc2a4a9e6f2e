#include "tools/titan-ckpt/Commands.h"

#include "runtime/checkpoint/ReadCheckpoint.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <set>

namespace titan::ckpt {
namespace {

using namespace checkpoint;
using Json = nlohmann::ordered_json;
using Tensors = std::map<std::string, StoredTensors::Tensor>;

/// Element `i` as a double; integers beyond 2^53 are rounded, which a comparison of bytes came
/// before.
double element(DType dtype, const char* data, int64_t i) {
  const auto as = [&]<typename T>(T) {
    T value;
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return value;
  };
  switch (dtype) {
  case DType::F64:
    return as(double());
  case DType::F32:
    return static_cast<double>(as(float()));
  case DType::F16:
    return static_cast<double>(fromFloat16(as(uint16_t())));
  case DType::BF16:
    return static_cast<double>(fromBFloat16(as(uint16_t())));
  case DType::I64:
    return static_cast<double>(as(int64_t()));
  case DType::I32:
    return as(int32_t());
  case DType::I16:
    return as(int16_t());
  case DType::I8:
    return as(int8_t());
  case DType::U32:
    return as(uint32_t());
  case DType::U16:
    return as(uint16_t());
  case DType::U8:
  case DType::Bool:
    return as(uint8_t());
  }
  return NAN;
}

Result<std::string> bytesOf(const StoredTensors::Tensor& tensor) {
  std::string bytes(static_cast<size_t>(elementCount(tensor.shape) * byteSize(tensor.dtype)), '\0');
  TITAN_TRY(tensor.readInto(std::span<char>(bytes)));
  return bytes;
}

std::string typeOf(const StoredTensors::Tensor& tensor) {
  return fmt::format("{} {}", name(tensor.dtype), toString(tensor.shape));
}

class Comparison {
public:
  void add(std::string line, Json item) {
    lines_ += line + "\n";
    items_.push_back(std::move(item));
  }

  void counters(const Counters& a, const Counters& b) {
    std::set<std::string> names;
    for (const Counters* side : {&a, &b})
      for (const auto& [name, value] : *side)
        names.insert(name);
    for (const std::string& name : names) {
      const auto inA = a.find(name), inB = b.find(name);
      if (inA == a.end() || inB == b.end())
        onlyIn(inA == a.end() ? 'B' : 'A', name, "counter");
      else if (inA->second != inB->second)
        add(fmt::format("counter {}: {} in A, {} in B", name, inA->second, inB->second),
            {{"name", name}, {"a", inA->second}, {"b", inB->second}});
    }
  }

  Status tensors(const Folder& folder, const Tensors& a, const Tensors& b) {
    for (const auto& [key, tensor] : a) {
      const std::string name = folder.shown(key);
      const auto other = b.find(key);
      if (other == b.end())
        onlyIn('A', name, typeOf(tensor));
      else if (tensor.dtype != other->second.dtype || tensor.shape != other->second.shape)
        add(fmt::format("{}: {} in A, {} in B", name, typeOf(tensor), typeOf(other->second)),
            {{"name", name}, {"a", typeOf(tensor)}, {"b", typeOf(other->second)}});
      else
        TITAN_TRY(values(name, tensor, other->second));
    }
    for (const auto& [key, tensor] : b)
      if (!a.contains(key))
        onlyIn('B', folder.shown(key), typeOf(tensor));
    return {};
  }

  Report report(bool json) const {
    if (json)
      return {items_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", items_.empty()};
    return {items_.empty() ? "equal: all names, shapes, dtypes, bits and counters\n" : lines_,
            items_.empty()};
  }

private:
  void onlyIn(char side, const std::string& name, const std::string& what) {
    add(fmt::format("{}: {} is in {} only", name, what, side),
        {{"name", name}, {"only_in", std::string(1, side)}});
  }

  Status values(const std::string& name, const StoredTensors::Tensor& a,
                const StoredTensors::Tensor& b) {
    const std::string bytesA = TITAN_TRY(bytesOf(a)), bytesB = TITAN_TRY(bytesOf(b));
    if (bytesA == bytesB)
      return {};
    const int64_t elements = elementCount(a.shape), width = byteSize(a.dtype);
    int64_t differing = 0;
    double largest = 0;
    for (int64_t i = 0; i < elements; ++i) {
      if (std::memcmp(bytesA.data() + i * width, bytesB.data() + i * width,
                      static_cast<size_t>(width)) == 0)
        continue;
      ++differing;
      const double difference =
          std::abs(element(a.dtype, bytesA.data(), i) - element(a.dtype, bytesB.data(), i));
      // A NaN stays: nothing is larger than it.
      if (std::isnan(difference) || difference > largest)
        largest = std::isnan(largest) ? largest : difference;
    }
    Json item = {{"name", name}, {"differing", differing}, {"elements", elements}};
    if (std::isfinite(largest))
      item["max_abs"] = largest;
    else
      item["max_abs"] = fmt::format("{}", largest);
    add(fmt::format("{}: {} of {} elements differ, by at most {:.6g}", name, differing, elements,
                    largest),
        std::move(item));
    return {};
  }

  std::string lines_;
  Json items_ = Json::array();
};

} // namespace

Result<Report> diff(const std::string& a, const std::string& b, bool json) {
  Env& env = posixEnv();
  const auto holdA = TITAN_TRY(holdCheckpoint(a)), holdB = TITAN_TRY(holdCheckpoint(b));
  const Manifest manifestA = TITAN_TRY(readManifest(a)), manifestB = TITAN_TRY(readManifest(b));
  CheckpointTensors tensorsA = TITAN_TRY(openCheckpoint(a, manifestA, env));
  CheckpointTensors tensorsB = TITAN_TRY(openCheckpoint(b, manifestB, env));
  Comparison comparison;
  comparison.counters(manifestA.counters, manifestB.counters);
  for (const auto& [folder, tensors] : tensorsB)
    tensorsA[folder]; // what B alone has is a difference, too
  for (const auto& [folder, tensors] : tensorsA)
    TITAN_TRY(comparison.tensors(folder, tensors.tensors(), tensorsB[folder].tensors()));
  return comparison.report(json);
}

} // namespace titan::ckpt
