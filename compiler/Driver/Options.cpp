#include "compiler/Driver/Options.h"

#include "compiler/Driver/Version.h"
#include "frontend/nn/Models.h"
#include "runtime/program/OptionValues.h"
#include "runtime/program/RecipeSchema.h"
#include "runtime/program/TomlDocument.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace titan {

Result<std::optional<CompileOptions>>
parseCompileOptions(const std::vector<std::string>& arguments) {
  CompileOptions options;
  std::string emit, weights = "embed";
  std::vector<std::string> stageNames;
  for (Stage stage : allStages())
    stageNames.emplace_back(stageName(stage));

  CLI::App app{"compiles a model file into an executable that trains it", "titan-compile"};
  app.set_version_flag("--version", compilerVersion());
  app.add_option("model", options.model,
                 "an .onnx file, a printed stage (.mlir), or a model that Titan "
                 "knows (nn:gpt?layers=12; nn:gpt?help lists its options)")
      ->required();
  app.add_option("-r,--recipe", options.recipe,
                 "the training recipe (TOML); without one, defaults");
  app.add_option("--set", options.set, "change a recipe key: --set optimizer.lr=1e-3")
      ->allow_extra_args(false);
  app.add_option("-o,--output", options.output,
                 "the job (default: the model's name without extension), or what --emit prints "
                 "(default: stdout)");
  app.add_option("--emit", emit, "stop after a stage and print its module")
      ->check(CLI::IsMember(stageNames));
  app.add_flag("--check", options.check,
               "list parameters, buffers, constants and what is unsupported; compile nothing");
  app.add_flag("--json", options.json, "with --check: the report as JSON");
  app.add_flag("--strict-names", options.strictNames,
               "refuse a model in which a name, a kind or a tie is not certainly the source's");
  app.add_flag("--write-recipe", options.writeRecipe, "print a starter recipe for the model");
  app.add_option("--target", options.target,
                 "what to generate code for: cpu, cuda, or both as cpu,cuda")
      ->capture_default_str();
  app.add_option("--arch", options.arch,
                 "of cpu: native (default), x86-64-v3, x86-64-v4, or a CPU that LLVM knows; of "
                 "cuda: native, or a list (default: sm_80,sm_90)");
  app.add_flag("--reference-kernels", options.referenceKernels,
               "with --target=cuda: the job has each kernel for the CPU, too, and runs on it with "
               "--device=reference");
  app.add_option("--weights", weights,
                 "carry the initial weights in the job, or refer to their file")
      ->check(CLI::IsMember({"embed", "refer"}))
      ->capture_default_str();
  app.add_option("--weights-dir", options.weightsDirectory,
                 "where external weights lie (default: beside the model)");
  app.add_option("--names", options.names,
                 "a map.toml of names, kinds, layouts and padding rows by initializer");
  app.add_option("--cache", options.cache,
                 "a folder that keeps compiled kernels for the next compilation")
      ->envname("TITAN_CACHE");
  app.add_flag("--timing", options.timing, "show the time of each stage and pass");
  app.add_option("--disable-pass", options.disabledPasses, "skip an optimization pass, by name")
      ->allow_extra_args(false);
  app.add_flag(
      "--check-passes", options.checkPasses,
      "run the module in the reference interpreter before and after each pass and compare");
  app.add_option("--remarks", options.remarks,
                 "show the compiler's decisions whose category matches this regular expression");
  app.add_option("--save-temps", options.saveTemps,
                 "a directory for every intermediate result, made without --cache");

  TITAN_TRY(checkOptionValues(arguments));
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return std::optional<CompileOptions>();
  } catch (const CLI::CallForVersion&) {
    std::cout << "titan-compile " << compilerVersion() << "\n";
    return std::optional<CompileOptions>();
  } catch (const CLI::ParseError& error) {
    return Error::usage("{} (see titan-compile --help)", error.what());
  }
  if (!emit.empty())
    options.emit = parseStage(emit);
  options.embedWeights = weights == "embed";
  if (options.check + options.writeRecipe + options.emit.has_value() > 1)
    return Error::usage("--check, --write-recipe and --emit exclude one another");
  if (options.json && !options.check)
    return Error::usage("--json goes with --check");
  if (options.referenceKernels && options.target != "cuda")
    return Error::usage("--reference-kernels goes with --target=cuda alone");
  return std::optional(std::move(options));
}

Result<Recipe> readRecipe(const CompileOptions& options) {
  Recipe recipe;
  if (nn::isModelRequest(options.model)) // there is no file whose weights could be the default
    recipe.model.init = "fresh";
  std::string text;
  if (!options.recipe.empty())
    text = TITAN_TRY(recipe::readText(options.recipe, "recipe"));
  TITAN_TRY(recipe::assignToml(recipe, text, options.recipe));
  for (const std::string& assignment : options.set)
    TITAN_TRY(setKey(recipe, assignment));
  if (!options.names.empty())
    recipe.model.names = options.names;
  TITAN_TRY(validate(recipe));
  return recipe;
}

} // namespace titan
