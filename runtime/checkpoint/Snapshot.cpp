#include "runtime/checkpoint/Snapshot.h"

#include <algorithm>

namespace titan::checkpoint {
namespace {

/// What a thread copies at least. A thread's range is one copy: large ones go past the caches.
constexpr int64_t unitBytes = 4096, fewestUnits = 64;

} // namespace

std::optional<Snapshot> Snapshot::of(StateAccess& access, ThreadPool& pool) {
  Snapshot snapshot;
  snapshot.access_ = &access;
  snapshot.pool_ = &pool;
  snapshot.tensors_ = checkpoint::tensors(access);
  const char *first = nullptr, *end = nullptr;
  for (const TensorView& tensor : snapshot.tensors_) {
    const std::span<const char> bytes = tensor.source.direct();
    if (bytes.size() != static_cast<size_t>(tensor.bytes()))
      return std::nullopt;
    if (bytes.empty())
      continue;
    first = first ? std::min(first, bytes.data()) : bytes.data();
    end = std::max(end, bytes.data() + bytes.size());
  }
  if (!first)
    return std::nullopt;
  snapshot.state_ = {first, end};
  return snapshot;
}

Status Snapshot::reserve() {
  copy_ = TITAN_TRY(access_->hostBuffer(bytes()));
  for (TensorView& tensor : tensors_) {
    const std::span<const char> bytes = tensor.source.direct();
    const auto at = bytes.empty() ? 0 : static_cast<size_t>(bytes.data() - state_.data());
    tensor.source = std::span<const char>(copy_).subspan(at, bytes.size());
  }
  return {};
}

void Snapshot::take() {
  const int64_t size = bytes();
  pool_->parallelFor(
      (size + unitBytes - 1) / unitBytes, fewestUnits, [&](int64_t begin, int64_t end) {
        const int64_t from = begin * unitBytes, to = std::min(end * unitBytes, size);
        std::memcpy(copy_.data() + from, state_.data() + from, static_cast<size_t>(to - from));
      });
}

} // namespace titan::checkpoint
