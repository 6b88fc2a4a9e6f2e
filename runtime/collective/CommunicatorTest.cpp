// What is not a collective's result: messages of the host, wrong calls, ranks that fail or die.
#include "runtime/collective/ControlBlock.h"
#include "runtime/collective/Null.h"
#include "runtime/collective/SharedMemory.h"
#include "runtime/collective/testing/RunRanks.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <optional>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace titan {
namespace {

using testing::RankEnd;
using testing::Ranks;
using testing::runRanks;
using testing::StagingRegion;

const std::vector<MeshAxis> mesh = {{"shard", 2}};

/// An all_reduce of 16 floats over both ranks.
Collective exampleSum() {
  return {CollectiveKind::AllReduce, SumOrder::Rank, {0}, {{DType::F32, 1, 16}}, "0, 2"};
}

std::string textOf(const Status& status) {
  return status.ok() ? "ok"
                     : fmt::format("{}: {}", status.error().exitCode(), status.error().message());
}

/// A rank that is ready for `collectives`, with one page of staging.
class ExampleRank {
public:
  explicit ExampleRank(Communicator& communicator, std::vector<Collective> collectives)
      : communicator_(communicator), staging_(1) {
    status_ = communicator_.setCollectives(collectives, mesh);
    if (status_.ok())
      status_ = communicator_.shareStaging(staging_.bytes());
  }

  const Status& status() const { return status_; }
  char* source(int64_t at = 0) { return staging_.bytes().data() + at; }

  Status start(uint32_t collective, Communicator::Ticket& ticket, int64_t at = 0) {
    char* const in = source(at);
    char* const out = reinterpret_cast<char*>(result_);
    return communicator_.start(collective, {&in, 1}, {&out, 1}, ticket);
  }
  Status run(uint32_t collective, int64_t at = 0) {
    Communicator::Ticket ticket;
    TITAN_TRY(start(collective, ticket, at));
    return communicator_.wait(ticket);
  }

private:
  Communicator& communicator_;
  StagingRegion staging_;
  Status status_;
  float result_[64] = {};
};

class OnAll : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Communicator, OnAll,
                         ::testing::Values(Ranks::Threads, Ranks::Processes, Ranks::Messages),
                         [](const auto& info) {
                           return info.param == Ranks::Threads     ? "Threads"
                                  : info.param == Ranks::Processes ? "Processes"
                                                                   : "Messages";
                         });

/// A message of rank r: `bytes` of its number.
std::string messageOf(int64_t rank, size_t bytes) {
  std::string message(bytes, static_cast<char>('a' + rank));
  for (size_t i = 0; i < bytes; i += 1000)
    message[i] = static_cast<char>(i / 1000);
  return message;
}

/// Lengths around those of a window and its head, and of several windows.
const std::vector<size_t> lengths = {
    0,
    1,
    1000,
    ControlBlock::windowBytes - 200,
    ControlBlock::windowBytes - 100,
    ControlBlock::windowBytes,
    2 * ControlBlock::windowBytes,
    5 * ControlBlock::windowBytes + 12345,
};

TEST_P(OnAll, ExchangesMessagesOfAnyLength) {
  const auto ends = runRanks(GetParam(), 3, 1, [](Communicator& communicator) {
    const auto rank = static_cast<size_t>(communicator.rank());
    for (size_t i = 0; i < 20; ++i) {
      const auto lengthOf = [&](size_t r) { return lengths[(i * (r + 1) + r) % lengths.size()]; };
      std::vector<std::string> all;
      const Status status = communicator.exchange(
          "round " + std::to_string(i), messageOf(communicator.rank(), lengthOf(rank)), all);
      if (!status.ok() || all.size() != 3)
        return textOf(status);
      for (size_t r = 0; r < all.size(); ++r)
        if (all[r] != messageOf(static_cast<int64_t>(r), lengthOf(r)))
          return fmt::format("round {}: wrong message of rank {}", i, r);
    }
    return textOf(communicator.finish());
  });
  for (const RankEnd& end : ends)
    EXPECT_EQ(end.report, "ok");
}

