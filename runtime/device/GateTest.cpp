// What still reads states is waited for before they change (Device::setGate).
#include "runtime/device/testing/LinearRun.h"

namespace titan {
namespace {

using testing::LinearRun;

class Gate : public ::testing::Test {
protected:
  void set() {
    run.access->setGate([this] {
      ++passed;
      seen = run.stateBytes();
    });
  }

  LinearRun run{2};
  int passed = 0;
  std::string seen; ///< the states' bytes in the gate
};

/// Counts commands, and which of them came before the gate.
struct Counting final : CommandObserver {
  explicit Counting(const int& gate) : passed(gate) {}
  void before(const Function& function, uint32_t index) override {
    const bool isUpdate = function.commands[index].phase == Phase::Update;
    ++(passed > 0 ? behind : ahead);
    updatesBefore += isUpdate && passed == 0;
  }
  void after(const Function&, uint32_t) override {}

  const int& passed;
  int ahead = 0, behind = 0, updatesBefore = 0;
};

TEST_F(Gate, IsPassedOnceBeforeAStepChangesStates) {
  run.train(3);
  const std::string before = run.stateBytes();
  set();
  run.fill(3); // of inputs, which are no state
  EXPECT_EQ(passed, 0);
  ASSERT_TRUE(run.run("step").ok());
  EXPECT_EQ(passed, 1);
  EXPECT_EQ(seen, before);
  EXPECT_NE(run.stateBytes(), before);
  run.train(2);
  EXPECT_EQ(passed, 1);
}

TEST_F(Gate, ForwardAndBackwardRunBeforeIt) {
  run.train(1);
  Counting counting(passed);
  run.observer = &counting;
  set();
  run.fill(1);
  ASSERT_TRUE(run.run("step").ok());
  EXPECT_GT(counting.ahead, 0);
  EXPECT_GT(counting.behind, 0);
  EXPECT_EQ(counting.updatesBefore, 0);
}

TEST_F(Gate, ChangesNoResult) {
  LinearRun plain(2);
  for (int64_t step = 0; step < 5; ++step) {
    set();
    run.fill(step), plain.fill(step);
    ASSERT_TRUE(run.run("step").ok() && plain.run("step").ok());
  }
  EXPECT_EQ(passed, 5);
  EXPECT_EQ(run.stateBytes(), plain.stateBytes());
}

TEST_F(Gate, IsNoMatterOfWhatOnlyReads) {
  set();
  ASSERT_TRUE(run.run("eval").ok());
  EXPECT_EQ(passed, 0);
}

TEST_F(Gate, IsPassedByEveryWayToWriteAState) {
  const Place weight = *run.access->state(StateKind::Param, {}, "linear.weight");
  const std::string bytes(static_cast<size_t>(weight.bytes), 'x');
  for (const std::function<Status()>& write :
       {std::function<Status()>([&] { return run.access->write(weight, 0, bytes); }),
        std::function<Status()>([&] { return run.access->fill(weight, 1); }),
        std::function<Status()>([&] { return run.access->sink(weight).write(0, bytes); })}) {
    passed = 0;
    const std::string before = run.stateBytes();
    set();
    ASSERT_TRUE(write().ok());
    EXPECT_EQ(passed, 1);
    EXPECT_EQ(seen, before);
  }
}

TEST_F(Gate, ANewOneOrNoneTakesItsPlace) {
  int other = 0;
  set();
  run.access->setGate([&] { ++other; });
  run.train(1);
  EXPECT_EQ(passed, 0);
  EXPECT_EQ(other, 1);
  set();
  run.access->setGate(nullptr);
  run.train(1);
  EXPECT_EQ(passed, 0);
}

} // namespace
} // namespace titan
