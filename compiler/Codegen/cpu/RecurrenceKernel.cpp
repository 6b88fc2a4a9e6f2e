#include "compiler/Codegen/cpu/RecurrenceKernel.h"

#include "compiler/Codegen/cpu/FloatBuilder.h"
#include "dialects/Kernel/RecurrenceRoutine.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <array>

using namespace mlir;
using titan::ir::RecurrentCell;

namespace titan::codegen {

namespace {

namespace gate = titan::ir::gate;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Columns of one sample, from `column` on: a whole vector, or those that `mask` names.
struct Lanes {
  Value sample, column, mask;
};

/// What both directions share: where a unit's samples lie, and the scratch memory of a step.
class Emitter {
public:
  Emitter(FloatBuilder& builder, kernel::CallOp call, const VectorShape& shape,
          func::FuncOp function)
      : b(builder), a(cast<kernel::RecurrenceAttr>(call.getRoutine())), s(a.getShape()),
        numbers(kernel::operandsOf(a)),
        operands(loadOperands(b.builder, b.loc, function, call->getNumOperands())),
        productFunction(getProductFunction(b, shape, a.getColumns())),
        element(a.getElement().isBF16() ? Type(b.i16) : a.getElement()), rows(s.rows()),
        padded(a.getPanels() * a.getColumns()) {}

protected:
  Value operand(kernel::RecurrenceOperands::Number number) { return operands[*number]; }

  /// The samples of a unit.
  void enter(Value unit) {
    first = b.mul(unit, a.getSamples());
    count = b.fewer(b.sub(b.index(s.batch), first), b.index(a.getSamples()));
  }
  void forLanes(function_ref<void(const Lanes&)> body) {
    b.loop(b.index(0), count, 1, [&](Value sample) {
      b.columns(s.width, b.width, [&](Value column, Value mask) { body({sample, column, mask}); });
    });
  }

  // Offsets of lanes, in elements: in tensors of one step ([B, H]), of all steps, and in scratch.
  Value ofState(const Lanes& at) {
    return b.add(b.mul(b.add(first, at.sample), s.width), at.column);
  }
  Value ofState(Value t, const Lanes& at) {
    return b.add(b.mul(t, s.batch * s.width), ofState(at));
  }
  Value ofGate(Value t, unsigned g, const Lanes& at) {
    Value sample = b.add(b.mul(t, s.batch), b.add(first, at.sample));
    return b.add(b.add(b.mul(sample, rows), s.order[g] * s.width), at.column);
  }
  Value inRow(const Lanes& at, int64_t row, int64_t offset = 0) {
    return b.add(b.add(b.mul(at.sample, row), offset), at.column);
  }

  Value read(Value pointer, Value offset, const Lanes& at, Type type) {
    Value place = b.at(pointer, offset, type);
    VectorType vector = b.vectorOf(type);
    return b.widen(at.mask ? b.loadMasked(vector, place, at.mask) : b.load(vector, place));
  }
  Value read(Value pointer, Value offset, const Lanes& at) {
    return read(pointer, offset, at, b.scalar);
  }
  void write(Value value, Value pointer, Value offset, const Lanes& at, Type type) {
    Value place = b.at(pointer, offset, type), narrow = b.narrow(value, type);
    if (at.mask)
      b.storeMasked(narrow, place, at.mask);
    else
      b.store(narrow, place);
  }
  void write(Value value, Value pointer, Value offset, const Lanes& at) {
    write(value, pointer, offset, at, b.scalar);
  }

  /// The place in time of step `step`, and the states before it: those of the step before in
  /// `states`, or the first ones. Both as addresses of the element that ofState() of no sample has.
  Value timeOf(Value step) { return s.reverse ? b.sub(b.index(s.steps - 1), step) : step; }
  Value statesBefore(Value step, Value states, Value initial) {
    Value t = timeOf(b.sub(step, b.index(1)));
    Value isFirst = b.compare(arith::CmpIPredicate::eq, step, b.index(0));
    return b.select(isFirst, initial, b.at(states, b.mul(t, s.batch * s.width)));
  }

