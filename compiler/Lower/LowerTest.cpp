// Lowering and fusion by execution: what the kernels compute is what the titan ops say, and fusion
// changes no bit of it.
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/testing/DrawnConvolution.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Interpreter/testing/OpInstances.h"
#include "compiler/Lower/Passes.h"
#include "compiler/Lower/TileGrid.h"
#include "compiler/Support/TargetInfo.h"
#include "dialects/Accum/Accum.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

using namespace mlir;
using titan::interpreter::checkEquivalent;
using titan::interpreter::Engine;
using titan::interpreter::EquivalenceOptions;
using titan::interpreter::testing::Instance;
using titan::interpreter::testing::Run;

namespace {

/// The kernels of single ops, what fusion makes of them, and that with longer rows.
struct Lowered {
  OwningOpRef<ModuleOp> single, fused, padded;
};

Lowered lower(ModuleOp module) {
  Lowered lowered = {module.clone(), module.clone(), nullptr};
  PassManager single(module.getContext()), fused(module.getContext());
  single.nest<func::FuncOp>().addPass(titan::createFormKernels());
  single.nest<func::FuncOp>().addPass(titan::createClassifyKernels());
  titan::addLowerPasses(fused);
  EXPECT_TRUE(succeeded(single.run(*lowered.single)));
  EXPECT_TRUE(succeeded(fused.run(*lowered.fused)));
  lowered.padded = lowered.fused->clone();
  PassManager padded(module.getContext());
  const titan::PadRowsOptions options = {.alignment = 64, .longAlignment = 64, .shortestRow = 1};
  padded.nest<func::FuncOp>().addPass(titan::createPadRows(options));
  padded.nest<func::FuncOp>().addPass(titan::createVerifyLowered());
  EXPECT_TRUE(succeeded(padded.run(*lowered.padded)));
  return lowered;
}

/// Constants become f32 in the bodies of f32 kernels, while the titan ops hold them in f64.
constexpr double constantsInF32 = 1e-6;

/// On the arguments of the recorded references, which every op is defined for.
void expectEqualRuns(ModuleOp module, const Instance& instance) {
  Lowered lowered = lower(module);
  auto results = [&](ModuleOp of, const Run& run, Engine engine) {
    auto function = of.lookupSymbol<func::FuncOp>(instance.name);
    auto values = titan::interpreter::run(function, run.arguments, engine);
    EXPECT_TRUE(succeeded(values));
    return succeeded(values) ? std::move(*values) : SmallVector<titan::interpreter::Tensor>();
  };
  auto compare = [&](ModuleOp before, ModuleOp after, const Run& run, Engine engine,
                     double tolerance) {
    for (auto [x, y] : llvm::zip_equal(results(before, run, engine), results(after, run, engine)))
      EXPECT_EQ(titan::interpreter::describeDifference(x, y, tolerance), "");
  };
  for (const Run& run : instance.runs) {
    compare(module, *lowered.single, run, Engine::F64, constantsInF32);
    compare(module, *lowered.fused, run, Engine::F64, constantsInF32);
    compare(*lowered.single, *lowered.fused, run, Engine::F32, 0);
    compare(*lowered.single, *lowered.padded, run, Engine::F32, 0);
  }
}

void expectEquivalent(ModuleOp module, int64_t integerBound = 2) {
  Lowered lowered = lower(module);
  EquivalenceOptions options;
  options.random.integerBound = integerBound;
  options.tolerance = constantsInF32;
  EXPECT_TRUE(succeeded(checkEquivalent(module, *lowered.single, options)));
  EXPECT_TRUE(succeeded(checkEquivalent(module, *lowered.fused, options)));
  options.engine = Engine::F32;
  options.tolerance = 0;
  EXPECT_TRUE(succeeded(checkEquivalent(*lowered.single, *lowered.fused, options)));
  EXPECT_TRUE(succeeded(checkEquivalent(*lowered.single, *lowered.padded, options)));
}

class Lower : public titan::interpreter::testing::ModuleFixture {
protected:
  Lower() : ModuleFixture(titan::registerLowerInterfaces) {}

  /// Of `count` seeds, what `draw` makes of a generator with each.
  void expectDrawnEquivalent(unsigned count, std::string (*draw)(std::mt19937&)) {
    const char* chosen = std::getenv("TITAN_TEST_SEED");
    const unsigned first = chosen ? static_cast<unsigned>(std::atoi(chosen)) : 1;
    std::cout << "seeds from " << first << " on (TITAN_TEST_SEED)\n";
    for (unsigned seed = first; seed < first + count && !HasFailure(); ++seed) {
      std::mt19937 generator(seed);
      const std::string text = draw(generator);
      SCOPED_TRACE("TITAN_TEST_SEED=" + std::to_string(seed) + "\n" + text);
      expectEquivalent(*parse(text));
    }
  }

  template <typename Op> static int count(ModuleOp module) {
    int found = 0;
    module.walk([&](Op) { ++found; });
    return found;
  }
};

TEST_F(Lower, EveryOpKeepsItsMeaning) {
  titan::interpreter::testing::OpInstances instances(
      titan::interpreter::testing::moduleRegistry(titan::registerLowerInterfaces));
  EXPECT_EQ(instances.findWithout<titan::ir::LowerableOpInterface>(), std::vector<std::string>());
  for (const auto& instance : instances.all()) {
    SCOPED_TRACE(instance.name);
    func::FuncOp function = instance.function;
    // A base comes from the loop's counter: see DropoutInsideOfTheLoopKnowsItsMicrobatch.
    if (llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<IndexType>))
      continue;
    OwningOpRef<ModuleOp> module = ModuleOp::create(function.getLoc());
    module->push_back(function->clone());
    if (instance.runs.empty())
      expectEquivalent(*module);
    else
      expectEqualRuns(*module, instance);
  }
}

