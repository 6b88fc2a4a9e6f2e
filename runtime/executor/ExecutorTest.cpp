#include "runtime/executor/Executor.h"

#include "runtime/executor/Figures.h"
#include "runtime/executor/Poisoner.h"
#include "runtime/executor/Profiler.h"
#include "runtime/executor/testing/LinearProgram.h"
#include "runtime/program/Random.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

namespace {
// Every allocation of this process by operator new, on any thread.
std::atomic<int64_t> allocations{0};
} // namespace

void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace titan {
namespace {

using testing::LinearShape;

/// One program on one pool, with data that a fixed linear map made.
struct LinearRun {
  Program program = testing::linearProgram();
  std::string payload = testing::linearPayload();
  std::unique_ptr<ThreadPool> pool;
  std::optional<OneDnn> oneDnn;
  std::optional<Executor> executor;

  explicit LinearRun(int threads, bool library = false) {
    pool = ThreadPool::create(threads).take();
    if (library)
      oneDnn = OneDnn::load().take();
    executor = Executor::create(program, testing::linearKernels(),
                                {.pool = pool.get(), .oneDnn = oneDnn ? &*oneDnn : nullptr})
                   .take();
    EXPECT_TRUE(executor->initialize({.payload = payload}).ok());
  }

  template <typename T = float> T* binding(const char* function, const char* name) {
    return reinterpret_cast<T*>(executor->bytes(*executor->findBinding(function, name)).data());
  }

  int64_t counter(const char* name) {
    return *reinterpret_cast<int64_t*>(executor->bytes(*program.findState(name)).data());
  }

  void fill(int64_t step) {
    float *x = binding("step", "x"), *y = binding("step", "targets");
    for (int64_t row = 0; row < LinearShape::batch; ++row)
      for (int64_t j = 0; j < LinearShape::features; ++j) {
        float& value = x[row * LinearShape::features + j];
        value = normalDraw(7, step, row * LinearShape::features + j);
        for (int64_t o = 0; o < LinearShape::outputs; ++o) {
          float& target = y[row * LinearShape::outputs + o];
          target = (j ? target : 0.5f) + value * static_cast<float>(o + 1) * (j % 2 ? 0.3f : -0.2f);
        }
      }
    *binding("step", "optimizer.lr") = 0.05f;
  }

  std::vector<float> train(int64_t steps) {
    std::vector<float> losses;
    for (int64_t step = 0; step < steps; ++step) {
      fill(step);
      EXPECT_TRUE(executor->run("step").ok());
      losses.push_back(*binding("step", "loss"));
    }
    return losses;
  }

  std::string stateBytes() {
    std::string bytes;
    for (const State& state : program.states)
      bytes.append(executor->bytes(state).data(), executor->bytes(state).size());
    return bytes;
  }
};

TEST(Executor, TrainsALinearModel) {
  LinearRun run(1);
  std::vector<float> losses = run.train(200);
  EXPECT_GT(losses[0], 0.1);
  EXPECT_LT(losses.back(), 1e-4);
  EXPECT_EQ(run.counter("step"), 200);
  EXPECT_EQ(run.counter("samples"), 200 * LinearShape::batch);
  EXPECT_EQ(run.counter("skipped"), 0);
}

TEST(Executor, BitsDoNotDependOnThreads) {
  for (bool library : {false, true}) {
    if (library && !OneDnn::load().ok())
      GTEST_SKIP() << "no oneDNN";
    LinearRun one(1, library), two(2, library), three(3, library);
    EXPECT_EQ(one.train(20), two.train(20));
    three.train(20);
    EXPECT_EQ(one.stateBytes(), two.stateBytes());
    EXPECT_EQ(one.stateBytes(), three.stateBytes());
  }
}

TEST(Executor, LibraryAndGeneratedProductsAgree) {
  if (!OneDnn::load().ok())
    GTEST_SKIP() << "no oneDNN";
  LinearRun generated(1, false), library(1, true);
  std::vector<float> a = generated.train(20), b = library.train(20);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], 1e-5 * std::max(1.0f, a[i]));
}

TEST(Executor, NonFiniteStepsAreSkippedByTheProgram) {
  LinearRun run(1);
  run.train(3);
  std::string weights(run.executor->bytes(*run.program.findState("linear.weight")).data(), 96);
  run.fill(3);
  run.binding("step", "x")[0] = INFINITY;
  ASSERT_TRUE(run.executor->run("step").ok());
  EXPECT_EQ(weights,
            std::string(run.executor->bytes(*run.program.findState("linear.weight")).data(), 96));
  EXPECT_EQ(run.counter("step"), 4);
  EXPECT_EQ(run.counter("optimizer.t"), 3);
  EXPECT_EQ(run.counter("skipped"), 1);
}

TEST(Executor, RunsAllocateNothing) {
  LinearRun run(2);
  run.train(1);
  run.fill(1);
  const int64_t before = allocations;
  for (int i = 0; i < 100; ++i)
    if (!run.executor->run("step").ok())
      break;
  EXPECT_EQ(allocations - before, 0);
}

TEST(Executor, UnknownFunctionIsAnError) {
  LinearRun run(1);
  EXPECT_EQ(run.executor->run("dance").error().code(), ErrorCode::Internal);
}

TEST(Executor, RefusesATableThatDoesNotFitItsKernels) {
  Program program = testing::linearProgram();
  auto pool = ThreadPool::create(1).take();
  EXPECT_FALSE(
      Executor::create(program, testing::linearKernels().subspan(1), {.pool = pool.get()}).ok());
  program.functions[0].commands[3].target = 7;
  EXPECT_FALSE(Executor::create(program, testing::linearKernels(), {.pool = pool.get()}).ok());
}