  // Arithmetic on vectors.
  Value add(Value x, Value y) { return b.create<arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) { return b.create<arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) { return b.create<arith::MulFOp>(x, y); }
  Value fromOne(Value x) { return sub(b.numbers(1), x); }
  Value tanh(Value x) { return b.create<math::TanhOp>(x); }
  Value sigmoid(Value x) {
    Value negated = b.create<arith::NegFOp>(x);
    return b.create<arith::DivFOp>(b.numbers(1), add(b.create<math::ExpOp>(negated), b.numbers(1)));
  }
  /// dy y (1 - y), of a sigmoid y.
  Value ofSigmoid(Value dy, Value y) { return mul(mul(dy, y), fromOne(y)); }
  /// dy (1 - y y), of a tanh y.
  Value ofTanh(Value dy, Value y) { return mul(dy, fromOne(mul(y, y))); }
  /// As a factor of a product.
  Value rounded(Value x) { return b.widen(b.narrow(x, element)); }

  FloatBuilder& b;
  kernel::RecurrenceAttr a;
  ir::RecurrenceShape s;
  kernel::RecurrenceOperands numbers;
  SmallVector<Value> operands;
  func::FuncOp productFunction;
  Type element;         ///< of projected, as it is loaded: i16 for bf16
  int64_t rows, padded; ///< G H; columns of all panels of a gate
  Value first, count;   ///< of the unit's samples
};

class Forward : Emitter {
public:
  Forward(FloatBuilder& builder, kernel::CallOp call, const VectorShape& shape,
          func::FuncOp function)
      : Emitter(builder, call, shape, function), gates(ir::gatesOf(s.cell)),
        factors(b.stack(a.getSamples() * s.width)),
        products(b.stack(a.getSamples() * gates * padded)) {}

  void emitUnit(Value unit) {
    enter(unit);
    forLanes([&](const Lanes& at) { setFactor(read(operand(numbers.h0), ofState(at), at), at); });
    b.loop(0, s.steps, 1, [&](Value step) { emitStep(step); });
  }

private:
  void emitStep(Value step) {
    t = timeOf(step);
    Value h = statesBefore(step, operand(numbers.result), operand(numbers.h0)), c;
    if (numbers.c0)
      c = statesBefore(step, operand(numbers.cells), operand(numbers.c0));
    const bool resetsBefore = s.cell == RecurrentCell::GruResetBefore;
    multiply(0, resetsBefore ? 2 : gates);
    if (resetsBefore) {
      forLanes([&](const Lanes& at) {
        Value reset = keep(gate::reset, sigmoid(sum(gate::reset, at)), at);
        keep(gate::update, sigmoid(sum(gate::update, at)), at);
        setFactor(mul(reset, read(h, ofState(at), at)), at);
      });
      multiply(2, 1);
    }
    forLanes([&](const Lanes& at) {
      Value next;
      if (s.cell == RecurrentCell::Lstm)
        next = stepOfLstm(read(c, ofState(at), at), at);
      else if (ir::isGru(s.cell))
        next = stepOfGru(read(h, ofState(at), at), at);
      else if (s.cell == RecurrentCell::Tanh)
        next = tanh(sum(0, at));
      else
        next = relu(sum(0, at));
      write(next, operand(numbers.result), ofState(t, at), at);
      setFactor(next, at);
    });
  }

  Value stepOfLstm(Value c, const Lanes& at) {
    Value in = keep(gate::input, sigmoid(sum(gate::input, at)), at),
          forget = keep(gate::forget, sigmoid(sum(gate::forget, at)), at),
          candidate = keep(gate::candidate, tanh(sum(gate::candidate, at)), at),
          out = keep(gate::output, sigmoid(sum(gate::output, at)), at);
    Value cell = add(mul(forget, c), mul(in, candidate));
    write(cell, operand(numbers.cells), ofState(t, at), at);
    return mul(out, tanh(cell));
  }

  Value stepOfGru(Value h, const Lanes& at) {
    Value update, candidate;
    if (s.cell == RecurrentCell::GruResetBefore) {
      update = read(operand(numbers.gates), ofGate(t, gate::update, at), at);
      candidate = sum(gate::candidate, at);
    } else {
      Value reset = keep(gate::reset, sigmoid(sum(gate::reset, at)), at);
      update = keep(gate::update, sigmoid(sum(gate::update, at)), at);
      Value recurrent = ofStates(gate::candidate, at);
      write(recurrent, operand(numbers.cells), ofState(t, at), at);
      candidate = add(ofInputs(gate::candidate, at), mul(reset, recurrent));
    }
    candidate = keep(gate::candidate, tanh(candidate), at);
    return add(mul(fromOne(update), candidate), mul(update, h));
  }

  Value relu(Value x) {
    Value isNegative =
        b.create<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, b.numbers(0)); // NaN is none
    return b.select(isNegative, b.numbers(0), x);
  }

