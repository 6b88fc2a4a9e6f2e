// Matrix products.
#include "frontend/onnx/convert/Conversion.h"

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

/// NumPy's matmul: vectors lose their dimension, leading dimensions broadcast.
Result<Value> matrixProduct(Conversion& c, Value a, Value b) {
  int64_t ra = c.rankOf(a), rb = c.rankOf(b);
  if (ra == 0 || rb == 0)
    return c.error("operands must not be scalars");
  int64_t contractB = rb == 1 ? 0 : rb - 2;
  // A matrix on the right needs no batch dimensions: those of the left operand are just free.
  if (rb <= 2 || ra == 1)
    return c.contract(a, b, {}, {}, ra - 1, contractB);
  // Both have leading dimensions (or the right one alone): make them equal.
  Shape sa = c.shapeOf(a), sb = c.shapeOf(b);
  std::optional<Shape> lead =
      broadcastShape(std::span(sa).first(sa.size() - 2), std::span(sb).first(sb.size() - 2));
  if (!lead)
    return c.error("leading dimensions of {} and {} do not broadcast", toString(sa), toString(sb));
  auto widened = [&](Value value, const Shape& own) {
    Shape shape = *lead;
    shape.insert(shape.end(), own.end() - 2, own.end());
    return c.broadcastTo(value, shape);
  };
  a = widened(a, sa);
  b = widened(b, sb);
  int64_t rank = c.rankOf(a);
  auto batch = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  return c.contract(a, b, batch, batch, rank - 1, rank - 2);
}

Status matmul(Conversion& c) {
  Value a = TITAN_TRY(c.operand(0)), b = TITAN_TRY(c.operand(1));
  return c.give(TITAN_TRY(matrixProduct(c, a, b)));
}

/// alpha * A' * B' + beta * C
Status gemm(Conversion& c) {
  Value a = TITAN_TRY(c.floatOperand(0)), b = TITAN_TRY(c.floatOperand(1));
  if (c.rankOf(a) != 2 || c.rankOf(b) != 2)
    return c.error("operands {} and {} must be matrices", toString(c.shapeOf(a)),
                   toString(c.shapeOf(b)));
  bool transA = c.node.integer("transA", 0) != 0, transB = c.node.integer("transB", 0) != 0;
  Value product = TITAN_TRY(c.contract(a, b, {}, {}, transA ? 0 : 1, transB ? 1 : 0));
  double alpha = c.node.real("alpha", 1), beta = c.node.real("beta", 1);
  if (alpha != 1)
    product = c.scale(product, alpha);
  if (!c.has(2) || beta == 0)
    return c.give(product);
  Value bias = TITAN_TRY(c.floatOperand(2));
  if (broadcastShape(c.shapeOf(bias), c.shapeOf(product)) != c.shapeOf(product) ||
      tensorType(bias).getElementType() != tensorType(product).getElementType())
    return c.error("C of {} does not broadcast to {}", toString(c.shapeOf(bias)),
                   toString(c.shapeOf(product)));
  if (beta != 1)
    bias = c.scale(bias, beta);
  return c.give(c.add(product, c.broadcastTo(bias, c.shapeOf(product))));
}

} // namespace

ArrayRef<ConverterEntry> contractionConverters() {
  static const ConverterEntry table[] = {
      {"Gemm", 7, gemm, "floating operands"},
      {"MatMul", 1, matmul, "floating operands"},
  };
  return table;
}

} // namespace titan::frontend