TEST_P(OnAll, BroadcastsAnyNumberOfBytes) {
  const auto ends = runRanks(GetParam(), 3, 1, [](Communicator& communicator) {
    for (size_t i = 0; i < 3 * lengths.size(); ++i) {
      const auto root = static_cast<int64_t>(i % 3);
      const std::string sent = messageOf(root, lengths[i / 3]);
      std::string bytes = sent;
      if (communicator.rank() != root)
        bytes.assign(bytes.size(), '?');
      const Status status = communicator.broadcast("weights", root, bytes);
      if (!status.ok())
        return textOf(status);
      if (bytes != sent)
        return fmt::format("wrong bytes of rank {}", root);
    }
    return textOf(communicator.finish());
  });
  for (const RankEnd& end : ends)
    EXPECT_EQ(end.report, "ok");
}

/// What both ranks say when each makes a call of its own.
std::vector<std::string> reports(Ranks kind, const testing::RankBody& body) {
  std::vector<std::string> texts;
  for (const RankEnd& end : runRanks(kind, 2, 1, body))
    texts.push_back(end.report);
  return texts;
}

/// As reports(), of the first that fails, which the other hears of.
std::vector<std::string> failures(const std::function<Status(Communicator&)>& call) {
  return reports(Ranks::Threads, [&](Communicator& communicator) {
    const Status status = call(communicator);
    if (!status.ok() && !communicator.peerFailed())
      communicator.fail(status.error());
    return textOf(status);
  });
}

/// Either of two ranks may be the one that sees what is wrong: `other` is what the second says.
bool oneSays(const std::vector<std::string>& texts, std::string_view what,
             std::optional<std::string_view> other = {}) {
  for (const std::string& text : texts)
    if (text.find(what) != text.npos || (other && text.find(*other) != text.npos))
      return true;
  ADD_FAILURE() << texts[0] << " | " << texts[1];
  return false;
}

TEST(Communicator, RanksThatAreElsewhereAreNamed) {
  EXPECT_TRUE(oneSays(failures([](Communicator& communicator) {
                        std::vector<std::string> all;
                        return communicator.exchange(
                            communicator.rank() == 0 ? "agreement" : "barrier of save 200", "",
                            all);
                      }),
                      "rank 1 is at 'barrier of save 200', rank 0 at 'agreement'",
                      "rank 0 is at 'agreement', rank 1 at 'barrier of save 200'"));
  EXPECT_TRUE(oneSays(failures([](Communicator& communicator) {
                        std::string bytes(communicator.rank() == 0 ? 10 : 11, ' ');
                        return communicator.broadcast("weights", 0, bytes);
                      }),
                      "rank 0 sends 10 bytes at 'weights', rank 1 expects 11"));
  EXPECT_TRUE(oneSays(failures([](Communicator& communicator) -> Status {
                        ExampleRank rank(communicator, {exampleSum()});
                        Communicator::Ticket ticket;
                        TITAN_TRY(rank.start(0, ticket));
                        if (communicator.rank() == 1)
                          return communicator.wait(ticket);
                        std::string bytes(1, ' ');
                        return communicator.broadcast("weights", 1, bytes);
                      }),
                      "rank 1 is at a collective, rank 0 at 'weights'"));
}

TEST(Communicator, RanksThatStartAnotherCollectiveAreNamed) {
  const auto texts = failures([](Communicator& communicator) -> Status {
    ExampleRank rank(communicator, {exampleSum(), exampleSum()});
    TITAN_TRY(rank.run(0));
    return rank.run(communicator.rank() == 0 ? 0 : 1);
  });
  EXPECT_TRUE(oneSays(texts, "rank 1 started collective 1 where rank 0 started 0",
                      "rank 0 started collective 0 where rank 1 started 1"));
  EXPECT_TRUE(oneSays(failures([](Communicator& communicator) -> Status {
                        ExampleRank rank(communicator, {exampleSum()});
                        return rank.run(0, 64 * communicator.rank());
                      }),
                      "or has its sources elsewhere"));
}

