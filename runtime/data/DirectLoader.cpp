#include "runtime/data/Loader.h"

#include <algorithm>
#include <mutex>
#include <optional>

namespace titan {
namespace {

/// What a thread should have to copy: a region costs the time of some KiB.
constexpr int64_t bytesPerThread = 16 << 10;

} // namespace

bool DirectLoader::suits(const Dataset& dataset, std::span<const ByteSink> sinks) {
  int64_t sample = 0;
  for (size_t field = 0; field < dataset.fields().size(); ++field)
    sample += dataset.sampleBytes(field);
  return dataset.size() <= mostBytes / std::max<int64_t>(sample, 1) &&
         std::ranges::all_of(sinks, [](const ByteSink& sink) { return !sink.direct().empty(); });
}

DirectLoader::DirectLoader(const Dataset& dataset, LoaderOptions options, uint64_t position,
                           ThreadPool& pool)
    : loader_(dataset, options), position_(position), pool_(&pool),
      addresses_(dataset.fields().size()) {}

Status DirectLoader::next(std::span<const ByteSink> sinks) {
  int64_t bytes = 0;
  for (size_t field = 0; field < sinks.size(); ++field) {
    addresses_[field] = sinks[field].direct().data();
    bytes += sinks[field].bytes();
  }
  const int64_t batch = loader_.options().rows();
  const int64_t rows = std::max<int64_t>(1, bytesPerThread * batch / std::max<int64_t>(bytes, 1));
  // Of several errors the one that one thread alone would have come upon.
  std::mutex mutex;
  std::optional<Error> error;
  int64_t errorRow = batch;
  pool_->parallelFor(batch, rows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      Status read = loader_.fillRow(position_, row, addresses_);
      if (read.ok())
        continue;
      const std::lock_guard lock(mutex);
      if (row < errorRow) {
        errorRow = row;
        error = read.takeError();
      }
      return;
    }
  });
  if (error)
    return *error;
  TITAN_TRY(loader_.dataset().checkFiles());
  position_ += static_cast<uint64_t>(loader_.options().advance());
  return {};
}

} // namespace titan
