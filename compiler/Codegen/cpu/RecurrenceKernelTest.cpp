// The recurrence routine, drawn: each cell forward and backward against its definition in f64, and
// bit for bit in calls of a few units, and in units of other samples and panels.
#include "compiler/Codegen/cpu/CpuFeatures.h"
#include "compiler/Codegen/cpu/testing/KernelRunner.h"
#include "compiler/Codegen/kernel/testing/KernelSpec.h"
#include "compiler/Interpreter/Recurrence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

namespace titan::codegen::testing {
namespace {

using ir::RecurrentCell;
using Numbers = std::vector<double>;

struct Case {
  RecurrentCell cell = RecurrentCell::Lstm;
  int64_t steps = 3, batch = 2, width = 5;
  std::vector<int64_t> order = {0, 1, 2, 3};
  bool reverse = false, bias = true, dcells = false;
  std::string element = "f32";
  int64_t samples = 16, columns = 16;

  std::string wide() const { return element == "f64" ? "f64" : "f32"; }
  int64_t rows() const { return ir::gatesOf(cell) * width; }
  ir::RecurrenceShape shape() const { return {cell, steps, batch, width, order, reverse}; }
};

/// One operand of the call.
struct Operand {
  std::string element;
  int64_t elements;
};

class Routine {
public:
  Routine(Case recurrence, bool isGradient, std::string_view arch)
      : c(std::move(recurrence)), isGradient(isGradient) {
    const int64_t states = c.batch * c.width, steps = c.steps * states,
                  gates = c.steps * c.batch * c.rows();
    const bool isLstm = c.cell == RecurrentCell::Lstm, isPyTorchGru = c.cell == RecurrentCell::Gru,
               hasGates = isLstm || ir::isGru(c.cell), hasCells = isLstm || isPyTorchGru;
    const int64_t panels = (c.width + c.columns - 1) / c.columns;
    const auto add = [&](std::vector<Operand>& list, const std::string& element, int64_t elements,
                         bool isThere = true) {
      if (isThere)
        list.push_back({element, elements});
    };
    const std::string wide = c.wide();
    add(ins, c.element, gates, !isGradient);
    add(ins, wide, panels * c.columns * c.width * ir::gatesOf(c.cell));
    add(ins, wide, states);
    add(ins, wide, states, isLstm);
    const auto addSteps = [&](std::vector<Operand>& list) {
      add(list, wide, steps);
      add(list, wide, gates, hasGates);
      add(list, wide, steps, hasCells);
    };
    if (isGradient) {
      addSteps(ins);
      add(ins, wide, steps);
      add(ins, wide, steps, c.dcells);
      add(outs, c.element, gates);
      add(outs, c.element, gates, isPyTorchGru);
      add(outs, wide, states);
      add(outs, wide, states, isLstm);
    } else {
      add(ins, wide, c.rows(), c.bias);
      addSteps(outs);
    }
    auto compiled = KernelRunner::compile(text(), resolveCpu(arch).take());
    if (!compiled.ok())
      ADD_FAILURE() << compiled.error().message();
    else
      runner_ = compiled.take();
  }

  bool isValid() const { return runner_ != nullptr; }

  /// The outs of a run in calls of at most `step` units.
  std::vector<Numbers> run(const std::vector<Numbers>& values, int64_t step = 0) const {
    std::vector<std::string> buffers;
    for (auto [i, operand] : llvm::enumerate(ins))
      buffers.push_back(encode(operand.element, values[i]));
    for (const Operand& operand : outs)
      buffers.push_back(encode(operand.element, Numbers(operand.elements, 77)));
    std::vector<char*> operands;
    for (std::string& buffer : buffers)
      operands.push_back(buffer.data());
    runner_->run(0, operands, {}, step);
    std::vector<Numbers> results;
    for (auto [i, operand] : llvm::enumerate(outs))
      results.push_back(decode(operand.element, buffers[ins.size() + i]));
    return results;
  }

private:
  std::string text() const {
    std::vector<std::string> inTypes, outTypes, inNames, outNames, arguments;
    const auto list = [&](const std::vector<Operand>& operands, std::vector<std::string>& types,
                          std::vector<std::string>& names) {
      for (const Operand& operand : operands) {
        names.push_back(fmt::format("%a{}", arguments.size()));
        types.push_back(fmt::format("memref<{}x{}>", operand.elements, operand.element));
        arguments.push_back(fmt::format("{}: {}", names.back(), types.back()));
      }
    };
    list(ins, inTypes, inNames);
    list(outs, outTypes, outNames);
    return fmt::format(
        "func.func @f({}) {{\n"
        "kernel.call #kernel.recurrence<cell = {}, steps = {}, batch = {}, width = {}, "
        "order = [{}], reverse = {}, gradient = {}, bias = {}, dcells = {}, "
        "element = {}, samples = {}, columns = {}> ins({} : {}) outs({} : {})\n"
        "return\n}}\n",
        fmt::join(arguments, ", "), ir::stringifyRecurrentCell(c.cell).str(), c.steps, c.batch,
        c.width, fmt::join(c.order, ", "), c.reverse, isGradient, !isGradient && c.bias,
        isGradient && c.dcells, c.element, c.samples, c.columns, fmt::join(inNames, ", "),
        fmt::join(inTypes, ", "), fmt::join(outNames, ", "), fmt::join(outTypes, ", "));
  }