  /// What the inputs and the states give to gate `g`.
  Value ofInputs(unsigned g, const Lanes& at) {
    return read(operand(numbers.projected), ofGate(t, g, at), at, element);
  }
  Value ofStates(unsigned g, const Lanes& at) {
    Value product = read(products, inRow(at, gates * padded, s.order[g] * padded), at);
    if (!numbers.bias)
      return product;
    return add(product, read(operand(numbers.bias), b.add(at.column, s.order[g] * s.width), at));
  }
  Value sum(unsigned g, const Lanes& at) { return add(ofInputs(g, at), ofStates(g, at)); }

  Value keep(unsigned g, Value value, const Lanes& at) {
    write(value, operand(numbers.gates), ofGate(t, g, at), at);
    return value;
  }
  void setFactor(Value value, const Lanes& at) {
    write(rounded(value), factors, inRow(at, s.width), at);
  }

  /// The products of `factors` with the weights of `blocks` row blocks, from `block` on.
  void multiply(int64_t block, int64_t blocks) {
    const int64_t panel = s.width * a.getColumns();
    callShared(
        b, productFunction,
        ProductArguments{.left = factors,
                         .leftRow = b.index(s.width),
                         .panels = b.at(operand(numbers.panels), block * a.getPanels() * panel),
                         .panelStride = b.index(panel),
                         .count = b.index(blocks * a.getPanels()),
                         .product = b.at(products, block * padded),
                         .productRow = b.index(gates * padded),
                         .rows = count,
                         .depth = b.index(s.width)});
  }

  int64_t gates;
  Value factors;  ///< [samples, H]: what the weights are multiplied with
  Value products; ///< [samples, row block, padded]
  Value t;        ///< the place in time of the step
};

class Backward : Emitter {
public:
  Backward(FloatBuilder& builder, kernel::CallOp call, const VectorShape& shape,
           func::FuncOp function)
      : Emitter(builder, call, shape, function), factors(b.stack(a.getSamples() * rows)),
        products(b.stack(a.getSamples() * padded)), carried(b.stack(a.getSamples() * s.width)) {}

  void emitUnit(Value unit) {
    enter(unit);
    forLanes([&](const Lanes& at) {
      for (Value buffer : {products, carried})
        write(b.numbers(0), buffer, inRow(at, buffer == products ? padded : s.width), at);
    });
    b.loop(0, s.steps, 1, [&](Value i) { emitStep(b.sub(b.index(s.steps - 1), i)); });
    forLanes([&](const Lanes& at) {
      write(adjointOfState(Value(), at), operand(numbers.dh0), ofState(at), at);
      if (numbers.dc0)
        write(getCarried(at), operand(numbers.dc0), ofState(at), at);
    });
  }

private:
  void emitStep(Value step) {
    t = timeOf(step);
    h = statesBefore(step, operand(numbers.result), operand(numbers.h0));
    if (numbers.c0)
      c = statesBefore(step, operand(numbers.cells), operand(numbers.c0));
    forLanes([&](const Lanes& at) {
      Value dh = adjointOfState(read(operand(numbers.dresult), ofState(t, at), at), at);
      if (s.cell == RecurrentCell::Lstm)
        stepOfLstm(dh, at);
      else if (ir::isGru(s.cell))
        stepOfGru(dh, at);
      else
        setAdjoint(0, ofFunction(dh, read(operand(numbers.result), ofState(t, at), at)), at);
    });
    if (s.cell != RecurrentCell::GruResetBefore)
      return multiply(0, rows);
    // The adjoint of r h first: that of r needs it.
    multiply(2 * s.width, s.width);
    forLanes([&](const Lanes& at) {
      Value reset = kept(gate::reset, at), d = getProduct(at);
      setAdjoint(gate::reset, ofSigmoid(mul(d, read(h, ofState(at), at)), reset), at);
      setCarried(add(getCarried(at), mul(d, reset)), at);
    });
    multiply(0, 2 * s.width);
  }

  void stepOfLstm(Value dh, const Lanes& at) {
    Value in = kept(gate::input, at), forget = kept(gate::forget, at),
          candidate = kept(gate::candidate, at), out = kept(gate::output, at),
          squashed = tanh(read(operand(numbers.cells), ofState(t, at), at));
    Value dc = add(ofTanh(mul(dh, out), squashed), getCarried(at));
    if (numbers.dcells)
      dc = add(dc, read(operand(numbers.dcells), ofState(t, at), at));
    setAdjoint(gate::input, ofSigmoid(mul(dc, candidate), in), at);
    setAdjoint(gate::forget, ofSigmoid(mul(dc, read(c, ofState(at), at)), forget), at);
    setAdjoint(gate::candidate, ofTanh(mul(dc, in), candidate), at);
    setAdjoint(gate::output, ofSigmoid(mul(dh, squashed), out), at);
    setCarried(mul(dc, forget), at);
  }