// Extents around every boundary of the chunk rules, in all positions.
TEST_F(Lower, ReductionsOfAnyExtent) {
  for (int64_t rows : {1, 2, 16, 17, 60, 64, 100, 1031})
    for (std::string kind : {"sum", "max"}) {
      std::string n = std::to_string(rows);
      auto module = parse(
          "func.func @rows(%x: tensor<" + n + "x3xf32>) -> tensor<3xf32> {\n %y = titan.reduce " +
          kind + " %x [0] : tensor<" + n +
          "x3xf32> to tensor<3xf32>\n return %y : tensor<3xf32> }\n" +
          "func.func @middle(%x: tensor<2x" + n +
          "x3xf32>) -> tensor<2x3xf32> {\n %y = titan.reduce " + kind + " %x [1] : tensor<2x" + n +
          "x3xf32> to tensor<2x3xf32>\n return %y : tensor<2x3xf32> }\n" +
          "func.func @outer(%x: tensor<2x" + n +
          "x3xf32>) -> tensor<3xf32> {\n %y = titan.reduce " + kind + " %x [0, 1] : tensor<2x" + n +
          "x3xf32> to tensor<3xf32>\n return %y : tensor<3xf32> }\n" +
          "func.func @all(%x: tensor<20x" + n + "xf32>) -> tensor<f32> {\n %y = titan.reduce " +
          kind + " %x [0, 1] : tensor<20x" + n +
          "xf32> to tensor<f32>\n return %y : tensor<f32> }\n" + "func.func @ends(%x: tensor<" + n +
          "x2x" + n + "xf32>) -> tensor<2xf32> {\n %y = titan.reduce " + kind +
          " %x [0, 2] : tensor<" + n + "x2x" + n +
          "xf32> to tensor<2xf32>\n return %y : tensor<2xf32> }\n");
      SCOPED_TRACE(kind + " over " + n);
      expectEquivalent(*module);
    }
}

/// A function of each of the three ops of one drawn convolution.
std::string drawConvolution(std::mt19937& generator, const std::string& element) {
  using namespace titan::interpreter::testing;
  const auto drawn = DrawnConvolution::draw(generator, /*channels=*/4, /*products=*/100000);
  const std::string wide = element == "f64" ? "f64" : "f32";
  const auto function = [&](const std::string& name, ArrayRef<int64_t> a, ArrayRef<int64_t> b,
                            ArrayRef<int64_t> result, const std::string& op) {
    return "func.func @" + name + "(%a: " + tensorType(a, element) +
           ", %b: " + tensorType(b, element) + ") -> " + tensorType(result, wide) +
           " {\n %r = " + op + "\n return %r : " + tensorType(result, wide) + " }\n";
  };
  return function("forward", drawn.operand, drawn.kernel, drawn.result,
                  drawn.forward("%a, %b", element, wide)) +
         function("input_grad", drawn.result, drawn.kernel, drawn.operand,
                  drawn.inputGrad("%a, %b", element, wide)) +
         function("kernel_grad", drawn.operand, drawn.result, drawn.kernel,
                  drawn.kernelGrad("%a, %b", "", element, wide));
}

/// The default machine but for `member`.
void setMachine(ModuleOp module, int64_t titan::MachineModel::* member, int64_t value) {
  titan::TargetInfo target;
  target.cpu = "x86-64-v3";
  target.machine = titan::MachineModel();
  *target.machine.*member = value;
  titan::setTarget(module, target);
}

int countPatches(ModuleOp module) {
  int products = 0;
  module->walk([&](titan::kernel::CallOp call) {
    auto gemm = dyn_cast<titan::kernel::GemmAttr>(call.getRoutine());
    products += gemm && gemm.hasPatches();
  });
  return products;
}

TEST_F(Lower, DrawnConvolutions) {
  const char* chosen = std::getenv("TITAN_TEST_SEED");
  const unsigned first = chosen ? static_cast<unsigned>(std::atoi(chosen)) : 1;
  std::cout << "seeds from " << first << " on (TITAN_TEST_SEED)\n";
  int found = 0; // patches in place
  for (unsigned seed = first; seed < first + 300 && !HasFailure(); ++seed) {
    std::mt19937 generator(seed);
    const char* elements[] = {"f32", "bf16", "f64"};
    const std::string text = drawConvolution(generator, elements[seed % 3]);
    SCOPED_TRACE("TITAN_TEST_SEED=" + std::to_string(seed) + "\n" + text);
    auto module = parse(text);
    const bool inPlace = seed % 2 == 0;
    setMachine(*module, &titan::MachineModel::patchesInPlace, inPlace);
    expectEquivalent(*module);
    const int patches = countPatches(*lower(*module).fused);
    if (inPlace)
      found += patches;
    else
      EXPECT_EQ(patches, 0);
  }
  EXPECT_GT(found, 100);
}