TEST(Communicator, RefusesCollectivesItCannotDo) {
  auto set = [](std::vector<Collective> collectives, std::vector<MeshAxis> axes) {
    return reports(Ranks::Threads, [&](Communicator& communicator) {
      return textOf(communicator.setCollectives(collectives, axes));
    })[0];
  };
  Collective sum = exampleSum();
  EXPECT_EQ(set({sum}, {{"shard", 3}}), "4: the mesh has 3 ranks, the communicator 2");
  sum.pieces[0].dtype = DType::I32;
  EXPECT_EQ(set({sum}, mesh), "4: all_reduce of 0, 2: I32 cannot be added");
  sum.kind = CollectiveKind::ReduceScatter;
  sum.pieces[0] = {DType::F32, 4, 5};
  EXPECT_EQ(set({sum}, mesh), "4: reduce_scatter of 0, 2: 5 elements are cut for 2 ranks");
  const auto three = runRanks(Ranks::Threads, 3, 1, [](Communicator& communicator) {
    Collective sum = exampleSum();
    sum.order = SumOrder::Tree;
    return textOf(communicator.setCollectives({&sum, 1}, std::vector<MeshAxis>{{"shard", 3}}));
  });
  EXPECT_EQ(three[0].report, "4: all_reduce of 0, 2: tree order needs a power of two, not 3 ranks");
}

TEST(Communicator, RefusesWrongCalls) {
  const auto texts = reports(Ranks::Threads, [](Communicator& communicator) {
    ExampleRank rank(communicator, {exampleSum()});
    Communicator::Ticket ticket;
    std::string text = textOf(rank.start(1, ticket));
    text += "\n" + textOf(communicator.start(0, {}, {}, ticket));
    text += "\n" + textOf(rank.start(0, ticket, 4096 - 32));
    text += "\n" + textOf(communicator.wait({7}));
    text += "\n" + textOf(rank.start(0, ticket));
    text += "\n" + textOf(rank.start(0, ticket));
    text += "\n" + textOf(communicator.wait(ticket));
    return text + "\n" + textOf(communicator.wait(ticket));
  });
  EXPECT_EQ(texts[0],
            "4: collective 1 of 1\n"
            "4: all_reduce of 0, 2: 0 sources and 0 results for 1 pieces\n"
            "4: all_reduce of 0, 2: source 0 lies outside of the staging region\n"
            "4: a wait for collective number 7 of 0 that were started\n"
            "ok\n"
            "4: all_reduce of 0, 2: started again before its wait, or more than 64 at once\n"
            "ok\n"
            "4: a wait for collective number 0 of 1 that were started");
  EXPECT_EQ(texts[1], texts[0]);
}

TEST_P(OnAll, AFailureEndsTheOthersWaits) {
  const auto texts = reports(GetParam(), [](Communicator& communicator) {
    ExampleRank rank(communicator, {exampleSum()});
    if (communicator.rank() == 1) {
      communicator.fail(Error::environment("the disk is full"));
      communicator.fail(Error::environment("and more"));
      return fmt::format("{}", communicator.peerFailed());
    }
    const std::string text = textOf(rank.run(0));
    return fmt::format("{} {}", text, communicator.peerFailed());
  });
  EXPECT_EQ(texts[0], "5: rank 1: the disk is full; rank 0 waited at 'all_reduce of 0, 2' true");
  EXPECT_EQ(texts[1], "false");
}

/// Both ranks are in step 12; then rank 1 ends its process in its own way.
std::vector<RankEnd> loseRank1(const std::function<void()>& end) {
  return runRanks(Ranks::Processes, 2, 1, [&](Communicator& communicator) {
    ExampleRank rank(communicator, {exampleSum()});
    Status status = rank.run(0);
    communicator.setStep(12);
    if (communicator.rank() == 1)
      end();
    if (status.ok())
      status = rank.run(0);
    return textOf(status);
  });
}

