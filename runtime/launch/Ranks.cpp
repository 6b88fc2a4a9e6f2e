#include "runtime/launch/Ranks.h"

#include "runtime/collective/Null.h"
#include "runtime/collective/SharedMemory.h"
#include "runtime/collective/mpi/Library.h"
#include "runtime/collective/mpi/MpiCommunicator.h"
#include "runtime/host/ThreadPool.h"
#include "runtime/launch/FlightFiles.h"
#include "runtime/program/Process.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace titan::launch {
namespace {

/// The value of a variable that is a number; nothing where it is not set.
Result<std::optional<int64_t>> numberOf(const char* variable) {
  const char* value = std::getenv(variable);
  if (!value)
    return std::optional<int64_t>();
  const std::string_view text = value;
  int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size() || number < 0)
    return Error::usage("{} = '{}' is not a number: unset it, or start the job with titan-run",
                        variable, text);
  return std::optional(number);
}

/// The values of two variables that say which one of how many. Both are set, or the first is not.
Status readPair(const char* which, const char* ofHowMany, int64_t& rank, int64_t& ranks) {
  const std::optional<int64_t> one = TITAN_TRY(numberOf(which));
  const std::optional<int64_t> all = TITAN_TRY(numberOf(ofHowMany));
  if (!one || !all)
    return Error::usage("{} is not set, {} is: start the job with titan-run",
                        one ? ofHowMany : which, one ? which : ofHowMany);
  if (*one >= *all)
    return Error::usage("{} = {} is not below {} = {}", which, *one, ofHowMany, *all);
  rank = *one;
  ranks = *all;
  return {};
}

Result<CommDelay> delayOfEnvironment() {
  const char* delay = std::getenv("TITAN_COMM_DELAY");
  return delay ? parseCommDelay(delay) : CommDelay();
}

bool isSet(const char* variable) { return std::getenv(variable) != nullptr; }

Result<RankInfo> ofTitanRun() {
  RankInfo info{.starter = Starter::TitanRun};
  TITAN_TRY(readPair("TITAN_RANK", "TITAN_RANKS", info.rank, info.ranks));
  TITAN_TRY(readPair("TITAN_LOCAL_RANK", "TITAN_LOCAL_RANKS", info.localRank, info.localRanks));
  if (info.localRanks > info.ranks)
    return Error::usage("TITAN_LOCAL_RANKS = {} is above TITAN_RANKS = {}", info.localRanks,
                        info.ranks);
  if (const std::optional<int64_t> file = TITAN_TRY(numberOf("TITAN_CONTROL_FD")))
    info.controlFd = static_cast<int>(*file);
  return info;
}