/// A function of one drawn recurrent layer, and one of its gradient.
std::string drawRecurrence(std::mt19937& generator) {
  auto below = [&](int64_t count) { return static_cast<int64_t>(generator() % count); };
  const auto cell = static_cast<titan::ir::RecurrentCell>(below(5));
  const int64_t gates = titan::ir::gatesOf(cell), steps = 1 + below(4), batch = 1 + below(4),
                width = 1 + below(20);
  const char* elements[] = {"f32", "bf16", "f64"};
  const std::string element = elements[below(3)], wide = element == "f64" ? "f64" : "f32";
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, gates));
  std::shuffle(order.begin(), order.end() - (titan::ir::isGru(cell) ? 1 : 0), generator);
  const bool isLstm = cell == titan::ir::RecurrentCell::Lstm, isGru = titan::ir::isGru(cell),
             hasCells = isLstm || cell == titan::ir::RecurrentCell::Gru, hasBias = below(2) == 0,
             hasDcells = isLstm && below(2) == 0;
  std::string tail = " order [";
  llvm::raw_string_ostream stream(tail);
  llvm::interleaveComma(order, stream);
  stream << (below(2) == 0 ? "] reverse" : "]");
  auto type = [](std::initializer_list<int64_t> shape, const std::string& element) {
    std::string text = "tensor<";
    for (int64_t extent : shape)
      text += std::to_string(extent) + "x";
    return text + element + ">";
  };
  const std::string projected = type({steps, batch, gates * width}, element),
                    recurrent = type({gates * width, width}, element),
                    state = type({batch, width}, wide), all = type({steps, batch, width}, wide),
                    kept = type({steps, batch, gates * width}, wide),
                    name = titan::ir::stringifyRecurrentCell(cell).str();
  using Named = std::pair<std::string, std::string>;
  auto function = [&](const std::string& op, const std::string& operands, ArrayRef<Named> arguments,
                      ArrayRef<std::string> results) {
    std::string signature, types, names, given;
    for (const auto& [argument, type] : arguments) {
      signature += (signature.empty() ? "%" : ", %") + argument + ": " + type;
      given += (given.empty() ? "" : ", ") + type;
    }
    for (auto [i, type] : llvm::enumerate(results)) {
      types += (i ? ", " : "") + type;
      names += (i ? ", %r" : "%r") + std::to_string(i);
    }
    return "func.func @" + op + "(" + signature + ") -> (" + types + ") {\n " + names +
           " = titan." + op + " " + name + " " + operands + tail + " : (" + given + ") -> (" +
           types + ")\n return " + names + " : " + types + " }\n";
  };
  const std::string first = isLstm ? "%h, %c" : "%h";
  SmallVector<Named> states = {{"h", state}};
  if (isLstm)
    states.push_back({"c", state});
  SmallVector<Named> arguments = {{"p", projected}, {"r", recurrent}};
  llvm::append_range(arguments, states);
  if (hasBias)
    arguments.push_back({"b", type({gates * width}, wide)});
  SmallVector<std::string> results = {all};
  if (isLstm || isGru)
    results.push_back(kept);
  if (hasCells)
    results.push_back(all);
  std::string text = function("recurrence", "%p, %r initial " + first + (hasBias ? " bias %b" : ""),
                              arguments, results);
  arguments = {{"r", recurrent}};
  llvm::append_range(arguments, states);
  arguments.push_back({"y", all});
  std::string keptNames;
  if (isLstm || isGru) {
    arguments.push_back({"g", kept});
    keptNames = " kept %g";
  }
  if (hasCells) {
    arguments.push_back({"k", all});
    keptNames += ", %k";
  }
  arguments.push_back({"dy", all});
  if (hasDcells)
    arguments.push_back({"dc", all});
  results = {projected};
  if (cell == titan::ir::RecurrentCell::Gru)
    results.push_back(projected);
  for (size_t i = 0; i < states.size(); ++i)
    results.push_back(state);
  return text + function("recurrence_grad",
                         "%r initial " + first + " result %y" + keptNames + " adjoint %dy" +
                             (hasDcells ? " cells %dc" : ""),
                         arguments, results);
}

TEST_F(Lower, DrawnRecurrences) { expectDrawnEquivalent(60, drawRecurrence); }

/// Elementwise ops that read each other, broadcasts and constants; some are results as well.
std::string drawElementwise(std::mt19937& generator) {
  auto below = [&](size_t count) { return generator() % count; };
  const char* elements[] = {"f32", "bf16", "f64"};
  const std::string element = elements[below(3)];
  const std::string rows = std::to_string(1 + below(3)), columns = std::to_string(1 + below(9));
  const std::string type = "tensor<" + rows + "x" + columns + "x" + element + ">",
                    row = "tensor<" + columns + "x" + element + ">",
                    one = "tensor<" + element + ">",
                    truth = "tensor<" + rows + "x" + columns + "xi1>";
  std::string text = "%row = titan.broadcast %b [1] : " + row + " to " + type +
                     "\n%half = titan.constant dense<0.5> : " + one +
                     "\n%halves = titan.broadcast %half [] : " + one + " to " + type +
                     "\n%two = titan.constant dense<2.0> : " + type + "\n";
  std::vector<std::string> values = {"%x", "%y", "%row", "%halves", "%two"};
  // The last ones most of all, so that chains come about.
  auto value = [&] { return values[std::max(below(values.size()), below(values.size()))]; };
  std::string results, types;
  for (size_t count = 3 + below(30), i = 0; i < count; ++i) {
    const std::string name = "%v" + std::to_string(i);
    const char* unary[] = {"neg", "abs", "tanh", "relu", "sigmoid"};
    const char* binary[] = {"add", "sub", "mul", "max", "min"};
    switch (below(5)) {
    case 0:
      text += name + " = titan." + unary[below(5)] + " " + value() + " : " + type + "\n";
      break;
    case 1:
      text += name + "c = titan.compare lt " + value() + ", " + value() + " : " + type + "\n" +
              name + " = titan.select " + name + "c, " + value() + ", " + value() + " : " + truth +
              ", " + type + "\n";
      break;
    default:
      text += name + " = titan." + binary[below(5)] + " " + value() + ", " + value() + " : " +
              type + "\n";
    }
    values.push_back(name);
    if (i + 1 == count || below(6) == 0) {
      results += (results.empty() ? "" : ", ") + name;
      types += (types.empty() ? "" : ", ") + type;
    }
  }
  return "func.func @f(%x: " + type + ", %y: " + type + ", %b: " + row + ") -> (" + types +
         ") {\n" + text + "return " + results + " : " + types + "\n}\n";
}

TEST_F(Lower, DrawnElementwiseOpsAreKernelsTogether) {
  expectDrawnEquivalent(200, drawElementwise);
}

/// Reversed dimensions between ops that fusion merges them with: arithmetic on either side, other
/// moves, a sum.
std::string drawReverse(std::mt19937& generator) {
  auto below = [&](int64_t count) { return static_cast<int64_t>(generator() % count); };
  const char* elements[] = {"f32", "bf16", "f64"};
  const std::string element = elements[below(3)];
  SmallVector<int64_t> shape(1 + below(3)), dims;
  for (auto [d, extent] : llvm::enumerate(shape)) {
    extent = 1 + below(19);
    if (below(2) == 0)
      dims.push_back(static_cast<int64_t>(d));
  }
  std::string extents, order, list, rest, summed = std::to_string(shape.size() - 1);
  for (auto [d, extent] : llvm::enumerate(shape)) {
    const std::string comma = d == 0 ? "" : ", ";
    extents += std::to_string(extent) + "x";
    if (d + 1 < shape.size())
      rest += std::to_string(extent) + "x";
    order += comma + std::to_string(shape.size() - 1 - d);
  }
  llvm::raw_string_ostream stream(list);
  llvm::interleaveComma(dims, stream);
  std::string turned;
  for (int64_t extent : llvm::reverse(shape))
    turned += std::to_string(extent) + "x";
  const std::string type = "tensor<" + extents + element + ">",
                    back = "tensor<" + turned + element + ">";
  return "func.func @f(%x: " + type + ", %y: " + type + ") -> (" + type + ", " + back +
         ", tensor<" + rest + element + ">) {\n %a = titan.exp %x : " + type +
         "\n %b = titan.reverse %a [" + list + "] : " + type +
         "\n %c = titan.mul %b, %y : " + type + "\n %d = titan.transpose %b [" + order +
         "] : " + type + " to " + back + "\n %e = titan.add %x, %b : " + type +
         "\n %s = titan.reduce sum %e [" + summed + "] : " + type + " to tensor<" + rest + element +
         ">\n return %c, %d, %s : " + type + ", " + back + ", tensor<" + rest + element + "> }\n";
}

