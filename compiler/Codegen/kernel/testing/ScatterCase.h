// #kernel.scatter and #kernel.top_k as a test writes them: the module text, operands that are
// drawn, and what plain loops make of them.
#pragma once

#include "compiler/Codegen/kernel/testing/KernelSpec.h"

#include <random>

namespace titan::codegen::testing {

/// A number in [0, count).
int64_t below(std::mt19937& generator, int64_t count);

struct ScatterCase {
  std::string kind, element, index;
  int64_t outer, entries, inner, rows, width, columns;

  int64_t places() const { return outer * rows * inner; }
};

std::string moduleText(const ScatterCase& scatter);

struct ScatterData {
  std::vector<std::string> operands; ///< bytes of indices, updates and the elements before
  Elements expected;                 ///< the elements afterwards
};

/// Whole numbers of half a unit, which all types hold, a NaN where there may be one, and indices of
/// which some are outside.
ScatterData drawScatter(const ScatterCase& scatter, std::mt19937& generator);

struct SortCase {
  std::string element;
  int64_t rows, length, count;
  bool smallest;
};

std::string moduleText(const SortCase& sort);

struct SortData {
  std::vector<std::string> operands; ///< bytes of the elements, and of both results before
  Elements values, indices;          ///< the results
};

/// Many equal elements; floats have NaN, infinities and zeros of both signs among them.
SortData drawSort(const SortCase& sort, std::mt19937& generator);

/// Equal numbers, or two NaN.
bool isSame(double a, double b);

} // namespace titan::codegen::testing
