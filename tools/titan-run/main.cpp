// titan-run: starts a compiled job, or (--eager) runs a model op by op without compiling it. One
// rank takes the place of titan-run itself, so signals and the exit code are that program's.
#include "runtime/launch/Launcher.h"
#include "runtime/program/Error.h"
#include "runtime/program/Process.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace {

using titan::Error;
using titan::Status;

struct Options {
  bool eager = false;
  int64_t ranks = 1;
  int64_t restarts = 0;
  std::string logDirectory;
  std::vector<std::string> command; ///< the job, or the model, and everything after it
};

constexpr std::string_view withValue[] = {"-n", "--ranks", "--restarts", "--log-dir"};

/// Everything from the first argument on that is no option of ours belongs to the command, flags
/// included.
titan::Result<Options> parse(int argc, char** argv) {
  Options options;
  int first = 1;
  while (first < argc && argv[first][0] == '-') {
    std::string_view option = argv[first++];
    if (std::ranges::count(withValue, option) > 0 && first < argc)
      ++first;
  }
  CLI::App app{"starts a compiled job: titan-run [-n N] ./job train ...\n"
               "or runs a model op by op: titan-run --eager MODEL --recipe R.toml train ...",
               "titan-run"};
  app.set_version_flag("--version", std::string("titan-run ") + TITAN_VERSION);
  app.add_flag("--eager", options.eager, "interpret the model instead of starting a job");
  app.add_option("-n,--ranks", options.ranks, "number of ranks, processes of this host")
      ->capture_default_str();
  app.add_option(
         "--restarts", options.restarts,
         "starts a run that failed (exit code 5) again, so many times at most and not after "
         "two failures in one step; it goes on from its last checkpoint")
      ->type_name("K");
  app.add_option("--log-dir", options.logDirectory,
                 "writes what each rank says to D/rank-0003.attempt-1.log, too")
      ->type_name("D");
  app.footer("COMMAND... is the job or the model, and its arguments");
  try {
    app.parse(first, argv);
  } catch (const CLI::CallForHelp& help) {
    std::exit(app.exit(help));
  } catch (const CLI::CallForVersion& version) {
    std::exit(app.exit(version));
  } catch (const CLI::ParseError& error) {
    return Error::usage("{} (see titan-run --help)", error.what());
  }
  options.command.assign(argv + first, argv + argc);
  if (options.command.empty())
    return Error::usage("no job or model is given (see titan-run --help)");
  return options;
}

/// Does not return but with an error.
Status replaceProcess(const Options& options) {
  std::vector<std::string> command = options.command;
  if (options.eager) {
    std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
    std::filesystem::path eager = self.parent_path() / "titan-eager";
    if (!std::filesystem::exists(eager))
      return Error::environment("{} is not there: --eager needs it beside titan-run",
                                eager.string());
    command.insert(command.begin(), eager.string());
  }
  std::vector<char*> arguments;
  for (std::string& argument : command)
    arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  return Error::environment("{}: {}", command[0], std::strerror(errno));
}

titan::Result<int> start(const Options& options) {
  const bool isWatched = options.restarts > 0 || !options.logDirectory.empty();
  if (options.ranks == 1 && (options.eager || !isWatched))
    TITAN_TRY(replaceProcess(options));
  if (options.eager)
    return Error::badInput("--eager runs one rank: without -n {}, or compile the model and run the "
                           "job on {} ranks",
                           options.ranks, options.ranks);
  return titan::launch::launch({.ranks = options.ranks,
                                .command = options.command,
                                .restarts = options.restarts,
                                .logDirectory = options.logDirectory});
}

} // namespace

int main(int argc, char** argv) {
  titan::prepareProcess();
  titan::Result<Options> options = parse(argc, argv);
  titan::Result<int> code = options.ok() ? start(*options) : options.takeError();
  if (code.ok())
    return *code;
  titan::tell("error: {}\n", code.error().message());
  return code.error().exitCode();
}
