// The recurrence routine, drawn: each cell forward and backward against its definition in f64, and
// bit for bit in calls of a few units, and in units of other samples and panels.
#include "compiler/Codegen/cpu/CpuFeatures.h"
#include "compiler/Codegen/cpu/testing/KernelRunner.h"
#include "compiler/Codegen/kernel/testing/RecurrenceCase.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace titan::codegen::testing {
namespace {

using ir::RecurrentCell;
using Numbers = RecurrenceRoutine::Numbers;

/// In one call, and unit by unit: the same bytes.
RecurrenceRoutine::Run runOn(std::string_view arch) {
  return [arch = std::string(arch)](const std::string& text, const std::vector<std::string>& bytes,
                                    size_t) {
    std::vector<std::string> whole = bytes, parts = bytes;
    auto runner = KernelRunner::compile(text, resolveCpu(arch).take());
    if (!runner.ok()) {
      ADD_FAILURE() << runner.error().message();
      return std::vector<std::string>();
    }
    for (auto [buffers, step] : {std::pair(&whole, 0), {&parts, 1}}) {
      std::vector<char*> operands;
      for (std::string& buffer : *buffers)
        operands.push_back(buffer.data());
      (*runner)->run(0, operands, {}, step);
    }
    EXPECT_EQ(parts, whole) << "unit by unit";
    return whole;
  };
}

TEST(RecurrenceKernel, DrawnCells) {
  const char* chosen = std::getenv("TITAN_TEST_SEED");
  const unsigned first = chosen ? static_cast<unsigned>(std::atoi(chosen)) : 1;
  fmt::print("seeds from {} on (TITAN_TEST_SEED)\n", first);
  for (unsigned seed = first; seed < first + 100 && !::testing::Test::HasFailure(); ++seed) {
    std::mt19937 generator(seed);
    const RecurrenceCase c = drawRecurrence(generator);
    SCOPED_TRACE(fmt::format("TITAN_TEST_SEED={}: {} [{}, {}, {}] {}", seed,
                             ir::stringifyRecurrentCell(c.cell).str(), c.steps, c.batch, c.width,
                             c.element));
    checkRecurrence(c, generator, runOn(seed % 3 == 0 ? "x86-64-v3" : "native"));
  }
}

TEST(RecurrenceKernel, BitsDoNotDependOnUnitsAndPanels) {
  for (RecurrentCell cell : {RecurrentCell::Lstm, RecurrentCell::GruResetBefore}) {
    std::mt19937 generator(3);
    std::normal_distribution<double> normal;
    RecurrenceCase c = {.cell = cell, .steps = 4, .batch = 13, .width = 37};
    c.order.resize(ir::gatesOf(cell));
    const auto values = [&](const std::string& element, int64_t count) {
      Numbers drawn(count);
      for (double& value : drawn)
        value = normal(generator);
      return roundedTo(element, drawn);
    };
    const Numbers weights = values("f32", c.rows() * c.width),
                  projected = values("f32", c.steps * c.batch * c.rows()),
                  states = values("f32", c.batch * c.width), bias = values("f32", c.rows());
    std::vector<Numbers> before;
    for (auto [samples, columns] : {std::pair(16, 16), {1, 32}, {5, 48}, {13, 16}}) {
      c.samples = samples;
      c.columns = columns;
      std::vector<Numbers> ins = {projected, panelsOf(c, weights, false), states};
      if (cell == RecurrentCell::Lstm)
        ins.push_back(states);
      ins.push_back(bias);
      std::vector<Numbers> found =
          RecurrenceRoutine(c, /*isGradient=*/false).run(ins, runOn("native"));
      if (!before.empty())
        EXPECT_EQ(found, before) << samples << " samples, " << columns << " columns";
      before = std::move(found);
    }
  }
}

} // namespace
} // namespace titan::codegen::testing
