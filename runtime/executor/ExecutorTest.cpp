#include "runtime/executor/Executor.h"
#include "runtime/executor/FirstWeights.h"

#include "runtime/device/testing/LinearRun.h"
#include "runtime/device/testing/RanksProgram.h"
#include "runtime/executor/Figures.h"
#include "runtime/executor/Poisoner.h"
#include "runtime/executor/Profiler.h"
#include "runtime/host/testing/Allocations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>

namespace titan {
namespace {

using testing::LinearRun;
using testing::LinearShape;

/// A device with a window, and one without.
const std::pair<const char*, LinearRun::Maker> makers[] = {{"cpu", testing::makeCpuDevice},
                                                           {"late", testing::makeLateDevice}};

TEST(Executor, WritesConstantsAndInitialStates) {
  for (const auto& [name, make] : makers) {
    LinearRun run(2, make);
    Program program = run.program;
    const std::string payload = testing::linearPayload() + "constant";
    const State& bias = *program.findState("linear.bias");
    // Twelve bytes that the plan gives to the bias; a job's constants have a place of their own.
    program.constants = {{bias.offset, 8, static_cast<int64_t>(payload.size()) - 8}};
    program.states.erase(program.states.begin() + (&bias - program.states.data()));
    Executor executor(program, *run.device);
    Peers alone;
    ASSERT_TRUE(executor.prepare(payload).ok());
    ASSERT_TRUE(writeFirstWeights(executor.access(), {.payload = payload}, *run.pool, alone).ok());
    EXPECT_EQ(run.bytesOfState(*run.program.findState("linear.weight")), testing::linearPayload())
        << name;
    EXPECT_EQ(run.bytesOfState(*run.program.findState("linear.bias")).substr(0, 8), "constant")
        << name;
    program.constants[0].payloadOffset += 1;
    EXPECT_EQ(executor.prepare(payload).error().message(),
              fmt::format("a constant of 8 bytes at {} leaves the job's payload of {} bytes",
                          payload.size() - 7, payload.size()));
  }
}

TEST(Executor, RunsAllocateNothing) {
  LinearRun run(2);
  Executor executor(run.program, *run.device);
  const Scalar lr = run.scalar("step", "optimizer.lr"), loss = run.scalar("step", "loss");
  run.fill(1);
  ASSERT_TRUE(executor.run("step").ok());
  double sum = 0;
  const int64_t before = testing::allocations();
  for (int i = 0; i < 100; ++i) {
    lr.write(0.05);
    if (!executor.run("step").ok())
      break;
    sum += loss.read();
  }
  EXPECT_EQ(testing::allocations() - before, 0);
  EXPECT_GT(sum, 0);
}

TEST(Executor, UnknownFunctionIsAnError) {
  LinearRun run;
  Executor executor(run.program, *run.device);
  const Status status = executor.run("dance");
  EXPECT_EQ(status.error().code(), ErrorCode::Internal);
  EXPECT_EQ(status.error().message(), "the program has no function 'dance'");
}

TEST(Poisoner, ChangesNothing) {
  for (const auto& [name, make] : makers)
    for (int threads : {1, 2}) {
      LinearRun plain(threads), poisoned(threads, make);
      const auto poisoner = Poisoner::create(poisoned.program, *poisoned.device).take();
      poisoned.observer = poisoner.get();
      EXPECT_EQ(plain.train(10), poisoned.train(10)) << name;
      EXPECT_EQ(plain.stateBytes(), poisoned.stateBytes()) << name;
      EXPECT_TRUE(poisoner->check().ok()) << name;
    }
}

TEST(Poisoner, ShowsAReadOutsideOfALiveRange) {
  for (const auto& [name, make] : makers) {
    LinearRun run(1, make);
    run.program.functions[0].temporaries[0].first = 1; // the gradient is cleared before it is live
    const auto poisoner = Poisoner::create(run.program, *run.device).take();
    run.observer = poisoner.get();
    run.fill(0);
    ASSERT_TRUE(run.run("step").ok());
    EXPECT_TRUE(std::isnan(run.scalar("step", "grad_norm").read())) << name;
  }
}

TEST(Poisoner, ShowsAWriteToUnplannedBytes) {
  for (const auto& [name, make] : makers) {
    LinearRun run(1, make);
    const auto poisoner = Poisoner::create(run.program, *run.device).take();
    const int64_t at = run.program.arenaBytes;
    ASSERT_TRUE(run.device->fill(at, 1, 0).ok());
    const Status status = poisoner->check();
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().code(), ErrorCode::Internal);
    EXPECT_TRUE(status.error().message().starts_with(
        fmt::format("byte {} of the arena was written, and the plan gives it to nobody", at)))
        << status.error().message();
  }
}

/// Moves 8 bytes from operand + scalars[0] to operand + scalars[1]: the table declares the operand.
void reachOutside(char* const* operands, const int64_t* scalars, int64_t, int64_t) {
  std::memcpy(operands[0] + scalars[1], operands[0] + scalars[0], 8);
}

using ErrorAndCount = std::pair<std::string, int64_t>;

/// What a rank of two has under the poisoner after a step of `ranksProgram` in which 8 bytes move
/// `from` one offset `to` another between the start of the all_gather and its wait: the error, and
/// the metric "counts".
ErrorAndCount moveInFlight(int64_t from, int64_t to) {
  Program program = testing::ranksProgram(1, 2);
  Function& step = program.functions[0];
  const int64_t counts = step.bindings[1].offset;
  Command move;
  move.target = static_cast<uint32_t>(program.kernels.size());
  move.operands = {{{counts, {}}, 8, Access::Both}};
  move.scalars = {{from - counts, {}}, {to - counts, {}}};
  program.kernels.push_back({"move", "move"});
  step.commands.insert(step.commands.end() - 1, move);
  ++step.temporaries.back().last;
  std::vector<KernelFunction> kernels(testing::ranksKernels().begin(),
                                      testing::ranksKernels().end());
  kernels.push_back(reachOutside);
  ErrorAndCount found;
  testing::onRanks(2, [&](Communicator& communicator) {
    const auto pool = ThreadPool::create(1).take();
    const auto device = testing::makeRanksDevice(program, kernels, *pool, communicator).take();
    const auto poisoner = Poisoner::create(program, *device, communicator.rank()).take();
    ASSERT_TRUE(device->run(0, poisoner.get()).ok());
    const Status status = poisoner->check();
    if (communicator.rank() == 0)
      found = {status.ok() ? "" : status.error().message(),
               *reinterpret_cast<int64_t*>(device->window(counts, 8).data())};
  });
  return found;
}

TEST(Poisoner, ShowsWhatTouchesACollectiveUnderWay) {
  const Program program = testing::ranksProgram(1, 2);
  const Function& step = program.functions[0];
  const int64_t sums = step.bindings[0].offset, counts = step.bindings[1].offset;
  const int64_t source = step.commands.back().operands[0].address.base;
  const int64_t result = step.commands.back().operands[1].address.base;
  EXPECT_EQ(moveInFlight(sums, sums + 8), ErrorAndCount("", testing::expectedCount(1, 2)));
  EXPECT_EQ(moveInFlight(source, counts).first, "") << "a source may be read";
  EXPECT_EQ(moveInFlight(sums, source).first,
            "a source of the all_gather of part was written between its start and its wait");
  EXPECT_EQ(moveInFlight(result, counts), ErrorAndCount("", -1)) << "every bit is set";
}

TEST(Figures, ThePlanEqualsTheRun) {
  LinearRun run(2);
  Recorder recorder;
  run.observer = &recorder;
  run.fill(0);
  for (const Function& function : run.program.functions) {
    recorder.start();
    ASSERT_TRUE(run.run(function.name).ok());
    EXPECT_EQ(recorder.figures(), plannedFigures(function)) << function.name;
  }
  Figures step = plannedFigures(run.program.functions[0]);
  EXPECT_EQ(step.gemms, 2 * LinearShape::microbatches);
  EXPECT_EQ(step.kernels, 2 * LinearShape::microbatches + 3);
  EXPECT_EQ(step.zeros, 2);
}

TEST(Profiler, AttributesTimeToLabels) {
  LinearRun run;
  Profiler profiler(run.program);
  run.observer = &profiler;
  run.train(5);
  std::vector<ProfileRow> rows = profiler.rows();
  auto it = std::ranges::find(rows, "forward product of linear", &ProfileRow::label);
  ASSERT_NE(it, rows.end());
  EXPECT_EQ(it->calls, 5 * LinearShape::microbatches);
  EXPECT_GT(it->seconds, 0);
  EXPECT_NE(profiler.chromeTrace().find("\"forward product of linear\""), std::string::npos);
}

} // namespace
} // namespace titan
