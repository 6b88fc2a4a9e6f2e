#include "compiler/Interpreter/Routines.h"

#include "compiler/Interpreter/Attention.h"
#include "compiler/Interpreter/Matmul.h"
#include "compiler/Interpreter/Recurrence.h"
#include "compiler/Interpreter/Scatter.h"
#include "dialects/Kernel/RecurrenceRoutine.h"
#include "runtime/program/Random.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace titan::kernel;

namespace titan::interpreter {

namespace {

LogicalResult product(CallOp op, GemmAttr gemm, Frame& frame) {
  const Tensor &a = frame.get(op.getIns()[0]), &b = frame.get(op.getIns()[1]);
  Tensor result = frame.get(op.getOuts()[0]);
  MutableArrayRef<double> out = result.mutableFloats();
  int64_t m = gemm.getM(), n = gemm.getN(), k = gemm.getK();
  Type f32 = Float32Type::get(op.getContext()); // the epilogue's, whatever C is rounded to
  std::vector<double> left(gemm.getPatchesA() ? m * k : 0), right(k * n), product(m * n);
  for (int64_t batch = 0; batch < gemm.getBatch(); ++batch) {
    const double* matrixA = a.floats().data() + batch * gemm.getStrideA();
    const double* matrixB = b.floats().data() + batch * gemm.getStrideB();
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        right[p * n + j] = frame.round(gemm.getPatchesB()     ? matrixB[gemm.getPatchesB().at(p, j)]
                                       : gemm.getTransposeB() ? matrixB[j * gemm.getLdb() + p]
                                                              : matrixB[p * gemm.getLdb() + j],
                                       a.element()); // an f32 B may meet a bf16 A
    if (gemm.getPatchesA()) {
      for (int64_t i = 0; i < m; ++i)
        for (int64_t p = 0; p < k; ++p)
          left[i * k + p] = matrixA[gemm.getPatchesA().at(i, p)];
      matrixA = left.data();
    }
    const int64_t leading = gemm.getPatchesA() ? k : gemm.getLda();
    llvm::fill(product, 0);
    multiplyAdd(m, n, k, matrixA, gemm.getTransposeA() ? 1 : leading,
                gemm.getTransposeA() ? leading : 1, right.data(), n, product.data(), n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double& c = out[batch * gemm.getStrideC() + i * gemm.getLdc() + j];
        double value = frame.round(product[i * n + j], f32);
        if (gemm.getAccumulate())
          value = frame.round(value + c, f32);
        if (gemm.getBias())
          value = frame.round(value + frame.get(op.getIns()[2]).floats()[j], f32);
        if (gemm.getRelu())
          value = value < 0 ? 0 : value;
        c = frame.round(value, result.element());
      }
  }
  frame.setExact(op->getResult(0), std::move(result));
  return success();
}

/// The row of the table that index number `i` names.
template <typename Routine> int64_t rowAt(Routine routine, const Tensor& indices, int64_t i) {
  const int64_t entries = routine.getEntries(), inner = routine.getInner();
  const int64_t entry = std::clamp<int64_t>(indices.integers()[i], 0, entries - 1);
  return (i / (routine.getRows() * inner) * entries + entry) * inner + i % inner;
}

LogicalResult embedding(CallOp op, EmbeddingAttr routine, Frame& frame) {
  const Tensor &table = frame.get(op.getIns()[0]), &indices = frame.get(op.getIns()[1]);
  Tensor result = frame.get(op.getOuts()[0]);
  int64_t width = routine.getWidth();
  auto copy = [&](auto from, auto to) {
    for (int64_t i = 0; i < routine.getAllRows(); ++i)
      std::copy_n(from.begin() + rowAt(routine, indices, i) * width, width, to.begin() + i * width);
  };
  if (table.isFloat())
    copy(table.floats(), result.mutableFloats());
  else
    copy(table.integers(), result.mutableIntegers());
  frame.setExact(op->getResult(0), std::move(result));
  return success();
}

/// The order of #kernel.embedding_grad with `sorted`: the rows of an index in each tile, then the
/// tiles.
void addSorted(EmbeddingGradAttr routine, const Tensor& rows, const Tensor& indices, Tensor& result,
               Frame& frame) {
  MutableArrayRef<double> sums = result.mutableFloats();
  constexpr int64_t tile = EmbeddingGradAttr::tileRows;
  const int64_t count = routine.getAllRows(), width = routine.getWidth();
  std::vector<std::pair<int64_t, int64_t>> sorted; // entry, row
  for (int64_t row = 0; row < count; ++row)
    sorted.emplace_back(rowAt(routine, indices, row), row);
  llvm::sort(sorted);
  auto add = [&](double a, double b) { return frame.round(a + b, result.element()); };
  auto term = [&](int64_t place, int64_t column) {
    return rows.floats()[sorted[place].second * width + column];
  };
  auto sumOf = [&](int64_t begin, int64_t end, int64_t column) {
    double sum = term(begin, column);
    for (int64_t place = begin + 1; place < end; ++place)
      sum = add(sum, term(place, column));
    return sum;
  };
  for (int64_t begin = 0, end = 0; begin < count; begin = end) {
    const int64_t entry = sorted[begin].first;
    while (end < count && sorted[end].first == entry)
      ++end;
    for (int64_t column = 0; column < width && entry != routine.getPadding(); ++column) {
      int64_t next = std::min(end, (begin / tile + 1) * tile);
      double total = sumOf(begin, next, column);
      for (int64_t place = next; place < end; place = next) {
        next = std::min(end, place + tile);
        total = add(total, sumOf(place, next, column));
      }
      double& sum = sums[entry * width + column];
      sum = routine.getAccumulate() ? add(sum, total) : total;
    }
  }
}

/// Adds row by row.
void addInOrder(EmbeddingGradAttr routine, const Tensor& rows, const Tensor& indices,
                Tensor& result, Frame& frame) {
  MutableArrayRef<double> sums = result.mutableFloats();
  int64_t width = routine.getWidth();
  for (int64_t i = 0; i < routine.getAllRows(); ++i) {
    int64_t entry = rowAt(routine, indices, i);
    if (entry == routine.getPadding())
      continue;
    for (int64_t column = 0; column < width; ++column) {
      double& sum = sums[entry * width + column];
      sum = frame.round(sum + rows.floats()[i * width + column], result.element());
    }
  }
}

/// Of workspace nothing is written.
LogicalResult embeddingGrad(CallOp op, EmbeddingGradAttr routine, Frame& frame) {
  const Tensor &rows = frame.get(op.getIns()[0]), &indices = frame.get(op.getIns()[1]);
  Tensor result = frame.get(op.getOuts()[0]);
  if (!routine.getAccumulate())
    llvm::fill(result.mutableFloats(), 0);
  (routine.getSorted() ? addSorted : addInOrder)(routine, rows, indices, result, frame);
  frame.setExact(op->getResult(0), std::move(result));
  for (auto [workspace, out] : llvm::drop_begin(llvm::zip_equal(op.getResults(), op.getOuts())))
    frame.setExact(workspace, frame.get(out));
  return success();
}

/// The operands of an attention routine: views of ins, and of outs as they were.
class AttentionOperands {
public:
  AttentionOperands(CallOp op, Frame& frame) : op(op), ins(op.getIns()), frame(frame) {
    for (Value out : op.getOuts())
      outs.push_back(frame.get(out));
  }

