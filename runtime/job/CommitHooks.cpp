#include "runtime/job/CommitHooks.h"

#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/program/File.h"
#include "runtime/program/Process.h"
#include "runtime/program/Text.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace titan {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = checkpoint::HookState::Kind;

/// Turns of a hook that fails.
constexpr int64_t mostFailures = 2;
/// Between SIGTERM and SIGKILL.
constexpr std::chrono::seconds grace{2};
constexpr std::chrono::milliseconds pollInterval{20};

/// Has the process ended? It stays a zombie, so that its number remains its group's.
bool hasEnded(pid_t process) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == process;
}

bool endsBy(pid_t process, Clock::time_point deadline) {
  while (!hasEnded(process)) {
    if (Clock::now() >= deadline)
      return false;
    noteProgress(); // of the run: who waits does not stand still
    std::this_thread::sleep_for(pollInterval);
  }
  return true;
}

/// Of wait(2)
int statusOf(pid_t process) {
  int status = 0;
  (void)retryInterrupted([&] { return ::waitpid(process, &status, 0); });
  return status;
}

class SpawnSettings {
public:
  explicit SpawnSettings(int output) {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                                                POSIX_SPAWN_SETSIGMASK);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    sigset_t signals;
    ::sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes, &signals);
    // What the run ignores would stay ignored.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGUSR1})
      ::sigaddset(&signals, signal);
    ::posix_spawnattr_setsigdefault(&attributes, &signals);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

Result<pid_t> startShell(const std::string& command, int output) {
  const SpawnSettings settings(output);
  std::string text = command;
  char shell[] = "sh", option[] = "-c";
  char* arguments[] = {shell, option, text.data(), nullptr};
  pid_t process = 0;
  if (const int error = ::posix_spawn(&process, "/bin/sh", &settings.actions, &settings.attributes,
                                      arguments, environ);
      error != 0)
    return Error::environment("cannot start /bin/sh: {}", std::strerror(error));
  return process;
}

/// A process whose output goes to the end of `log`, behind a line that says which it is.
Result<pid_t> startLogged(const std::string& command, const std::string& log) {
  const Descriptor file(retryInterrupted(
      [&] { return ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666); }));
  if (file.get() < 0 || !writeAll(file, fmt::format("$ {}\n", command)))
    return Error::environment("cannot write '{}': {}", log, std::strerror(errno));
  return startShell(command, file.get());
}

/// "exit status 3", "signal 9"
std::string describe(int waitStatus) {
  return WIFSIGNALED(waitStatus) ? fmt::format("signal {}", WTERMSIG(waitStatus))
                                 : fmt::format("exit status {}", WEXITSTATUS(waitStatus));
}

/// The word that sh looks up; empty where more than its words has to be read to find it.
std::string commandWord(const std::string& command) {
  constexpr std::string_view blanks = " \t\n";
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789_./+-";
  const size_t begin = std::min(command.find_first_not_of(blanks), command.size());
  const size_t end = std::min(command.find_first_of(" \t\n;&|<>", begin), command.size());
  const std::string word = command.substr(begin, end - begin);
  return word.find_first_not_of(plain) == std::string::npos ? word : "";
}

bool isFoundByShell(const std::string& word) {
  if (word.find('/') != std::string::npos)
    return ::access(word.c_str(), X_OK) == 0;
  const Descriptor null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  const Result<pid_t> process = startShell("command -v " + word, null.get());
  return process.ok() && statusOf(*process) == 0;
}

} // namespace

Status CommitHooks::check(const std::string& command, const Tell& tell) {
  const std::string word = commandWord(command);
  if (word.empty()) {
    tell(fmt::format("checkpoint.on_commit = \"{}\": whether its command is there shows at the "
                     "first commit",
                     command));
    return {};
  }
  if (!isFoundByShell(word))
    return Error::environment("checkpoint.on_commit: sh finds no command '{}': install it, give "
                              "its path, or leave the key out",
                              word);
  return {};
}

std::string CommitHooks::commandFor(const std::string& command, int64_t step,
                                    const std::string& path) {
  const std::pair<std::string_view, std::string> values[] = {
      {"{path}", shellQuoted(std::filesystem::absolute(path).lexically_normal().string())},
      {"{name}", shellQuoted(checkpoint::stepName(step))},
      {"{step}", std::to_string(step)}};
  std::string text;
  for (size_t at = 0; at < command.size();) {
    const std::string_view rest = std::string_view(command).substr(at);
    const auto* found = std::ranges::find_if(
        values, [&](const auto& value) { return rest.starts_with(value.first); });
    const bool isValue = found != std::end(values);
    text += isValue ? found->second : std::string(1, command[at]);
    at += isValue ? found->first.size() : 1;
  }
  return text;
}

