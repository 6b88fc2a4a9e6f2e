// The comparer on a CPU that is its own reference: what it sees of repeats and of errors.
#include "runtime/executor/Comparer.h"

#include "runtime/device/testing/TestDevices.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace titan {
namespace {

float* floats(char* address) { return reinterpret_cast<float*>(address); }

/// into, from: adds one.
void next(char* const* operands, const int64_t*, int64_t, int64_t) {
  *floats(operands[0]) = *floats(operands[1]) + 1;
}

/// The device's code does something else for the value that the test says.
float wrongFor = NAN, wrong = 0;
void changed(char* const* operands, const int64_t* scalars, int64_t begin, int64_t end) {
  const bool isWrong = *floats(operands[1]) == wrongFor;
  next(operands, scalars, begin, end);
  if (isWrong)
    *floats(operands[0]) = wrong;
}

/// x[i + 1] = x[i] + 1 over two nested repeats with commands before, inside and behind: 24 numbers
/// of 4 bytes, six an iteration of the outer one.
Program nested() {
  constexpr int64_t outer = 4, inner = 2, size = sizeof(float);
  Program program;
  program.target = {"cpu", "", {}};
  program.kernels = {{"next", "next : chain"}};
  program.comparisons = {{{{DType::F32, {1}}, {DType::F32, {1}}}, 0}};
  program.arenaBytes = 4096;
  Function step;
  step.name = "step";
  const auto add = [&](CommandKind kind, int64_t units, Affine from = {}) {
    Command& command = step.commands.emplace_back();
    command.kind = kind;
    command.launch.units = units;
    if (kind == CommandKind::Kernel) {
      Affine into = from;
      into.base += size;
      command.operands = {{into, size, Access::Write}, {from, size, Access::Read}};
    }
  };
  const Affine row = Affine::counter(0) * (6 * size);
  add(CommandKind::Repeat, outer);
  add(CommandKind::Kernel, 1, row);
  add(CommandKind::Repeat, inner);
  add(CommandKind::Kernel, 1, row + Affine::counter(1) * (2 * size) + Affine{size, {}});
  add(CommandKind::Kernel, 1, row + Affine::counter(1) * (2 * size) + Affine{2 * size, {}});
  add(CommandKind::EndRepeat, 0);
  add(CommandKind::Kernel, 1, row + Affine{5 * size, {}});
  add(CommandKind::EndRepeat, 0);
  program.functions = {step};
  return program;
}

class ComparerTest : public ::testing::Test {
protected:
  void SetUp() override { wrongFor = NAN; }

  void run(const Program& program, const KernelFunction code = next) {
    const KernelFunction device[] = {changed}, host[] = {code};
    pool = ThreadPool::create(1).take();
    auto cpu = testing::makeCpuDevice(program, device, *pool).take();
    ASSERT_TRUE(cpu->fill(0, program.arenaBytes, 0).ok());
    comparer = Comparer::create(program, host, *cpu, *pool).take();
    ASSERT_TRUE(cpu->run(0, comparer.get()).ok());
    ASSERT_TRUE(comparer->status().ok());
    last = *floats(cpu->window(24 * sizeof(float), sizeof(float)).data());
  }

  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Comparer> comparer;
  float last = 0;
};

TEST_F(ComparerTest, FollowsRepeats) {
  run(nested());
  EXPECT_FALSE(comparer->difference());
  EXPECT_EQ(comparer->summary().commands, 4 * (2 + 2 * 2));
  EXPECT_EQ(last, 24) << "the device went on with its own";
}

TEST_F(ComparerTest, NamesWhatIsWrongInTheIteration) {
  wrongFor = 15, wrong = 3.5; // the third outer iteration, the second inner one
  run(nested());
  ASSERT_TRUE(comparer->difference());
  EXPECT_EQ(comparer->difference()->label, "next : chain");
  EXPECT_EQ(comparer->difference()->command, 3u);
  EXPECT_EQ(comparer->difference()->operand, 0u);
  EXPECT_EQ(comparer->difference()->index, "[0]");
  EXPECT_EQ(comparer->difference()->device, 3.5);
  EXPECT_EQ(comparer->difference()->host, 16);
  EXPECT_EQ(comparer->difference()->bound, 0);
}

TEST_F(ComparerTest, NaNIsNoNumber) {
  Program program = nested();
  program.comparisons[0].operands[0] = {DType::F32, {1}, Tolerance::Scale, 1e9};
  wrongFor = 7, wrong = 1e6;
  run(program);
  EXPECT_FALSE(comparer->difference()) << "far within the bound";
  wrong = std::numeric_limits<float>::quiet_NaN();
  run(program);
  ASSERT_TRUE(comparer->difference());
  EXPECT_TRUE(std::isnan(comparer->difference()->device));
}

TEST_F(ComparerTest, SaysNothingOfWorkspaces) {
  Program program = nested();
  program.comparisons[0].operands[0].tolerance = Tolerance::Any;
  wrongFor = 7, wrong = 1e6;
  run(program);
  EXPECT_FALSE(comparer->difference());
}

} // namespace
} // namespace titan