/// A scatter of each kind, a gather from where it goes, a sort, and a few elements of it.
std::string drawScatters(std::mt19937& generator) {
  auto below = [&](int64_t count) { return static_cast<int64_t>(generator() % count); };
  const char* elements[] = {"f32", "bf16", "f64", "i32"};
  const std::string element = elements[below(4)];
  SmallVector<int64_t> shape(1 + below(4));
  for (int64_t& extent : shape)
    extent = 1 + below(6);
  const int64_t rank = static_cast<int64_t>(shape.size()), dim = below(rank),
                shared = dim + 1 + below(rank - dim);
  SmallVector<int64_t> updates(shape), first(shape);
  updates[dim] = 1 + below(7);
  first.back() = 1 + below(first.back());
  auto type = [&](ArrayRef<int64_t> extents, const std::string& element) {
    std::string text = "tensor<";
    for (int64_t extent : extents)
      text += std::to_string(extent) + "x";
    return text + element + ">";
  };
  const std::string x = type(shape, element), u = type(updates, element),
                    i = type(ArrayRef(updates).take_front(shared), "i64"), v = type(first, element),
                    n = type(first, "i64");
  std::string text;
  for (const char* kind : {"none", "add", "mul", "max", "min"})
    text += std::string("func.func @") + kind + "(%x: " + x + ", %i: " + i + ", %u: " + u +
            ") -> " + x + " {\n %r = titan.scatter " + kind + " %x, %i, %u dim " +
            std::to_string(dim) + " : (" + x + ", " + i + ", " + u + ") -> " + x +
            "\n return %r : " + x + " }\n";
  text += "func.func @gather(%x: " + x + ", %i: " + i + ") -> " + u +
          " {\n %r = titan.gather %x, %i dim " + std::to_string(dim) + " : (" + x + ", " + i +
          ") -> " + u + "\n return %r : " + u + " }\n";
  return text + "func.func @top(%x: " + x + ") -> (" + v + ", " + n +
         ") {\n %v, %n = titan.top_k %x" + (below(2) == 0 ? " smallest" : "") + " : (" + x +
         ") -> (" + v + ", " + n + ")\n return %v, %n : " + v + ", " + n + " }\n";
}

TEST_F(Lower, DrawnReversesAndScatters) {
  const char* chosen = std::getenv("TITAN_TEST_SEED");
  const unsigned first = chosen ? static_cast<unsigned>(std::atoi(chosen)) : 1;
  std::cout << "seeds from " << first << " on (TITAN_TEST_SEED)\n";
  for (unsigned seed = first; seed < first + 100 && !HasFailure(); ++seed) {
    std::mt19937 generator(seed);
    const std::string text = seed % 2 == 0 ? drawReverse(generator) : drawScatters(generator);
    SCOPED_TRACE("TITAN_TEST_SEED=" + std::to_string(seed) + "\n" + text);
    expectEquivalent(*parse(text), /*integerBound=*/5);
  }
}

TEST_F(Lower, RefusesToSortMoreThanAThreadCan) {
  auto module = parse(R"(
    func.func @f(%x: tensor<524289xf32>) -> (tensor<1xf32>, tensor<1xi64>) {
      %v, %i = titan.top_k %x : (tensor<524289xf32>) -> (tensor<1xf32>, tensor<1xi64>)
      return %v, %i : tensor<1xf32>, tensor<1xi64>
    })");
  std::string said;
  ScopedDiagnosticHandler handler(module->getContext(), [&](Diagnostic& diagnostic) {
    said = diagnostic.str();
    return success();
  });
  PassManager passes(module->getContext());
  titan::addLowerPasses(passes);
  EXPECT_TRUE(failed(passes.run(*module)));
  EXPECT_EQ(said, "'titan.top_k' op has no kernel: it sorts 524289 elements, more than the 524288 "
                  "that one thread can");
}