Result<RankInfo> ofOpenMpi() {
  RankInfo info{.starter = Starter::OpenMpi};
  TITAN_TRY(readPair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", info.rank, info.ranks));
  TITAN_TRY(readPair("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", info.localRank,
                     info.localRanks));
  return info;
}

Result<RankInfo> ofPmi() {
  RankInfo info{.starter = Starter::Pmi};
  TITAN_TRY(readPair("PMI_RANK", "PMI_SIZE", info.rank, info.ranks));
  if (isSet("MPI_LOCALRANKID"))
    TITAN_TRY(readPair("MPI_LOCALRANKID", "MPI_LOCALNRANKS", info.localRank, info.localRanks));
  return info;
}

Result<RankInfo> ofPmix() {
  RankInfo info{.starter = Starter::Pmix};
  if (!isSet("SLURM_STEP_NUM_TASKS"))
    return Error::environment("PMIX_RANK is set, and nothing says how many ranks there are: start "
                              "the job with mpirun or srun --mpi=pmix");
  TITAN_TRY(readPair("PMIX_RANK", "SLURM_STEP_NUM_TASKS", info.rank, info.ranks));
  return info;
}

/// Tasks of srun that know nothing of each other.
Result<RankInfo> ofSlurm() {
  RankInfo info;
  if (!isSet("SLURM_STEP_NUM_TASKS"))
    return info;
  TITAN_TRY(readPair("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", info.rank, info.ranks));
  if (info.ranks > 1)
    return Error::environment("srun started {} tasks without a PMI, so each would run alone: use "
                              "srun --mpi=pmix or --mpi=pmi2",
                              info.ranks);
  return info;
}

/// CPUs that this process or its parent, the launcher's own on this host, may use.
int cpusOfHost() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int parents = sched_getaffinity(getppid(), sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  return std::max(parents, allowedCpus());
}

std::string launcherOf(Starter starter) {
  switch (starter) {
  case Starter::OpenMpi:
    return "Open MPI's mpirun";
  case Starter::Pmi:
    return isSet("SLURM_STEP_ID") ? "srun --mpi=pmi2" : "MPICH's mpirun";
  default:
    return "srun --mpi=pmix";
  }
}

Result<MpiKind> chooseMpi(Starter starter) {
  if (const char* name = std::getenv("TITAN_MPI")) {
    if (const std::optional<MpiKind> kind = mpiOfName(name))
      return *kind;
    return Error::usage("TITAN_MPI = '{}' is unknown: use openmpi or mpich", name);
  }
  return starter == Starter::Pmi ? MpiKind::Mpich : MpiKind::OpenMpi;
}

void recordFlights(const ControlBlock& block, int64_t rank, bool tells) {
  const std::string directory = block.runDirectory();
  if (directory.empty())
    return;
  const Result<std::string> written = writeFlightFile(block, rank, directory);
  if (written.ok() && tells)
    tell("note: what each rank did last is in {}\n", *written);
  if (!written.ok())
    tell("note: what rank {} did last is lost: {}\n", rank, written.error().message());
}

Result<std::unique_ptr<Communicator>> connectByMpi(const RankInfo& info,
                                                   const ConnectOptions& options) {
  const MpiKind kind = TITAN_TRY(chooseMpi(info.starter));
  MpiOptions mpi;
  mpi.shim = TITAN_TRY(loadMpi(kind));
  mpi.library = nameOf(kind);
  mpi.launcher = launcherOf(info.starter);
  mpi.rank = info.rank;
  mpi.ranks = info.ranks;
  mpi.isCrowded = info.localRanks > cpusOfHost();
  mpi.record = [rank = info.rank](const ControlBlock& block, bool tells) {
    recordFlights(block, rank, tells);
  };
  mpi.end = [](int code) { _exit(code); };
  return connectMpi(mpi, options);
}

} // namespace

Result<RankInfo> detectRank() {
  if (isSet("TITAN_RANK") || isSet("TITAN_RANKS"))
    return ofTitanRun();
  if (isSet("OMPI_COMM_WORLD_RANK"))
    return ofOpenMpi();
  if (isSet("PMI_RANK"))
    return ofPmi();
  if (isSet("PMIX_RANK"))
    return ofPmix();
  if (isSet("SLURM_STEP_ID") && isSet("SLURM_PROCID"))
    return ofSlurm();
  return RankInfo();
}

int defaultThreads(const RankInfo& info) {
  if (info.isAlone() || info.starter == Starter::TitanRun)
    return allowedCpus();
  const auto each = static_cast<int>(cpusOfHost() / info.localRanks);
  return std::clamp(each, 1, allowedCpus());
}

Result<std::unique_ptr<Communicator>> connect(const RankInfo& info, const ConnectOptions& options) {
  if (info.isAlone())
    return connectNull(0, 1);
  ConnectOptions with = options;
  with.delay = TITAN_TRY(delayOfEnvironment());
  if (info.starter != Starter::TitanRun)
    return connectByMpi(info, with);
  if (info.localRanks != info.ranks)
    return Error::environment("{} of {} ranks are on this host: start ranks of several hosts with "
                              "mpirun or srun",
                              info.localRanks, info.ranks);
  if (info.controlFd < 0)
    return Error::environment(
        "TITAN_RANKS = {}, and TITAN_CONTROL_FD is not set: start the job with "
        "titan-run -n {}",
        info.ranks, info.ranks);
  // Programs that this process starts are no ranks.
  fcntl(info.controlFd, F_SETFD, FD_CLOEXEC);
  return connectSharedMemory(info.controlFd, info.rank, info.ranks, with);
}

Result<std::unique_ptr<Communicator>> connectWithoutPeers(int64_t rank, int64_t ranks) {
  return connectNull(rank, ranks, TITAN_TRY(delayOfEnvironment()));
}

} // namespace titan::launch
