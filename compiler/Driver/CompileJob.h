// Titan as a library: what a program builds is compiled to a job, as titan-compile does it with a
// file. This header needs no MLIR.
#pragma once

#include "frontend/nn/Model.h"

#include <functional>
#include <string>

namespace titan {

/// What flags of titan-compile say: its --help has more on each.
struct JobOptions {
  std::string name = "model"; ///< of the model, in errors and in what the job says of itself
  std::string output;         ///< path of the job; empty: the name
  std::string target = "cpu"; ///< or "cuda", "cpu,cuda"
  std::string arch;           ///< empty: the target's default
  std::string cache;          ///< folder of compiled kernels; empty: none
  /// Gets what a user should know of the compilation, a line each; empty: stderr.
  std::function<void(const std::string&)> note;
};

/// Compiles the model that `build` makes under `recipe` and links an executable that trains it.
/// `recipe.model.init` must be "fresh". Nothing is left behind on an error.
Status compileJob(const nn::ModelFunction& build, const Recipe& recipe, const JobOptions& options);

} // namespace titan
