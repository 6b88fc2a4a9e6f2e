#include "tools/titan-ckpt/CommandLine.h"

#include "runtime/host/ThreadPool.h"
#include "tools/titan-ckpt/Commands.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <sstream>

namespace titan::ckpt {

Outcome runCommandLine(const std::vector<std::string>& arguments) {
  CLI::App app{"lists, shows, checks, compares and copies the checkpoints of training runs, and "
               "exports and imports their weights",
               "titan-ckpt"};
  app.set_version_flag("--version", std::string("titan-ckpt ") + TITAN_VERSION);
  app.require_subcommand(1);

  std::string path, other;
  bool json = false;
  std::function<Result<Report>()> command;

  CLI::App* listing =
      app.add_subcommand("list", "the checkpoints of a run directory, and what is being saved");
  listing->add_option("DIR", path, "run directory, or its checkpoints/")->required();
  listing->callback([&] { command = [&] { return list(path, json); }; });

  CLI::App* inspecting = app.add_subcommand("inspect", "what a checkpoint says about itself");
  inspecting->add_option("CKPT", path, "checkpoint, for instance run/checkpoints/step-00000100")
      ->required();
  inspecting->callback([&] { command = [&] { return inspect(path, json); }; });

  int threads = allowedCpus();
  CLI::App* verifying =
      app.add_subcommand("verify", "reads every byte and checks sizes, digests and names");
  verifying->add_option("PATH", path, "checkpoint, or run directory: all of its checkpoints")
      ->required();
  verifying->add_option("--threads", threads, "that read and check (default: all allowed CPUs)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  verifying->callback([&] { command = [&] { return verifyAll(path, threads, json); }; });

  CLI::App* comparing = app.add_subcommand("diff", "compares two checkpoints tensor by tensor");
  comparing->add_option("A", path, "checkpoint")->required();
  comparing->add_option("B", other, "checkpoint")->required();
  comparing->callback([&] { command = [&] { return diff(path, other, json); }; });

  std::string output, dtype;
  CLI::App* copying = app.add_subcommand("copy", "the checkpoint in another run directory");
  copying->add_option("CKPT", path, "checkpoint")->required();
  copying->add_option("-o,--output", output, "run directory")->type_name("RUN")->required();
  copying->callback([&] { command = [&] { return copy(path, output); }; });

  checkpoint::ExportRequest weights;
  bool shards = false;
  CLI::App* exporting =
      app.add_subcommand("export", "the weights, for safetensors, PyTorch and Hugging Face");
  exporting->add_option("CKPT", weights.checkpoint, "checkpoint")->required();
  exporting->add_option("-o,--output", weights.output, "file to write, or with --hf the folder")
      ->type_name("F.safetensors")
      ->required();
  exporting->add_option("--ema", weights.profile, "the averages of this profile")
      ->type_name("PROFILE");
  exporting->add_option("--dtype", dtype, "rounds the weights: bf16, f16, or f32 for wider ones")
      ->check(CLI::IsMember({"bf16", "f16", "f32"}));
  exporting->add_flag("--hf", shards, "a folder: files of up to 5 GB and an index");
  exporting->add_flag("--torch", weights.allNames, "a tied weight under each of its names");
  exporting->callback([&] {
    if (!dtype.empty())
      weights.dtype = dtype == "bf16" ? DType::BF16 : dtype == "f16" ? DType::F16 : DType::F32;
    if (shards)
      weights.shardBytes = checkpoint::commonShardBytes;
    command = [&] { return exportTo(weights); };
  });

  checkpoint::ImportRequest imported;
  std::string job, like;
  std::vector<std::string> renames;
  CLI::App* importing =
      app.add_subcommand("import", "weights of other programs as the first checkpoint of a run");
  importing
      ->add_option("FILE", imported.weights,
                   ".safetensors file, Hugging Face index, or a folder of either")
      ->required();
  importing->add_option("-o,--output", imported.directory, "run directory")
      ->type_name("RUN")
      ->required();
  CLI::Option_group* target = importing->add_option_group("program", "whose run it is");
  target->add_option("--job", job, "compiled job, which is not run")->type_name("JOB");
  target->add_option("--like", like, "checkpoint of the same model and optimizer")
      ->type_name("CKPT");
  target->require_option(1);
  importing->add_option("--map", renames, "renames a tensor of the file")
      ->type_name("old=new")
      ->allow_extra_args(false);
  importing->add_option("--ignore", imported.ignored, "tensors of the file that are not read")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  importing->add_flag("--cast", imported.cast, "rounds weights to the types that the run has");
  importing->callback([&] { command = [&] { return importFrom(imported, renames, job, like); }; });

  for (CLI::App* subcommand : {listing, inspecting, verifying, comparing})
    subcommand->add_flag("--json", json, "for programs: one JSON value");

  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::Success& request) { // --help, --version
    std::ostringstream out, err;
    app.exit(request, out, err);
    return {0, out.str(), ""};
  } catch (const CLI::ParseError& error) {
    if (!arguments.empty() && !arguments[0].starts_with('-') && app.get_subcommands().empty())
      return {Error::usage("").exitCode(), "",
              fmt::format("error: unknown command '{}': use list, inspect, verify, diff, copy, "
                          "export or import\n",
                          arguments[0])};
    std::string message = error.what();
    std::ranges::replace(message, '\n', ' ');
    return {Error::usage("").exitCode(), "",
            fmt::format("error: {} (see titan-ckpt --help)\n", message)};
  }
  auto report = command();
  if (!report.ok())
    return {report.error().exitCode(), "", fmt::format("error: {}\n", report.error().message())};
  std::string said;
  for (const std::string& note : report->notes)
    said += fmt::format("note: {}\n", note);
  if (!report->problem.empty())
    said += fmt::format("error: {}\n", report->problem);
  return {report->good ? 0 : static_cast<int>(ErrorCode::BadInput), report->text, said};
}

} // namespace titan::ckpt
