// Commands on ranks whose functions have collectives: each rank runs as many batches as the others,
// whatever its part of the data, and all have the results of one rank.
#include "runtime/collective/testing/RankThreads.h"
#include "runtime/job/Agreement.h"
#include "runtime/job/Evaluate.h"
#include "runtime/job/Predict.h"
#include "runtime/job/Sample.h"
#include "runtime/job/testing/BigramProgram.h"
#include "runtime/job/testing/JobTestFixture.h"

namespace titan {
namespace {

using testing::LinearShape;

constexpr int64_t page = 4096;

/// `function` begins with an all_gather over all ranks, of 8 bytes of each.
void addGather(Program& program, std::string_view function, int64_t ranks) {
  program.mesh = {{"replicate", ranks}};
  program.collectives = {
      {CollectiveKind::AllGather, SumOrder::Rank, {0}, {{DType::I64, 1, ranks}}, "w"}};
  program.stagingOffset = (program.arenaBytes + page - 1) / page * page;
  program.stagingBytes = page;
  const int64_t result = program.stagingOffset + page;
  program.arenaBytes = result + 8 * ranks;
  program.temporaryBytes += 8 * ranks;
  Function& f = *std::ranges::find(program.functions, function, &Function::name);
  for (LiveRange& range : f.temporaries)
    range.first += 2, range.last += 2;
  f.temporaries.push_back({program.stagingOffset, 8, 0, 1});
  f.temporaries.push_back({result, 8 * ranks, 0, 1});
  Command gather;
  gather.kind = CommandKind::CollectiveStart;
  gather.operands = {{{program.stagingOffset, {}}, 8, Access::Read},
                     {{result, {}}, 8 * ranks, Access::Write}};
  f.commands.insert(f.commands.begin(), gather);
  gather.kind = CommandKind::CollectiveWait;
  f.commands.insert(f.commands.begin() + 1, gather);
}

class JobRanksTest : public testing::JobTest {
protected:
  /// body(session) of each rank; `function` gathers where there is more than one.
  template <typename Body>
  auto runOn(int64_t ranks, const Program& source, std::string_view function, JobOptions options,
             const Body& body) {
    Program gathering = source;
    if (ranks > 1)
      addGather(gathering, function, ranks);
    programBytes = serialize(gathering);
    const JobImage job = image();
    options.threads = 1;
    return testing::onRanks(ranks, [&](Peers& peers) {
      auto session = Session::open(options, job, ranks, peers).take();
      return body(*session);
    });
  }
};

TEST_F(JobRanksTest, EveryRankEvaluatesAsManyBatches) {
  struct Seen {
    double loss;
    int64_t samples, executions;
  };
  JobOptions options;
  options.out = path("job.run");
  const auto evaluate = [](Session& session) {
    EXPECT_TRUE(session.start(0, {}, FirstState::Weights).ok());
    auto dataset = openFunctionData(session.program(), "eval", session.recipe()).take();
    const Evaluation result = Evaluator::create(session, std::move(dataset)).take().run(0).take();
    const auto traffic = session.device().traffic();
    return Seen{result.loss, result.samples, traffic.empty() ? -1 : traffic[0].executions};
  };
  // Batches of 4: less than one, one, two and a half, one more than four.
  for (int64_t samples : {1, 4, 10, 17}) {
    writeData("eval.npz", samples);
    const Seen one = runOn(1, program, "eval", options, evaluate)[0];
    for (int64_t ranks : {2, 3, 4}) {
      const int64_t rows = LinearShape::micro * ranks;
      for (const Seen& each : runOn(ranks, program, "eval", options, evaluate)) {
        EXPECT_EQ(each.loss, one.loss) << samples << " samples on " << ranks << " ranks";
        EXPECT_EQ(each.samples, samples);
        EXPECT_EQ(each.executions, (samples + rows - 1) / rows);
      }
    }
  }
}

TEST_F(JobRanksTest, PredictionsAreThoseOfOneRank) {
  for (int64_t samples : {1, 10, 17}) {
    writeData("eval.npz", samples);
    const auto predictions = [&](int64_t ranks) {
      JobOptions options;
      options.command = JobCommand::Predict;
      options.out = path("job.run");
      options.output = path("out.npz");
      ::testing::internal::CaptureStdout();
      const auto executions = runOn(ranks, program, "predict", options, [](Session& session) {
        const Status status = predictJob(session);
        EXPECT_TRUE(status.ok()) << status.error().message();
        const auto traffic = session.device().traffic();
        return traffic.empty() ? int64_t{-1} : traffic[0].executions;
      });
      ::testing::internal::GetCapturedStdout();
      const int64_t rows = LinearShape::micro * ranks;
      for (const int64_t each : executions)
        EXPECT_EQ(each, ranks == 1 ? -1 : (samples + rows - 1) / rows);
      return readFile("out.npz");
    };
    const std::string one = predictions(1);
    for (int64_t ranks : {2, 4})
      EXPECT_EQ(predictions(ranks), one) << samples << " samples on " << ranks << " ranks";
  }
}

TEST_F(JobRanksTest, AllRanksRunOneText) {
  constexpr int64_t vocabulary = 256;
  payload = testing::bigramPayload(vocabulary);
  kernels = testing::bigramKernels();
  const Program model = testing::bigramProgram(vocabulary);
  JobOptions options;
  options.command = JobCommand::Sample;
  options.out = path("job.run");
  options.prompt = "A";
  options.tokens = 7;
  options.temperature = 1;
  const auto text = [&](int64_t ranks) {
    ::testing::internal::CaptureStdout();
    const auto executions = runOn(ranks, model, "predict", options, [](Session& session) {
      const Status status = sampleJob(session);
      EXPECT_TRUE(status.ok()) << status.error().message();
      const auto traffic = session.device().traffic();
      return traffic.empty() ? int64_t{-1} : traffic[0].executions;
    });
    for (const int64_t each : executions)
      EXPECT_EQ(each, ranks == 1 ? -1 : options.tokens);
    return ::testing::internal::GetCapturedStdout();
  };
  const std::string one = text(1);
  EXPECT_EQ(one.size(), 9u) << one; // the prompt, seven bytes, a line break
  EXPECT_EQ(text(2), one);
  EXPECT_EQ(text(3), one);
}

} // namespace
} // namespace titan
