#include "runtime/job/Agreement.h"

#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/collective/testing/RankThreads.h"
#include "runtime/job/Evaluate.h"
#include "runtime/job/Resume.h"
#include "runtime/job/testing/JobTestFixture.h"

namespace titan {
namespace {

using titan::testing::JobTest;
using titan::testing::onRanks;

/// What rank 0 says; all ranks say the same.
std::string verdictOf(int64_t ranks, const std::function<std::vector<Fact>(int64_t rank)>& facts) {
  const auto messages = onRanks(ranks, [&](Peers& peers) {
    Status verdict = agreeOn(peers, "a test", [&] { return facts(peers.rank()); });
    return verdict.ok() ? std::string() : verdict.error().message();
  });
  for (const std::string& message : messages)
    EXPECT_EQ(message, messages[0]);
  return messages[0];
}

TEST(Agreement, EqualFactsAreAgreedOn) {
  EXPECT_EQ(verdictOf(3, [](int64_t) { return std::vector<Fact>{{"a", "1"}, {"b", "\xff"}}; }), "");
}

TEST(Agreement, ARankThatIsAloneIsNotAskedForItsFacts) {
  Peers alone;
  EXPECT_TRUE(agreeOn(alone, "a test", []() -> std::vector<Fact> {
                ADD_FAILURE();
                return {};
              }).ok());
}

TEST(Agreement, ADifferenceNamesRankKeyAndBothValues) {
  EXPECT_EQ(verdictOf(2,
                      [](int64_t rank) {
                        return std::vector<Fact>{{"train.seed", "0"},
                                                 {"optimizer.lr", rank == 0 ? "0.001" : "0.0001"}};
                      }),
            "rank 1: optimizer.lr = 0.0001, rank 0: 0.001: start all ranks alike");
}

TEST(Agreement, ManyDifferencesAreCounted) {
  EXPECT_EQ(verdictOf(3,
                      [](int64_t rank) {
                        const std::string value = std::to_string(rank);
                        return std::vector<Fact>{{"a", value}, {"b", value}, {"c", value}};
                      }),
            "rank 1: a = 1, rank 0: 0; rank 1: b = 1, rank 0: 0; rank 1: c = 1, rank 0: 0; "
            "rank 2: a = 2, rank 0: 0; and 2 more: start all ranks alike");
}

TEST(Agreement, SaysHowToStartTheRanks) {
  Program program;
  program.mesh = {{"replicate", 2}, {"shard", 2}, {"tensor", 1}};
  const auto message = [&](int64_t started) {
    Status status = checkRankCount(program, started, "./job", JobCommand::Train);
    return status.ok() ? std::string() : status.error().message();
  };
  EXPECT_EQ(message(4), "");
  EXPECT_EQ(message(1), "this job runs on 4 ranks (replicate 2 x shard 2): start it with titan-run "
                        "-n 4 ./job train");
  EXPECT_EQ(message(2), "this job runs on 4 ranks (replicate 2 x shard 2), and 2 were started: "
                        "start it with titan-run -n 4 ./job train");
  program.mesh = {};
  EXPECT_EQ(message(2), "this job runs on 1 rank, and 2 were started: start it with ./job train");
}

TEST(Agreement, OneRankAloneIsStartedAlone) {
  Program program;
  program.mesh = {{"replicate", 2}};
  EXPECT_TRUE(checkImaginedRank(program, 1, 1).ok());
  EXPECT_EQ(checkImaginedRank(program, 2, 1).error().message(),
            "--rank 1 is one rank alone, and 2 were started: start it without titan-run");
  program.mesh = {};
  EXPECT_EQ(checkImaginedRank(program, 1, 1).error().message(),
            "--rank 1: this job runs on 1 rank, give 0");
}

class AgreementTest : public JobTest {
protected:
  /// Runs `command` of the hand-made program on ranks; the program has no collectives.
  template <typename Body> auto runOn(int64_t ranks, JobOptions options, const Body& body) {
    program.mesh = {{"replicate", ranks}};
    programBytes = serialize(program);
    const JobImage job = image();
    options.threads = 1;
    return onRanks(ranks, [&](Peers& peers) {
      auto session = Session::open(options, job, ranks, peers).take();
      return body(*session);
    });
  }
};

TEST_F(AgreementTest, FactsHaveCommandProgramRecipeAndFlags) {
  Peers peers;
  JobOptions options;
  options.out = path("job.run");
  const JobImage job = image();
  const auto facts = [&] {
    auto session = Session::open(options, job, 1, peers).take();
    return factsOf(*session);
  };
  const std::vector<Fact> before = facts();
  EXPECT_EQ(before[0], (Fact{"the command", "train"}));
  EXPECT_EQ(std::ranges::count(before, Fact{"train.steps", "20"}), 1);
  options.set = {"optimizer.lr=0.5"};
  options.out = path("elsewhere/../job.run"); // the same place
  options.steps = 7;
  std::vector<std::string> changed;
  const std::vector<Fact> after = facts();
  for (size_t i = 0; i < before.size(); ++i)
    if (before[i] != after[i])
      changed.push_back(after[i].name + " = " + after[i].value);
  EXPECT_EQ(changed,
            (std::vector<std::string>{"optimizer.lr = 0.5", "train.steps = 7", "--steps = 7"}));
}

TEST_F(AgreementTest, ADirectoryThatAnotherRankDoesNotSeeIsNamed) {
  const auto look = [&](const std::function<std::string(int64_t)>& directory) {
    auto store = checkpoint::CheckpointStore::open(path("shared")).take();
    const auto messages = onRanks(2, [&](Peers& peers) {
      Status seen = checkIsShared(peers, directory(peers.rank()));
      return seen.ok() ? std::string() : seen.error().message();
    });
    EXPECT_EQ(messages[0], messages[1]);
    EXPECT_TRUE(std::filesystem::is_empty(path("shared/checkpoints")));
    return messages[0];
  };
  EXPECT_EQ(look([&](int64_t) { return path("shared"); }), "");
  const std::string message =
      look([&](int64_t rank) { return path(rank == 0 ? "shared" : "mine"); });
  EXPECT_TRUE(message.starts_with("rank 1: '" + path("mine") + "' on ")) << message;
  EXPECT_TRUE(message.ends_with("give an --out that all ranks share")) << message;
}

TEST_F(AgreementTest, TheChoiceOfTheFirstIsThatOfAll) {
  ASSERT_EQ(run({"train", "--steps", "5"}).exitCode, 0);
  const std::string checkpoint = path("job.run/checkpoints/step-00000005");
  const auto starts = onRanks(2, [&](Peers& peers) {
    JobOptions options;
    options.checkpoint = peers.isFirst() ? checkpoint : "not looked at";
    return chooseTogether(peers, [&] { return chooseForReading(options); }).take();
  });
  for (const Start& start : starts) {
    EXPECT_EQ(start.checkpoint, checkpoint);
    EXPECT_EQ(start.manifest->step, 5);
  }
  for (const std::string& message : onRanks(2, [&](Peers& peers) {
         JobOptions options;
         options.checkpoint = path("nowhere");
         return chooseTogether(peers, [&] { return chooseForReading(options); }).error().message();
       }))
    EXPECT_EQ(message, fmt::format("no checkpoint '{}'", path("nowhere")));
}

/// Ten samples in batches of LinearShape::micro, with and without labels that count.
TEST_F(AgreementTest, AnEvaluationHasTheBitsOfOneRank) {
  JobOptions options;
  options.out = path("job.run");
  const auto evaluate = [](Session& session, int64_t maxBatches) {
    EXPECT_TRUE(session.start(0, {}, FirstState::Weights).ok());
    auto dataset = openFunctionData(session.program(), "eval", session.recipe()).take();
    Evaluator evaluator = Evaluator::create(session, std::move(dataset)).take();
    return evaluator.run(maxBatches).take();
  };
  for (int64_t samples : {10, 12, 33})
    for (int64_t maxBatches : {0, 1, 2}) {
      writeData("eval.npz", samples);
      const auto at = [&](int64_t ranks) {
        return runOn(ranks, options,
                     [&](Session& session) { return evaluate(session, maxBatches); });
      };
      const Evaluation one = at(1)[0];
      for (int64_t ranks : {2, 3, 4})
        for (const Evaluation& each : at(ranks)) {
          EXPECT_EQ(each.loss, one.loss) << samples << " samples on " << ranks << " ranks";
          EXPECT_EQ(each.samples, one.samples);
        }
    }
}

} // namespace
} // namespace titan
