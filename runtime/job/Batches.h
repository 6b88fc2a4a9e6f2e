// The data of one function: its dataset, and where its batches go on the device.
#pragma once

#include "runtime/data/Loader.h"
#include "runtime/device/StateAccess.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace titan {

class Batches {
public:
  /// Joins a dataset of openFunctionData to the inputs of the function. The errors of the device.
  static Result<Batches> create(std::unique_ptr<Dataset> dataset, StateAccess& access,
                                std::string_view function);

  const Dataset& dataset() const { return *dataset_; }
  int64_t samples() const { return samples_; }             ///< of one batch of this rank
  int64_t microbatches() const { return microbatches_; }   ///< that these are
  int64_t globalSamples() const { return globalSamples_; } ///< of all ranks together
  /// The function's inputs, in the order of the dataset's fields.
  std::span<const ByteSink> sinks() const { return sinks_; }

  /// BatchLoader::fill and fillSequential into the inputs: in place where the device has a window,
  /// else through a slot.
  Status fill(const BatchLoader& loader, uint64_t position) const;
  Result<int64_t> fillSequential(const BatchLoader& loader, int64_t first) const;

private:
  /// Hands on what was made in the slot.
  Status send() const;

  std::unique_ptr<Dataset> dataset_;
  int64_t samples_ = 0, microbatches_ = 1, globalSamples_ = 0;
  std::vector<ByteSink> sinks_;
  std::vector<char*> destination_; ///< where batches are made: the inputs, or the slot
  std::optional<BatchSlot> slot_;
};

/// Which samples of a step the rank `rank` of the job reads, in the order of `recipe`, which has
/// the job's mesh and the run's seed. `batches` are those of the function `step`.
LoaderOptions loaderOptions(const Batches& batches, const Recipe& recipe, int64_t rank);

/// What `function` reads of each sample: its input bindings without the leading [microbatches,
/// micro] (step) or [micro]. Internal when the inputs disagree about the number of samples.
Result<std::vector<FieldSpec>> inputFields(const Function& function, const Recipe& recipe);

/// Opens the recipe's data.train (step) or data.eval (eval, predict). BadInput when the recipe
/// names no file.
Result<std::unique_ptr<Dataset>> openFunctionData(const Program& program, std::string_view function,
                                                  const Recipe& recipe);

} // namespace titan