TEST(Poisoner, ChangesNothing) {
  for (int threads : {1, 2}) {
    LinearRun plain(threads), poisoned(threads);
    Poisoner poisoner(*poisoned.executor);
    poisoned.executor->setObserver(&poisoner);
    EXPECT_EQ(plain.train(10), poisoned.train(10));
    EXPECT_EQ(plain.stateBytes(), poisoned.stateBytes());
    EXPECT_TRUE(poisoner.checkUnplanned().ok());
  }
}

TEST(Poisoner, ShowsAReadOutsideOfALiveRange) {
  LinearRun run(1);
  run.program.functions[0].temporaries[0].first = 1; // the gradient is cleared before it is live
  Poisoner poisoner(*run.executor);
  run.executor->setObserver(&poisoner);
  run.fill(0);
  ASSERT_TRUE(run.executor->run("step").ok());
  EXPECT_TRUE(std::isnan(*run.binding("step", "grad_norm")));
}

TEST(Poisoner, ShowsAWriteToUnplannedBytes) {
  LinearRun run(1);
  Poisoner poisoner(*run.executor);
  run.executor->arena()[run.program.arenaBytes] = 0;
  Status status = poisoner.checkUnplanned();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), ErrorCode::Internal);
}

TEST(Figures, ThePlanEqualsTheRun) {
  LinearRun run(2);
  Recorder recorder;
  run.executor->setObserver(&recorder);
  run.fill(0);
  for (const Function& function : run.program.functions) {
    recorder.start();
    ASSERT_TRUE(run.executor->run(function.name).ok());
    EXPECT_EQ(recorder.figures(), plannedFigures(function)) << function.name;
  }
  Figures step = plannedFigures(run.program.functions[0]);
  EXPECT_EQ(step.gemms, 2 * LinearShape::microbatches);
  EXPECT_EQ(step.kernels, 2 * LinearShape::microbatches + 3);
  EXPECT_EQ(step.zeros, 2);
}

TEST(Profiler, AttributesTimeToLabels) {
  LinearRun run(1);
  Profiler profiler(run.program);
  run.executor->setObserver(&profiler);
  run.train(5);
  std::vector<ProfileRow> rows = profiler.rows();
  auto it = std::ranges::find(rows, "forward product of linear", &ProfileRow::label);
  ASSERT_NE(it, rows.end());
  EXPECT_EQ(it->calls, 5 * LinearShape::microbatches);
  EXPECT_GT(it->seconds, 0);
  EXPECT_NE(profiler.chromeTrace().find("\"forward product of linear\""), std::string::npos);
}

/// `kernels` commands that do nothing, inside `repeat` iterations with one varying operand each.
Program emptyProgram(int64_t commands, int64_t repeat) {
  Program program;
  program.arenaBytes = 4096;
  program.kernels.push_back({"nothing", "nothing"});
  Function function;
  function.name = "step";
  Command command;
  command.operands = {{{0, {{0, 1}}}, 1}, {{64}, 1}, {{128}, 1}};
  Command open = command, close = command;
  open.kind = CommandKind::Repeat, open.launch.units = repeat, open.operands = {};
  close.kind = CommandKind::EndRepeat, close.operands = {};
  function.commands.push_back(open);
  function.commands.insert(function.commands.end(), commands, command);
  function.commands.push_back(close);
  program.functions.push_back(function);
  return program;
}

TEST(Executor, DispatchIsCheap) {
  Program program = emptyProgram(100, 10);
  auto pool = ThreadPool::create(1).take();
  const KernelFunction nothing[] = {[](char* const*, const int64_t*, int64_t, int64_t) {}};
  Executor executor = Executor::create(program, nothing, {.pool = pool.get()}).take();
  double best = 1e9;
  for (int i = 0; i < 200; ++i) {
    auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(executor.run("step").ok());
    best = std::min(
        best,
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  std::printf("a command of one thread costs %.1f ns\n", best / 1000);
  EXPECT_LT(best / 1000, 1000);
}

TEST(Executor, AffineOperandsFollowBothRepeats) {
  Program program;
  program.arenaBytes = 4096;
  program.kernels.push_back({"mark", "mark"});
  auto repeat = [](CommandKind kind, int64_t units) {
    Command command;
    command.kind = kind, command.launch.units = units;
    return command;
  };
  Command mark;
  mark.operands = {{{8, {{0, 24}, {1, 8}}}, 8, Access::Both}};
  mark.scalars = {{5, {{0, 100}, {1, 10}}}};
  Function function;
  function.name = "step";
  function.commands = {repeat(CommandKind::Repeat, 2), repeat(CommandKind::Repeat, 3), mark,
                       repeat(CommandKind::EndRepeat, 1), repeat(CommandKind::EndRepeat, 1)};
  program.functions.push_back(function);
  auto pool = ThreadPool::create(1).take();
  const KernelFunction kernel[] = {
      [](char* const* operands, const int64_t* scalars, int64_t, int64_t) {
        *reinterpret_cast<int64_t*>(operands[0]) += scalars[0];
      }};
  Executor executor = Executor::create(program, kernel, {.pool = pool.get()}).take();
  ASSERT_TRUE(executor.run("step").ok());
  const auto* values = reinterpret_cast<const int64_t*>(executor.arena());
  EXPECT_EQ(std::vector<int64_t>(values, values + 8),
            (std::vector<int64_t>{0, 5, 15, 25, 105, 115, 125, 0}));
}

} // namespace
} // namespace titan
