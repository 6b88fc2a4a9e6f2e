#include "compiler/Eager/ReferenceEngine.h"

#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Pipeline/Register.h"
#include "runtime/device/StateAccess.h"

using namespace mlir;

namespace titan::eager {
namespace {

class ReferenceEngineTest : public interpreter::testing::ModuleFixture {
protected:
  ReferenceEngineTest() : ModuleFixture(titan::registerAllDialects) {}

  /// step doubles x; eval cannot be run.
  OwningOpRef<ModuleOp> module = parse(R"(
    func.func @step(%x: tensor<2xf32> {titan.input = "x"}) -> (tensor<2xf32> {titan.output = "y"}) {
      %y = titan.add %x, %x : tensor<2xf32>
      return %y : tensor<2xf32>
    }
    func.func @eval(%x: tensor<2xf32> {titan.input = "x"}) -> (tensor<2xf32> {titan.output = "y"}) {
      %y = builtin.unrealized_conversion_cast %x : tensor<2xf32> to tensor<2xf32>
      return %y : tensor<2xf32>
    }
    func.func @predict(%x: tensor<2xf32> {titan.input = "x"}) -> (tensor<2xf32> {titan.output = "y"}) {
      return %x : tensor<2xf32>
    })");
  ReferenceProgram program = ReferenceProgram::create(*module, interpreter::Engine::F32).take();
  std::unique_ptr<ReferenceEngine> engine = ReferenceEngine::create(program).take();
  StateAccess access{program.program(), *engine};
};

/// Writes down which commands it saw.
class Watcher final : public CommandObserver {
public:
  void beforeFunction(const Function& function) override { seen += "(" + function.name; }
  void before(const Function&, uint32_t command) override { seen += std::to_string(command); }
  void after(const Function&, uint32_t command) override { seen += std::to_string(command); }
  void afterFunction(const Function&) override { seen += ")"; }
  std::string seen;
};

TEST_F(ReferenceEngineTest, RunsAFunctionOnItsArena) {
  const float x[] = {1.5f, -2};
  float y[] = {0, 0};
  Watcher watcher;
  ASSERT_TRUE(
      access.write(*access.binding("step", "x"), 0, {reinterpret_cast<const char*>(x), sizeof x})
          .ok());
  ASSERT_TRUE(access.run(0, &watcher).ok());
  ASSERT_TRUE(
      access.read(*access.binding("step", "y"), 0, {reinterpret_cast<char*>(y), sizeof y}).ok());
  EXPECT_EQ(y[0], 3);
  EXPECT_EQ(y[1], -4);
  EXPECT_EQ(watcher.seen, "(step00)");
}

TEST_F(ReferenceEngineTest, TwoEnginesOfAProcessKeepApart) {
  auto other = ReferenceEngine::create(program).take();
  ASSERT_TRUE(other->fill(0, other->bytes(), 0).ok());
  const float x[] = {1, 1};
  ASSERT_TRUE(
      access.write(*access.binding("step", "x"), 0, {reinterpret_cast<const char*>(x), sizeof x})
          .ok());
  ASSERT_TRUE(access.run(0, nullptr).ok());
  for (char byte : other->window(0, other->bytes()))
    EXPECT_EQ(byte, 0);
}

TEST_F(ReferenceEngineTest, WhatCannotBeRunIsAnErrorWithItsCommand) {
  const Status failed = access.run(1, nullptr);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code(), ErrorCode::Internal);
  EXPECT_EQ(failed.error().message(), "'reference interpreter' cannot run @eval");
  EXPECT_NE(message.find("has no meaning in the interpreter"), std::string::npos) << message;
}

} // namespace
} // namespace titan::eager
