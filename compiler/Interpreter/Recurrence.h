// The steps of a recurrent layer, forward and backward, under titan.recurrence and kernel.call.
#pragma once

#include "dialects/Titan/Titan.h"

#include <vector>

namespace titan::interpreter {

/// Tensors are contiguous and shaped as those of titan.recurrence. Numbers are f64; `narrow` rounds
/// to what is multiplied, `wide` to what is added up and kept.
struct RecurrenceProblem {
  ir::RecurrenceShape shape;
  llvm::ArrayRef<double> recurrent; ///< [G H, H]
  const double* h0;
  const double* c0; ///< of an lstm
  llvm::function_ref<double(double)> narrow, wide;
};

/// Writes `result` and, where the cell has them, `gates` and `cells` (c, or s_n of a gru).
void recur(const RecurrenceProblem& problem, const double* projected, const double* bias,
           double* result, double* gates, double* cells);

struct RecurrenceAdjoints {
  const double* dresult;
  const double* dcells; ///< may be null
  double* dprojected;
  double* dsums; ///< null but for gru
  double* dh0;
  double* dc0; ///< of an lstm
};

/// `result`, `gates` and `cells` are those that recur() wrote.
void recurBackward(const RecurrenceProblem& problem, const double* result, const double* gates,
                   const double* cells, const RecurrenceAdjoints& adjoints);

} // namespace titan::interpreter
