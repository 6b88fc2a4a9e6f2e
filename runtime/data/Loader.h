// Batches of a Dataset: in training order at any position of the run (BatchLoader), prepared ahead
// of the step by one background thread (PrefetchLoader), or front to back for evaluation
// (fillSequential).
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/device/Bytes.h"

#include <memory>
#include <span>

namespace titan {

/// Where a batch is made: one address per Dataset field, each with room for batch *
/// sampleBytes(field) bytes, samples one after another.
using BatchDestination = std::span<char* const>;

/// A batch in host memory, its fields one after another.
class BatchSlot {
public:
  /// Bytes of a slot for `batch` samples of `dataset`.
  static int64_t bytesFor(const Dataset& dataset, int64_t batch);
  /// `memory` has bytesFor() bytes.
  BatchSlot(const Dataset& dataset, int64_t batch, std::span<char> memory);

  BatchDestination destination() const { return addresses_; }
  /// Copies the batch to its sinks, one a field.
  Status copyTo(std::span<const ByteSink> sinks) const;

private:
  std::vector<char*> addresses_;
};

struct LoaderOptions {
  int64_t batch = 1; ///< samples of one batch: microbatches * micro
  uint64_t seed = 0; ///< recipe key train.seed
  bool shuffle = true;
};

/// Batches by position; has no state of its own.
class BatchLoader {
public:
  BatchLoader(const Dataset& dataset, LoaderOptions options);

  /// The batch whose first sample is the `position`-th of the run (samples consumed so far); wraps
  /// around epochs.
  Status fill(uint64_t position, BatchDestination destination) const;
  /// Samples first, first + 1, ... in file order, for eval and predict; rows past the end are zero.
  /// Returns the number of rows that hold samples, 0 when `first` is at or past the end.
  Result<int64_t> fillSequential(int64_t first, BatchDestination destination) const;

  const Dataset& dataset() const { return *dataset_; }
  const LoaderOptions& options() const { return options_; }

private:
  const Dataset* dataset_;
  LoaderOptions options_;
};

/// The batches at position, position + batch, ... in order. One background thread keeps a few of
/// them ready, so that `next` only copies. Nothing is allocated after construction. The destructor
/// stops and joins the thread.
class PrefetchLoader {
public:
  /// How many batches of `bytes` to keep ready: 4, and as many small ones as 4 MiB hold, up to 16.
  /// The thread is woken once for each half of them, and a wake-up takes longer than a small batch.
  static int64_t depthFor(int64_t bytes);

  /// `dataset` must outlive the loader, as must `memory`: as many batches are kept ready as it has
  /// room for slots (BatchSlot::bytesFor), at least one.
  PrefetchLoader(const Dataset& dataset, LoaderOptions options, uint64_t position,
                 std::span<char> memory);
  ~PrefetchLoader();
  PrefetchLoader(const PrefetchLoader&) = delete;
  PrefetchLoader& operator=(const PrefetchLoader&) = delete;

  /// Waits for the next batch and copies it to `sinks`, one a field. An error of the background
  /// thread comes out here, at the batch that it belongs to, and again at every later call.
  Status next(std::span<const ByteSink> sinks);
  /// Position of the batch that the following `next` returns.
  uint64_t position() const;

private:
  struct Ring;
  std::unique_ptr<Ring> ring_;
};

} // namespace titan
