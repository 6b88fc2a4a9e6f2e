// titan-card-kernels CASES [--json FILE] [--only TEXT] [--ptx]
// titan-card-kernels CASES --spoil FILE [--only TEXT]
//
// Runs recorded kernel cases on card 0 and compares them with what the interpreter of PTX gave:
// equal bits, or within the bound of a case. Links no LLVM, so it runs where there is no compiler.
// --spoil runs nothing: it writes the cases to FILE with one expected bit that is wrong, and says
// which, so that a run of FILE shows that differences are seen.
// Exit 0: all are equal; 1: the file is not one; 3: no card; 4: differences.
#include "runtime/device/cuda/testing/cases/CardRunner.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iostream>
#include <iterator>

namespace {

using namespace titan;
using namespace titan::cases;

/// Lines that are printed; the JSON has all.
constexpr size_t mostPrinted = 40;

struct Options {
  std::string cases, json, only, spoilt;
  bool onlyPtx = false;
};

struct Outcome {
  int64_t ran = 0, differing = 0;
  std::vector<std::string> lines;
  std::optional<Error> stopped;
};

Result<CaseFile> readCases(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return Error::badInput("no such file '{}'", path);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  Result<CaseFile> file = parseCases(bytes);
  if (!file.ok())
    return file.takeError().withContext(path);
  return file;
}

bool isChosen(const KernelCase& kernel, const Options& options) {
  return kernel.name.find(options.only) != std::string::npos;
}

Error noCase(const Options& options) {
  return Error::usage("no case has a name with '{}'", options.only);
}

Outcome runAll(CardRunner& runner, const CaseFile& file, const Options& options) {
  Outcome outcome;
  for (const KernelCase& kernel : file.cases) {
    if (!isChosen(kernel, options))
      continue;
    Result<std::vector<std::string>> differences = runner.run(file, kernel, options.onlyPtx);
    ++outcome.ran;
    if (!differences.ok()) {
      outcome.stopped = differences.takeError().withContext(kernel.name);
      return outcome;
    }
    outcome.differing += !differences->empty();
    for (const std::string& line : *differences)
      outcome.lines.push_back(kernel.name + ": " + line);
  }
  return outcome;
}

Status writeFile(const std::string& path, const std::string& bytes) {
  std::ofstream stream(path, std::ios::binary);
  stream << bytes;
  if (!stream.flush())
    return Error::environment("cannot write '{}'", path);
  return {};
}

Status writeJson(const std::string& path, const CardRunner& runner, const CaseFile& file,
                 const Outcome& outcome) {
  nlohmann::json json = {{"card", runner.card().name},
                         {"arch", runner.card().capability.arch()},
                         {"driver", cuda::versionText(runner.driverVersion())},
                         {"cases", file.cases.size()},
                         {"ran", outcome.ran},
                         {"cubins", runner.cubins()},
                         {"ptx", runner.texts()},
                         {"differing", outcome.differing},
                         {"differences", outcome.lines}};
  if (outcome.stopped)
    json["stopped"] = outcome.stopped->message();
  return writeFile(path, json.dump(1) + "\n");
}

/// Spoils the first case that is chosen and whose bits are to be equal.
Status writeSpoilt(CaseFile file, const Options& options) {
  for (KernelCase& kernel : file.cases) {
    if (!isChosen(kernel, options))
      continue;
    Result<std::string> place = spoil(kernel);
    if (!place.ok())
      continue;
    fmt::print("{}: {}\n", kernel.name, *place);
    return writeFile(options.spoilt, serialize(file));
  }
  return noCase(options);
}

Status run(const Options& options) {
  CaseFile file = TITAN_TRY(readCases(options.cases));
  if (!options.spoilt.empty())
    return writeSpoilt(std::move(file), options);
  const std::unique_ptr<CardRunner> runner = TITAN_TRY(CardRunner::open());
  const Outcome outcome = runAll(*runner, file, options);
  for (size_t i = 0; i < std::min(outcome.lines.size(), mostPrinted); ++i)
    fmt::print("{}\n", outcome.lines[i]);
  fmt::print("{}: {} of {} cases ran ({} cubins, {} PTX), {} differ\n", runner->card().text(),
             outcome.ran, file.cases.size(), runner->cubins(), runner->texts(), outcome.differing);
  if (!options.json.empty())
    TITAN_TRY(writeJson(options.json, *runner, file, outcome));
  if (outcome.stopped)
    return *outcome.stopped;
  if (outcome.ran == 0)
    return noCase(options);
  if (outcome.differing > 0)
    return Error::internal("{} of {} cases differ", outcome.differing, outcome.ran);
  return {};
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app("runs recorded kernels on a card and compares them with the interpreter of PTX");
  Options options;
  app.add_option("cases", options.cases, "what titan_codegen_cuda_test recorded")->required();
  app.add_option("--json", options.json, "the file to write the outcome to");
  app.add_option("--only", options.only, "cases whose name has this text");
  app.add_option("--spoil", options.spoilt, "writes the cases with one wrong bit, and runs none");
  app.add_flag("--ptx", options.onlyPtx, "let the driver assemble, where a cubin is there too");
  CLI11_PARSE(app, argc, argv);
  const Status status = run(options);
  if (status.ok())
    return 0;
  std::cerr << "titan-card-kernels: error: " << status.error().message() << "\n";
  return status.error().exitCode();
}