  void stepOfGru(Value dh, const Lanes& at) {
    Value update = kept(gate::update, at), candidate = kept(gate::candidate, at);
    Value da = ofTanh(mul(dh, fromOne(update)), candidate);
    Value before = read(h, ofState(at), at);
    setAdjoint(gate::update, ofSigmoid(mul(dh, sub(before, candidate)), update), at);
    setCarried(mul(dh, update), at);
    if (s.cell == RecurrentCell::GruResetBefore)
      return setAdjoint(gate::candidate, da, at);
    Value reset = kept(gate::reset, at),
          ofStates = read(operand(numbers.cells), ofState(t, at), at);
    setAdjoint(gate::reset, ofSigmoid(mul(da, ofStates), reset), at);
    setAdjoint(gate::candidate, da, mul(da, reset), at);
  }

  /// dy times the derivative of tanh or relu, where it is `y`.
  Value ofFunction(Value dy, Value y) {
    if (s.cell == RecurrentCell::Tanh)
      return ofTanh(dy, y);
    Value isPositive = b.create<arith::CmpFOp>(arith::CmpFPredicate::OGT, y, b.numbers(0));
    return b.select(isPositive, dy, b.numbers(0));
  }

  /// Of h behind the step: from the result, where there is one, and from the step behind it.
  Value adjointOfState(Value dresult, const Lanes& at) {
    Value d = getProduct(at);
    if (dresult)
      d = add(dresult, d);
    return ir::isGru(s.cell) ? add(d, getCarried(at)) : d;
  }

  Value kept(unsigned g, const Lanes& at) {
    return read(operand(numbers.gates), ofGate(t, g, at), at);
  }
  Value getProduct(const Lanes& at) { return read(products, inRow(at, padded), at); }
  Value getCarried(const Lanes& at) { return read(carried, inRow(at, s.width), at); }
  void setCarried(Value value, const Lanes& at) { write(value, carried, inRow(at, s.width), at); }

  /// The adjoint of gate `g`'s sum of inputs, and that of its sum of states where it is another.
  void setAdjoint(unsigned g, Value ofInputs, Value ofStates, const Lanes& at) {
    write(ofInputs, operand(numbers.projected), ofGate(t, g, at), at, element);
    if (numbers.dsums)
      write(ofStates, operand(numbers.dsums), ofGate(t, g, at), at, element);
    write(rounded(ofStates), factors, inRow(at, rows, s.order[g] * s.width), at);
  }
  void setAdjoint(unsigned g, Value both, const Lanes& at) { setAdjoint(g, both, both, at); }

  /// The products of `factors` with `length` rows of the weights, from `row` on.
  void multiply(int64_t row, int64_t length) {
    callShared(b, productFunction,
               ProductArguments{.left = b.at(factors, row),
                                .leftRow = b.index(rows),
                                .panels = b.at(operand(numbers.panels), row * a.getColumns()),
                                .panelStride = b.index(rows * a.getColumns()),
                                .count = b.index(a.getPanels()),
                                .product = products,
                                .productRow = b.index(padded),
                                .rows = count,
                                .depth = b.index(length)});
  }

  Value factors;  ///< [samples, G H]: adjoints of the sums of states
  Value products; ///< [samples, padded]: what the step behind gives to h through its products
  Value carried;  ///< [samples, H]: what it gives to c of an lstm, to h of a gru without one
  Value t, h, c;  ///< of the step
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
  const auto forUnits = [&](auto emitter) {
    b.loop(b.toIndex(function.getArgument(2)), b.toIndex(function.getArgument(3)), 1,
           [&](Value unit) { emitter.emitUnit(unit); });
  };
  if (routine.getGradient())
    forUnits(Backward(b, call, shape, function));
  else
    forUnits(Forward(b, call, shape, function));
  func::ReturnOp::create(builder, call.getLoc());
  if (int64_t bytes = stackBytes(function); bytes > mostStackBytes)
    return call.emitOpError("has ")
           << routine.getSamples() << " samples of " << routine.getWidth()
           << " states in a unit, which take " << bytes << " bytes of the stack; " << mostStackBytes
           << " are there: use fewer (machine.recurrent_samples)";
  return success();
}

} // namespace titan::codegen
