// Lowering of reductions. The order of a sum is decided here, from the op's shape alone: see "Order
// of reductions" in README.md.
#include "compiler/Lower/Reductions.h"
#include "compiler/Lower/Rules.h"

using namespace mlir;

namespace titan::lower {

namespace {

/// Longest run of elements that one stage combines along the innermost dimensions, and the pieces
/// that a longer one is cut into.
constexpr int64_t longestRow = 16384, rowPiece = 4096;
/// Columns of at most `shortColumn` rows are combined by one kernel; longer ones in chunks near
/// `fewRows` rows, or `manyRows` from `longColumn` rows on, so that the partial results stay small
/// against the operand.
constexpr int64_t shortColumn = 16, fewRows = 16, manyRows = 64, longColumn = 1024;

/// The chunk for `rows` rows, in runs of `run` (the innermost of several dimensions that count
/// them): the divisor of a run within [8, 64] that is nearest to the wanted size, so that a kernel
/// over the separate dimensions can be evaluated in the chunks; failing that, the divisor of all
/// rows; failing that, the wanted size and a shorter last chunk.
int64_t chooseChunk(int64_t rows, int64_t run, int64_t wanted) {
  for (int64_t whole : {run, rows}) {
    int64_t best = 0;
    for (int64_t chunk = 8; chunk <= 64; ++chunk)
      if (whole % chunk == 0 && (best == 0 || std::abs(chunk - wanted) < std::abs(best - wanted)))
        best = chunk;
    if (best != 0)
      return best;
  }
  return wanted;
}

class Reducer {
public:
  Reducer(LoweringBuilder& lowering, ir::ReduceKind kind, Type element)
      : l(lowering), kind(kind), isUnsigned(element.isUnsignedInteger()) {}

  Value reduce(Value operand, ArrayRef<int64_t> dims) {
    SmallVector<int64_t> left(dims);
    while (!left.empty()) {
      auto shape = tensorType(operand).getShape();
      int64_t rank = shape.size();
      if (left.back() == rank - 1) {
        // Innermost dimensions together, as long as the row stays short.
        int64_t first = rank - 1, extent = shape[first];
        while (left.size() > 1 && left[left.size() - 2] == first - 1 &&
               extent * shape[first - 1] <= longestRow) {
          left.pop_back();
          extent *= shape[--first];
        }
        if (first == rank - 1 && extent > longestRow)
          operand = reducePieces(operand, rank - 1, rowPiece);
        operand = reduceOnce(
            operand, llvm::to_vector(llvm::seq<int64_t>(first, tensorType(operand).getRank())));
        left.pop_back();
        continue;
      }
      // Neighbouring dimensions count their rows as one.
      int64_t dim = left.pop_back_val(), rows = shape[dim], run = rows;
      SmallVector<int64_t> merged(shape);
      while (!left.empty() && left.back() == dim - 1) {
        left.pop_back();
        rows *= merged[--dim];
        merged[dim] = rows;
        merged.erase(merged.begin() + dim + 1);
      }
      operand = l.castShape(operand, merged);
      if (rows > shortColumn)
        operand = reducePieces(operand, dim,
                               chooseChunk(rows, run, rows >= longColumn ? manyRows : fewRows));
      operand = reduceOnce(operand, dim);
    }
    return operand;
  }

private:
  LoweringBuilder& l;
  ir::ReduceKind kind;
  bool isUnsigned;

  SmallVector<int64_t> without(ArrayRef<int64_t> dims, int64_t rank) {
    SmallVector<int64_t> kept;
    for (int64_t d = 0; d < rank; ++d)
      if (!llvm::is_contained(dims, d))
        kept.push_back(d);
    return kept;
  }

  Value reduceOnce(Value operand, ArrayRef<int64_t> dims) {
    RankedTensorType type = tensorType(operand);
    int64_t rank = type.getRank();
    SmallVector<int64_t> kept = without(dims, rank), shape;
    for (int64_t d : kept)
      shape.push_back(type.getDimSize(d));
    LoweringBuilder::Read read = {operand, l.identity(rank)};
    return l.fused(type.getShape(), read,
                   LoweringBuilder::Write{type.clone(shape), l.project(rank, kept)},
                   [&](Body& b, ValueRange v) {
                     return SmallVector<Value>{reduceElements(b, kind, v[0], dims, isUnsigned)};
                   })[0];
  }

