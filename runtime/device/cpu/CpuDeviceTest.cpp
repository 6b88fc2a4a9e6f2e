#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/testing/LinearRun.h"

#include <gtest/gtest.h>

#include <chrono>

namespace titan {
namespace {

using testing::LinearRun;
using testing::LinearShape;

/// The CPU's device, with oneDNN for the products.
Result<std::unique_ptr<Device>>
makeWithLibrary(const Program& program, std::span<const KernelFunction> kernels, ThreadPool& pool) {
  return std::unique_ptr<Device>(
      TITAN_TRY(CpuDevice::create(program, kernels, pool, TITAN_TRY(OneDnn::load()))));
}

TEST(CpuDevice, TrainsALinearModel) {
  LinearRun run;
  std::vector<float> losses = run.train(200);
  EXPECT_GT(losses[0], 0.1);
  EXPECT_LT(losses.back(), 1e-4);
  EXPECT_EQ(run.counter("step"), 200);
  EXPECT_EQ(run.counter("samples"), 200 * LinearShape::batch);
  EXPECT_EQ(run.counter("skipped"), 0);
}

TEST(CpuDevice, BitsDoNotDependOnThreads) {
  for (bool library : {false, true}) {
    if (library && !OneDnn::load().ok())
      GTEST_SKIP() << "no oneDNN";
    const LinearRun::Maker make = library ? makeWithLibrary : testing::makeCpuDevice;
    LinearRun one(1, make), two(2, make), three(3, make);
    EXPECT_EQ(one.train(20), two.train(20));
    three.train(20);
    EXPECT_EQ(one.stateBytes(), two.stateBytes());
    EXPECT_EQ(one.stateBytes(), three.stateBytes());
  }
}

TEST(CpuDevice, LibraryAndGeneratedProductsAgree) {
  if (!OneDnn::load().ok())
    GTEST_SKIP() << "no oneDNN";
  LinearRun generated, library(1, makeWithLibrary);
  std::vector<float> a = generated.train(20), b = library.train(20);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], 1e-5 * std::max(1.0f, a[i]));
}

TEST(CpuDevice, ALibraryThatFailsEndsTheRunWithItsCommand) {
  if (!OneDnn::load().ok())
    GTEST_SKIP() << "no oneDNN";
  LinearRun run(1, makeWithLibrary);
  // The library checks its arguments. (The table is checked only when the device is made.)
  const Gemm sound = run.program.libraryCalls[0].gemm;
  run.program.libraryCalls[0].gemm.lda = 0;
  run.fill(0);
  const Status status = run.run("step");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), ErrorCode::Environment);
  EXPECT_EQ(
      status.error().message(),
      "'forward product of linear' of step failed in oneDNN with status 2: free memory or use "
      "--gemm=generated");
  run.program.libraryCalls[0].gemm = sound;
  EXPECT_TRUE(run.run("step").ok());
}

TEST(CpuDevice, NonFiniteStepsAreSkippedByTheProgram) {
  LinearRun run;
  run.train(3);
  const State& weight = *run.program.findState("linear.weight");
  const std::string before = run.bytesOfState(weight);
  run.fill(3, INFINITY);
  ASSERT_TRUE(run.run("step").ok());
  EXPECT_EQ(run.bytesOfState(weight), before);
  EXPECT_EQ(run.counter("step"), 4);
  EXPECT_EQ(run.counter("optimizer.t"), 3);
  EXPECT_EQ(run.counter("skipped"), 1);
}

TEST(CpuDevice, RefusesATableThatDoesNotFitItsKernels) {
  Program program = testing::linearProgram();
  auto pool = ThreadPool::create(1).take();
  const auto device = CpuDevice::create(program, testing::linearKernels().subspan(1), *pool);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().message(), "the job has 7 kernel functions, its table names 8");
  program.functions[0].commands[3].target = 7;
  EXPECT_FALSE(CpuDevice::create(program, testing::linearKernels(), *pool).ok());
}

TEST(CpuDevice, LargeTransfersAreWhole) {
  Program program;
  program.arenaBytes = 5 << 20;
  for (int threads : {1, 3}) {
    auto pool = ThreadPool::create(threads).take();
    auto device = CpuDevice::create(program, {}, *pool).take();
    std::vector<char> bytes(4'000'001), read(bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<char>(i * 31 + i / 251);
    ASSERT_TRUE(device->upload(77, bytes).ok());
    ASSERT_TRUE(device->download(77, read).ok());
    EXPECT_EQ(bytes, read);
    ASSERT_TRUE(device->fill(78, 3'999'999, 5).ok());
    ASSERT_TRUE(device->download(77, read).ok());
    EXPECT_EQ(std::ranges::count(read, 5), 3'999'999 + (bytes[0] == 5) + (bytes.back() == 5));
    EXPECT_EQ(read[0], bytes[0]);
    EXPECT_EQ(read.back(), bytes.back());
    EXPECT_GE(device->bytes(), program.arenaBytes);
  }
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

TEST(CpuDevice, EveryKernelHasAFunction) {
  const Program program = emptyProgram(1, 1);
  auto pool = ThreadPool::create(1).take();
  const auto device = CpuDevice::create(program, {}, *pool);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().message(), "the job has 0 kernel functions, its table names 1");
}

TEST(CpuDevice, DispatchIsCheap) {
  Program program = emptyProgram(100, 10);
  auto pool = ThreadPool::create(1).take();
  const KernelFunction nothing[] = {[](char* const*, const int64_t*, int64_t, int64_t) {}};
  auto device = CpuDevice::create(program, nothing, *pool).take();
  double best = 1e9;
  for (int i = 0; i < 200; ++i) {
    auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(device->run(0, nullptr).ok());
    best = std::min(
        best,
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  std::printf("a command of one thread costs %.1f ns\n", best / 1000);
  EXPECT_LT(best / 1000, 1000);
}

TEST(CpuDevice, AffineOperandsFollowBothRepeats) {
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
  auto device = CpuDevice::create(program, kernel, *pool).take();
  ASSERT_TRUE(device->run(0, nullptr).ok());
  const auto* values = reinterpret_cast<const int64_t*>(device->window(0, 64).data());
  EXPECT_EQ(std::vector<int64_t>(values, values + 8),
            (std::vector<int64_t>{0, 5, 15, 25, 105, 115, 125, 0}));
}

} // namespace
} // namespace titan
