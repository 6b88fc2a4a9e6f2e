#include "runtime/checkpoint/StoredSource.h"

#include "runtime/checkpoint/Convert.h"

#include <cstring>

namespace titan::checkpoint {
namespace {

std::string zeros(int64_t bytes) { return std::string(static_cast<size_t>(bytes), '\0'); }

Result<std::string> elementsOf(const StoredTensors::Tensor& tensor, DType as) {
  const int64_t elements = elementCount(tensor.shape);
  std::string stored = zeros(elements * byteSize(tensor.dtype));
  TITAN_TRY(tensor.readInto(std::span<char>(stored)));
  if (as == tensor.dtype)
    return stored;
  std::string converted = zeros(elements * byteSize(as));
  Status done = convertElements(tensor.dtype, stored, as, converted);
  if (!done.ok())
    return done.takeError().withContext(fmt::format("tensor '{}'", tensor.name));
  return converted;
}

} // namespace

ByteSource sourceOf(const StoredTensors::Tensor& tensor, DType as) {
  const int64_t bytes = elementCount(tensor.shape) * byteSize(as);
  return ByteSource::made(
      bytes,
      [&tensor, as, loaded = std::string()](int64_t first, std::span<char> into) mutable -> Status {
        if (loaded.empty())
          loaded = TITAN_TRY(elementsOf(tensor, as));
        const auto begin = static_cast<size_t>(first);
        std::memcpy(into.data(), loaded.data() + begin, into.size());
        if (begin + into.size() == loaded.size())
          loaded = std::string();
        return {};
      });
}

} // namespace titan::checkpoint
