// Meaning of the microbatch loop: microbatches in order, their terms added one after the other, or
// as a tree; stacked results row by row.
#include "compiler/Interpreter/Models.h"

#include "dialects/Accum/Accum.h"

using namespace mlir;

namespace titan::interpreter {

namespace {

Tensor sliceOf(const Tensor& batch, int64_t index) {
  Tensor slice(batch.shape().drop_front(), batch.element());
  Walk from = wholeWalk(batch);
  from.start = index * from.strides[0];
  from.strides.erase(from.strides.begin());
  copyElements(slice.shape(), batch, from, slice, wholeWalk(slice));
  return slice;
}

void addTo(Tensor& sum, const Tensor& term) {
  if (sum.isFloat())
    for (auto [x, y] : llvm::zip_equal(sum.mutableFloats(), term.floats()))
      x += y;
  else
    for (auto [x, y] : llvm::zip_equal(sum.mutableIntegers(), term.integers()))
      x += y;
}

/// Row `index` of a stack becomes `row`.
void setRow(Tensor& stack, int64_t index, const Tensor& row) {
  Walk to = wholeWalk(stack);
  to.start = index * to.strides[0];
  to.strides.erase(to.strides.begin());
  copyElements(row.shape(), row, wholeWalk(row), stack, to);
}

/// Runs the loops that a tree stands for. Each level holds the sum of the terms so far in its part
/// of the iterations, and a full part is a term of the level above it.
class TreeSum {
public:
  TreeSum(Value result, int64_t count, Frame& frame) : result_(result), frame_(frame) {
    levels_.resize(std::max<unsigned>(llvm::Log2_64(count), 1));
  }

  void add(Tensor term) {
    for (size_t level = 0; level < levels_.size(); ++level) {
      auto& [terms, sum] = levels_[level];
      addToLevel(sum, term, /*starts=*/terms++ % 2 == 0);
      if (terms % 2 != 0)
        return;
      term = sum;
    }
  }

  Tensor take() { return std::move(levels_.back().sum); }

private:
  /// 0 + term where the level starts, rounded as a value of the result's type.
  void addToLevel(Tensor& sum, const Tensor& term, bool starts) {
    if (starts)
      sum = Tensor(cast<ShapedType>(result_.getType()));
    addTo(sum, term);
    frame_.set(result_, std::move(sum));
    sum = frame_.get(result_);
  }

  struct Level {
    int64_t terms = 0;
    Tensor sum;
  };
  Value result_;
  Frame& frame_;
  std::vector<Level> levels_; ///< the innermost loop first
};

/// Adds what each iteration yields to a result, or sets it.
class Sums {
public:
  Sums(accum::LoopOp op, Frame& frame) : op(op), frame(frame) {
    if (op.getOrder() == accum::Order::Tree)
      for (Value result : op.getSums())
        trees.emplace_back(result, op.getCount(), frame);
  }

  void add(int64_t iteration, ArrayRef<Tensor> yielded) {
    switch (op.getOrder()) {
    case accum::Order::Running:
      for (auto [accumulator, result, value] :
           llvm::zip_equal(op.getAccumulators(), op.getSums(), yielded)) {
        frame.setExact(accumulator, value);
        frame.setExact(result, value);
      }
      return;
    case accum::Order::Unordered:
      for (auto [result, value] : llvm::zip_equal(op.getSums(), yielded)) {
        if (iteration == 0) {
          frame.setExact(result, value);
          continue;
        }
        Tensor sum = frame.get(result);
        addTo(sum, value);
        frame.set(result, std::move(sum));
      }
      return;
    case accum::Order::Tree:
      for (auto [tree, value] : llvm::zip_equal(trees, yielded))
        tree.add(value);
    }
  }

  void finish() {
    for (auto [tree, result] : llvm::zip(trees, op.getSums()))
      frame.setExact(result, tree.take());
  }

private:
  accum::LoopOp op;
  Frame& frame;
  std::vector<TreeSum> trees;
};

LogicalResult loop(accum::LoopOp op, Frame& frame) {
  Block& block = op.getBlock();
  for (auto [accumulator, init] : llvm::zip_equal(op.getAccumulators(), op.getInits()))
    frame.setExact(accumulator, frame.get(init));
  Sums sums(op, frame);
  SmallVector<Tensor> stacks;
  for (Value stack : op.getStacks())
    stacks.emplace_back(cast<ShapedType>(stack.getType()));
  for (int64_t i = 0; i < static_cast<int64_t>(op.getCount()); ++i) {
    frame.setExact(op.getIndex(), Tensor::scalar(op.getIndex().getType(), i));
    for (auto [slice, batch] : llvm::zip_equal(op.getSlices(), op.getBatches()))
      frame.setExact(slice, sliceOf(frame.get(batch), i));
    if (failed(frame.run(block)))
      return failure();
    // All of them before any accumulator changes: one may be yielded as another's next value.
    SmallVector<Tensor> yielded;
    for (Value value : op.getYieldedSums())
      yielded.push_back(frame.get(value));
    for (auto [stack, row] : llvm::zip_equal(stacks, op.getYieldedRows()))
      setRow(stack, i, frame.get(row));
    sums.add(i, yielded);
  }
  sums.finish();
  for (auto [result, stack] : llvm::zip_equal(op.getStacks(), stacks))
    frame.setExact(result, std::move(stack));
  return success();
}

} // namespace

void attachAccum(MLIRContext* context) { attach<accum::LoopOp, loop>(context); }

} // namespace titan::interpreter
