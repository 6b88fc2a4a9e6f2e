// Lowering and fusion of drawn ops, by execution.
#include "compiler/Interpreter/testing/DrawnConvolution.h"
#include "compiler/Lower/testing/LowerFixture.h"
#include "dialects/Kernel/Kernel.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace titan::lower::testing {
namespace {

class DrawnOps : public Lower {
protected:
  /// What `draw` makes of `count` generators.
  void expectDrawnEquivalent(unsigned count, std::string (*draw)(std::mt19937&)) {
    forEachSeed(count, [&](unsigned, std::mt19937& generator) {
      const std::string text = draw(generator);
      SCOPED_TRACE(text);
      expectEquivalent(*parse(text));
    });
  }
};

/// A function of each of the three ops of one drawn convolution.
std::string drawConvolution(std::mt19937& generator, const std::string& element) {
  using namespace interpreter::testing;
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

int countPatches(ModuleOp module) {
  int products = 0;
  module->walk([&](kernel::CallOp call) {
    auto gemm = dyn_cast<kernel::GemmAttr>(call.getRoutine());
    products += gemm && gemm.hasPatches();
  });
  return products;
}

TEST_F(DrawnOps, Convolutions) {
  int found = 0; // patches in place
  forEachSeed(300, [&](unsigned seed, std::mt19937& generator) {
    const char* elements[] = {"f32", "bf16", "f64"};
    const std::string text = drawConvolution(generator, elements[seed % 3]);
    SCOPED_TRACE(text);
    auto module = parse(text);
    const bool inPlace = seed % 2 == 0;
    setMachine(*module, &MachineModel::patchesInPlace, inPlace);
    expectEquivalent(*module);
    const int patches = countPatches(*Lowered::of(*module).fused);
    if (inPlace)
      found += patches;
    else
      EXPECT_EQ(patches, 0);
  });
  EXPECT_GT(found, 100);
}

/// A function of one drawn recurrent layer, and one of its gradient.
std::string drawRecurrence(std::mt19937& generator) {
  auto below = [&](int64_t count) { return static_cast<int64_t>(generator() % count); };
  const auto cell = static_cast<ir::RecurrentCell>(below(5));
  const int64_t gates = ir::gatesOf(cell), steps = 1 + below(4), batch = 1 + below(4),
                width = 1 + below(20);
  const char* elements[] = {"f32", "bf16", "f64"};
  const std::string element = elements[below(3)], wide = element == "f64" ? "f64" : "f32";
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, gates));
  std::shuffle(order.begin(), order.end() - (ir::isGru(cell) ? 1 : 0), generator);
  const bool isLstm = cell == ir::RecurrentCell::Lstm, isGru = ir::isGru(cell),
             hasCells = isLstm || cell == ir::RecurrentCell::Gru, hasBias = below(2) == 0,
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
                    name = ir::stringifyRecurrentCell(cell).str();
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
  if (cell == ir::RecurrentCell::Gru)
    results.push_back(projected);
  for (size_t i = 0; i < states.size(); ++i)
    results.push_back(state);
  return text + function("recurrence_grad",
                         "%r initial " + first + " result %y" + keptNames + " adjoint %dy" +
                             (hasDcells ? " cells %dc" : ""),
                         arguments, results);
}

TEST_F(DrawnOps, Recurrences) { expectDrawnEquivalent(60, drawRecurrence); }

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

TEST_F(DrawnOps, ElementwiseOpsAreKernelsTogether) { expectDrawnEquivalent(200, drawElementwise); }

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

TEST_F(DrawnOps, ReversesAndScatters) {
  forEachSeed(100, [&](unsigned seed, std::mt19937& generator) {
    const std::string text = seed % 2 == 0 ? drawReverse(generator) : drawScatters(generator);
    SCOPED_TRACE(text);
    expectEquivalent(*parse(text), /*integerBound=*/5);
  });
}

} // namespace
} // namespace titan::lower::testing
