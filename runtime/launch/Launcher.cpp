#include "runtime/launch/Launcher.h"

#include "runtime/collective/Blame.h"
#include "runtime/collective/SharedMemory.h"
#include "runtime/launch/Cpus.h"
#include "runtime/launch/FlightFiles.h"
#include "runtime/launch/RankProcess.h"
#include "runtime/program/Process.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace titan::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int passedOn[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr int lookEvery = 100;                // milliseconds
constexpr std::chrono::seconds timeToEnd{1};  // after a failure, for ranks to say what they saw
constexpr std::chrono::seconds timeToGoOn{6}; // for a stopped rank; its peers wait a second less
constexpr int lastOwnExitCode = static_cast<int>(ErrorCode::RunFailed);

/// The signals that are passed on come as a file to read, for its lifetime. Output that nobody
/// reads is lost instead of ending us.
class SignalFile {
public:
  SignalFile() {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : passedOn)
      sigaddset(&set, signal);
    sigprocmask(SIG_BLOCK, &set, &before_);
    file_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    onBrokenPipe_ = signal(SIGPIPE, SIG_IGN);
  }
  ~SignalFile() {
    close(file_);
    signal(SIGPIPE, onBrokenPipe_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalFile(const SignalFile&) = delete;
  SignalFile& operator=(const SignalFile&) = delete;

  int file() const { return file_; }
  const sigset_t& before() const { return before_; }
  std::optional<int> next() const {
    signalfd_siginfo info;
    if (read(file_, &info, sizeof info) != sizeof info)
      return std::nullopt;
    return static_cast<int>(info.ssi_signo);
  }

private:
  sigset_t before_;
  int file_;
  void (*onBrokenPipe_)(int);
};

/// A file that is closed at the end.
struct OwnedFile {
  explicit OwnedFile(int number) : number(number) {}
  ~OwnedFile() { close(number); }
  OwnedFile(const OwnedFile&) = delete;
  OwnedFile& operator=(const OwnedFile&) = delete;
  int number;
};

class Launch {
public:
  Launch(ControlBlock block, const SignalFile& signals) : block_(block), signals_(signals) {}

  /// `attempt`: 1 for the first.
  Status start(const LaunchOptions& options, int controlFile, int64_t attempt);
  int run();
  bool wasAskedToEnd() const { return wasAskedToEnd_; }
  /// The furthest step of any rank; -1: none has begun.
  int64_t step() const;

private:
  bool isRunning() const {
    return std::ranges::any_of(processes_, [](const auto& process) { return process.isRunning(); });
  }
  void waitForEvents();
  void passSignalsOn();
  void readOutput();
  void reap();
  void onEnd(const RankProcess& process, int status);
  void onFailedEnd(const RankProcess& process, int code, bool told, const std::string& how);
  void lookForDeserters();
  void lookForStoppedRanks();
  void endAfterFailure();
  int conclude();
  void recordFlights() const;

  ControlBlock block_;
  const SignalFile& signals_;
  std::vector<RankProcess> processes_;
  std::vector<bool> passed_ = std::vector<bool>(NSIG); ///< signals that we passed on
  int interrupts_ = 0;
  bool wasAskedToEnd_ = false;
  std::vector<int64_t> neverJoined_; ///< ranks that ended with 0, and never joined the others
  int exitCode_ = 0;                 ///< of a rank that had finished
  std::optional<Clock::time_point> killAt_;
};

int64_t Launch::step() const {
  int64_t furthest = -1;
  for (int64_t rank = 0; rank < block_.ranks(); ++rank)
    furthest = std::max(furthest, block_.slot(rank).step.load());
  return furthest;
}

/// Where what a rank writes goes, too; closed (-1) without logs.
Result<int> openLog(const LaunchOptions& options, int64_t rank, int64_t attempt) {
  if (options.logDirectory.empty())
    return -1;
  const std::string path =
      fmt::format("{}/rank-{:04}.attempt-{}.log", options.logDirectory, rank, attempt);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0)
    return Error::environment("cannot write '{}': {}", path, std::strerror(errno));
  return file;
}

