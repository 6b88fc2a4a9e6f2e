#include "runtime/job/CommandLine.h"

#include "runtime/checkpoint/Load.h"
#include "runtime/program/OptionValues.h"
#include "runtime/program/Text.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <span>

namespace titan {
namespace {

// What does not fit 64 bits would silently become the largest number that does.
constexpr int64_t mostSteps = int64_t{1} << 53;

/// CLI::Range lets NaN pass.
std::string temperature(const std::string& text) {
  constexpr double largest = 1e6;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0 && value <= largest))
    return fmt::format("'{}' is no number from 0 to {:.0f}", text, largest);
  return {};
}

class Parser {
public:
  Parser(const std::string& executable, const std::string& version, bool quiet)
      : quiet_(quiet), app_("trains, evaluates and explains one compiled model", executable) {
    options_.out = executable + ".run";
    app_.require_subcommand(1);
    app_.set_version_flag("--version", version);
    addTrain();
    addEval();
    addPredict();
    addSample();
    addPlan();
    addInfo();
    addProfile();
    addTune();
    addCompare();
  }

  Result<std::optional<JobOptions>> parse(std::vector<std::string> arguments) {
    options_.goOn = goOn(app_.get_name(), arguments);
    auto isFirst = [&](const CLI::App* sub) { return sub->get_name() == arguments[0]; };
    if (!arguments.empty() && !arguments[0].starts_with('-') &&
        app_.get_subcommands(isFirst).empty())
      return Error::usage(
          "unknown command '{}': use train, eval, predict, sample, plan, info, profile, compare or "
          "tune",
          arguments[0]);
    TITAN_TRY(checkOptionValues(arguments));
    std::ranges::reverse(arguments); // what CLI11 expects of a vector
    try {
      app_.parse(std::move(arguments));
    } catch (const CLI::Success& request) { // --help, --version
      if (!quiet_)
        app_.exit(request);
      return std::optional<JobOptions>();
    } catch (const CLI::ParseError& error) {
      std::string message = error.what();
      std::ranges::replace(message, '\n', ' ');
      if (!message.empty())
        message[0] = static_cast<char>(std::tolower(message[0]));
      return Error::usage("{}: see --help", message);
    }
    options_.renames = TITAN_TRY(checkpoint::parseRenames(renames_));
    if (options_.init.empty() && (!options_.fresh.empty() || !options_.renames.empty() ||
                                  !options_.ignored.empty() || options_.cast))
      return Error::usage(
          "--fresh, --map, --ignore and --cast belong to --init, which is not given");
    if (options_.setAside &&
        (options_.resume == "auto" || options_.resume == "good" || options_.resume == "never"))
      return Error::usage("--set-aside belongs to --resume PATH, and --resume is {}",
                          options_.resume);
    return std::optional(options_);
  }

private:
  static std::string goOn(const std::string& executable, std::span<const std::string> arguments) {
    std::string words = shellQuoted(executable);
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i] == "--resume")
        ++i; // its value
      else if (arguments[i] != "--set-aside" && !arguments[i].starts_with("--resume="))
        words += " " + shellQuoted(arguments[i]);
    return words;
  }

  CLI::App& command(const char* name, const char* help, JobCommand value) {
    CLI::App* sub = app_.add_subcommand(name, help);
    sub->callback([this, value] { options_.command = value; });
    return *sub;
  }

  void addRunDirectory(CLI::App& sub) {
    sub.add_option("--out", options_.out, "run directory")->type_name("DIR")->capture_default_str();
  }
  void addMachine(CLI::App& sub) {
    sub.add_option("--device", options_.device,
                   "what to run on: auto, a card where the job has code for one, or cpu, cuda, "
                   "cuda:N")
        ->capture_default_str();
    sub.add_option("--threads", options_.threads, "compute threads (default: all allowed CPUs)")
        ->type_name("N")
        ->check(CLI::Range(1, 1024));
    sub.add_option("--gemm", options_.gemm,
                   "matrix products: auto, cublaslt (cards), onednn (CPUs) or generated")
        ->envname("TITAN_GEMM")
        ->check(CLI::IsMember({"auto", "cublaslt", "onednn", "generated"}))
        ->capture_default_str();
    sub.add_option("--attention", options_.attention,
                   "attention on cards: auto, cudnn or generated")
        ->envname("TITAN_ATTENTION")
        ->check(CLI::IsMember({"auto", "cudnn", "generated"}))
        ->capture_default_str();
    sub.add_option("--weights-dir", options_.weightsDirectory,
                   "where the weights lie that the job refers to (default: beside the job)")
        ->type_name("DIR");
  }
  void addPoison(CLI::App& sub) {
    sub.add_flag(
        "--poison", options_.poison,
        "check the memory plan: NaN outside of live ranges, guard bytes (slow, same results)");
  }
  void addData(CLI::App& sub) {
    sub.add_option("--data", options_.data, "data files, in place of the recipe's")
        ->type_name("F")
        ->allow_extra_args(false);
    addSet(sub);
  }
  void addSet(CLI::App& sub) {
    sub.add_option("--set", options_.set, "overrides a run-time recipe key")
        ->type_name("key=value")
        ->allow_extra_args(false);
  }
  void addCheckpoint(CLI::App& sub) {
    sub.add_option("--ckpt", options_.checkpoint,
                   "checkpoint (default: the newest of the run directory)")
        ->type_name("C");
    sub.add_option("--ema", options_.average,
                   "the averages of this profile, in place of the parameters")
        ->type_name("P");
  }
  void addJson(CLI::App& sub) { sub.add_flag("--json", options_.json, "print JSON"); }

  void addTrain() {
    CLI::App& sub =
        command("train", "trains, or resumes the run of the directory", JobCommand::Train);
    addRunDirectory(sub);
    addMachine(sub);
    addPoison(sub);
    sub.add_option("--steps", options_.steps, "end of the run; the schedule stays")
        ->type_name("N")
        ->check(CLI::Range(int64_t{0}, mostSteps));
    addData(sub);
    sub.add_option("--init", options_.init, "weights to start a fresh run from")
        ->type_name("W.safetensors");
    sub.add_option("--fresh", options_.fresh,
                   "with --init: names that keep their own initialisation")
        ->type_name("GLOB")
        ->allow_extra_args(false);
    sub.add_option("--map", renames_, "with --init: renames a tensor of the file")
        ->type_name("old=new")
        ->allow_extra_args(false);
    sub.add_option("--ignore", options_.ignored,
                   "with --init: tensors of the file that are not read")
        ->type_name("GLOB")
        ->allow_extra_args(false);
    sub.add_flag("--cast", options_.cast,
                 "with --init: rounds weights to the types that the job has");
    sub.add_option("--resume", options_.resume,
                   "where to start: auto, the newest checkpoint; good, the newest that is not "
                   "damaged, later ones are set aside; never, a fresh run; or a checkpoint")
        ->type_name("auto|good|never|PATH")
        ->capture_default_str();
    sub.add_option("--ema-start", options_.emaStart,
                   "averages of the job that the checkpoint may lack: they begin as its parameters")
        ->type_name("PROFILE")
        ->allow_extra_args(false);
    sub.add_option("--ema-drop", options_.emaDrop,
                   "averages of the checkpoint that the job does not keep: they are left out")
        ->type_name("PROFILE")
        ->allow_extra_args(false);
    sub.add_flag("--set-aside", options_.setAside,
                 "with --resume PATH: renames the later checkpoints of the run directory");
  }
  void addEval() {
    CLI::App& sub = command("eval", "prints loss and accuracy or perplexity", JobCommand::Eval);
    addCheckpoint(sub);
    addRunDirectory(sub);
    addMachine(sub);
    addPoison(sub);
    addData(sub);
    addJson(sub);
  }
  void addPredict() {
    CLI::App& sub =
        command("predict", "writes the model's outputs for all samples", JobCommand::Predict);
    addCheckpoint(sub);
    addRunDirectory(sub);
    addMachine(sub);
    addPoison(sub);
    addData(sub);
    sub.add_option("-o,--output", options_.output, "the .npz to write")
        ->type_name("out.npz")
        ->required();
  }
  void addSample() {
    CLI::App& sub =
        command("sample", "continues a text, with a language model", JobCommand::Sample);
    addCheckpoint(sub);
    addRunDirectory(sub);
    addMachine(sub);
    sub.add_option("--prompt", options_.prompt,
                   "how the text starts: text for a vocabulary of 256 bytes, else token ids "
                   "(default: a line break)")
        ->type_name("TEXT");
    sub.add_option("--tokens", options_.tokens, "tokens to add")
        ->type_name("N")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 32))
        ->capture_default_str();
    sub.add_option("--temperature", options_.temperature,
                   "divides the logits; 0 takes the most likely token")
        ->type_name("T")
        ->check(temperature)
        ->capture_default_str();
    sub.add_option("--top-k", options_.topK, "draw from the K most likely tokens only (0: all)")
        ->type_name("K")
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 32))
        ->capture_default_str();
    sub.add_option("--seed", options_.sampleSeed, "another seed, another text")
        ->type_name("S")
        ->capture_default_str();
    sub.add_flag("--ids", options_.ids, "token ids in and out, for a vocabulary of bytes too");
  }
  void addPlan() {
    CLI::App& sub = command("plan", "prints memory, FLOP and kernels of the compiled program",
                            JobCommand::Plan);
    addMachine(sub);
    addSet(sub);
    addJson(sub);
  }
  void addInfo() {
    CLI::App& sub =
        command("info", "prints parameters, recipe, target and libraries", JobCommand::Info);
    addMachine(sub);
    addJson(sub);
  }
  void addProfile() {
    CLI::App& sub =
        command("profile", "measures a few steps kernel by kernel", JobCommand::Profile);
    addMachine(sub);
    addData(sub);
    sub.add_option("--steps", options_.steps, "steps to measure (default: 20)")
        ->type_name("N")
        ->check(CLI::Range(int64_t{1}, mostSteps));
    sub.add_option("--rank", options_.rank,
                   "one rank of the job's mesh alone: its memory and the times of its kernels")
        ->type_name("R")
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 31));
    sub.add_option("--trace", options_.trace, "Chrome trace to write (default: <job>.trace.json)")
        ->type_name("F");
    addJson(sub);
  }

  void addTune() {
    CLI::App& sub = command("tune",
                            "times the product library's algorithms on this card, and writes "
                            "<job>.tuning.json for later runs",
                            JobCommand::Tune);
    addMachine(sub);
  }

  void addCompare() {
    CLI::App& sub = command("compare", "checks each kernel of a card against its host code",
                            JobCommand::Compare);
    addMachine(sub);
    addData(sub);
    sub.add_option("--steps", options_.steps, "steps to compare (default: 2)")
        ->type_name("N")
        ->check(CLI::Range(int64_t{1}, mostSteps));
    addJson(sub);
  }

  bool quiet_;
  JobOptions options_;
  std::vector<std::string> renames_;
  CLI::App app_;
};

} // namespace

const char* nameOf(JobCommand command) {
  switch (command) {
  case JobCommand::Train:
    return "train";
  case JobCommand::Eval:
    return "eval";
  case JobCommand::Predict:
    return "predict";
  case JobCommand::Sample:
    return "sample";
  case JobCommand::Plan:
    return "plan";
  case JobCommand::Info:
    return "info";
  case JobCommand::Profile:
    return "profile";
  case JobCommand::Tune:
    return "tune";
  case JobCommand::Compare:
    return "compare";
  }
  return "";
}

bool explains(JobCommand command) {
  return command == JobCommand::Plan || command == JobCommand::Info;
}

Result<std::optional<JobOptions>> parseCommandLine(const std::vector<std::string>& arguments,
                                                   const std::string& executable,
                                                   const std::string& version, bool quiet) {
  return Parser(executable, version, quiet).parse(arguments);
}

} // namespace titan