// Who started the ranks says more of these (runtime/launch), and sooner; here nobody does.
TEST(Communicator, LostRanksAreNamedWithoutALauncher) {
  const auto killed = loseRank1([] { raise(SIGKILL); });
  EXPECT_TRUE(WIFSIGNALED(killed[1].status));
  EXPECT_NE(killed[0].report.find("ended in step 12; rank 0 waited at 'all_reduce of 0, 2'"),
            std::string::npos)
      << killed[0].report;
  EXPECT_EQ(killed[0].report.substr(0, 15), "5: rank 1 (pid ");
  const auto left = loseRank1([] { _exit(0); });
  EXPECT_NE(left[0].report.find("ended in step 12"), std::string::npos) << left[0].report;
}

TEST(Communicator, AStoppedRankIsNamed) {
  const auto ends = runRanks(Ranks::Processes, 2, 1, [](Communicator& communicator) {
    std::vector<std::string> processes, all;
    Status status = communicator.exchange("processes", std::to_string(getpid()), processes);
    if (!status.ok())
      return textOf(status);
    if (communicator.rank() == 1)
      raise(SIGSTOP);
    status = communicator.exchange("agreement", "", all);
    kill(std::stoi(processes[1]), SIGKILL);
    return textOf(status);
  });
  EXPECT_NE(ends[0].report.find("gave no sign of life for 5 s; rank 0 waited at 'agreement'"),
            std::string::npos)
      << ends[0].report;
}

TEST(Communicator, RanksThatWaitForEachOtherAreToldSo) {
  const auto ends = runRanks(Ranks::Processes, 2, 1, [](Communicator& communicator) {
    ExampleRank rank(communicator, {exampleSum()});
    std::vector<std::string> all;
    return textOf(communicator.rank() == 0 ? rank.run(0)
                                           : communicator.exchange("agreement", "", all));
  });
  EXPECT_EQ(ends[0].report,
            "5: the ranks wait for each other; rank 0 waited at 'all_reduce of 0, 2'");
  EXPECT_EQ(ends[1].report, "5: the ranks wait for each other; rank 1 waited at 'agreement'");
}

TEST(Communicator, NobodyIsAskedToShareWhatIsNotThere) {
  std::signal(SIGXFSZ, SIG_IGN);
  const auto ends = runRanks(Ranks::Processes, 2, 1, [](Communicator& communicator) {
    const rlimit limit = {.rlim_cur = 16 << 20, .rlim_max = RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    StagingRegion region(64 << 20);
    return textOf(communicator.shareStaging(region.bytes()));
  });
  EXPECT_EQ(ends[0].report, "3: cannot share 67108864 bytes of staging memory between the ranks: "
                            "File too large");
  const auto odd = runRanks(Ranks::Processes, 2, 1, [](Communicator& communicator) {
    StagingRegion region(4096);
    return textOf(communicator.shareStaging(region.bytes().first(100)));
  });
  EXPECT_EQ(odd[0].report, "4: the staging region is not of whole pages: 100 bytes");
}

TEST(SharedMemory, RefusesWhatIsNoControlBlock) {
  auto connect = [](int file, int64_t ranks) {
    auto communicator = connectSharedMemory(file, 0, ranks, {});
    return communicator.ok() ? std::string("ok") : communicator.error().message();
  };
  EXPECT_EQ(connect(-1, 2), "TITAN_CONTROL_FD = -1: Bad file descriptor");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(connect(ends[0], 2),
            fmt::format("TITAN_CONTROL_FD = {} is no control block of titan-run", ends[0]));
  close(ends[0]);
  close(ends[1]);
  const int file = createControlFile(2, false).take();
  EXPECT_EQ(connect(file, 3), "the control block of titan-run is for 2 ranks, TITAN_RANKS = 3");
  {
    auto first = connectSharedMemory(file, 0, 2, {});
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(connect(file, 2), "TITAN_RANK = 0: another process is this rank already");
  }
  const uint32_t version = ControlBlock::version + 1;
  ASSERT_EQ(pwrite(file, &version, sizeof version, 8), 4);
  EXPECT_EQ(connect(file, 2),
            "the control block of titan-run has version 4, this job reads 3: use the titan-run of "
            "the titan-compile that made the job");
  ASSERT_EQ(pwrite(file, "NO", 2, 0), 2);
  EXPECT_NE(connect(file, 2).find("is no control block of titan-run"), std::string::npos);
  close(file);
}

TEST(SharedMemory, SaysWhatTheSystemRefuses) {
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const Result<int> file = createControlFile(2, false);
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().message(), "cannot create the ranks' shared memory: Too many open files");
  EXPECT_EQ(Mapping::anonymous(int64_t{1} << 60).error().message(),
            "cannot map 1152921504606846976 bytes of shared memory: Cannot allocate memory");
  EXPECT_EQ(Mapping::ofFile(-1, 0, 4096, true).error().message(),
            "cannot map 4096 bytes of the ranks' shared memory: Bad file descriptor");
}

