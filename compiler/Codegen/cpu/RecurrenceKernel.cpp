#include "compiler/Codegen/cpu/RecurrenceKernel.h"

#include "compiler/Codegen/cpu/FloatBuilder.h"
#include "compiler/Codegen/kernel/RecurrenceSteps.h"

#include <array>

using namespace mlir;

namespace titan::codegen {

namespace {

/// product[row][column] = sum over k of left[row][k] panels[column / columns][k][column % columns].
struct ProductArguments {
  Value left, leftRow;              ///< strides in elements
  Value panels, panelStride, count; ///< panels that are multiplied, and from one to the next
  Value product, productRow;
  Value rows, depth;

  auto slots() {
    return std::array{&left,    &leftRow,    &panels, &panelStride, &count,
                      &product, &productRow, &rows,   &depth};
  }
};

/// Sums that registers hold, in vectors; the others are for a line of a panel and a factor.
int64_t tileRows(const VectorShape& shape, int64_t vectors) {
  const int64_t sums = shape.width >= 16 ? 24 : 12;
  return std::max<int64_t>(sums / vectors, 1);
}

/// `rows` rows of the product with one panel of `vectors` vectors.
void emitTile(FloatBuilder& b, const ProductArguments& arg, Value panel, Value product, Value row,
              int64_t rows, int64_t vectors) {
  SmallVector<Value> lefts, sums(rows * vectors, b.zeros(b.vector));
  for (int64_t i = 0; i < rows; ++i)
    lefts.push_back(b.at(arg.left, b.mul(b.add(row, i), arg.leftRow)));
  sums =
      emitLoop(b.builder, b.loc, b.index(0), arg.depth, 1, sums, [&](Value k, ValueRange carried) {
        SmallVector<Value> line, next;
        for (int64_t v = 0; v < vectors; ++v)
          line.push_back(b.load(b.at(panel, b.add(b.mul(k, vectors * b.width), v * b.width))));
        for (int64_t i = 0; i < rows; ++i) {
          Value factor = b.broadcast(b.load(b.scalar, b.at(lefts[i], k)));
          for (int64_t v = 0; v < vectors; ++v)
            next.push_back(b.fma(factor, line[v], carried[i * vectors + v]));
        }
        return next;
      });
  for (int64_t i = 0; i < rows; ++i) {
    Value line = b.at(product, b.mul(b.add(row, i), arg.productRow));
    for (int64_t v = 0; v < vectors; ++v)
      b.store(sums[i * vectors + v], b.at(line, v * b.width));
  }
}

/// The function of ProductArguments that all recurrences of a module with one type of sums share.
func::FuncOp getProductFunction(FloatBuilder& b, const VectorShape& shape, int64_t columns) {
  const int64_t vectors = columns / b.width, most = tileRows(shape, vectors);
  std::string name;
  llvm::raw_string_ostream(name) << "recurrence_product_" << b.scalar << '_' << columns;
  Type p = b.pointer, n = b.indexType;
  return b.getFunction(name, {p, n, p, n, n, p, n, n, n}, [&](Block& block) {
    auto arg = argumentsOf<ProductArguments>(block);
    b.loop(b.index(0), arg.count, 1, [&](Value number) {
      Value panel = b.at(arg.panels, b.mul(number, arg.panelStride)),
            product = b.at(arg.product, b.mul(number, columns));
      b.loop(b.index(0), arg.rows, most, [&](Value row) {
        Value left = b.sub(arg.rows, row);
        b.when(b.compare(arith::CmpIPredicate::uge, left, b.index(most)),
               [&] { emitTile(b, arg, panel, product, row, most, vectors); });
        for (int64_t rows = 1; rows < most; ++rows)
          b.when(b.compare(arith::CmpIPredicate::eq, left, b.index(rows)),
                 [&] { emitTile(b, arg, panel, product, row, rows, vectors); });
      });
    });
  });
}

/// A thread has the samples of a unit, and a vector of columns at a time.
class VectorMachine : public RecurrenceMachine {
public:
  VectorMachine(FloatBuilder& builder, kernel::RecurrenceAttr routine, const VectorShape& shape)
      : RecurrenceMachine(routine.getElement().isBF16() ? Type(builder.i16) : routine.getElement()),
        b(builder), a(routine), productFunction(getProductFunction(b, shape, a.getColumns())) {}