  const Tensor& in(int64_t operand) const { return frame.get(ins[operand]); }
  Tensor& out(int64_t operand) { return outs[operand]; }
  Heads<const double> read(ViewAttr view) const {
    return {in(view.getOperand()).floats().data() + view.getOffset(), view.getBatch(),
            view.getRow(), view.getHead()};
  }
  Heads<double> write(ViewAttr view) {
    return {out(view.getOperand()).mutableFloats().data() + view.getOffset(), view.getBatch(),
            view.getRow(), view.getHead()};
  }
  void setResults() {
    for (auto [result, out] : llvm::zip_equal(op.getResults(), outs))
      frame.set(result, std::move(out));
  }

private:
  CallOp op;
  ValueRange ins;
  Frame& frame;
  SmallVector<Tensor> outs;
};

MaskRows maskOf(AttentionMaskAttr mask, const Tensor& tensor) {
  MaskRows rows{tensor, mask.getBatch(), mask.getHead(), mask.getRow()};
  if (FloatAttr fill = mask.getFill())
    rows.fill = fill.getValueAsDouble();
  return rows;
}

DropoutRows dropoutOf(CallOp op, AttentionDropoutAttr dropout, AttentionAttr routine,
                      const AttentionOperands& operands, Frame& frame) {
  auto scalar = [&](int64_t operand) { return operand < 0 ? 0 : operands.in(operand).integer(); };
  double p = dropout.getP().getValueAsDouble();
  DropoutRows rows;
  rows.key = randomKey(scalar(dropout.getSeed()), dropout.getStream());
  rows.step = scalar(dropout.getStep());
  rows.threshold = keepThreshold(p);
  rows.scale = frame.round(1 / (1 - p), routine.getAccumulation());
  llvm::copy(dropout.getGlobal(), rows.global.begin());
  if (!op.getScalars().empty())
    rows.base = frame.get(op.getScalars().front()).integer();
  return rows;
}

void setToZero(Heads<double> x, int64_t batch, int64_t positions, int64_t heads, int64_t width) {
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t p = 0; p < positions; ++p)
      for (int64_t h = 0; h < heads; ++h)
        std::fill_n(x.at(b, p, h), width, 0.0);
}

LogicalResult attention(CallOp op, AttentionAttr a, Frame& frame) {
  AttentionOperands operands(op, frame);
  AttentionGradientAttr gradient = a.getGradient();
  AttentionProblem problem;
  problem.batch = a.getBatch();
  problem.queries = a.getQueries();
  problem.keys = a.getKeys();
  problem.heads = a.getHeads();
  problem.keyHeads = a.getKeyHeads();
  problem.width = a.getWidth();
  problem.valueWidth = a.getValueWidth();
  problem.scale = a.getScale().getValueAsDouble();
  problem.causal = a.getCausal();
  problem.query = operands.read(a.getQuery());
  problem.key = operands.read(a.getKey());
  problem.value = operands.read(a.getValue());
  // [batch, head, query], contiguous.
  Tensor logSumExp = gradient ? operands.in(a.getLogSumExp()) : operands.out(a.getLogSumExp());
  auto statistics = [&](Tensor& tensor) {
    return Heads<double>{tensor.mutableFloats().data(), a.getHeads() * a.getQueries(), 1,
                         a.getQueries()};
  };
  problem.logSumExp = statistics(logSumExp);
  std::optional<Tensor> largest;
  if (int64_t at = a.getLargest(); at >= 0)
    problem.largest = statistics(largest.emplace(gradient ? operands.in(at) : operands.out(at)));
  std::optional<MaskRows> mask;
  if (AttentionMaskAttr attribute = a.getMask())
    problem.mask = mask.emplace(maskOf(attribute, operands.in(attribute.getOperand())));
  std::optional<FilledRows> filled;
  if (mask && a.getMask().getFill())
    problem.filled = filled.emplace(*mask);
  std::optional<DropoutRows> dropout;
  if (AttentionDropoutAttr attribute = a.getDropout())
    problem.dropout = dropout.emplace(dropoutOf(op, attribute, a, operands, frame));
  auto round = [&](double x) { return frame.round(x, a.getElement()); };
  if (a.getElement() != a.getAccumulation())
    problem.round = round;
  auto roundScore = [&](double x) { return frame.round(x, a.getAccumulation()); };
  if (largest)
    problem.roundScore = roundScore;

  if (gradient) {
    Heads<double> dquery = operands.write(gradient.getDquery()),
                  dkey = operands.write(gradient.getDkey()),
                  dvalue = operands.write(gradient.getDvalue());
    setToZero(dquery, a.getBatch(), a.getQueries(), a.getHeads(), a.getWidth());
    setToZero(dkey, a.getBatch(), a.getKeys(), a.getKeyHeads(), a.getWidth());
    setToZero(dvalue, a.getBatch(), a.getKeys(), a.getKeyHeads(), a.getValueWidth());
    attendBackward(problem, operands.read(a.getResult()), operands.read(gradient.getDresult()),
                   dquery, dkey, dvalue);
  } else {
    attend(problem, operands.write(a.getResult()));
    operands.out(a.getLogSumExp()) = logSumExp;
    if (largest)
      operands.out(a.getLargest()) = *largest;
  }
  operands.setResults();
  return success();
}

/// [G H, H] from the panels of either direction.
std::vector<double> weightsOf(RecurrenceAttr routine, ArrayRef<double> panels) {
  const int64_t width = routine.getWidth(), columns = routine.getColumns(),
                rows = routine.getShape().rows();
  std::vector<double> weights(rows * width);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t k = 0; k < width; ++k) {
      const int64_t column = routine.getGradient() ? k : row % width,
                    line = routine.getGradient() ? row : k,
                    lines = routine.getGradient() ? rows : width,
                    gate = routine.getGradient() ? 0 : row / width;
      weights[row * width + k] =
          panels[((gate * routine.getPanels() + column / columns) * lines + line) * columns +
                 column % columns];
    }
  return weights;
}

