// Batches of a Dataset: in training order at any position of the run (BatchLoader), prepared ahead
// of the step by one background thread (PrefetchLoader) or read in place before it by all threads
// (DirectLoader), or front to back for evaluation (fillSequential).
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/device/Bytes.h"
#include "runtime/host/ThreadPool.h"

#include <memory>
#include <span>

namespace titan {

/// Where a batch is made: one address per Dataset field, each with room for rows() *
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
  /// The same, which may go on behind the call: the memory is of StateAccess::hostBuffer().
  Result<Transfer> beginCopyTo(std::span<const ByteSink> sinks) const;

private:
  std::vector<char*> addresses_;
};

/// What a batch is made of. A step takes globalBatch samples of the run, one after another, which
/// are microbatches 0, 1, ... of `micro` samples; the batch of one rank has some of these.
struct LoaderOptions {
  int64_t micro = 1;        ///< samples of a microbatch
  int64_t microbatches = 1; ///< in the batch
  /// Slot i of the batch is the step's microbatch first + i * stride (program/Microbatches.h).
  int64_t first = 0, stride = 1;
  int64_t globalBatch = 0; ///< 0: the batch is all that the step takes
  uint64_t seed = 0;       ///< recipe key train.seed
  bool shuffle = true;

  int64_t rows() const { return micro * microbatches; } ///< samples of the batch
  /// How far a step moves the position.
  int64_t advance() const { return globalBatch > 0 ? globalBatch : rows(); }
  /// Which sample of the step is row `row` of the batch.
  int64_t sampleOfStep(int64_t row) const {
    return (first + row / micro * stride) * micro + row % micro;
  }
};

/// Batches by position; has no state of its own.
class BatchLoader {
public:
  BatchLoader(const Dataset& dataset, LoaderOptions options);

  /// The batch of the step whose first sample is the `position`-th of the run (samples consumed so
  /// far, by all ranks); wraps around epochs.
  Status fill(uint64_t position, BatchDestination destination) const;
  /// Its row `row` alone. Files are not checked (Dataset::checkFiles). Safe from several threads.
  Status fillRow(uint64_t position, int64_t row, BatchDestination destination) const;
  /// Samples first, first + 1, ... in file order, for eval and predict; rows past the end are zero.
  /// Returns the number of rows that hold samples, 0 when `first` is at or past the end.
  Result<int64_t> fillSequential(int64_t first, BatchDestination destination) const;

  const Dataset& dataset() const { return *dataset_; }
  const LoaderOptions& options() const { return options_; }

private:
  const Dataset* dataset_;
  LoaderOptions options_;
};

/// The batches at a position, position + advance(), ... in order, as training takes them.
class BatchStream {
public:
  virtual ~BatchStream() = default;
  /// Brings the next batch to `sinks`, one a field; where the host cannot reach them, it travels
  /// behind the call.
  virtual Status next(std::span<const ByteSink> sinks) = 0;
  /// Position of the batch that the following `next` brings.
  virtual uint64_t position() const = 0;
};

/// Reads each batch when it is asked for, to where the step takes it from: no copy, and no thread
/// that takes a CPU from those that compute. Nothing is allocated after construction.
class DirectLoader final : public BatchStream {
public:
  /// Of all samples as the program reads them. The digest has read such a data set completely, so
  /// that it is in memory.
  static constexpr int64_t mostBytes = int64_t{64} << 20;
  /// Is the data small enough, and can the host reach the sinks?
  static bool suits(const Dataset& dataset, std::span<const ByteSink> sinks);

  /// `dataset` and `pool` must outlive the loader.
  DirectLoader(const Dataset& dataset, LoaderOptions options, uint64_t position, ThreadPool& pool);

  /// `sinks` are direct. After an error the batch is the next one again.
  Status next(std::span<const ByteSink> sinks) override;
  uint64_t position() const override { return position_; }

private:
  BatchLoader loader_;
  uint64_t position_;
  ThreadPool* pool_;
  std::vector<char*> addresses_;
};

/// One background thread keeps a few batches ready, so that `next` only copies. Nothing is
/// allocated after construction. The destructor stops and joins the thread.
class PrefetchLoader final : public BatchStream {
public:
  /// How many batches of `bytes` to keep ready: 4, and as many small ones as 4 MiB hold, up to 16.
  /// The thread is woken once for each half of them, and a wake-up takes longer than a small batch.
  static int64_t depthFor(int64_t bytes);
  /// Batches that travel to a device while others are made.
  static constexpr int64_t mostOnTheWay = 2;

  /// `dataset` must outlive the loader, as must `memory`: as many batches are kept ready as it has
  /// room for slots (BatchSlot::bytesFor), at least one. Where sinks are not direct, up to
  /// mostOnTheWay of them hold what is on its way; for a third one the first is waited for.
  PrefetchLoader(const Dataset& dataset, LoaderOptions options, uint64_t position,
                 std::span<char> memory);
  ~PrefetchLoader() override;
  PrefetchLoader(const PrefetchLoader&) = delete;
  PrefetchLoader& operator=(const PrefetchLoader&) = delete;

  /// Waits for the next batch and brings it to `sinks`, one a field. An error of the background
  /// thread comes out here, at the batch that it belongs to, and again at every later call.
  Status next(std::span<const ByteSink> sinks) override;
  uint64_t position() const override;

private:
  struct Ring;
  std::unique_ptr<Ring> ring_;
};

} // namespace titan
