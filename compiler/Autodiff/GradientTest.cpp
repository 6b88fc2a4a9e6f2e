// Every derivative rule against central differences of the interpreter in f64.
#include "compiler/Autodiff/Passes.h"
#include "compiler/Autodiff/ReverseMode.h"
#include "compiler/Autodiff/Rules.h"
#include "compiler/Autodiff/testing/RandomGraph.h"
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/RandomArguments.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Interpreter/testing/OpInstances.h"
#include "dialects/Titan/TensorBuilder.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

using namespace mlir;
using namespace titan::interpreter;

namespace {

using titan::interpreter::testing::Instance;
using titan::interpreter::testing::OpInstances;

constexpr double step = 1e-5;

OpInstances& instances() {
  static auto* loaded = new OpInstances(
      titan::interpreter::testing::moduleRegistry(titan::autodiff::registerDerivativeRules));
  return *loaded;
}

/// Attention has no derivative of its log_sum_exp, nor of the largest score; a recurrent layer none
/// of its gates.
bool isStatistic(Value value) {
  if (auto recurrence = value.getDefiningOp<titan::ir::RecurrenceOp>()) {
    const bool isLstm = recurrence.getCell() == titan::ir::RecurrentCell::Lstm;
    return value != recurrence.getResult() && !(isLstm && value == recurrence.getKept().back());
  }
  auto attention = value.getDefiningOp<titan::ir::AttentionOp>();
  return attention && attention.getResult() != value;
}

/// `function` with more arguments, one weight for each float result, and (loss, gradient of each
/// float argument) as results, where loss is the weighted sum of all elements.
struct GradientFunction {
  OwningOpRef<func::FuncOp> function;
  SmallVector<unsigned> wanted; ///< the arguments with gradients

  explicit GradientFunction(func::FuncOp original) : function(original.clone()) {
    Block& block = function->getBody().front();
    Operation* terminator = block.getTerminator();
    OpBuilder builder(terminator);
    titan::ir::TensorBuilder b(builder, original.getLoc());
    SmallVector<Value> parameters;
    for (BlockArgument argument : block.getArguments())
      if (isa<FloatType>(getElementTypeOrSelf(argument.getType()))) {
        wanted.push_back(argument.getArgNumber());
        parameters.push_back(argument);
      }
    Value loss;
    for (Value result : SmallVector<Value>(terminator->getOperands())) {
      if (!isa<FloatType>(getElementTypeOrSelf(result.getType())) || isStatistic(result))
        continue;
      Value weighted = b.mul(result, block.addArgument(result.getType(), original.getLoc()));
      Value sum =
          b.convert(b.reduceAll(titan::ir::ReduceKind::Sum, weighted), b.builder.getF64Type());
      loss = loss ? b.add(loss, sum) : sum;
    }
    auto gradients = titan::autodiff::buildGradients(loss, parameters);
    if (failed(gradients))
      return;
    SmallVector<Value> results = {loss};
    for (auto [parameter, gradient] : llvm::zip_equal(parameters, *gradients))
      results.push_back(gradient ? gradient : b.splatLike(parameter, 0));
    terminator->setOperands(results);
    function->setFunctionType(
        builder.getFunctionType(block.getArgumentTypes(), ValueRange(results).getTypes()));
    valid = true;
  }
  bool valid = false;
};

void checkGradients(const Instance& instance, std::vector<Tensor> arguments) {
  GradientFunction gradient(instance.function);
  ASSERT_TRUE(gradient.valid && succeeded(verify(*gradient.function))) << instance.name;
  func::FuncOp function = *gradient.function;
  for (unsigned i = arguments.size(); i < function.getNumArguments(); ++i)
    arguments.push_back(randomTensor(cast<ShapedType>(function.getArgumentTypes()[i]), 1000 + i));
  auto run = [&] { return titan::interpreter::run(function, arguments, Engine::F64); };
  FailureOr<SmallVector<Tensor>> analytic = run();
  ASSERT_TRUE(succeeded(analytic)) << instance.name;
  for (auto [g, index] : llvm::enumerate(gradient.wanted)) {
    ArrayRef<double> found = (*analytic)[1 + g].floats();
    double largest = 1;
    for (double x : found)
      largest = std::max(largest, std::abs(x));
    for (int64_t i = 0; i < arguments[index].size(); ++i) {
      double old = arguments[index].floats()[i];
      auto lossAt = [&](double x) {
        arguments[index].mutableFloats()[i] = x;
        auto results = run();
        return succeeded(results) ? results->front().real() : NAN;
      };
      double difference = (lossAt(old + step) - lossAt(old - step)) / (2 * step);
      arguments[index].mutableFloats()[i] = old;
      ASSERT_NEAR(found[i], difference, 1e-6 * largest)
          << instance.name << ": argument " << index << ", element " << i;
    }
  }
}

TEST(Gradient, AgreesWithCentralDifferences) {
  int checked = 0;
  for (const Instance& instance : instances().all()) {
    bool hasIndex = llvm::any_of(instance.op->getOperandTypes(),
                                 [](Type type) { return !isa<RankedTensorType>(type); });
    bool hasFloats = llvm::any_of(instance.op->getResultTypes(), [](Type type) {
      return isa<FloatType>(getElementTypeOrSelf(type));
    });
    // The gradient of a padded look-up leaves a row out by definition: its recorded reference says
    // so.
    auto lookup = dyn_cast<titan::ir::EmbeddingOp>(instance.op);
    bool isPadded = lookup && lookup.getPadding();
    if (!isa<titan::ir::DifferentiableOpInterface>(instance.op) || hasIndex || !hasFloats ||
        isPadded)
      continue;
    std::vector<std::vector<Tensor>> inputs;
    for (const auto& run : instance.runs)
      inputs.push_back(run.arguments);
    // A score that is lost beside its mask moves no loss. It has the gradient of the sum all the
    // same, which its recorded reference says.
    bool isLost = isa<titan::ir::AttentionOp>(instance.op) &&
                  llvm::any_of(inputs, [](const std::vector<Tensor>& arguments) {
                    return llvm::any_of(arguments, [](const Tensor& tensor) {
                      return tensor.isFloat() && llvm::any_of(tensor.floats(), [](double x) {
                               return std::isfinite(x) && x < -1e30;
                             });
                    });
                  });
    if (isLost)
      continue;
    if (inputs.empty()) {
      SmallVector<Tensor> random = randomArguments(instance.function);
      inputs.emplace_back(random.begin(), random.end());
    }
    for (const std::vector<Tensor>& arguments : inputs)
      checkGradients(instance, arguments);
    ++checked;
  }
  EXPECT_GT(checked, 50);
}

TEST(Gradient, OfALengthIsZeroWhereTheLengthIs) {
  auto module = parseSourceString<ModuleOp>(R"(func.func @f(%x: tensor<2x3xf32>) -> tensor<2xf32> {
    %squares = titan.mul %x, %x : tensor<2x3xf32>
    %sum = titan.reduce sum %squares [1] : tensor<2x3xf32> to tensor<2xf32>
    %length = titan.sqrt %sum : tensor<2xf32>
    return %length : tensor<2xf32>
  })",
                                            &instances().context());
  auto function = module->lookupSymbol<func::FuncOp>("f");
  const auto type = cast<ShapedType>(function.getArgumentTypes()[0]);
  checkGradients({"length", function, nullptr, {}}, {Tensor::splat(type, 0)});
}