// As many elements a channel as are summed in chunks, the channel in any place.
TEST_F(Lower, StatisticsOfManyElements) {
  auto module = parse(R"(
    func.func @last(%x: tensor<1031x3xf32>, %s: tensor<3xf32>, %b: tensor<3xf32>) -> (tensor<1031x3xf32>, tensor<3xf32>, tensor<3xf32>) {
      %r:3 = titan.batch_norm %x scale %s bias %b dim 1 epsilon 0.1 momentum 0.1
          : (tensor<1031x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<1031x3xf32>, tensor<3xf32>, tensor<3xf32>)
      return %r#0, %r#1, %r#2 : tensor<1031x3xf32>, tensor<3xf32>, tensor<3xf32>
    }
    func.func @inner(%x: tensor<7x3x20x11xbf16>, %s: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<7x3x20x11xbf16> {
      %r:3 = titan.batch_norm %x scale %s bias %b dim 1 epsilon 0.1 momentum 0.1
          : (tensor<7x3x20x11xbf16>, tensor<3xf32>, tensor<3xf32>) -> (tensor<7x3x20x11xbf16>, tensor<3xf32>, tensor<3xf32>)
      return %r#0 : tensor<7x3x20x11xbf16>
    }
    func.func @first(%x: tensor<3x40x17xf64>, %s: tensor<3xf64>, %b: tensor<3xf64>) -> tensor<3x40x17xf64> {
      %r:3 = titan.batch_norm %x scale %s bias %b dim 0 epsilon 0.1 momentum 0.1
          : (tensor<3x40x17xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3x40x17xf64>, tensor<3xf64>, tensor<3xf64>)
      return %r#0 : tensor<3x40x17xf64>
    })");
  expectEquivalent(*module);
}

TEST_F(Lower, LongRowsAreCutIntoPieces) {
  auto module = parse(R"(
    func.func @f(%x: tensor<50000xf32>) -> tensor<f32> {
      %y = titan.reduce sum %x [0] : tensor<50000xf32> to tensor<f32>
      return %y : tensor<f32>
    })");
  expectEquivalent(*module);
  EXPECT_EQ(count<titan::kernel::FusedOp>(*lower(*module).fused),
            3); // 12 pieces, the rest, their sum
}

// Operands whose dimensions lie in any order: read by leading dimensions or transposed first.
TEST_F(Lower, ContractionsOfAnyLayout) {
  auto module = parse(R"(
    func.func @outer(%a: tensor<5xf32>, %b: tensor<7xf32>) -> tensor<5x7xf32> {
      %c = titan.contract %a, %b batch [] x [] contracting [] x [] : (tensor<5xf32>, tensor<7xf32>) -> tensor<5x7xf32>
      return %c : tensor<5x7xf32>
    }
    func.func @inner(%a: tensor<5xf32>, %b: tensor<5xf32>, %s: tensor<f32>) -> tensor<f32> {
      %c = titan.contract %a, %b acc %s batch [] x [] contracting [0] x [0] : (tensor<5xf32>, tensor<5xf32>, tensor<f32>) -> tensor<f32>
      return %c : tensor<f32>
    }
    func.func @two_contracted(%a: tensor<3x4x5xf32>, %b: tensor<4x5x6xf32>) -> tensor<3x6xf32> {
      %c = titan.contract %a, %b batch [] x [] contracting [1, 2] x [0, 1] : (tensor<3x4x5xf32>, tensor<4x5x6xf32>) -> tensor<3x6xf32>
      return %c : tensor<3x6xf32>
    }
    func.func @strided_batch(%a: tensor<4x3x5xf32>, %b: tensor<3x6x5xf32>) -> tensor<3x4x6xf32> {
      %c = titan.contract %a, %b batch [1] x [0] contracting [2] x [2] : (tensor<4x3x5xf32>, tensor<3x6x5xf32>) -> tensor<3x4x6xf32>
      return %c : tensor<3x4x6xf32>
    }
    func.func @transposed_first(%a: tensor<4x3x5xf32>, %b: tensor<5x6x3xf32>) -> tensor<4x6xf32> {
      %c = titan.contract %a, %b batch [] x [] contracting [1, 2] x [2, 0] : (tensor<4x3x5xf32>, tensor<5x6x3xf32>) -> tensor<4x6xf32>
      return %c : tensor<4x6xf32>
    }
    func.func @heads(%q: tensor<2x4x3x5xf32>, %k: tensor<2x4x3x5xf32>) -> tensor<2x3x4x4xf32> {
      %c = titan.contract %q, %k batch [0, 2] x [0, 2] contracting [3] x [3] : (tensor<2x4x3x5xf32>, tensor<2x4x3x5xf32>) -> tensor<2x3x4x4xf32>
      return %c : tensor<2x3x4x4xf32>
    }
    func.func @double(%a: tensor<3x4xf64>, %b: tensor<4x2xf64>) -> tensor<3x2xf64> {
      %c = titan.contract %a, %b batch [] x [] contracting [1] x [0] : (tensor<3x4xf64>, tensor<4x2xf64>) -> tensor<3x2xf64>
      return %c : tensor<3x2xf64>
    })");
  expectEquivalent(*module);
}

TEST_F(Lower, TransformerBlockWithGradients) {
  auto module = parse(R"(
    func.func @f(%x: tensor<24x32xf32>, %scale: tensor<32xf32>, %bias: tensor<32xf32>, %dy: tensor<24x32xf32>)
        -> (tensor<24x32xf32>, tensor<24x32xf32>, tensor<32xf32>, tensor<32xf32>) {
      %y, %mean, %rstd = titan.layer_norm %x scale %scale bias %bias over [1] epsilon 1.0e-5 {path = ["norm"]}
        : (tensor<24x32xf32>, tensor<32xf32>, tensor<32xf32>) -> (tensor<24x32xf32>, tensor<24xf32>, tensor<24xf32>)
      %g = titan.gelu erf %y {path = ["act"]} : tensor<24x32xf32>
      %r = titan.add %g, %x {path = ["residual"]} : tensor<24x32xf32>
      %p = titan.softmax %r dim 1 {path = ["softmax"]} : tensor<24x32xf32>
      %m = titan.broadcast %mean [0] : tensor<24xf32> to tensor<24x32xf32>
      %s = titan.broadcast %rstd [0] : tensor<24xf32> to tensor<24x32xf32>
      %c = titan.sub %x, %m : tensor<24x32xf32>
      %n = titan.mul %c, %s : tensor<24x32xf32>
      %dn = titan.mul %dy, %n : tensor<24x32xf32>
      %dscale = titan.reduce sum %dn [0] : tensor<24x32xf32> to tensor<32xf32>
      %dbias = titan.reduce sum %dy [0] : tensor<24x32xf32> to tensor<32xf32>
      return %p, %g, %dscale, %dbias : tensor<24x32xf32>, tensor<24x32xf32>, tensor<32xf32>, tensor<32xf32>
    })");
  expectEquivalent(*module);
}

TEST_F(Lower, DropoutInsideOfTheLoopKnowsItsMicrobatch) {
  auto module = parse(R"(
    func.func @f(%xs: tensor<3x4x6xf32>, %zero: tensor<4x6xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<4x6xf32> {
      %r = accum.loop %i in 3 running slices(%x = %xs : tensor<3x4x6xf32>) accumulators(%a = %zero : tensor<4x6xf32>) -> (tensor<4x6xf32>) {
        %c24 = arith.constant 24 : index
        %base = arith.muli %i, %c24 : index
        %d = titan.dropout %x p 5.0e-1 stream 42 seed %seed step %step base %base {window = #titan.window<[12, 6], multiple = 24>}
          : tensor<4x6xf32> to tensor<4x6xf32>
        %e = titan.relu %d : tensor<4x6xf32>
        %s = titan.add %a, %e : tensor<4x6xf32>
        accum.yield %s : tensor<4x6xf32>
      }
      return %r : tensor<4x6xf32>
    })");
  expectEquivalent(*module);
}

// Query, key and value as slices of one projection, their adjoints as a sum of padded parts, with
// dropout keyed by the microbatch: views, and no copy.
TEST_F(Lower, AttentionReadsAndWritesAProjectionInPlace) {
  for (std::string element : {"f32", "bf16"}) {
    std::string text = R"(
    func.func @f(%xs: tensor<2x2x5x24x$E>, %d: tensor<2x5x4x2x$E>, %zero: tensor<2x5x24x$E>, %seed: tensor<i64>, %step: tensor<i64>, %mask: tensor<1x1x5x5xi1>) -> tensor<2x5x24x$E> {
      %r = accum.loop %i in 2 running slices(%x = %xs : tensor<2x2x5x24x$E>) accumulators(%a = %zero : tensor<2x5x24x$E>) -> (tensor<2x5x24x$E>) {
        %c200 = arith.constant 200 : index
        %base = arith.muli %i, %c200 : index
        %q = titan.slice %x offsets [0, 0, 0] strides [1, 1, 1] : tensor<2x5x24x$E> to tensor<2x5x8x$E>
        %k = titan.slice %x offsets [0, 0, 8] strides [1, 1, 1] : tensor<2x5x24x$E> to tensor<2x5x8x$E>
        %v = titan.slice %x offsets [0, 0, 16] strides [1, 1, 1] : tensor<2x5x24x$E> to tensor<2x5x8x$E>
        %qh = titan.reshape %q : tensor<2x5x8x$E> to tensor<2x5x4x2x$E>
        %kh = titan.reshape %k : tensor<2x5x8x$E> to tensor<2x5x4x2x$E>
        %vh = titan.reshape %v : tensor<2x5x8x$E> to tensor<2x5x4x2x$E>
        %y, %l = titan.attention %qh, %kh, %vh mask %mask seed %seed step %step base %base scale 0.7 {p = 0.25, stream = 7, window = #titan.window<[4, 4, 5, 5], multiple = 200>}
          : (tensor<2x5x4x2x$E>, tensor<2x5x4x2x$E>, tensor<2x5x4x2x$E>, tensor<1x1x5x5xi1>, tensor<i64>, tensor<i64>, index) -> (tensor<2x5x4x2x$E>, tensor<2x4x5xf32>)
        %dq, %dk, %dv = titan.attention_grad %qh, %kh, %vh result %y, %l, %d mask %mask seed %seed step %step base %base scale 0.7 {p = 0.25, stream = 7, window = #titan.window<[4, 4, 5, 5], multiple = 200>}
          : (tensor<2x5x4x2x$E>, tensor<2x5x4x2x$E>, tensor<2x5x4x2x$E>, tensor<2x5x4x2x$E>, tensor<2x4x5xf32>, tensor<2x5x4x2x$E>, tensor<1x1x5x5xi1>, tensor<i64>, tensor<i64>, index)
          -> (tensor<2x5x4x2x$E>, tensor<2x5x4x2x$E>, tensor<2x5x4x2x$E>)
        %dqf = titan.reshape %dq : tensor<2x5x4x2x$E> to tensor<2x5x8x$E>
        %dkf = titan.reshape %dk : tensor<2x5x4x2x$E> to tensor<2x5x8x$E>
        %dvf = titan.reshape %dv : tensor<2x5x4x2x$E> to tensor<2x5x8x$E>
        %dx = titan.concat %dqf, %dkf, %dvf dim 2 : (tensor<2x5x8x$E>, tensor<2x5x8x$E>, tensor<2x5x8x$E>) -> tensor<2x5x24x$E>
        %s = titan.add %a, %dx : tensor<2x5x24x$E>
        accum.yield %s : tensor<2x5x24x$E>
      }
      return %r : tensor<2x5x24x$E>
    })";
    auto module = parse(replaceAll(text, "$E", element));
    expectEquivalent(*module);
    // The accumulation is all that is not a routine.
    EXPECT_EQ(count<titan::kernel::FusedOp>(*lower(*module).fused), 1);
  }
}

// Samples whose rows chunks divide and samples whose rows they do not, behind reshapes as exporters
// write them.
TEST_F(Lower, RowsOfSamplesAndRowsOfProducts) {
  for (std::string positions : {"32", "25", "17"}) {
    SCOPED_TRACE(positions + " positions");
    std::string rows = std::to_string(3 * std::stoi(positions));
    std::string text = R"(
    func.func @f(%x: tensor<3xTx24xf32>, %scale: tensor<24xf32>, %b: tensor<40xf32>, %w: tensor<40x24xf32>,
                 %dz: tensor<Nx40xf32>, %t: tensor<Nxi64>)
        -> (tensor<Nx40xf32>, tensor<40xf32>, tensor<3xTx24xf32>, tensor<24xf32>, tensor<N xf32>, tensor<Nx40xf32>) {
      %n, %mean, %rstd = titan.layer_norm %x scale %scale over [2] epsilon 1.0e-5
        : (tensor<3xTx24xf32>, tensor<24xf32>) -> (tensor<3xTx24xf32>, tensor<3xTxf32>, tensor<3xTxf32>)
      %r = titan.reshape %n : tensor<3xTx24xf32> to tensor<Nx24xf32>
      %h = titan.contract %r, %w batch [] x [] contracting [1] x [1] : (tensor<Nx24xf32>, tensor<40x24xf32>) -> tensor<Nx40xf32>
      %bb = titan.broadcast %b [1] : tensor<40xf32> to tensor<Nx40xf32>
      %s = titan.add %h, %bb : tensor<Nx40xf32>
      %v = titan.reshape %s : tensor<Nx40xf32> to tensor<3xTx40xf32>
      %g = titan.gelu tanh %v : tensor<3xTx40xf32>
      %a = titan.reshape %g : tensor<3xTx40xf32> to tensor<Nx40xf32>
      %loss = titan.cross_entropy %a, %t ignore_index -100 label_smoothing 0.0 : (tensor<Nx40xf32>, tensor<Nxi64>) -> tensor<Nxf32>
      %one = titan.constant dense<1.0> : tensor<Nxf32>
      %da = titan.cross_entropy_grad %a, %t, %one ignore_index -100 label_smoothing 0.0 {phase = #titan<phase backward>}
        : (tensor<Nx40xf32>, tensor<Nxi64>, tensor<Nxf32>) -> tensor<Nx40xf32>
      %e = titan.tanh %v {phase = #titan<phase backward>} : tensor<3xTx40xf32>
      %d3 = titan.reshape %dz {phase = #titan<phase backward>} : tensor<Nx40xf32> to tensor<3xTx40xf32>
      %d = titan.mul %d3, %e {phase = #titan<phase backward>} : tensor<3xTx40xf32>
      %db = titan.reduce sum %d [0, 1] {phase = #titan<phase backward>} : tensor<3xTx40xf32> to tensor<40xf32>
      %d2 = titan.reshape %d {phase = #titan<phase backward>} : tensor<3xTx40xf32> to tensor<Nx40xf32>
      %dx = titan.contract %d2, %w batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<Nx40xf32>, tensor<40x24xf32>) -> tensor<Nx24xf32>
      %dr = titan.reshape %dx {phase = #titan<phase backward>} : tensor<Nx24xf32> to tensor<3xTx24xf32>
      %m = titan.broadcast %mean [0, 1] {phase = #titan<phase backward>} : tensor<3xTxf32> to tensor<3xTx24xf32>
      %c = titan.sub %x, %m {phase = #titan<phase backward>} : tensor<3xTx24xf32>
      %q = titan.mul %dr, %c {phase = #titan<phase backward>} : tensor<3xTx24xf32>
      %dot = titan.reduce sum %q [2] {phase = #titan<phase backward>} : tensor<3xTx24xf32> to tensor<3xTxf32>
      %bd = titan.broadcast %dot [0, 1] {phase = #titan<phase backward>} : tensor<3xTxf32> to tensor<3xTx24xf32>
      %o = titan.sub %dr, %bd {phase = #titan<phase backward>} : tensor<3xTx24xf32>
      %ds = titan.reduce sum %q [0, 1] {phase = #titan<phase backward>} : tensor<3xTx24xf32> to tensor<24xf32>
      return %d2, %db, %o, %ds, %loss, %da
        : tensor<Nx40xf32>, tensor<40xf32>, tensor<3xTx24xf32>, tensor<24xf32>, tensor<Nxf32>, tensor<Nx40xf32>
    })";
    auto replace = [&](const std::string& from, const std::string& to) {
      text = replaceAll(text, from, to);
    };
    replace("<3xT", "<3x" + positions);
    replace("<N x", "<Nx");
    replace("<Nx", "<" + rows + "x");
    expectEquivalent(*parse(text), /*integerBound=*/40);
  }
}

TEST_F(Lower, BarriersKeepRecomputedKernelsApart) {
  auto module = parse(R"(
    func.func @f(%x: tensor<5000xf32>) -> (tensor<5000xf32>, tensor<5000xf32>) {
      %a = titan.exp %x : tensor<5000xf32>
      %b = titan.barrier %x id 1 : tensor<5000xf32>
      %c = titan.exp %b : tensor<5000xf32>
      return %a, %c : tensor<5000xf32>, tensor<5000xf32>
    })");
  expectEquivalent(*module);
  OwningOpRef<ModuleOp> fused = std::move(lower(*module).fused);
  EXPECT_EQ(count<titan::kernel::FusedOp>(*fused), 2);
  EXPECT_EQ(count<titan::ir::BarrierOp>(*fused), 0);
}

// Kernels that run together because they are small or read one value, where the second also reads
// the first: what it reads elsewhere than the first writes keeps them apart.
TEST_F(Lower, KernelsRunTogetherOnlyWhereOneFindsTheOther) {
  for (std::string n : {"10", "3000"}) { // small kernels, and large ones that share a read
    SCOPED_TRACE(n);
    std::string next = std::to_string(std::stoi(n) + 1);
    std::string x = "tensor<4x" + n + "xf32>", joined = "tensor<4x" + next + "xf32>";
    std::string slice = " : " + joined + " to " + x + "\n";
    // The steps between neighbours; the first is from itself.
    auto steps =
        parse("func.func @steps(%x: " + x + ") -> " + x + " {\n" +
              "%h = titan.slice %x offsets [0, 0] strides [1, 1] : " + x + " to tensor<4x1xf32>\n" +
              "%c = titan.concat %h, %x dim 1 : (tensor<4x1xf32>, " + x + ") -> " + joined + "\n" +
              "%a = titan.slice %c offsets [0, 1] strides [1, 1]" + slice +
              "%b = titan.slice %c offsets [0, 0] strides [1, 1]" + slice +
              "%d = titan.sub %a, %b : " + x + "\n%y = titan.mul %d, %x : " + x +
              "\nreturn %y : " + x + "\n}");
    expectEquivalent(*steps);
    // Every row, and the first row for every row: as many points, but not the same ones.
    auto rows =
        parse("func.func @rows(%x: " + x + ") -> (" + x + ", " + x + ") {\n" +
              "%e = titan.exp %x : " + x + "\n" +
              "%h = titan.slice %x offsets [0, 0] strides [1, 1] : " + x + " to tensor<1x" + n +
              "xf32>\n" + "%s = titan.reshape %h : tensor<1x" + n + "xf32> to tensor<" + n +
              "xf32>\n" + "%r = titan.broadcast %s [1] : tensor<" + n + "xf32> to " + x +
              "\n%y = titan.tanh %r : " + x + "\nreturn %e, %y : " + x + ", " + x + "\n}");
    expectEquivalent(*rows);
  }
}

// Two pairs of equal kernels, of which the first has a value in common besides.
TEST_F(Lower, EqualPairsDoNotTakeEachOthersOperands) {
  auto module = parse(R"(
    func.func @f(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>, %z: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
      %a = titan.sub %x, %y : tensor<8x8xf32>
      %b = titan.mul %a, %x : tensor<8x8xf32>
      %c = titan.sub %b, %y : tensor<8x8xf32>
      %d = titan.mul %c, %z : tensor<8x8xf32>
      %e = titan.sub %y, %z : tensor<8x8xf32>
      %f = titan.mul %e, %x : tensor<8x8xf32>
      return %d, %f : tensor<8x8xf32>, tensor<8x8xf32>
    })");
  expectEquivalent(*module);
}

// Sums down columns beside sums along the rows: together as far as the machine holds the former.
TEST_F(Lower, SumsDownColumnsOfLongRowsStayApart) {
  auto module = parse(R"(
    func.func @f(%x: tensor<12x2000xf32>) -> (tensor<12x2000xf32>, tensor<2000xf32>) {
      %s = titan.reduce sum %x [1] : tensor<12x2000xf32> to tensor<12xf32>
      %b = titan.broadcast %s [0] : tensor<12xf32> to tensor<12x2000xf32>
      %y = titan.mul %x, %b : tensor<12x2000xf32>
      %c = titan.reduce sum %y [0] : tensor<12x2000xf32> to tensor<2000xf32>
      return %y, %c : tensor<12x2000xf32>, tensor<2000xf32>
    })");
  for (auto [columnSums, kernels] : {std::pair<int64_t, int>{2000, 1}, {1999, 2}}) {
    setMachine(*module, &titan::MachineModel::columnSums, columnSums);
    expectEquivalent(*module);
    EXPECT_EQ(count<titan::kernel::FusedOp>(*lower(*module).fused), kernels);
  }
}

// A part at the front has identity maps as well: the call reads, or gives, more than the copy
// moves.
TEST_F(Lower, AttentionDoesNotTakeAPartForTheWhole) {
  auto module = parse(R"(
    func.func @padded(%q: tensor<2x6x2x4xf32>, %k: tensor<2x5x2x4xf32>, %v: tensor<2x5x2x4xf32>) -> tensor<2x6x2x4xf32> {
      %kp = titan.pad %k low [0, 0, 0, 0] interior [0, 0, 0, 0] : tensor<2x5x2x4xf32> to tensor<2x6x2x4xf32>
      %vp = titan.pad %v low [0, 0, 0, 0] interior [0, 0, 0, 0] : tensor<2x5x2x4xf32> to tensor<2x6x2x4xf32>
      %y, %l = titan.attention %q, %kp, %vp scale 0.5
        : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x2x4xf32>, tensor<2x2x6xf32>)
      return %y : tensor<2x6x2x4xf32>
    }
    func.func @padded_slice(%x: tensor<4x6x2x4xf32>) -> tensor<2x6x2x4xf32> {
      %k = titan.slice %x offsets [0, 0, 0, 0] strides [1, 1, 1, 1] : tensor<4x6x2x4xf32> to tensor<2x5x2x4xf32>
      %kp = titan.pad %k low [0, 0, 0, 0] interior [0, 0, 0, 0] : tensor<2x5x2x4xf32> to tensor<2x6x2x4xf32>
      %y, %l = titan.attention %kp, %kp, %kp scale 0.5
        : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x2x4xf32>, tensor<2x2x6xf32>)
      return %y : tensor<2x6x2x4xf32>
    }
    func.func @first_rows(%q: tensor<2x6x2x4xf32>) -> tensor<2x5x2x4xf32> {
      %y, %l = titan.attention %q, %q, %q scale 0.5
        : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x2x4xf32>, tensor<2x2x6xf32>)
      %s = titan.slice %y offsets [0, 0, 0, 0] strides [1, 1, 1, 1] : tensor<2x6x2x4xf32> to tensor<2x5x2x4xf32>
      return %s : tensor<2x5x2x4xf32>
    })");
  expectEquivalent(*module);
}

// The front part of a product or of a weight is not the whole of it; a bias of three elements is
// none of six columns.
TEST_F(Lower, ProductsDoNotTakeAPartForTheWhole) {
  auto module = parse(R"(
    func.func @bias(%x: tensor<4x8xf32>, %w: tensor<8x2x3xf32>, %b: tensor<6xf32>) -> tensor<4x2x3xf32> {
      %z = titan.contract %x, %w batch [] x [] contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x2x3xf32>) -> tensor<4x2x3xf32>
      %h = titan.slice %b offsets [0] strides [1] : tensor<6xf32> to tensor<3xf32>
      %r = titan.broadcast %h [2] : tensor<3xf32> to tensor<4x2x3xf32>
      %s = titan.add %z, %r : tensor<4x2x3xf32>
      return %s : tensor<4x2x3xf32>
    }
    func.func @relu(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x6xf32> {
      %z = titan.contract %x, %w batch [] x [] contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %s = titan.slice %z offsets [0, 0] strides [1, 1] : tensor<4x8xf32> to tensor<4x6xf32>
      %r = titan.relu %s : tensor<4x6xf32>
      return %r : tensor<4x6xf32>
    }
    func.func @rounding(%x: tensor<4x6xbf16>, %w: tensor<6x8xf32>) -> tensor<4x5xbf16> {
      %s = titan.slice %w offsets [0, 0] strides [1, 1] : tensor<6x8xf32> to tensor<6x5xf32>
      %c = titan.convert %s : tensor<6x5xf32> to tensor<6x5xbf16>
      %z = titan.contract %x, %c batch [] x [] contracting [1] x [0] : (tensor<4x6xbf16>, tensor<6x5xbf16>) -> tensor<4x5xf32>
      %r = titan.convert %z : tensor<4x5xf32> to tensor<4x5xbf16>
      return %r : tensor<4x5xbf16>
    })");
  expectEquivalent(*module);
}

TEST_F(Lower, TrainingStep) {
  const std::string text = readFile("test/lower/Inputs/step.mlir");
  for (std::string microbatches : {"1", "3"}) {
    SCOPED_TRACE(microbatches + " microbatches");
    expectEquivalent(*parse(replaceAll(text, "${count}", microbatches)), /*integerBound=*/10);
  }
}

// The products of the example networks: two threads both have work, and no tile is a sliver.
TEST(TileGrid, GivesWorkToEveryThread) {
  struct Shape {
    int64_t m, n, k;
  };
  for (Shape s : {Shape{64, 128, 784},
                  {128, 784, 64},
                  {64, 784, 128},
                  {256, 3072, 768},
                  {256, 50304, 768},
                  {2048, 2048, 2048}}) {
    titan::MachineModel machine;
    titan::lower::TileGrid grid = titan::lower::chooseTileGrid(machine, 1, s.m, s.n, s.k, 4);
    int64_t tiles = ((s.m + grid.tileM - 1) / grid.tileM) * ((s.n + grid.tileN - 1) / grid.tileN);
    EXPECT_GE(tiles, 2) << s.m << "x" << s.n << "x" << s.k;
    EXPECT_NE(s.m % grid.tileM, 1);
    EXPECT_NE(s.n % grid.tileN, 1);
  }
}

TEST(TileGrid, TinyProductsAreOneTile) {
  titan::lower::TileGrid grid = titan::lower::chooseTileGrid(titan::MachineModel(), 1, 4, 10, 8, 4);
  EXPECT_EQ(grid.tileM, 4);
  EXPECT_EQ(grid.tileN, 10);
}

} // namespace
