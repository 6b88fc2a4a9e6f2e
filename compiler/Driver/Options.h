// The command line of titan-compile: names, defaults and exit codes are a contract with users and
// scripts.
#pragma once

#include "compiler/Pipeline/Stage.h"
#include "runtime/program/Recipe.h"

#include <optional>
#include <string>
#include <vector>

namespace titan {

struct CompileOptions {
  std::string model;            ///< .onnx, or .mlir of any printed stage
  std::string recipe;           ///< path; empty: defaults
  std::vector<std::string> set; ///< key=value, applied to the recipe in order
  std::string output; ///< empty: the model's name without its extension; with emit: stdout
  std::optional<Stage> emit;
  bool check = false;
  bool json = false;        ///< with check: the report for programs
  bool strictNames = false; ///< refuse a model whose tensors are not exactly the source's
  bool writeRecipe = false;
  std::string target = "cpu";    ///< or "cuda", "cpu,cuda"
  std::string arch;              ///< empty: the target's default
  bool referenceKernels = false; ///< of cuda
  bool embedWeights = true;
  std::string weightsDirectory; ///< empty: the model's
  std::string names;            ///< replaces recipe model.names
  std::string cache;            ///< folder of compiled kernels; empty: none
  bool timing = false;
  std::vector<std::string> disabledPasses;
  bool checkPasses = false; ///< run the module before and after each pass and compare
  std::string remarks;      ///< regular expression over remark categories
  std::string saveTemps;    ///< directory; every stage's module and the object file go there
};

/// Nothing when help or the version was asked for, which is then printed. Usage otherwise names
/// what is wrong.
Result<std::optional<CompileOptions>>
parseCompileOptions(const std::vector<std::string>& arguments);

/// The recipe of `options`: its file (or the defaults), then --set, then --names; validated.
Result<Recipe> readRecipe(const CompileOptions& options);

} // namespace titan
