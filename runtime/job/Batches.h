// The data of one function: its dataset, and where its batches go in the arena.
#pragma once

#include "runtime/data/Loader.h"
#include "runtime/executor/Executor.h"

#include <memory>
#include <string>
#include <vector>

namespace titan {

struct Batches {
  std::unique_ptr<Dataset> dataset;
  std::vector<char*> destination; ///< one address per field, in the dataset's order
  int64_t samples = 0;            ///< of one batch
};

/// What `function` reads of each sample: its input bindings without the leading [microbatches,
/// micro] (step) or [micro]. Internal when the inputs disagree about the number of samples.
Result<std::vector<FieldSpec>> inputFields(const Function& function, const Recipe& recipe);

/// Opens the recipe's data.train (step) or data.eval (eval, predict). BadInput when the recipe
/// names no file.
Result<std::unique_ptr<Dataset>> openFunctionData(const Program& program, std::string_view function,
                                                  const Recipe& recipe);

/// Joins a dataset of openFunctionData to the arena.
Batches bindBatches(std::unique_ptr<Dataset> dataset, const Executor& executor,
                    std::string_view function);

} // namespace titan
