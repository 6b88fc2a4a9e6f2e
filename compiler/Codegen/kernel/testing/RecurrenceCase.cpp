#include "compiler/Codegen/kernel/testing/RecurrenceCase.h"

#include "compiler/Codegen/kernel/testing/KernelSpec.h"
#include "compiler/Interpreter/Recurrence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace titan::codegen::testing {

using ir::RecurrentCell;
using Numbers = RecurrenceRoutine::Numbers;

RecurrenceRoutine::RecurrenceRoutine(RecurrenceCase recurrence, bool isGradient)
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
}

std::string RecurrenceRoutine::text() const {
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

std::vector<Numbers> RecurrenceRoutine::run(const std::vector<Numbers>& values,
                                            const Run& run) const {
  std::vector<std::string> bytes;
  for (auto [i, operand] : llvm::enumerate(ins))
    bytes.push_back(encode(operand.element, values[i]));
  for (const Operand& operand : outs)
    bytes.push_back(encode(operand.element, Numbers(operand.elements, 77)));
  const std::vector<std::string> written = run(text(), bytes, ins.size());
  std::vector<Numbers> results;
  if (written.size() == bytes.size())
    for (auto [i, operand] : llvm::enumerate(outs))
      results.push_back(decode(operand.element, written[ins.size() + i]));
  return results;
}

Numbers panelsOf(const RecurrenceCase& c, const Numbers& weights, bool isGradient) {
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

Numbers roundedTo(const std::string& element, const Numbers& values) {
  return decode(element, encode(element, values));
}

static void expectClose(const std::vector<Numbers>& found, const std::vector<Numbers>& expected,
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

RecurrenceCase drawRecurrence(std::mt19937& generator) {
  const auto below = [&](int64_t count) { return static_cast<int64_t>(generator() % count); };
  RecurrenceCase c;
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

void checkRecurrence(const RecurrenceCase& c, std::mt19937& generator,
                     const RecurrenceRoutine::Run& run) {
  const auto draw = [&](const std::string& element, int64_t count, double scale = 1) {
    std::normal_distribution<double> normal(0, scale);
    Numbers values(count);
    for (double& value : values)
      value = normal(generator);
    return roundedTo(element, values);
  };
  const std::string wide = c.wide();
  const int64_t states = c.batch * c.width, gates = c.steps * c.batch * c.rows();
  const bool isLstm = c.cell == RecurrentCell::Lstm;
  const Numbers weights = draw(c.element, c.rows() * c.width, 1 / std::sqrt(double(c.width))),
                projected = draw(c.element, gates), h0 = draw(wide, states),
                c0 = draw(wide, states), bias = draw(wide, c.rows()),
                dresult = draw(wide, c.steps * states), dcells = draw(wide, c.steps * states);
  const auto narrow = [&](double x) {
    return c.element == "bf16" ? roundedTo("bf16", {x}).front() : x;
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

  std::vector<Numbers> ins = {projected, panelsOf(c, weights, false), h0};
  if (isLstm)
    ins.push_back(c0);
  if (c.bias)
    ins.push_back(bias);
  const std::vector<Numbers> found = RecurrenceRoutine(c, /*isGradient=*/false).run(ins, run);
  expectClose(found, expected, tolerance);

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
  expectClose(RecurrenceRoutine(c, /*isGradient=*/true).run(ins, run), expected, tolerance);
}

} // namespace titan::codegen::testing