TEST(Gradient, RandomGraphsAgreeWithCentralDifferences) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto module = titan::autodiff::testing::createRandomGraph(instances().context(), seed);
    auto function = module->lookupSymbol<func::FuncOp>("f");
    Instance instance{"seed " + std::to_string(seed), function, nullptr, {}};
    SmallVector<Tensor> arguments = randomArguments(function, {seed});
    checkGradients(instance, std::vector<Tensor>(arguments.begin(), arguments.end()));
  }
}

/// Runs `passes` on `module` and compares with what it meant before.
void expectUnchanged(ModuleOp module, PassManager& passes, double tolerance, uint64_t seed) {
  OwningOpRef<ModuleOp> before = module.clone();
  ASSERT_TRUE(succeeded(passes.run(module)));
  EquivalenceOptions options;
  options.tolerance = tolerance;
  EXPECT_TRUE(succeeded(checkEquivalent(*before, module, options))) << "seed " << seed;
}

// Folding and sharing change no value of a graph with its gradients; joining pieces may add other
// terms in another order.
TEST(Gradient, RandomGraphsKeepTheirMeaningWhenSimplified) {
  int joined = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto module = titan::autodiff::testing::createRandomGraph(instances().context(), seed);
    auto original = module->lookupSymbol<func::FuncOp>("f");
    GradientFunction gradient(original);
    original.erase();
    module->push_back(gradient.function.release());
    auto countPads = [&] {
      int pads = 0;
      module->walk([&](titan::ir::PadOp) { ++pads; });
      return pads;
    };
    int pads = countPads();
    PassManager join(&instances().context());
    join.addPass(titan::createCombinePieces());
    expectUnchanged(*module, join, 1e-13, seed);
    joined += pads - countPads();

    PassManager simplify(&instances().context());
    simplify.addPass(createCanonicalizerPass());
    simplify.addPass(titan::createCombineDuplicates());
    simplify.addPass(createCanonicalizerPass());
    expectUnchanged(*module, simplify, 0, seed);
  }
  EXPECT_GT(joined, 10);
}

TEST(Gradient, EveryDifferentiableOpHasAnInstance) {
  EXPECT_EQ(instances().findWithout<titan::ir::DifferentiableOpInterface>(),
            std::vector<std::string>());
}

// Ops without a derivative rule, all of them known: a new op gets a rule or a place here.
TEST(Gradient, EveryFloatOpHasARuleOrIsKnownToHaveNone) {
  const std::set<std::string> without = {"titan.state",
                                         "titan.constant",
                                         "titan.iota",
                                         "titan.argmax",
                                         "titan.exact_sum",
                                         "titan.exact_value",
                                         "titan.compare",
                                         "titan.and",
                                         "titan.or",
                                         "titan.not",
                                         "titan.is_finite",
                                         "titan.detach",
                                         "titan.schedule",
                                         "titan.sgd",
                                         "titan.adam",
                                         "titan.cross_entropy_grad",
                                         "titan.embedding_grad",
                                         "titan.attention_grad",
                                         "titan.recurrence_grad",
                                         "titan.max_pool_grad",
                                         "titan.random"};
  for (RegisteredOperationName op : instances().context().getRegisteredOperations())
    if (op.getDialectNamespace() == "titan")
      EXPECT_NE(op.hasInterface<titan::ir::DifferentiableOpInterface>(),
                without.count(op.getStringRef().str()) > 0)
          << op.getStringRef().str();
}

} // namespace