TEST(ControlBlock, KeepsTheFirstFailure) {
  const Mapping memory = Mapping::anonymous(ControlBlock::bytesFor(2)).take();
  const ControlBlock block = ControlBlock::initialize(memory.data(), 2, false);
  EXPECT_FALSE(block.failure().has_value());
  EXPECT_TRUE(block.fail({.code = 3, .rank = 1, .told = true, .message = std::string(3000, 'x')}));
  EXPECT_FALSE(block.fail({.code = 5, .rank = 0, .told = false, .message = "later"}));
  block.failAnyway({.code = 5, .rank = 0, .told = false, .message = "later"});
  const Failure failure = *block.failure();
  EXPECT_EQ(failure.code, 3);
  EXPECT_EQ(failure.rank, 1);
  EXPECT_TRUE(failure.told);
  EXPECT_EQ(failure.message, std::string(1023, 'x'));
}

TEST(SharedText, CutsWhatIsTooLong) {
  SharedText text;
  text.store(FixedText("all_reduce of 0, 2"));
  EXPECT_EQ(text.load(), "all_reduce of 0, 2");
  text.store(FixedText(std::string(200, 'y')));
  EXPECT_EQ(text.load(), std::string(116, 'y') + "...");
}

TEST(Null, FillsResultsAndCountsPayload) {
  const std::vector<MeshAxis> four = {{"shard", 4}};
  auto null = connectNull(3, 4);
  const std::vector<Collective> collectives = {
      {CollectiveKind::AllGather, SumOrder::Rank, {0}, {{DType::U8, 1, 8}}, "w"},
      {CollectiveKind::ReduceScatter, SumOrder::Rank, {0}, {{DType::F32, 1, 4}}, "w"},
      {CollectiveKind::AllReduce, SumOrder::Rank, {0}, {{DType::F32, 1, 2}}, "w"}};
  ASSERT_TRUE(null->setCollectives(collectives, four).ok());
  ASSERT_TRUE(null->shareStaging({}).ok());
  char part[] = "ab", whole[9] = {};
  float terms[4] = {1, 2, 3, 4}, sums[4] = {};
  Communicator::Ticket ticket;
  auto run = [&](uint32_t index, void* in, void* out) {
    char* const ins[] = {static_cast<char*>(in)};
    char* const outs[] = {static_cast<char*>(out)};
    return null->start(index, ins, outs, ticket).ok() && null->wait(ticket).ok();
  };
  ASSERT_TRUE(run(0, part, whole));
  EXPECT_STREQ(whole, "abababab");
  ASSERT_TRUE(run(1, terms, sums));
  EXPECT_EQ(sums[0], 1);
  EXPECT_EQ(sums[1], 0);
  ASSERT_TRUE(run(2, terms, sums));
  EXPECT_EQ(sums[1], 2);
  EXPECT_EQ(null->traffic()[0], (Traffic{.executions = 1, .payload = 2, .moved = 0}));
  EXPECT_EQ(null->traffic()[1], (Traffic{.executions = 1, .payload = 16, .moved = 0}));
  std::vector<std::string> all;
  ASSERT_TRUE(null->exchange("agreement", "mine", all).ok());
  EXPECT_EQ(all, std::vector<std::string>(4, "mine"));
  EXPECT_EQ(null->setCollectives(collectives, mesh).error().message(),
            "the mesh has 2 ranks, the communicator 4");
}

} // namespace
} // namespace titan
