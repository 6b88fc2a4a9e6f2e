// A small job for the launcher's tests: rank-helper COMMAND [WHERE] [HOW].
//
//   show                  what the launcher gave this rank
//   well                  some steps on all ranks; exit code 0
//   serve                 steps until a signal comes to any rank, then all leave together
//   lose WHERE HOW        steps; in step 3 rank 1 ends by HOW while the others wait at WHERE
//   wait                  tells the ranks' processes, then rank 0 waits and rank 1 sleeps
//
// WHERE: collective, exchange, broadcast. HOW: kill, stop, hang, busy, exit0, exit3, segv, fail.
#include "runtime/host/ThreadPool.h"
#include "runtime/launch/Ranks.h"
#include "runtime/program/Process.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace titan {
namespace {

const Collective sumOfSteps{
    CollectiveKind::AllReduce, SumOrder::Rank, {0}, {{DType::I64, 1, 2}}, "0, 2"};
constexpr size_t stagingBytes = 4096;

std::atomic<int> signalled{0};

class HelperRank {
public:
  explicit HelperRank(Communicator& communicator) : communicator_(communicator) {
    staging_ = static_cast<char*>(
        mmap(nullptr, stagingBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }

  Status prepare() {
    const std::vector<MeshAxis> mesh = {{"replicate", communicator_.ranks()}};
    TITAN_TRY(communicator_.setCollectives({&sumOfSteps, 1}, mesh));
    return communicator_.shareStaging({staging_, stagingBytes});
  }

  /// The sums of both numbers over the ranks.
  Status sum(int64_t first, int64_t second) {
    const int64_t mine[] = {first, second};
    std::memcpy(staging_, mine, sizeof mine);
    char* const in = staging_;
    char* const out = reinterpret_cast<char*>(sums);
    Communicator::Ticket ticket;
    TITAN_TRY(communicator_.start(0, {&in, 1}, {&out, 1}, ticket));
    return communicator_.wait(ticket);
  }

  Status at(std::string_view where) {
    std::vector<std::string> all;
    char bytes[64] = {};
    if (where == "exchange")
      return communicator_.exchange("agreement", "text", all);
    if (where == "broadcast")
      return communicator_.broadcast("weights", 1, bytes);
    return sum(1, 0);
  }

  int64_t sums[2] = {};

private:
  Communicator& communicator_;
  char* staging_;
};

Status endBy(Communicator& communicator, std::string_view how) {
  if (how == "kill")
    raise(SIGKILL);
  if (how == "stop")
    raise(SIGSTOP);
  if (how == "hang") // its heart beats on
    for (;;)
      pause();
  if (how == "busy") { // for longer than others wait for a rank that stands still
    for (int i = 0; i < 40; ++i) {
      usleep(100000);
      noteProgress();
    }
    return {};
  }
  if (how == "segv") {
    std::signal(SIGSEGV, SIG_DFL); // a sanitizer's handler ends by exit
    raise(SIGSEGV);
  }
  if (how == "exit0")
    _exit(0);
  if (how == "exit3")
    _exit(3);
  return Error::environment("the disk is full");
}

Status run(Communicator& communicator, const std::vector<std::string>& arguments) {
  if (const char* directory = std::getenv("RANK_HELPER_DIRECTORY"))
    communicator.setRunDirectory(directory);
  HelperRank rank(communicator);
  TITAN_TRY(rank.prepare());
  std::vector<std::string> all;
  if (arguments[0] == "wait") {
    TITAN_TRY(communicator.exchange("processes", std::to_string(getpid()), all));
    if (communicator.rank() == 0) {
      fmt::print("{} {}\n", all[0], all[1]);
      std::fflush(stdout);
    } else {
      pause();
    }
    return communicator.exchange("agreement", "", all);
  }
  for (int64_t step = 1; step <= 10 || arguments[0] == "serve"; ++step) {
    communicator.setStep(step);
    if (arguments[0] == "lose" && step == 3 && communicator.rank() == 1)
      TITAN_TRY(endBy(communicator, arguments[2]));
    TITAN_TRY(rank.at(arguments.size() > 1 ? arguments[1] : "collective"));
    TITAN_TRY(rank.sum(step, signalled));
    if (rank.sums[0] != step * communicator.ranks())
      return Error::internal("the sum of {} is {}", step, rank.sums[0]);
    if (step == 1 && communicator.rank() == 0) {
      fmt::print("running\n");
      std::fflush(stdout);
    }
    if (rank.sums[1] != 0)
      break;
  }
  // The sum may tell of another rank's signal before the own one has come.
  while (arguments[0] == "serve" && signalled == 0)
    usleep(1000);
  fmt::print("sum {}, signal {}\n", rank.sums[0] > 0, signalled.load());
  return communicator.finish();
}

std::string cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::string text;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set))
      text += fmt::format(" {}", cpu);
  return text;
}

/// Those of a job, but where a test waits for them.
WaitLimits limitsOf(const std::vector<std::string>& arguments) {
  const bool isTested = arguments.back() == "hang" || arguments.back() == "busy";
  return isTested ? WaitLimits{.warnAfter = 1, .killAfter = 2} : WaitLimits();
}

int runHelper(const std::vector<std::string>& arguments) {
  const rlimit noCores = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
  setrlimit(RLIMIT_CORE, &noCores);
  Result<launch::RankInfo> info = launch::detectRank();
  if (info.ok() && arguments[0] == "show") {
    fmt::print("rank {} of {}, local {} of {}, group {}, cpus{}\n", info->rank, info->ranks,
               info->localRank, info->localRanks, getpgrp() == getpid() ? "own" : "other", cpus());
    return 0;
  }
  std::signal(SIGTERM, [](int signal) { signalled = signal; });
  std::signal(SIGINT, [](int signal) { signalled = signal; });
  auto pool = ThreadPool::create(1).take();
  Result<std::unique_ptr<Communicator>> communicator =
      info.ok() ? launch::connect(*info, {.pool = pool.get(), .limits = limitsOf(arguments)})
                : info.takeError();
  Status status =
      communicator.ok() ? run(**communicator, arguments) : Status(communicator.takeError());
  if (status.ok())
    return 0;
  const bool isOurs = !communicator.ok() || !(*communicator)->peerFailed();
  tell("{}: {}\n", isOurs ? "error" : "saw", status.error().message());
  if (isOurs && communicator.ok())
    (*communicator)->fail(status.error());
  return status.error().exitCode();
}

} // namespace
} // namespace titan

int main(int argc, char** argv) { return titan::runHelper({argv + 1, argv + argc}); }
