// The meaning of every titan op against what PyTorch computed
// (test/interpreter/record_references.py).
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Interpreter/testing/OpInstances.h"
#include "dialects/Titan/Titan.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace titan::interpreter;

namespace {

using titan::interpreter::testing::Instance;
using titan::interpreter::testing::OpInstances;
using titan::interpreter::testing::Run;

OpInstances& instances() {
  static auto* loaded = new OpInstances(titan::interpreter::testing::moduleRegistry());
  return *loaded;
}

void expectReferences(Engine engine, double tolerance) {
  for (const Instance& instance : instances().all())
    for (const Run& run : instance.runs) {
      FailureOr<SmallVector<Tensor>> results =
          titan::interpreter::run(instance.function, run.arguments, engine);
      ASSERT_TRUE(succeeded(results)) << instance.name;
      ASSERT_EQ(results->size(), run.results.size()) << instance.name;
      for (auto [found, wanted] : llvm::zip_equal(*results, run.results))
        EXPECT_EQ(describeDifference(wanted, found, tolerance), "") << instance.name;
    }
}

TEST(Reference, F64AgreesWithPyTorch) { expectReferences(Engine::F64, 1e-13); }

TEST(Reference, F32AgreesWithPyTorchUpToRounding) { expectReferences(Engine::F32, 1e-6); }

// What draws random numbers has no counterpart in PyTorch: InterpreterTest checks it against
// runtime/program/Random.h.
TEST(Reference, EveryOpHasAReference) {
  EXPECT_EQ(instances().findWithout<titan::ir::InterpretableOpInterface>(),
            std::vector<std::string>());
  for (const Instance& instance : instances().all())
    EXPECT_TRUE(!instance.runs.empty() || titan::ir::asRandom(instance.op))
        << instance.name << " is not in references.json";
}

TEST(Reference, EveryOpHasAMeaning) {
  for (RegisteredOperationName op : instances().context().getRegisteredOperations())
    if (op.getDialectNamespace() == "titan" && op.getStringRef() != "titan.state")
      EXPECT_TRUE(op.hasInterface<titan::ir::InterpretableOpInterface>())
          << op.getStringRef().str();
}

} // namespace
