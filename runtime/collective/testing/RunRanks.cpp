#include "runtime/collective/testing/RunRanks.h"

#include "runtime/collective/InProcess.h"
#include "runtime/collective/SharedMemory.h"
#include "runtime/collective/mpi/MpiCommunicator.h"
#include "runtime/collective/testing/StandInMpi.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace titan::testing {
namespace {

std::vector<RankEnd> runThreads(int64_t ranks, int threads, const RankBody& body) {
  const auto count = static_cast<size_t>(ranks);
  std::vector<std::unique_ptr<ThreadPool>> pools;
  std::vector<ThreadPool*> pointers;
  for (size_t rank = 0; rank < count; ++rank) {
    pools.push_back(ThreadPool::create(threads).take());
    pointers.push_back(pools.back().get());
  }
  auto communicators = connectInProcess(ranks, pointers).take();
  std::vector<RankEnd> ends(count);
  std::vector<std::thread> running;
  for (size_t rank = 0; rank < count; ++rank)
    running.emplace_back([&, rank] { ends[rank].report = body(*communicators[rank]); });
  for (std::thread& thread : running)
    thread.join();
  return ends;
}

std::vector<RankEnd> runMessages(int64_t ranks, int threads, const RankBody& body) {
  StandInMpi mpi(ranks);
  std::vector<RankEnd> ends(static_cast<size_t>(ranks));
  std::vector<std::thread> running;
  for (int64_t rank = 0; rank < ranks; ++rank)
    running.emplace_back([&, rank] {
      mpi.enter(rank);
      auto pool = ThreadPool::create(threads).take();
      const MpiOptions options = {.shim = &StandInMpi::shim(),
                                  .library = "the stand-in",
                                  .launcher = "the test",
                                  .rank = rank,
                                  .ranks = ranks,
                                  .isCrowded = ranks > allowedCpus(),
                                  .record = {},
                                  .end = {}};
      auto communicator = connectMpi(options, {.pool = pool.get()});
      ends[static_cast<size_t>(rank)].report =
          communicator.ok() ? body(**communicator) : communicator.error().message();
    });
  for (std::thread& thread : running)
    thread.join();
  return ends;
}

[[noreturn]] void runProcess(int controlFile, int64_t rank, int64_t ranks, int threads,
                             const RankBody& body, int report) {
  std::string text;
  {
    auto pool = ThreadPool::create(threads).take();
    auto communicator = connectSharedMemory(controlFile, rank, ranks, {.pool = pool.get()});
    text = communicator.ok() ? body(**communicator) : communicator.error().message();
  }
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = write(report, text.data() + at, text.size() - at);
    if (written <= 0)
      _exit(99);
    at += static_cast<size_t>(written);
  }
  _exit(0);
}

/// Everything that comes out of `file`; kills the processes when nothing does for `seconds`.
std::string readReport(int file, int seconds, const std::vector<pid_t>& processes) {
  std::string text;
  char bytes[4096];
  for (;;) {
    pollfd ready = {.fd = file, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, seconds * 1000) == 0)
      for (pid_t process : processes)
        kill(process, SIGKILL);
    const ssize_t size = read(file, bytes, sizeof bytes);
    if (size <= 0)
      return text;
    text.append(bytes, static_cast<size_t>(size));
  }
}

std::vector<RankEnd> runProcesses(int64_t ranks, int threads, const RankBody& body, int seconds) {
  std::fflush(nullptr);
  const int controlFile = createControlFile(ranks, ranks > allowedCpus()).take();
  std::vector<pid_t> processes;
  std::vector<int> reports;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int ends[2];
    if (pipe(ends) != 0)
      std::abort();
    const pid_t process = fork();
    if (process == 0) {
      for (int report : reports)
        close(report);
      close(ends[0]);
      runProcess(controlFile, rank, ranks, threads, body, ends[1]);
    }
    close(ends[1]);
    processes.push_back(process);
    reports.push_back(ends[0]);
  }
  std::vector<RankEnd> ended(static_cast<size_t>(ranks));
  for (size_t rank = 0; rank < ended.size(); ++rank) {
    ended[rank].report = readReport(reports[rank], seconds, processes);
    close(reports[rank]);
  }
  for (size_t rank = 0; rank < ended.size(); ++rank)
    waitpid(processes[rank], &ended[rank].status, 0);
  close(controlFile);
  return ended;
}

} // namespace

std::vector<RankEnd> runRanks(Ranks kind, int64_t ranks, int threads, const RankBody& body,
                              int seconds) {
  switch (kind) {
  case Ranks::Threads:
    return runThreads(ranks, threads, body);
  case Ranks::Messages:
    return runMessages(ranks, threads, body);
  case Ranks::Processes:
    break;
  }
  return runProcesses(ranks, threads, body, seconds);
}

StagingRegion::StagingRegion(int64_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t size = (static_cast<size_t>(bytes) + page - 1) / page * page;
  if (size == 0)
    return;
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    std::abort();
  bytes_ = {static_cast<char*>(data), size};
}

StagingRegion::~StagingRegion() {
  if (!bytes_.empty())
    munmap(bytes_.data(), bytes_.size());
}

} // namespace titan::testing