  /// Returns the first of the samples.
  Value enter(Value unit) {
    Value first = b.mul(unit, a.getSamples());
    count = b.fewer(b.sub(b.index(a.getBatch()), first), b.index(a.getSamples()));
    return first;
  }

  Value scratch(int64_t numbers) override { return b.stack(a.getSamples() * numbers); }

  void forLanes(function_ref<void(const Lanes&)> body) override {
    b.loop(b.index(0), count, 1, [&](Value sample) {
      b.columns(a.getWidth(), b.width,
                [&](Value column, Value mask) { body({sample, column, mask}); });
    });
  }

  void multiply(const Product& product) override {
    callShared(b, productFunction,
               ProductArguments{.left = product.left,
                                .leftRow = b.index(product.leftRow),
                                .panels = product.panels,
                                .panelStride = b.index(product.panelStride),
                                .count = b.index(product.count),
                                .product = product.product,
                                .productRow = b.index(product.productRow),
                                .rows = count,
                                .depth = b.index(product.depth)});
  }

  Value address(Value pointer, Value offset) override { return b.at(pointer, offset); }
  Value read(Value pointer, Value offset, const Lanes& at, Type type) override {
    Value place = b.at(pointer, offset, type);
    VectorType vector = b.vectorOf(type);
    return b.widen(at.mask ? b.loadMasked(vector, place, at.mask) : b.load(vector, place));
  }
  void write(Value value, Value pointer, Value offset, const Lanes& at, Type type) override {
    Value place = b.at(pointer, offset, type), narrow = b.narrow(value, type);
    if (at.mask)
      b.storeMasked(narrow, place, at.mask);
    else
      b.store(narrow, place);
  }
  Value number(double value) override { return b.numbers(value); }
  Value rounded(Value value) override { return b.widen(b.narrow(value, element)); }

private:
  FloatBuilder& b;
  kernel::RecurrenceAttr a;
  func::FuncOp productFunction;
  Value count; ///< of samples
};

} // namespace

LogicalResult emitRecurrenceKernel(OpBuilder& builder, kernel::CallOp call, StringRef name,
                                   const VectorShape& shape) {
  auto routine = cast<kernel::RecurrenceAttr>(call.getRoutine());
  FloatType scalar = routine.getAccumulation();
  const int64_t width = scalar.isF64() ? shape.width / 2 : shape.width;
  if (routine.getColumns() % width != 0)
    return call.emitOpError("has panels of ")
           << routine.getColumns() << " columns, which is no multiple of this target's vectors of "
           << width << ": use machine.recurrent_columns = " << width;
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp function = createKernelFunction(builder, call.getLoc(), name);
  builder.setInsertionPointToStart(&function.getBody().front());
  FloatBuilder b(builder, call.getLoc(), scalar, width);
  const SmallVector<Value> operands =
      loadOperands(builder, call.getLoc(), function, call->getNumOperands());
  VectorMachine machine(b, routine, shape);
  auto steps = RecurrenceSteps::create(builder, call, operands, machine);
  b.loop(b.toIndex(function.getArgument(2)), b.toIndex(function.getArgument(3)), 1,
         [&](Value unit) { steps->emit(machine.enter(unit)); });
  func::ReturnOp::create(builder, call.getLoc());
  if (int64_t bytes = stackBytes(function); bytes > mostStackBytes)
    return call.emitOpError("has ")
           << routine.getSamples() << " samples of " << routine.getWidth()
           << " states in a unit, which take " << bytes << " bytes of the stack; " << mostStackBytes
           << " are there: use fewer (machine.recurrent_samples)";
  return success();
}

} // namespace titan::codegen