  Case c;
  bool isGradient;
  std::vector<Operand> ins, outs;
  std::unique_ptr<KernelRunner> runner_;
};

/// Panels of `weights` [G H, H]; NaN in the columns beyond H, which no result may show.
Numbers panelsOf(const Case& c, const Numbers& weights, bool isGradient) {
  const int64_t panels = (c.width + c.columns - 1) / c.columns;
  Numbers result;
  const int64_t outer = isGradient ? 1 : ir::gatesOf(c.cell),
                depth = isGradient ? c.rows() : c.width;
  for (int64_t gate = 0; gate < outer; ++gate)
    for (int64_t panel = 0; panel < panels; ++panel)
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t i = 0; i < c.columns; ++i) {
          const int64_t column = panel * c.columns + i;
          result.push_back(column >= c.width ? std::nan("")
                           : isGradient      ? weights[k * c.width + column]
                                             : weights[(gate * c.width + column) * c.width + k]);
        }
  return result;
}

void expectClose(const std::vector<Numbers>& found, const std::vector<Numbers>& expected,
                 double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t out = 0; out < found.size(); ++out) {
    double largest = 1;
    for (double value : expected[out])
      largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < found[out].size(); ++i)
      ASSERT_NEAR(found[out][i], expected[out][i], tolerance * largest)
          << "out " << out << ", element " << i;
  }
}

/// Values as memory of `element` holds them.
Numbers rounded(const std::string& element, Numbers values) {
  return decode(element, encode(element, values));
}

void check(const Case& c, std::string_view arch, std::mt19937& generator) {
  const auto draw = [&](const std::string& element, int64_t count, double scale = 1) {
    std::normal_distribution<double> normal(0, scale);
    Numbers values(count);
    for (double& value : values)
      value = normal(generator);
    return rounded(element, values);
  };
  const std::string wide = c.wide();
  const int64_t states = c.batch * c.width, gates = c.steps * c.batch * c.rows();
  const bool isLstm = c.cell == RecurrentCell::Lstm;
  const Numbers weights = draw(c.element, c.rows() * c.width, 1 / std::sqrt(double(c.width))),
                projected = draw(c.element, gates), h0 = draw(wide, states),
                c0 = draw(wide, states), bias = draw(wide, c.rows()),
                dresult = draw(wide, c.steps * states), dcells = draw(wide, c.steps * states);
  const auto narrow = [&](double x) {
    return c.element == "bf16" ? rounded("bf16", {x}).front() : x;
  };
  const auto same = [](double x) { return x; };
  interpreter::RecurrenceProblem problem = {c.shape(), weights, h0.data(), c0.data(), narrow, same};
  Numbers result(c.steps * states), kept(gates), cells(c.steps * states);
  interpreter::recur(problem, projected.data(), c.bias ? bias.data() : nullptr, result.data(),
                     kept.data(), cells.data());
  const bool hasGates = isLstm || ir::isGru(c.cell),
             hasCells = isLstm || c.cell == RecurrentCell::Gru;
  std::vector<Numbers> expected = {result};
  if (hasGates)
    expected.push_back(kept);
  if (hasCells)
    expected.push_back(cells);
  // A bf16 factor may be rounded the other way, where a sum in f32 differs from one in f64.
  const double tolerance = c.element == "bf16" ? 2e-2 : c.element == "f64" ? 1e-12 : 2e-5;

  const Routine forward(c, /*isGradient=*/false, arch);
  ASSERT_TRUE(forward.isValid());
  std::vector<Numbers> ins = {projected, panelsOf(c, weights, false), h0};
  if (isLstm)
    ins.push_back(c0);
  if (c.bias)
    ins.push_back(bias);
  const std::vector<Numbers> found = forward.run(ins);
  expectClose(found, expected, tolerance);
  EXPECT_EQ(forward.run(ins, 1), found) << "unit by unit";

  // On what forward gave, so that only the gradient's own rounding shows.
  Numbers dprojected(gates), dsums(gates), dh0(states), dc0(states);
  const Numbers none;
  const auto foundAt = [&](size_t i) { return i < found.size() ? found[i] : none; };
  const Numbers y = foundAt(0), g = hasGates ? foundAt(1) : none, k = hasCells ? foundAt(2) : none;
  interpreter::recurBackward(problem, y.data(), g.data(), k.data(),
                             {dresult.data(), c.dcells ? dcells.data() : nullptr, dprojected.data(),
                              c.cell == RecurrentCell::Gru ? dsums.data() : nullptr, dh0.data(),
                              isLstm ? dc0.data() : nullptr});
  expected = {dprojected};
  if (c.cell == RecurrentCell::Gru)
    expected.push_back(dsums);
  expected.push_back(dh0);
  if (isLstm)
    expected.push_back(dc0);
  const Routine backward(c, /*isGradient=*/true, arch);
  ASSERT_TRUE(backward.isValid());
  ins = {panelsOf(c, weights, true), h0};
  if (isLstm)
    ins.push_back(c0);
  ins.push_back(y);
  if (hasGates)
    ins.push_back(g);
  if (hasCells)
    ins.push_back(k);
  ins.push_back(dresult);
  if (c.dcells)
    ins.push_back(dcells);
  const std::vector<Numbers> gradients = backward.run(ins);
  expectClose(gradients, expected, tolerance);
  EXPECT_EQ(backward.run(ins, 1), gradients) << "unit by unit";
}

