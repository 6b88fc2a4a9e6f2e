// Meaning of titan.recurrence and its gradient.
#include "compiler/Interpreter/Recurrence.h"
#include "compiler/Interpreter/Models.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

/// Calls `function(problem)` with what `op`, either of the two, says.
template <typename Op, typename Function> void withProblem(Op op, Frame& frame, Function function) {
  Type element = tensorType(op.getRecurrent()).getElementType(),
       state = tensorType(op.getResult()).getElementType();
  const auto narrow = [&](double x) { return frame.round(x, element); };
  const auto wide = [&](double x) { return frame.round(x, state); };
  const auto first = [&](size_t i) {
    return i < op.getInitial().size() ? frame.get(op.getInitial()[i]).floats().data() : nullptr;
  };
  function(RecurrenceProblem{op.getRecurrenceShape(), frame.get(op.getRecurrent()).floats(),
                             first(0), first(1), narrow, wide});
}

LogicalResult recurrence(RecurrenceOp op, Frame& frame) {
  SmallVector<Tensor> results;
  for (Value result : op->getResults())
    results.emplace_back(cast<ShapedType>(result.getType()));
  const auto data = [&](size_t i) {
    return i < results.size() ? results[i].mutableFloats().data() : nullptr;
  };
  withProblem(op, frame, [&](const RecurrenceProblem& problem) {
    recur(problem, frame.get(op.getProjected()).floats().data(),
          op.getBias() ? frame.get(op.getBias()).floats().data() : nullptr, data(0), data(1),
          data(2));
  });
  for (auto [value, tensor] : llvm::zip_equal(op->getResults(), results))
    frame.set(value, std::move(tensor));
  return success();
}

LogicalResult recurrenceGrad(RecurrenceGradOp op, Frame& frame) {
  SmallVector<Tensor> results;
  for (Value result : op->getResults())
    results.emplace_back(cast<ShapedType>(result.getType()));
  const auto data = [&](Value result) {
    return result ? results[cast<OpResult>(result).getResultNumber()].mutableFloats().data()
                  : nullptr;
  };
  const auto in = [&](Value value) { return value ? frame.get(value).floats().data() : nullptr; };
  const auto kept = [&](size_t i) {
    return i < op.getKept().size() ? in(op.getKept()[i]) : nullptr;
  };
  const auto dinitial = [&](size_t i) {
    return i < op.getDinitial().size() ? data(op.getDinitial()[i]) : nullptr;
  };
  withProblem(op, frame, [&](const RecurrenceProblem& problem) {
    recurBackward(problem, in(op.getResult()), kept(0), kept(1),
                  {in(op.getDresult()), in(op.getDcells()), data(op.getDprojected()),
                   data(op.getDsums()), dinitial(0), dinitial(1)});
  });
  for (auto [value, tensor] : llvm::zip_equal(op->getResults(), results))
    frame.set(value, std::move(tensor));
  return success();
}

} // namespace

void attachRecurrence(MLIRContext* context) {
  attach<RecurrenceOp, recurrence>(context);
  attach<RecurrenceGradOp, recurrenceGrad>(context);
}

} // namespace titan::interpreter