  /// Cuts dimension `dim` into chunks and combines each: [.., rows, ..] to [.., chunks, ..].
  Value reducePieces(Value operand, int64_t dim, int64_t chunk) {
    RankedTensorType type = tensorType(operand);
    int64_t rank = type.getRank(), rows = type.getDimSize(dim), whole = rows / chunk,
            rest = rows % chunk;
    SmallVector<int64_t> resultShape(type.getShape());
    resultShape[dim] = whole + (rest ? 1 : 0);
    RankedTensorType resultType = type.clone(resultShape);

    // Chunks [from, from + count) of `size` rows each; the space is the operand's with [chunk, row]
    // in place of the dimension.
    auto piece = [&](int64_t from, int64_t count, int64_t size, Value into) {
      SmallVector<int64_t> space(type.getShape());
      space[dim] = count;
      space.insert(space.begin() + dim + 1, size);
      SmallVector<AffineExpr> in, out;
      for (int64_t d = 0; d < rank; ++d) {
        AffineExpr own = l.dim(d <= dim ? d : d + 1);
        in.push_back(d == dim ? l.dim(dim) * chunk + l.dim(dim + 1) + from * chunk : own);
        out.push_back(d == dim ? own + from : own);
      }
      LoweringBuilder::Read read = {operand, l.map(rank + 1, in)};
      return l.fused(space, read, LoweringBuilder::Write{resultType, l.map(rank + 1, out), into},
                     [&](Body& b, ValueRange v) {
                       return SmallVector<Value>{
                           reduceElements(b, kind, v[0], dim + 1, isUnsigned)};
                     })[0];
    };
    Value partial = piece(0, whole, chunk, {});
    return rest ? piece(whole, 1, rest, partial) : partial;
  }
};

struct Rules {
  static LogicalResult lower(ir::ReduceOp op, LoweringBuilder& l) {
    // Partial results of a narrow float would be rounded between the stages: they are combined in
    // f32 and rounded once.
    Type element = op.getType().getElementType(), wide = Body::computeType(element);
    auto convert = [&](Value value, Type type) {
      return l.elementwise(tensorType(value).clone(type), value,
                           [](Body&, ValueRange v) { return v[0]; });
    };
    Value operand = op.getOperand();
    if (wide != element)
      operand = convert(operand, wide);
    Value result = Reducer(l, op.getKind(), element).reduce(operand, op.getDims());
    l.replace(wide != element ? convert(result, element) : result);
    return success();
  }

  /// The smallest index whose element equals the maximum, or is NaN where one is.
  static LogicalResult lower(ir::ArgmaxOp op, LoweringBuilder& l) {
    RankedTensorType type = tensorType(op.getOperand());
    int64_t rank = type.getRank(), last = rank - 1, dim = op.getDim();
    const int64_t extent = type.getDimSize(dim);
    Value operand = op.getOperand();
    if (dim != last) {
      SmallVector<int64_t> order;
      for (int64_t d = 0; d < rank; ++d)
        if (d != dim)
          order.push_back(d);
      order.push_back(dim);
      operand = l.transpose(operand, order);
    }
    auto resultType = cast<RankedTensorType>(op.getResult().getType());
    bool noSign = type.getElementType().isUnsignedInteger();
    AffineMap rows = l.project(rank, llvm::to_vector(llvm::seq<int64_t>(0, last)));
    LoweringBuilder::Read read = {operand, l.identity(rank)};
    l.replace(l.fused(
        tensorType(operand).getShape(), read, LoweringBuilder::Write{resultType, rows},
        [&](Body& b, ValueRange v) {
          Value x = v[0], largest = reduceElements(b, ir::ReduceKind::Max, x, last, noSign), found;
          if (isa<FloatType>(x.getType()))
            found = b.create<arith::OrIOp>(b.compare(arith::CmpFPredicate::OEQ, x, largest),
                                           b.compare(arith::CmpFPredicate::UNO, x, x));
          else
            found = b.compare(arith::CmpIPredicate::eq, x, largest);
          Type i64 = b.builder.getI64Type();
          Type number = llvm::isInt<32>(extent) ? b.builder.getI32Type() : i64;
          Value index = b.create<arith::IndexCastOp>(number, b.index(last));
          Value candidate = b.select(found, index, b.integer(number, extent));
          Value first = b.reduce(kernel::ReduceKind::Min, candidate, last);
          return SmallVector<Value>{b.resize(first, i64, /*isUnsigned=*/false)};
        }));
    return success();
  }
};

} // namespace

Value buildReduction(LoweringBuilder& lowering, ir::ReduceKind kind, Value operand,
                     ArrayRef<int64_t> dims) {
  return Reducer(lowering, kind, tensorType(operand).getElementType()).reduce(operand, dims);
}

void attachReductionRules(MLIRContext* context) {
  attachRules<Rules, ir::ReduceOp, ir::ArgmaxOp>(context);
}

} // namespace titan::lower
