#include "runtime/data/Loader.h"

#include "runtime/program/Permutation.h"

#include <algorithm>
#include <cstring>

namespace titan {

namespace {

// Fields begin on a cache line of their own.
constexpr int64_t fieldAlignment = 64;

int64_t slotBytes(const Dataset& dataset, size_t field, int64_t batch) {
  const int64_t bytes = batch * dataset.sampleBytes(field);
  return (bytes + fieldAlignment - 1) / fieldAlignment * fieldAlignment;
}

} // namespace

int64_t BatchSlot::bytesFor(const Dataset& dataset, int64_t batch) {
  int64_t bytes = 0;
  for (size_t field = 0; field < dataset.fields().size(); ++field)
    bytes += slotBytes(dataset, field, batch);
  return bytes;
}

BatchSlot::BatchSlot(const Dataset& dataset, int64_t batch, std::span<char> memory) {
  char* address = memory.data();
  for (size_t field = 0; field < dataset.fields().size(); ++field) {
    addresses_.push_back(address);
    address += slotBytes(dataset, field, batch);
  }
}

Status BatchSlot::copyTo(std::span<const ByteSink> sinks) const {
  for (size_t field = 0; field < sinks.size(); ++field)
    TITAN_TRY(
        sinks[field].write(0, {addresses_[field], static_cast<size_t>(sinks[field].bytes())}));
  return {};
}

Result<Transfer> BatchSlot::beginCopyTo(std::span<const ByteSink> sinks) const {
  Transfer last; // stands for those before it
  for (size_t field = 0; field < sinks.size(); ++field)
    last = TITAN_TRY(
        sinks[field].begin(0, {addresses_[field], static_cast<size_t>(sinks[field].bytes())}));
  return last;
}

BatchLoader::BatchLoader(const Dataset& dataset, LoaderOptions options)
    : dataset_(&dataset), options_(options) {}

Status BatchLoader::fill(uint64_t position, BatchDestination destination) const {
  for (int64_t row = 0; row < options_.rows(); ++row)
    TITAN_TRY(fillRow(position, row, destination));
  return dataset_->checkFiles();
}

Status BatchLoader::fillRow(uint64_t position, int64_t row, BatchDestination destination) const {
  const auto samples = static_cast<uint64_t>(dataset_->size());
  const auto ofStep = static_cast<uint64_t>(options_.sampleOfStep(row));
  const uint64_t sample = sampleAt(position + ofStep, samples, options_.seed, options_.shuffle);
  for (size_t field = 0; field < destination.size(); ++field)
    TITAN_TRY(dataset_->read(static_cast<int64_t>(sample), field,
                             destination[field] + row * dataset_->sampleBytes(field)));
  return {};
}

Result<int64_t> BatchLoader::fillSequential(int64_t first, BatchDestination destination) const {
  const int64_t rows = std::clamp(dataset_->size() - first, int64_t{0}, options_.rows());
  for (size_t field = 0; field < destination.size(); ++field) {
    const int64_t bytes = dataset_->sampleBytes(field);
    for (int64_t row = 0; row < rows; ++row)
      TITAN_TRY(dataset_->read(first + row, field, destination[field] + row * bytes));
    std::memset(destination[field] + rows * bytes, 0,
                static_cast<size_t>((options_.rows() - rows) * bytes));
  }
  TITAN_TRY(dataset_->checkFiles());
  return rows;
}

} // namespace titan