void CommitHooks::committed(int64_t step, const std::string& path, bool isForGood) {
  look();
  std::erase_if(waiting_, [&](const Hook& hook) {
    const bool givesWay = !hook.isForGood && hook.failures == 0;
    if (givesWay) {
      record(hook, Kind::LeftOut);
      tell_(fmt::format("checkpoint.on_commit is left out for step {}: step {} was committed while "
                        "it waited for step {}",
                        hook.step, step, running_ ? running_->step : step));
    }
    return givesWay;
  });
  for (Hook& hook : waiting_)
    hook.isReady = true;
  waiting_.push_back({step, path, isForGood});
  startNext();
  if (!waiting_.empty() && waiting_.back().step == step && waiting_.back().failures == 0)
    record(waiting_.back(), Kind::Waiting);
}

std::set<int64_t> CommitHooks::inUse() const {
  std::set<int64_t> steps;
  for (const Hook& hook : waiting_)
    steps.insert(hook.step);
  if (running_)
    steps.insert(running_->step);
  return steps;
}

void CommitHooks::look() {
  if (running_ && hasEnded(running_->process))
    ended(statusOf(running_->process));
  startNext();
}

void CommitHooks::startNext() {
  while (!running_) {
    const auto next = std::ranges::find_if(waiting_, &Hook::isReady);
    if (next == waiting_.end())
      return;
    Hook hook = std::move(*next);
    waiting_.erase(next);
    const Result<pid_t> process = startLogged(commandFor(command_, hook.step, hook.path),
                                              checkpoint::joinPath(directory_, logName));
    if (!process.ok()) {
      failed(std::move(hook), process.error().message());
      continue;
    }
    hook.process = *process;
    running_ = std::move(hook);
    record(*running_, Kind::Running);
  }
}

void CommitHooks::ended(int waitStatus) {
  Hook hook = std::move(*running_);
  running_.reset();
  if (waitStatus != 0)
    failed(std::move(hook), describe(waitStatus));
  else
    record(hook, Kind::Done);
}

void CommitHooks::record(const Hook& hook, Kind kind, const std::string& how) {
  const std::string path = checkpoint::hookStatesPath(directory_);
  const Descriptor file(retryInterrupted(
      [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666); }));
  const std::string line = checkpoint::hookLine(hook.step, {kind, how, checkpoint::describeSelf()});
  if ((file.get() < 0 || !writeAll(file, line)) && !std::exchange(isUnrecordedTold_, true))
    tell_(fmt::format("titan-ckpt list does not see what becomes of checkpoint.on_commit: cannot "
                      "write '{}': {}",
                      path, std::strerror(errno)));
}

void CommitHooks::failed(Hook hook, const std::string& how) {
  ++hook.failures;
  record(hook, Kind::Failed, how);
  const bool isTriedAgain = !isFinishing_ && (hook.isForGood || hook.failures < mostFailures);
  tell_(
      fmt::format("checkpoint.on_commit failed for step {}: {} ({}); {}", hook.step, how,
                  checkpoint::joinPath(directory_, logName),
                  isTriedAgain ? "it is tried again at the next commit" : "it is not tried again"));
  if (!isTriedAgain)
    return;
  hook.isReady = false;
  const auto behind =
      std::ranges::find_if(waiting_, [&](const Hook& other) { return other.step > hook.step; });
  waiting_.insert(behind, std::move(hook));
}

void CommitHooks::finish(std::chrono::seconds timeout) {
  look();
  isFinishing_ = true;
  for (; running_; look())
    endRunning(timeout);
  for (const Hook& hook : waiting_)
    tell_(fmt::format("checkpoint.on_commit has failed for step {} and is not tried again: no "
                      "commit follows",
                      hook.step));
  waiting_.clear();
}

void CommitHooks::endRunning(std::chrono::seconds timeout) {
  const pid_t process = running_->process;
  constexpr std::chrono::milliseconds silent{500};
  const Clock::time_point start = Clock::now();
  if (endsBy(process, start + std::min<Clock::duration>(silent, timeout)))
    return;
  tell_(fmt::format("waiting up to {} s for checkpoint.on_commit of step {}", timeout.count(),
                    running_->step));
  if (endsBy(process, start + timeout))
    return;
  ::kill(-process, SIGTERM);
  (void)endsBy(process, Clock::now() + grace);
  ::kill(-process, SIGKILL);
  (void)statusOf(process);
  record(*running_, Kind::Failed, fmt::format("took longer than {} s", timeout.count()));
  tell_(fmt::format("checkpoint.on_commit of step {} was ended: it took longer than {} s, "
                    "checkpoint.hook_timeout",
                    running_->step, timeout.count()));
  running_.reset();
}

} // namespace titan
