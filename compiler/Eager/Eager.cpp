#include "compiler/Eager/Eager.h"

#include "compiler/Driver/Compilation.h"
#include "compiler/Driver/Version.h"
#include "compiler/Eager/ReferenceEngine.h"
#include "compiler/Support/RecipeAttribute.h"
#include "runtime/job/JobImage.h"
#include "runtime/program/Collective.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>

namespace titan {

namespace {

struct EagerOptions {
  CompileOptions compile;
  std::string engine = "reference";
  std::string precision = "f32";
  std::vector<std::string> job; ///< the command and everything after it
};

constexpr std::array<std::string_view, 4> commands = {"train", "eval", "predict", "info"};

/// Everything from the command on is the job's command line.
Result<std::optional<EagerOptions>> parse(const std::vector<std::string>& arguments) {
  EagerOptions options;
  auto command = std::find_if(arguments.begin(), arguments.end(), [](const std::string& argument) {
    return std::ranges::find(commands, argument) != commands.end();
  });
  std::vector<std::string> own(arguments.begin(), command);
  options.job.assign(command, arguments.end());

  CLI::App app{"runs a model op by op in the reference interpreter, with the flags, outputs and "
               "checkpoints of a compiled job",
               "titan-eager"};
  app.set_version_flag("--version", "titan-eager " + compilerVersion());
  app.add_option("model", options.compile.model, "an .onnx file, or a printed stage up to shard")
      ->required();
  app.add_option("-r,--recipe", options.compile.recipe, "the training recipe (TOML)");
  app.add_option("--set", options.compile.set, "change a recipe key")->allow_extra_args(false);
  app.add_option("--engine", options.engine, "what executes the ops")
      ->check(CLI::IsMember({"reference"}))
      ->capture_default_str();
  app.add_option(
         "--precision", options.precision,
         "f32: every value has its declared type; f64: every float is f64, checkpoints are rounded")
      ->check(CLI::IsMember({"f32", "f64"}))
      ->capture_default_str();
  app.add_option("--weights-dir", options.compile.weightsDirectory, "where external weights lie");
  app.add_option("--names", options.compile.names,
                 "a map.toml of names, kinds, layouts and padding rows");
  app.footer("followed by train, eval, predict or info and the job's own options (COMMAND --help)");
  try {
    app.parse(std::vector<std::string>(own.rbegin(), own.rend()));
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return std::optional<EagerOptions>();
  } catch (const CLI::CallForVersion&) {
    std::cout << "titan-eager " << compilerVersion() << "\n";
    return std::optional<EagerOptions>();
  } catch (const CLI::ParseError& error) {
    return Error::usage("{} (see titan-eager --help)", error.what());
  }
  if (options.job.empty())
    return Error::usage("no command is given: train, eval, predict or info");
  return std::optional(std::move(options));
}

/// Ranks are processes of a compiled job; here nobody would be at the other end of a collective.
Status checkOneRank(mlir::ModuleOp module) {
  const mlir::FailureOr<Recipe> recipe = getRecipe(module);
  const int64_t ranks = mlir::failed(recipe) ? 1 : rankCount(recipe->mesh.axes);
  if (ranks > 1)
    return Error::badInput("an eager run is one rank, mesh.axes has {}: set every axis to 1",
                           ranks);
  return {};
}

Result<int> run(const std::vector<std::string>& arguments) {
  std::optional<EagerOptions> options = TITAN_TRY(parse(arguments));
  if (!options)
    return 0;
  std::unique_ptr<Compilation> compilation = TITAN_TRY(Compilation::load(options->compile));
  TITAN_TRY(checkOneRank(compilation->module()));
  // Order of accumulation, roundings and the place of every random decision are fixed there, so the
  // numbers are the job's.
  TITAN_TRY(compilation->advance(Stage::Shard));
  const auto reference = TITAN_TRY(eager::ReferenceProgram::create(
      compilation->module(),
      options->precision == "f64" ? interpreter::Engine::F64 : interpreter::Engine::F32));

  std::string program = serialize(reference.program());
  JobImage image;
  image.programs = {{program}};
  image.chooseDevice = [&](const DeviceRequest&) -> Result<ChosenDevice> {
    ChosenDevice chosen;
    chosen.device = TITAN_TRY(eager::ReferenceEngine::create(reference));
    chosen.name = "reference interpreter";
    // A choice of its own in the checkpoint: a job that continues the run makes its own again.
    chosen.gemm = "interpreted";
    return chosen;
  };
  image.executable = std::filesystem::path(options->compile.model).replace_extension().string();
  image.weightsDirectory =
      options->compile.weightsDirectory.empty()
          ? std::filesystem::absolute(options->compile.model).parent_path().string()
          : options->compile.weightsDirectory;
  return runJob(options->job, image);
}

} // namespace

int eagerMain(const std::vector<std::string>& arguments) {
  Result<int> result = run(arguments);
  if (result.ok())
    return *result;
  std::cerr << "error: " << result.error().message() << "\n";
  return result.error().exitCode();
}

} // namespace titan
