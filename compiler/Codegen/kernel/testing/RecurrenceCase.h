// Drawn recurrent layers (#kernel.recurrence) beside their definition in f64.
#pragma once

#include "dialects/Titan/Titan.h"

#include <functional>
#include <random>
#include <string>
#include <vector>

namespace titan::codegen::testing {

struct RecurrenceCase {
  ir::RecurrentCell cell = ir::RecurrentCell::Lstm;
  int64_t steps = 3, batch = 2, width = 5;
  std::vector<int64_t> order = {0, 1, 2, 3};
  bool reverse = false, bias = true, dcells = false;
  std::string element = "f32";
  int64_t samples = 16, columns = 16;

  std::string wide() const { return element == "f64" ? "f64" : "f32"; }
  int64_t rows() const { return ir::gatesOf(cell) * width; }
  ir::RecurrenceShape shape() const { return {cell, steps, batch, width, order, reverse}; }
};

RecurrenceCase drawRecurrence(std::mt19937& generator);

/// The layer or its gradient, as a module with one call.
class RecurrenceRoutine {
public:
  using Numbers = std::vector<double>;
  /// Runs the call of `text` on the bytes of its operands, of which the first `ins` are read, and
  /// returns those of all; none: it failed, and said so.
  using Run = std::function<std::vector<std::string>(
      const std::string& text, const std::vector<std::string>& bytes, size_t ins)>;

  RecurrenceRoutine(RecurrenceCase recurrence, bool isGradient);

  std::string text() const;
  /// The outs.
  std::vector<Numbers> run(const std::vector<Numbers>& values, const Run& run) const;

private:
  struct Operand {
    std::string element;
    int64_t elements;
  };

  RecurrenceCase c;
  bool isGradient;
  std::vector<Operand> ins, outs;
};

/// Panels of `weights` [G H, H]; NaN in the columns beyond H, which no result may show.
RecurrenceRoutine::Numbers panelsOf(const RecurrenceCase& c,
                                    const RecurrenceRoutine::Numbers& weights, bool isGradient);

/// Values as memory of `element` holds them.
RecurrenceRoutine::Numbers roundedTo(const std::string& element,
                                     const RecurrenceRoutine::Numbers& values);

/// Fails the test where `run` gives another layer, or another gradient, than the definition.
void checkRecurrence(const RecurrenceCase& c, std::mt19937& generator,
                     const RecurrenceRoutine::Run& run);

} // namespace titan::codegen::testing