Case draw(std::mt19937& generator) {
  const auto below = [&](int64_t count) { return static_cast<int64_t>(generator() % count); };
  Case c;
  c.cell = static_cast<RecurrentCell>(below(5));
  c.steps = 1 + below(5);
  c.batch = 1 + below(20);
  c.width = below(3) == 0 ? 16 * (1 + below(3)) : 1 + below(40);
  c.order.clear();
  for (int64_t gate = 0; gate < ir::gatesOf(c.cell); ++gate)
    c.order.push_back(gate);
  // The rows of a gru's candidate are the last ones.
  std::shuffle(c.order.begin(), c.order.end() - (ir::isGru(c.cell) ? 1 : 0), generator);
  c.reverse = below(2) == 0;
  c.bias = below(3) != 0;
  c.dcells = c.cell == RecurrentCell::Lstm && below(2) == 0;
  c.element = below(3) == 0 ? "bf16" : below(4) == 0 ? "f64" : "f32";
  c.samples = 1 + below(18);
  c.columns = 16 * (1 + below(2));
  return c;
}

TEST(RecurrenceKernel, DrawnCells) {
  const char* chosen = std::getenv("TITAN_TEST_SEED");
  const unsigned first = chosen ? static_cast<unsigned>(std::atoi(chosen)) : 1;
  fmt::print("seeds from {} on (TITAN_TEST_SEED)\n", first);
  for (unsigned seed = first; seed < first + 100 && !::testing::Test::HasFailure(); ++seed) {
    std::mt19937 generator(seed);
    const Case c = draw(generator);
    SCOPED_TRACE(fmt::format("TITAN_TEST_SEED={}: {} [{}, {}, {}] {}", seed,
                             ir::stringifyRecurrentCell(c.cell).str(), c.steps, c.batch, c.width,
                             c.element));
    check(c, seed % 3 == 0 ? "x86-64-v3" : "native", generator);
  }
}

TEST(RecurrenceKernel, BitsDoNotDependOnUnitsAndPanels) {
  for (RecurrentCell cell : {RecurrentCell::Lstm, RecurrentCell::GruResetBefore}) {
    std::mt19937 generator(3);
    std::normal_distribution<double> normal;
    Case c = {.cell = cell, .steps = 4, .batch = 13, .width = 37};
    c.order.resize(ir::gatesOf(cell));
    const auto values = [&](const std::string& element, int64_t count) {
      Numbers drawn(count);
      for (double& value : drawn)
        value = normal(generator);
      return rounded(element, drawn);
    };
    const Numbers weights = values("f32", c.rows() * c.width),
                  projected = values("f32", c.steps * c.batch * c.rows()),
                  states = values("f32", c.batch * c.width), bias = values("f32", c.rows());
    std::vector<Numbers> before;
    for (auto [samples, columns] : {std::pair(16, 16), {1, 32}, {5, 48}, {13, 16}}) {
      c.samples = samples;
      c.columns = columns;
      const Routine routine(c, /*isGradient=*/false, "native");
      ASSERT_TRUE(routine.isValid());
      std::vector<Numbers> ins = {projected, panelsOf(c, weights, false), states};
      if (cell == RecurrentCell::Lstm)
        ins.push_back(states);
      ins.push_back(bias);
      std::vector<Numbers> found = routine.run(ins);
      if (!before.empty())
        EXPECT_EQ(found, before) << samples << " samples, " << columns << " columns";
      before = std::move(found);
    }
  }
}

} // namespace
} // namespace titan::codegen::testing