LogicalResult recurrence(CallOp op, RecurrenceAttr routine, Frame& frame) {
  const RecurrenceOperands numbers = operandsOf(routine);
  SmallVector<Tensor> outs;
  for (Value out : op.getOuts())
    outs.push_back(frame.get(out));
  const auto in = [&](RecurrenceOperands::Number number) -> const double* {
    return number ? frame.get(op->getOperand(*number)).floats().data() : nullptr;
  };
  const auto out = [&](RecurrenceOperands::Number number) {
    return number ? outs[*number - numbers.ins].mutableFloats().data() : nullptr;
  };
  const auto narrow = [&](double x) { return frame.round(x, routine.getElement()); };
  const auto wide = [&](double x) { return frame.round(x, routine.getAccumulation()); };
  const std::vector<double> weights =
      weightsOf(routine, frame.get(op->getOperand(*numbers.panels)).floats());
  const RecurrenceProblem problem = {routine.getShape(), weights, in(numbers.h0),
                                     in(numbers.c0),     narrow,  wide};
  if (routine.getGradient())
    recurBackward(problem, in(numbers.result), in(numbers.gates), in(numbers.cells),
                  {in(numbers.dresult), in(numbers.dcells), out(numbers.projected),
                   out(numbers.dsums), out(numbers.dh0), out(numbers.dc0)});
  else
    recur(problem, in(numbers.projected), in(numbers.bias), out(numbers.result), out(numbers.gates),
          out(numbers.cells));
  for (auto [result, tensor] : llvm::zip_equal(op.getResults(), outs))
    frame.set(result, std::move(tensor));
  return success();
}