Status Launch::start(const LaunchOptions& options, int controlFile, int64_t attempt) {
  const std::vector<int> cpus = cpuNumbers();
  const std::vector<std::vector<int>> sets = cutCpus(cpus, options.ranks);
  if (attempt == 1 && options.ranks > static_cast<int64_t>(cpus.size()))
    tell("note: {} ranks share {} CPU{}: each runs on one thread\n", options.ranks, cpus.size(),
         cpus.size() == 1 ? "" : "s");
  for (int64_t rank = 0; rank < options.ranks; ++rank) {
    const int log = TITAN_TRY(openLog(options, rank, attempt));
    processes_.push_back(TITAN_TRY(RankProcess::start({.command = options.command,
                                                       .rank = rank,
                                                       .ranks = options.ranks,
                                                       .controlFile = controlFile,
                                                       .cpus = sets[static_cast<size_t>(rank)],
                                                       .signals = signals_.before(),
                                                       .log = log})));
    block_.slot(rank).pid = processes_.back().pid();
  }
  return {};
}

int Launch::run() {
  while (isRunning()) {
    waitForEvents();
    passSignalsOn();
    readOutput();
    reap();
    lookForDeserters();
    lookForStoppedRanks();
    endAfterFailure();
  }
  return conclude();
}

void Launch::waitForEvents() {
  std::vector<pollfd> files = {{.fd = signals_.file(), .events = POLLIN, .revents = 0}};
  for (RankProcess& process : processes_) {
    if (process.isRunning())
      files.push_back({.fd = process.pidfd(), .events = POLLIN, .revents = 0});
    for (const RankProcess::Stream& stream : process.streams())
      if (stream.file >= 0)
        files.push_back({.fd = stream.file, .events = POLLIN, .revents = 0});
  }
  poll(files.data(), files.size(), lookEvery);
}

void Launch::passSignalsOn() {
  while (const std::optional<int> signal = signals_.next()) {
    interrupts_ += *signal == SIGINT;
    wasAskedToEnd_ |= *signal != SIGUSR2;
    const int sent = interrupts_ > 1 ? SIGKILL : *signal;
    passed_[static_cast<size_t>(sent)] = passed_[static_cast<size_t>(*signal)] = true;
    for (const RankProcess& process : processes_)
      process.send(sent);
  }
}

void Launch::readOutput() {
  for (RankProcess& process : processes_)
    for (RankProcess::Stream& stream : process.streams())
      stream.read();
}

void Launch::reap() {
  for (RankProcess& process : processes_)
    if (const std::optional<int> status = process.reap(/*killGroup=*/block_.hasFailed()))
      onEnd(process, *status);
}

void Launch::onEnd(const RankProcess& process, int status) {
  const RankSlot& slot = block_.slot(process.rank());
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (passed_[static_cast<size_t>(signal)])
      return onFailedEnd(process, 128 + (interrupts_ > 1 ? SIGINT : signal), /*told=*/true,
                         fmt::format("was ended by signal {}", signal));
    if (signal == SIGPIPE)
      return onFailedEnd(process, 128 + SIGPIPE, /*told=*/false,
                         "found that nobody reads its output any more (SIGPIPE)");
    return onFailedEnd(process, static_cast<int>(ErrorCode::RunFailed), /*told=*/false,
                       fmt::format("was killed by signal {}", signal));
  }
  const int code = WEXITSTATUS(status);
  if (code != 0)
    return onFailedEnd(process, code, /*told=*/code <= lastOwnExitCode,
                       fmt::format("ended with exit code {}", code));
  if (!slot.attached)
    neverJoined_.push_back(process.rank());
  else if (!slot.finished)
    onFailedEnd(process, static_cast<int>(ErrorCode::RunFailed), /*told=*/false,
                "left with exit code 0 before the job's end");
}

/// Ends the others, unless this rank had finished: then they have, too.
void Launch::onFailedEnd(const RankProcess& process, int code, bool told, const std::string& how) {
  const int64_t rank = process.rank();
  const Failure failure = {.code = code,
                           .rank = rank,
                           .told = told,
                           .message = whoIs(block_, rank) + " " + how + inStep(block_, rank)};
  if (block_.slot(rank).finished && !block_.hasFailed()) {
    if (!told)
      tell("error: {}\n", failure.message);
    exitCode_ = exitCode_ != 0 ? exitCode_ : code;
    return;
  }
  block_.failAnyway(failure);
}

/// A program that joins nobody may end as it likes (info, --help), unless others expect it.
void Launch::lookForDeserters() {
  if (neverJoined_.empty() || block_.hasFailed())
    return;
  for (int64_t rank = 0; rank < block_.ranks(); ++rank)
    if (block_.slot(rank).attached) {
      block_.fail({.code = static_cast<int>(ErrorCode::RunFailed),
                   .rank = neverJoined_.front(),
                   .told = false,
                   .message = whoIs(block_, neverJoined_.front()) +
                              " left with exit code 0 without joining the others"});
      return;
    }
}

