// A rank that mpirun starts: runs drawn collectives and prints "rank 1: <digest of the results>".
//
//   mpi-rank-helper SEED COLLECTIVES ELEMENTS EXTENT...
#include "runtime/collective/testing/DrawnCollectives.h"
#include "runtime/launch/Ranks.h"
#include "runtime/program/Process.h"

#include <cstdlib>

using namespace titan;

namespace {

Status run(int argc, char** argv) {
  const launch::RankInfo info = TITAN_TRY(launch::detectRank());
  auto pool = TITAN_TRY(ThreadPool::create(launch::defaultThreads(info)));
  std::unique_ptr<Communicator> communicator =
      TITAN_TRY(launch::connect(info, {.pool = pool.get()}));
  std::vector<MeshAxis> mesh;
  for (int i = 4; i < argc; ++i)
    mesh.push_back({"axis" + std::to_string(i), std::strtoll(argv[i], nullptr, 10)});
  testing::Drawer drawer(std::strtoull(argv[1], nullptr, 10));
  const testing::Drawn drawn =
      drawer.job(mesh, std::strtoll(argv[2], nullptr, 10), std::strtoll(argv[3], nullptr, 10));
  std::printf("rank %lld: %s\n", static_cast<long long>(info.rank),
              testing::runDrawn(drawn, *communicator).c_str());
  return {};
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 5)
    return 2;
  const Status status = run(argc, argv);
  if (status.ok())
    return 0;
  tell("error: {}\n", status.error().message());
  return status.error().exitCode();
}
