// How ranks by MPI join, fail and end, with an MPI of threads (testing/StandInMpi.h).
#include "runtime/collective/mpi/MpiCommunicator.h"

#include "runtime/collective/CommDelay.h"
#include "runtime/collective/Heartbeat.h"
#include "runtime/collective/mpi/Library.h"
#include "runtime/collective/testing/RunRanks.h"
#include "runtime/collective/testing/StandInMpi.h"

#include <gtest/gtest.h>

#include <cstring>

#include <sys/resource.h>
#include <unistd.h>

namespace titan {
namespace {

using testing::Ranks;
using testing::StandInMpi;

MpiOptions optionsOf(const titan_mpi_shim& shim) {
  return {.shim = &shim,
          .library = "MPICH",
          .launcher = "Open MPI's mpirun",
          .rank = 0,
          .ranks = 2,
          .isCrowded = false,
          .record = {},
          .end = {}};
}

/// What a rank that starts alone gets.
Error errorOf(const titan_mpi_shim& shim, const ConnectOptions& connect = {}) {
  StandInMpi mpi(1);
  mpi.enter(0);
  auto communicator = connectMpi(optionsOf(shim), connect);
  return communicator.ok() ? Error::internal("none") : communicator.error();
}

TEST(Mpi, RanksThatWouldRunAloneAreRefused) {
  const Error error = errorOf(StandInMpi::shim());
  EXPECT_EQ(error.exitCode(), 3);
  EXPECT_EQ(error.message(),
            "Open MPI's mpirun started 2 ranks, and MPICH sees 1: start the job with the mpirun of "
            "MPICH, or set TITAN_MPI to the MPI whose mpirun it is");
}

TEST(Mpi, OtherNumbersOfRanksAreRefused) {
  titan_mpi_shim shim = StandInMpi::shim();
  shim.size = [] { return 2; };
  shim.rank = [] { return 1; };
  const Error error = errorOf(shim);
  EXPECT_EQ(error.exitCode(), 3);
  EXPECT_EQ(error.message(), "Open MPI's mpirun calls this process rank 0, MPICH rank 1");
}

TEST(Mpi, SaysWhyItDoesNotStart) {
  titan_mpi_shim shim = StandInMpi::shim();
  shim.init = [] { return 7; };
  const Error error = errorOf(shim);
  EXPECT_EQ(error.exitCode(), 3);
  EXPECT_EQ(error.message(), "MPICH does not start: stand-in error 7");
}

TEST(Mpi, RefusesADelay) {
  const Error error = errorOf(StandInMpi::shim(), {.delay = {.latency = 50}});
  EXPECT_EQ(error.exitCode(), 2);
  EXPECT_EQ(error.message(), "TITAN_COMM_DELAY is for ranks of titan-run: unset it under mpirun");
}

/// Rank 0 alone has the slots of all: the others do not judge what they are not told.
TEST(Mpi, RanksLiveLongerThanSilenceIsSuffered) {
  constexpr int beats = 2 * Heartbeat::beatsToStandStill;
  for (const auto& end : testing::runRanks(Ranks::Messages, 3, 1, [](Communicator& communicator) {
         std::vector<std::string> all;
         for (int i = 0; i < beats; ++i) {
           sleepUntil(monotonicNow() + Heartbeat::millisecondsPerBeat * 1'000'000 * 6 / 10);
           if (const Status status = communicator.exchange("a beat", "", all); !status.ok())
             return status.error().message();
         }
         return std::string("ok");
       }))
    EXPECT_EQ(end.report, "ok");
}

TEST(Mpi, ALostRankIsNamed) {
  ::testing::internal::CaptureStderr();
  const auto ends = testing::runRanks(Ranks::Messages, 2, 1, [](Communicator& communicator) {
    std::vector<std::string> all;
    communicator.setStep(4);
    if (!communicator.exchange("agreement", "", all).ok() || communicator.rank() == 1)
      return std::string("left");
    const Status status = communicator.exchange("barrier of save 4", "", all);
    return status.ok() ? std::string("ok") : status.error().message();
  });
  const std::string told = ::testing::internal::GetCapturedStderr();
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  const std::string lost = fmt::format("rank 1 (pid {} on {}) was lost", getpid(), host);
  EXPECT_EQ(ends[0].report.find(lost), 0u) << ends[0].report;
  EXPECT_NE(ends[0].report.find("its connection was closed; rank 0 waited at 'barrier of save 4'"),
            std::string::npos);
  EXPECT_EQ(told.find("error: " + lost), 0u) << told;
}

TEST(Mpi, ABrokenOperationIsAnErrorOfTheRun) {
  const auto ends = testing::runRanks(Ranks::Messages, 2, 1, [](Communicator& communicator) {
    std::vector<std::string> all;
    std::string bytes(5, ' ');
    const Status status = communicator.rank() == 0 ? communicator.exchange("agreement", "", all)
                                                   : communicator.broadcast("weights", 0, bytes);
    if (!status.ok() && !communicator.peerFailed())
      communicator.fail(status.error());
    return status.ok() ? "ok" : fmt::format("{}", status.error().message());
  });
  EXPECT_TRUE(ends[0].report.find("the stand-in failed at 'agreement': stand-in error 1") == 0 ||
              ends[1].report.find("the stand-in failed at 'weights': stand-in error 1") == 0)
      << ends[0].report << " | " << ends[1].report;
}

TEST(Mpi, RanksThatAreElsewhereAreNamed) {
  const auto ends = testing::runRanks(Ranks::Messages, 2, 1, [](Communicator& communicator) {
    std::vector<std::string> all;
    const Status status = communicator.exchange(
        communicator.rank() == 0 ? "agreement" : "barrier of save 200", "", all);
    return status.ok() ? "ok" : status.error().message();
  });
  EXPECT_EQ(ends[0].report, "rank 1 is at 'barrier of save 200', rank 0 at 'agreement'");
  const auto sent = testing::runRanks(Ranks::Messages, 2, 1, [](Communicator& communicator) {
    std::string bytes(communicator.rank() == 0 ? 10 : 11, ' ');
    const Status status = communicator.broadcast("weights", 0, bytes);
    return status.ok() ? "ok" : status.error().message();
  });
  EXPECT_EQ(sent[1].report, "rank 0 sends 10 bytes at 'weights', rank 1 expects 11");
}

TEST(Mpi, RanksThatStartAnotherCollectiveAreNamed) {
  const auto ends = testing::runRanks(Ranks::Messages, 2, 1, [](Communicator& communicator) {
    const Collective sum{
        CollectiveKind::AllReduce, SumOrder::Rank, {0}, {{DType::F32, 1, 16}}, "w"};
    const std::vector<Collective> both = {sum, sum};
    const std::vector<MeshAxis> mesh = {{"shard", 2}};
    testing::StagingRegion staging(1);
    Status status = communicator.setCollectives(both, mesh);
    if (status.ok())
      status = communicator.shareStaging(staging.bytes());
    char result[64];
    char* const in = staging.bytes().data();
    char* const out = result;
    Communicator::Ticket ticket;
    const auto index = static_cast<uint32_t>(communicator.rank());
    if (status.ok())
      status = communicator.start(index, {&in, 1}, {&out, 1}, ticket);
    if (status.ok())
      status = communicator.wait(ticket);
    return status.ok() ? "ok" : status.error().message();
  });
  EXPECT_EQ(ends[0].report, "rank 1 is at collective 1, number 0, where rank 0 is at 0, number 0");
}

/// What others have waited comes with their parts, not with the next beat.
TEST(Mpi, SaysHowLongRanksHaveWaited) {
  const auto ends = testing::runRanks(Ranks::Messages, 2, 1, [](Communicator& communicator) {
    const Collective sum{
        CollectiveKind::AllReduce, SumOrder::Rank, {0}, {{DType::F32, 1, 16}}, "w"};
    const std::vector<MeshAxis> mesh = {{"shard", 2}};
    testing::StagingRegion staging(1);
    Status status = communicator.setCollectives({&sum, 1}, mesh);
    if (status.ok())
      status = communicator.shareStaging(staging.bytes());
    char result[64];
    char* const in = staging.bytes().data();
    char* const out = result;
    std::string report;
    for (int i = 0; i < 2 && status.ok(); ++i) {
      const double mine = communicator.waitedSeconds(communicator.rank());
      Communicator::Ticket ticket;
      status = communicator.start(0, {&in, 1}, {&out, 1}, ticket);
      if (status.ok())
        status = communicator.wait(ticket);
      const double others = communicator.waitedSeconds(1 - communicator.rank());
      std::vector<std::string> all;
      if (status.ok())
        status = communicator.exchange("waits", fmt::format("{}", mine), all);
      if (status.ok() && others < std::stod(all[static_cast<size_t>(1 - communicator.rank())]))
        report += fmt::format("{} after {}; ", others, all[1]);
    }
    return status.ok() ? report + "ok" : status.error().message();
  });
  for (const auto& end : ends)
    EXPECT_EQ(end.report, "ok");
}

TEST(MpiLibrary, IsNamed) {
  EXPECT_EQ(mpiOfName("openmpi"), MpiKind::OpenMpi);
  EXPECT_EQ(mpiOfName("mpich"), MpiKind::Mpich);
  EXPECT_EQ(mpiOfName("intel"), std::nullopt);
}

TEST(MpiLibrary, LoadsOrSaysWhatIsMissing) {
  for (MpiKind kind : {MpiKind::OpenMpi, MpiKind::Mpich}) {
    if (isCarried(kind))
      continue; // runtime/launch/MpiTest.cpp runs it: a process loads one
    const auto shim = loadMpi(kind);
    ASSERT_FALSE(shim.ok());
    EXPECT_EQ(shim.error().exitCode(), 3);
    EXPECT_NE(shim.error().message().find("was built without its headers"), std::string::npos);
  }
}

TEST(MpiLibrary, SaysWhyItIsNotLoaded) {
  const auto noise = loadShim("MPICH", std::string(1000, '\x5a'));
  EXPECT_EQ(noise.error().exitCode(), 3);
  EXPECT_NE(noise.error().message().find("invalid ELF header: install its libraries, or start the "
                                         "job with titan-run"),
            std::string::npos)
      << noise.error().message();
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const auto shim = loadShim("MPICH", {});
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(shim.error().message(), "MPICH cannot be loaded: Too many open files");
}

} // namespace
} // namespace titan
