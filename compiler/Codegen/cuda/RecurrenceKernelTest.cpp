// Recurrent layers, drawn: each cell forward and backward against its definition in f64, the same
// bytes in three orders of blocks and warps.
#include "compiler/Codegen/cuda/testing/CudaRunner.h"
#include "compiler/Codegen/kernel/testing/RecurrenceCase.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace titan::codegen::cuda::testing {
namespace {

using codegen::testing::RecurrenceCase;
using codegen::testing::RecurrenceRoutine;
using ir::RecurrentCell;

RecurrenceRoutine::Run runAndAssemble(bool assembles) {
  return [assembles](const std::string& text, const std::vector<std::string>& bytes, size_t ins) {
    Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(text);
    if (!runner.ok()) {
      ADD_FAILURE() << runner.error().message();
      return std::vector<std::string>();
    }
    if (assembles)
      expectAssembles((*runner)->ptx());
    return runInAllOrders(**runner, bytes, ins);
  };
}

TEST(CudaRecurrenceKernel, DrawnCells) {
  const char* chosen = std::getenv("TITAN_TEST_SEED");
  const unsigned first = chosen ? static_cast<unsigned>(std::atoi(chosen)) : 1;
  fmt::print("seeds from {} on (TITAN_TEST_SEED)\n", first);
  for (unsigned seed = first; seed < first + 40 && !::testing::Test::HasFailure(); ++seed) {
    std::mt19937 generator(seed);
    RecurrenceCase c = codegen::testing::drawRecurrence(generator);
    if (c.element == "f64")
      c.element = "f32";
    SCOPED_TRACE(fmt::format("TITAN_TEST_SEED={}: {} [{}, {}, {}] {}, {} samples a block", seed,
                             ir::stringifyRecurrentCell(c.cell).str(), c.steps, c.batch, c.width,
                             c.element, c.samples));
    checkRecurrence(c, generator, runAndAssemble(seed % 5 == 0));
  }
}

// More columns than a block has threads, and more samples than their states have room for.
TEST(CudaRecurrenceKernel, WideLayers) {
  std::mt19937 generator(5);
  for (RecurrentCell cell : {RecurrentCell::Lstm, RecurrentCell::Gru}) {
    RecurrenceCase c = {.cell = cell, .steps = 2, .batch = 3, .width = 300, .samples = 4};
    c.order.resize(ir::gatesOf(cell));
    checkRecurrence(c, generator, runAndAssemble(true));
  }
  RecurrenceCase c = {.steps = 1, .batch = 2, .width = 2000, .samples = 4};
  c.cell = RecurrentCell::Tanh;
  c.order = {0};
  c.batch = 7;
  checkRecurrence(c, generator, runAndAssemble(true));
}

TEST(CudaRecurrenceKernel, WhatHasNoKernelIsNamed) {
  auto message = [](const RecurrenceCase& c) {
    Result<std::unique_ptr<CudaRunner>> runner =
        CudaRunner::compile(RecurrenceRoutine(c, /*isGradient=*/false).text());
    return runner.ok() ? std::string("compiled") : runner.error().message();
  };
  EXPECT_NE(message({.element = "f64"}).find("recurrence of 'f64' has no kernel on cuda"),
            std::string::npos);
  const std::string wide = message({.width = 5000});
  EXPECT_NE(wide.find("a recurrent layer of 5000 states takes 100128 bytes of shared memory, and a "
                      "block has 98304"),
            std::string::npos)
      << wide;
}

} // namespace
} // namespace titan::codegen::cuda::testing
