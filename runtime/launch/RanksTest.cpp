#include "runtime/launch/Ranks.h"

#include "runtime/collective/SharedMemory.h"
#include "runtime/host/ThreadPool.h"
#include "runtime/launch/Cpus.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include <unistd.h>

namespace titan::launch {
namespace {

/// The variables that a launcher sets, for the time of a test.
class Environment : public ::testing::Test {
protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

  static void clear() {
    for (const char* variable :
         {"TITAN_RANK", "TITAN_RANKS", "TITAN_LOCAL_RANK", "TITAN_LOCAL_RANKS", "TITAN_CONTROL_FD",
          "TITAN_MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
          "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
          "MPI_LOCALNRANKS", "PMIX_RANK", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"})
      unsetenv(variable);
  }
  static void set(const char* rank, const char* ranks, const char* localRank,
                  const char* localRanks) {
    setenv("TITAN_RANK", rank, 1);
    setenv("TITAN_RANKS", ranks, 1);
    setenv("TITAN_LOCAL_RANK", localRank, 1);
    setenv("TITAN_LOCAL_RANKS", localRanks, 1);
  }
  static std::string error() {
    const Result<RankInfo> info = detectRank();
    if (info.ok())
      return "none";
    EXPECT_EQ(info.error().code(), ErrorCode::Usage);
    return info.error().message();
  }
};

TEST_F(Environment, WithoutVariablesThereIsOneRank) {
  const RankInfo info = detectRank().take();
  EXPECT_TRUE(info.isAlone());
  auto communicator = connect(info, {}).take();
  EXPECT_EQ(communicator->ranks(), 1);
  std::vector<std::string> all;
  EXPECT_TRUE(communicator->exchange("agreement", "mine", all).ok());
  EXPECT_EQ(all, std::vector<std::string>{"mine"});
}

TEST_F(Environment, SaysWhichRankThisIs) {
  set("5", "8", "1", "4");
  setenv("TITAN_CONTROL_FD", "7", 1);
  const RankInfo info = detectRank().take();
  EXPECT_EQ(info.rank, 5);
  EXPECT_EQ(info.ranks, 8);
  EXPECT_EQ(info.localRank, 1);
  EXPECT_EQ(info.localRanks, 4);
  EXPECT_EQ(info.controlFd, 7);
}

TEST_F(Environment, NamesTheVariableThatIsWrong) {
  set("1x", "2", "1", "2");
  EXPECT_EQ(error(),
            "TITAN_RANK = '1x' is not a number: unset it, or start the job with titan-run");
  set("1", "", "1", "2");
  EXPECT_EQ(error(), "TITAN_RANKS = '' is not a number: unset it, or start the job with titan-run");
  set("2", "2", "0", "2");
  EXPECT_EQ(error(), "TITAN_RANK = 2 is not below TITAN_RANKS = 2");
  set("0", "2", "0", "3");
  EXPECT_EQ(error(), "TITAN_LOCAL_RANKS = 3 is above TITAN_RANKS = 2");
  unsetenv("TITAN_LOCAL_RANK");
  EXPECT_EQ(error(),
            "TITAN_LOCAL_RANK is not set, TITAN_LOCAL_RANKS is: start the job with titan-run");
  unsetenv("TITAN_RANKS");
  EXPECT_EQ(error(), "TITAN_RANKS is not set, TITAN_RANK is: start the job with titan-run");
}

TEST_F(Environment, RanksWithoutALauncherCannotMeet) {
  set("0", "2", "0", "2");
  const RankInfo alone = detectRank().take();
  EXPECT_EQ(connect(alone, {}).error().message(),
            "TITAN_RANKS = 2, and TITAN_CONTROL_FD is not set: start the job with titan-run -n 2");
  set("0", "4", "0", "2");
  EXPECT_EQ(connect(detectRank().take(), {}).error().message(),
            "2 of 4 ranks are on this host: start ranks of several hosts with mpirun or srun");
}

TEST_F(Environment, KnowsOtherLaunchers) {
  setenv("SLURM_STEP_ID", "0", 1);
  setenv("SLURM_PROCID", "0", 1);
  EXPECT_TRUE(detectRank().take().isAlone());
  setenv("SLURM_STEP_NUM_TASKS", "1", 1);
  EXPECT_TRUE(detectRank().take().isAlone());
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  EXPECT_EQ(detectRank().error().exitCode(), 3);
  EXPECT_EQ(detectRank().error().message(), "srun started 4 tasks without a PMI, so each would run "
                                            "alone: use srun --mpi=pmix or --mpi=pmi2");
  setenv("PMIX_RANK", "3", 1);
  RankInfo info = detectRank().take();
  EXPECT_EQ(info.starter, Starter::Pmix);
  EXPECT_EQ(info.rank, 3);
  EXPECT_EQ(info.ranks, 4);
  unsetenv("SLURM_STEP_NUM_TASKS");
  EXPECT_EQ(detectRank().error().exitCode(), 3);
  EXPECT_EQ(detectRank().error().message(), "PMIX_RANK is set, and nothing says how many ranks "
                                            "there are: start the job with mpirun or srun "
                                            "--mpi=pmix");
  setenv("PMI_RANK", "1", 1);
  EXPECT_EQ(error(), "PMI_SIZE is not set, PMI_RANK is: start the job with titan-run");
  setenv("PMI_SIZE", "3", 1);
  setenv("MPI_LOCALRANKID", "0", 1);
  setenv("MPI_LOCALNRANKS", "2", 1);
  info = detectRank().take();
  EXPECT_EQ(info.starter, Starter::Pmi);
  EXPECT_EQ(info.rank, 1);
  EXPECT_EQ(info.ranks, 3);
  EXPECT_EQ(info.localRanks, 2);
  setenv("OMPI_COMM_WORLD_RANK", "5", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "6", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
  info = detectRank().take();
  EXPECT_EQ(info.starter, Starter::OpenMpi);
  EXPECT_EQ(info.rank, 5);
  EXPECT_EQ(info.localRank, 1);
  set("0", "2", "0", "2");
  EXPECT_EQ(detectRank().take().starter, Starter::TitanRun);
}

TEST_F(Environment, RanksOfMpirunShareTheCpusOfTheHost) {
  EXPECT_EQ(defaultThreads(RankInfo()), allowedCpus());
  const RankInfo many = {
      .starter = Starter::OpenMpi, .rank = 0, .ranks = 4096, .localRank = 0, .localRanks = 4096};
  EXPECT_EQ(defaultThreads(many), 1);
}

TEST_F(Environment, RefusesAnMpiThatIsNone) {
  setenv("TITAN_MPI", "intel", 1);
  const auto connected = connect({.starter = Starter::OpenMpi, .rank = 0, .ranks = 2}, {});
  EXPECT_EQ(connected.error().exitCode(), 2);
  EXPECT_EQ(connected.error().message(), "TITAN_MPI = 'intel' is unknown: use openmpi or mpich");
}

TEST_F(Environment, RefusesADelayThatIsNone) {
  setenv("TITAN_COMM_DELAY", "50", 1);
  const int file = createControlFile(2, false).take();
  set("0", "2", "0", "2");
  setenv("TITAN_CONTROL_FD", std::to_string(file).c_str(), 1);
  const std::string message = "TITAN_COMM_DELAY = '50' is no latency and rate: write 50us,2GB/s";
  EXPECT_EQ(connect(detectRank().take(), {}).error().message(), message);
  EXPECT_EQ(connectWithoutPeers(0, 2).error().message(), message);
  setenv("TITAN_COMM_DELAY", "50us,2GB/s", 1);
  EXPECT_TRUE(connect(detectRank().take(), {}).ok());
  EXPECT_EQ(connectWithoutPeers(1, 2).take()->rank(), 1);
  unsetenv("TITAN_COMM_DELAY");
  close(file);
}

TEST(Cpus, AreCutIntoDisjointSets) {
  const std::vector<int> cpus = {0, 1, 4, 5, 6};
  EXPECT_EQ(cutCpus(cpus, 1), (std::vector<std::vector<int>>{{0, 1, 4, 5, 6}}));
  EXPECT_EQ(cutCpus(cpus, 2), (std::vector<std::vector<int>>{{0, 1}, {4, 5, 6}}));
  EXPECT_EQ(cutCpus(cpus, 5), (std::vector<std::vector<int>>{{0}, {1}, {4}, {5}, {6}}));
}

TEST(Cpus, AreSharedByNeighboursWhereThereAreTooFew) {
  const std::vector<int> cpus = {2, 3};
  EXPECT_EQ(cutCpus(cpus, 4), (std::vector<std::vector<int>>{{2}, {2}, {3}, {3}}));
  EXPECT_EQ(cutCpus(cpus, 3), (std::vector<std::vector<int>>{{2}, {2}, {3}}));
}

} // namespace
} // namespace titan::launch