LogicalResult scatter(CallOp op, ScatterAttr routine, Frame& frame) {
  Tensor result = frame.get(op.getOuts()[0]);
  scatterRows(routine.getKind(),
              {routine.getOuter(), routine.getEntries(), routine.getInner(), routine.getRows(),
               routine.getWidth()},
              frame.get(op.getIns()[0]), frame.get(op.getIns()[1]), result, result.element(),
              frame);
  frame.setExact(op->getResult(0), std::move(result));
  return success();
}

LogicalResult topK(CallOp op, TopKAttr routine, Frame& frame) {
  Tensor values = frame.get(op.getOuts()[0]), indices = frame.get(op.getOuts()[1]);
  takeFirst(frame.get(op.getIns()[0]), routine.getRows(), routine.getSmallest(), values, indices);
  frame.setExact(op->getResult(0), std::move(values));
  frame.setExact(op->getResult(1), std::move(indices));
  return success();
}

} // namespace

LogicalResult callRoutine(CallOp op, Frame& frame) {
  return llvm::TypeSwitch<RoutineAttrInterface, LogicalResult>(op.getRoutine())
      .Case([&](GemmAttr gemm) { return product(op, gemm, frame); })
      .Case([&](AttentionAttr routine) { return attention(op, routine, frame); })
      .Case([&](EmbeddingAttr routine) { return embedding(op, routine, frame); })
      .Case([&](EmbeddingGradAttr routine) { return embeddingGrad(op, routine, frame); })
      .Case([&](RecurrenceAttr routine) { return recurrence(op, routine, frame); })
      .Case([&](ScatterAttr routine) { return scatter(op, routine, frame); })
      .Case([&](TopKAttr routine) { return topK(op, routine, frame); })
      .Default([&](RoutineAttrInterface routine) -> LogicalResult {
        if (auto* meaning = routine.getDialect().getRegisteredInterface<RoutineMeaning>())
          return meaning->call(op, frame);
        return op.emitOpError("cannot interpret ") << routine;
      });
}

} // namespace titan::interpreter