/// The others see it sooner, but before it joins them and after it has finished. Ranks that are all
/// stopped may go on together.
void Launch::lookForStoppedRanks() {
  const RankProcess* longest = nullptr;
  bool goesOn = false;
  for (RankProcess& process : processes_) {
    process.lookWhetherStopped();
    goesOn |= !process.stoppedSince().has_value();
    if (process.stoppedSince() && (!longest || process.stoppedSince() < longest->stoppedSince()))
      longest = &process;
  }
  if (!longest || !goesOn || Clock::now() - *longest->stoppedSince() < timeToGoOn)
    return;
  const int64_t rank = longest->rank();
  block_.fail(
      {.code = static_cast<int>(ErrorCode::RunFailed),
       .rank = rank,
       .told = false,
       .message = fmt::format("{} was stopped by a signal and has not gone on for {} s{}",
                              whoIs(block_, rank), timeToGoOn.count(), inStep(block_, rank))});
}

void Launch::endAfterFailure() {
  if (!block_.hasFailed())
    return;
  if (!killAt_)
    killAt_ = Clock::now() + timeToEnd;
  if (Clock::now() >= *killAt_)
    for (const RankProcess& process : processes_)
      process.send(SIGKILL);
}

int Launch::conclude() {
  for (RankProcess& process : processes_)
    for (RankProcess::Stream& stream : process.streams()) {
      while (stream.read())
        ;
      stream.lines.end();
    }
  const std::optional<Failure> failure = block_.failure();
  if (!failure)
    return exitCode_;
  if (!failure->told) {
    const std::string waits = whoWaits(block_, failure->rank);
    tell("error: {}{}{}\n", failure->message, waits.empty() ? "" : "; ", waits);
  }
  recordFlights();
  return failure->code;
}

void Launch::recordFlights() const {
  const std::string directory = block_.runDirectory();
  if (directory.empty())
    return;
  const Result<std::string> written = writeFlightFiles(block_, directory);
  if (written.ok())
    tell("note: what each rank did last is in {}\n", *written);
  else
    tell("note: what each rank did last is lost: {}\n", written.error().message());
}

} // namespace

namespace {

struct Attempt {
  int exitCode = 0;
  int64_t step = -1;
  bool wasAskedToEnd = false;
};

Result<Attempt> runOnce(const LaunchOptions& options, const SignalFile& signals, int64_t number) {
  const bool crowded = options.ranks > static_cast<int64_t>(cpuNumbers().size());
  const OwnedFile controlFile(TITAN_TRY(createControlFile(options.ranks, crowded)));
  const Mapping memory = TITAN_TRY(ControlBlock::map(controlFile.number, options.ranks));
  Launch launch(ControlBlock(memory), signals);
  TITAN_TRY(launch.start(options, controlFile.number, number));
  const int exitCode = launch.run();
  return Attempt{exitCode, launch.step(), launch.wasAskedToEnd()};
}

std::string inStep(int64_t step) {
  return step < 0 ? "before the first step" : fmt::format("in step {}", step);
}

} // namespace

Result<int> launch(const LaunchOptions& options) {
  if (options.ranks < 1 || options.ranks > maxRanks)
    return Error::usage("{} ranks: use 1 to {}", options.ranks, maxRanks);
  if (options.restarts < 0)
    return Error::usage("{} restarts: use 0 or more", options.restarts);
  if (!options.logDirectory.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.logDirectory, error);
    if (error)
      return Error::environment("cannot create '{}': {}", options.logDirectory, error.message());
  }
  const SignalFile signals;
  std::optional<int64_t> failedIn;
  for (int64_t number = 1;; ++number) {
    const Attempt attempt = TITAN_TRY(runOnce(options, signals, number));
    if (attempt.exitCode != static_cast<int>(ErrorCode::RunFailed) || number > options.restarts ||
        attempt.wasAskedToEnd)
      return attempt.exitCode;
    // A rank alone does not say in which step it is.
    if (options.ranks > 1 && failedIn == attempt.step) {
      tell("note: not started again: it has failed {} twice\n", inStep(attempt.step));
      return attempt.exitCode;
    }
    failedIn = attempt.step;
    tell("note: restart {} of {}, after a failure {}\n", number, options.restarts,
         inStep(attempt.step));
  }
}

} // namespace titan::launch
