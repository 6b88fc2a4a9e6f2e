// Ranks that the mpirun of each MPI starts get the bits of threads; those of another MPI's mpirun
// are refused. Skipped, with the reason, where there is no mpirun, or a shim was not built.
#include "runtime/collective/mpi/Library.h"
#include "runtime/collective/testing/DrawnCollectives.h"
#include "runtime/collective/testing/RunRanks.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <sys/wait.h>

namespace titan::launch {
namespace {

struct Mpi {
  MpiKind kind;
  const char* name; ///< of TITAN_MPI
  const char* launcher;
  const char* options;
};
const Mpi mpis[] = {
    {MpiKind::OpenMpi, "openmpi", "/usr/bin/mpirun.openmpi",
     "--allow-run-as-root --oversubscribe --mca btl self,vader"},
    {MpiKind::Mpich, "mpich", "/usr/bin/mpirun.mpich", ""},
};

struct End {
  std::string output; ///< stdout and stderr
  int exitCode = 0;
};

End run(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1 </dev/null").c_str(), "r");
  End end;
  char bytes[4096];
  while (const size_t size = std::fread(bytes, 1, sizeof bytes, pipe))
    end.output.append(bytes, size);
  end.exitCode = WEXITSTATUS(pclose(pipe));
  return end;
}

std::string commandOf(const Mpi& mpi, int64_t ranks, const std::string& arguments) {
  return fmt::format("timeout 60 {} -n {} {} {} {}", mpi.launcher, ranks, mpi.options,
                     MPI_RANK_HELPER, arguments);
}

class WithMpi : public ::testing::TestWithParam<Mpi> {
protected:
  void SetUp() override {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    GTEST_SKIP() << "a sanitizer sees what MPI does inside";
#endif
    unsetenv("TITAN_MPI");
    if (!isCarried(GetParam().kind))
      GTEST_SKIP() << nameOf(GetParam().kind) << ": its headers were not here when this was built";
    if (!std::filesystem::exists(GetParam().launcher))
      GTEST_SKIP() << GetParam().launcher << " is not there";
  }
  void TearDown() override { unsetenv("TITAN_MPI"); }
};
INSTANTIATE_TEST_SUITE_P(Mpi, WithMpi, ::testing::ValuesIn(mpis),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(WithMpi, DrawnCollectivesHaveTheBitsOfThreads) {
  struct Job {
    std::vector<int64_t> extents;
    int64_t collectives, elements;
  };
  const Job jobs[] = {{{2}, 400, 3000}, {{2}, 20, 1000000}, {{3}, 180, 3000}, {{2, 2}, 400, 3000}};
  const uint64_t seed = titan::testing::seedOfThisRun();
  std::printf("seed %llu (TITAN_TEST_SEED)\n", static_cast<unsigned long long>(seed));
  for (const Job& job : jobs) {
    std::vector<MeshAxis> mesh;
    std::string arguments = fmt::format("{} {} {}", seed, job.collectives, job.elements);
    for (int64_t extent : job.extents) {
      mesh.push_back({"axis", extent});
      arguments += fmt::format(" {}", extent);
    }
    const auto drawn = titan::testing::Drawer(seed).job(mesh, job.collectives, job.elements);
    const auto expected = titan::testing::runRanks(
        titan::testing::Ranks::Threads, rankCount(mesh), 1,
        [&](Communicator& communicator) { return titan::testing::runDrawn(drawn, communicator); });
    const End end = run(commandOf(GetParam(), rankCount(mesh), arguments));
    EXPECT_EQ(end.exitCode, 0) << end.output;
    for (size_t rank = 0; rank < expected.size(); ++rank) {
      EXPECT_EQ(expected[rank].report.size(), 32u);
      EXPECT_NE(end.output.find(fmt::format("rank {}: {}\n", rank, expected[rank].report)),
                std::string::npos)
          << end.output;
    }
  }
}

/// Under another MPI's mpirun each rank would be alone.
TEST_P(WithMpi, AnotherMpiIsRefused) {
  const Mpi& other = mpis[GetParam().kind == MpiKind::OpenMpi ? 1 : 0];
  if (!isCarried(other.kind))
    GTEST_SKIP() << nameOf(other.kind) << ": its headers were not here when this was built";
  setenv("TITAN_MPI", other.name, 1);
  const End end = run(commandOf(GetParam(), 2, "1 1 1 2"));
  EXPECT_NE(end.exitCode, 0);
  EXPECT_NE(end.output.find(fmt::format("{}'s mpirun started 2 ranks, and {} sees 1",
                                        nameOf(GetParam().kind), nameOf(other.kind))),
            std::string::npos)
      << end.output;
}

} // namespace
} // namespace titan::launch
