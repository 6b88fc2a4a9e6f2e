#include "runtime/launch/RankProcess.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace titan::launch {
namespace {

/// Two ends of a pipe, closed over exec and when destroyed.
struct Pipe {
  int read = -1, write = -1;

  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    closeEnd(read);
    closeEnd(write);
  }
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  static void closeEnd(int& end) {
    if (end >= 0)
      close(std::exchange(end, -1));
  }
};

constexpr std::string_view ownVariables[] = {
    "TITAN_RANK=", "TITAN_RANKS=", "TITAN_LOCAL_RANK=", "TITAN_LOCAL_RANKS=", "TITAN_CONTROL_FD="};

/// The caller's environment, with what Ranks.h reads.
std::vector<std::string> environmentOf(const RankStart& how) {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable; ++variable) {
    bool isOwn = false;
    for (std::string_view own : ownVariables)
      isOwn |= std::string_view(*variable).starts_with(own);
    if (!isOwn)
      environment.emplace_back(*variable);
  }
  const int64_t values[] = {how.rank, how.ranks, how.rank, how.ranks, how.controlFile};
  for (size_t i = 0; i < std::size(ownVariables); ++i)
    environment.push_back(fmt::format("{}{}", ownVariables[i], values[i]));
  return environment;
}

std::vector<char*> pointersTo(std::span<const std::string> texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts)
    pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// Everything that the new process does before it becomes the program; no memory is allocated.
/// Returns errno.
int becomeRank(const RankStart& how, pid_t launcher, const Pipe& out, const Pipe& err,
               char* const* arguments, char* const* environment) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher)
    _exit(0); // it died before the line above: nobody waits for us
  if (!how.cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu : how.cpus)
      CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  // A process in the background must not read the terminal.
  if (how.rank != 0 || isatty(STDIN_FILENO)) {
    const int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0)
      return errno;
    close(null);
  }
  if (out.write >= 0 && (dup2(out.write, STDOUT_FILENO) < 0 || dup2(err.write, STDERR_FILENO) < 0))
    return errno;
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &how.signals, nullptr);
  execvpe(arguments[0], arguments, environment);
  return errno;
}

} // namespace

bool RankProcess::Stream::read() {
  if (file < 0)
    return false;
  char bytes[1 << 16];
  const ssize_t size = ::read(file, bytes, sizeof bytes);
  if (size > 0) {
    const std::string_view text(bytes, static_cast<size_t>(size));
    lines.take(text);
    if (log >= 0)
      writeAll(log, text);
    return true;
  }
  if (size < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  lines.end();
  close(std::exchange(file, -1));
  return false;
}

Result<RankProcess> RankProcess::start(const RankStart& how) {
  const auto failed = [&](int code) {
    return Error::environment("cannot start rank {}: {}: {}", how.rank, how.command[0],
                              std::strerror(code));
  };
  const std::vector<std::string> environment = environmentOf(how);
  const std::vector<char*> arguments = pointersTo(how.command);
  const std::vector<char*> variables = pointersTo(environment);
  RankProcess process;
  process.rank_ = how.rank;
  process.log_ = how.log;
  const bool isRead = how.rank != 0 || how.log >= 0;
  Pipe failure, out, err;
  if (!failure.open() || (isRead && (!out.open() || !err.open())))
    return failed(errno);
  const pid_t launcher = getpid(), pid = fork();
  if (pid < 0)
    return failed(errno);
  if (pid == 0) {
    const int code = becomeRank(how, launcher, out, err, arguments.data(), variables.data());
    [[maybe_unused]] const ssize_t told = write(failure.write, &code, sizeof code);
    _exit(127);
  }
  setpgid(pid, pid); // whoever of the two comes first
  process.pid_ = pid;
  process.isRunning_ = true;
  process.pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (process.pidfd_ < 0)
    return failed(errno);
  // The write end closes when the program runs.
  Pipe::closeEnd(failure.write);
  int code = 0;
  ssize_t size;
  do
    size = ::read(failure.read, &code, sizeof code);
  while (size < 0 && errno == EINTR);
  if (size == sizeof code)
    return failed(code);
  if (isRead) {
    const std::string prefix = how.rank == 0 ? "" : fmt::format("rank {}: ", how.rank);
    for (auto [pipe, target] : {std::pair(&out, STDOUT_FILENO), std::pair(&err, STDERR_FILENO)}) {
      fcntl(pipe->read, F_SETFL, O_NONBLOCK);
      process.streams_.push_back(
          {std::exchange(pipe->read, -1), OutputLines(prefix, target), how.log});
    }
  }
  return process;
}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : rank_(other.rank_), pid_(other.pid_), pidfd_(std::exchange(other.pidfd_, -1)),
      isRunning_(std::exchange(other.isRunning_, false)), stoppedSince_(other.stoppedSince_),
      log_(std::exchange(other.log_, -1)), streams_(std::move(other.streams_)) {
  other.streams_.clear();
}

RankProcess::~RankProcess() {
  if (isRunning_) {
    send(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (pidfd_ >= 0)
    close(pidfd_);
  for (Stream& stream : streams_)
    if (stream.file >= 0)
      close(stream.file);
  if (log_ >= 0)
    close(log_);
}

void RankProcess::send(int signal) const {
  if (isRunning_)
    kill(-pid_, signal);
}

void RankProcess::lookWhetherStopped() {
  siginfo_t changed = {};
  while (isRunning_ &&
         waitid(P_PID, static_cast<id_t>(pid_), &changed, WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
         changed.si_pid != 0) {
    if (changed.si_code == CLD_CONTINUED)
      stoppedSince_.reset();
    else if (!stoppedSince_)
      stoppedSince_ = std::chrono::steady_clock::now();
    changed = {};
  }
  if (!isRunning_)
    stoppedSince_.reset();
}

std::optional<int> RankProcess::reap(bool killGroup) {
  siginfo_t ended = {};
  if (!isRunning_ ||
      waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      ended.si_pid == 0)
    return std::nullopt;
  // Its number is not given to another process before we have waited for it.
  if (killGroup)
    kill(-pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  isRunning_ = false;
  return status;
}

} // namespace titan::launch
