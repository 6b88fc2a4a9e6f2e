#include "compiler/Codegen/kernel/RecurrenceSteps.h"

#include "compiler/Codegen/kernel/Loops.h"
#include "dialects/Kernel/RecurrenceRoutine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using titan::ir::RecurrentCell;

namespace titan::codegen {

namespace {

namespace gate = titan::ir::gate;

using Lanes = RecurrenceMachine::Lanes;

/// What both directions share.
class Steps : public RecurrenceSteps {
public:
  void emit(Value from) override {
    first = from;
    emitSteps();
  }

protected:
  Steps(OpBuilder& builder, kernel::CallOp call, ArrayRef<Value> operands,
        RecurrenceMachine& machine)
      : builder(builder), loc(call.getLoc()), m(machine),
        a(cast<kernel::RecurrenceAttr>(call.getRoutine())), s(a.getShape()),
        numbers(kernel::operandsOf(a)), operands(operands), scalar(a.getAccumulation()),
        gates(ir::gatesOf(s.cell)), rows(s.rows()), padded(a.getPanels() * a.getColumns()) {}

  virtual void emitSteps() = 0;

  Value operand(kernel::RecurrenceOperands::Number number) { return operands[*number]; }
  void forLanes(function_ref<void(const Lanes&)> body) { m.forLanes(body); }
  void forSteps(function_ref<void(Value step)> body) {
    emitLoop(builder, loc, index(0), index(s.steps), 1, {}, [&](Value step, ValueRange) {
      body(step);
      return SmallVector<Value>();
    });
  }

  template <typename Op, typename... Args> Value create(Args&&... args) {
    return Op::create(builder, loc, std::forward<Args>(args)...);
  }

  // Indices.
  Value index(int64_t value) { return create<arith::ConstantIndexOp>(value); }
  Value plus(Value x, Value y) { return create<arith::AddIOp>(x, y); }
  Value plus(Value x, int64_t y) { return y == 0 ? x : plus(x, index(y)); }
  Value minus(Value x, Value y) { return create<arith::SubIOp>(x, y); }
  Value times(Value x, int64_t y) { return create<arith::MulIOp>(x, index(y)); }

  // Offsets of lanes, in elements: in tensors of one step ([B, H]), of all steps, and in scratch.
  Value ofState(const Lanes& at) { return plus(times(plus(first, at.sample), s.width), at.column); }
  Value ofState(Value t, const Lanes& at) { return plus(times(t, s.batch * s.width), ofState(at)); }
  Value ofGate(Value t, unsigned g, const Lanes& at) {
    Value sample = plus(times(t, s.batch), plus(first, at.sample));
    return plus(plus(times(sample, rows), s.order[g] * s.width), at.column);
  }
  Value inRow(const Lanes& at, int64_t row, int64_t offset = 0) {
    return plus(plus(times(at.sample, row), offset), at.column);
  }

  Value read(Value pointer, Value offset, const Lanes& at, Type type = {}) {
    return m.read(pointer, offset, at, type ? type : scalar);
  }
  void write(Value value, Value pointer, Value offset, const Lanes& at, Type type = {}) {
    m.write(value, pointer, offset, at, type ? type : scalar);
  }

  /// The place in time of step `step`, and the states before it: those of the step before in
  /// `states`, or the first ones. Both as addresses of the element that ofState() of no sample has.
  Value timeOf(Value step) { return s.reverse ? minus(index(s.steps - 1), step) : step; }
  Value statesBefore(Value step, Value states, Value initial) {
    Value t = timeOf(minus(step, index(1)));
    Value isFirst = create<arith::CmpIOp>(arith::CmpIPredicate::eq, step, index(0));
    return create<arith::SelectOp>(isFirst, initial,
                                   m.address(states, times(t, s.batch * s.width)));
  }

  // Arithmetic on lanes.
  Value add(Value x, Value y) { return create<arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) { return create<arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) { return create<arith::MulFOp>(x, y); }
  Value fromOne(Value x) { return sub(m.number(1), x); }
  Value tanh(Value x) { return create<math::TanhOp>(x); }
  Value sigmoid(Value x) {
    Value negated = create<arith::NegFOp>(x);
    return create<arith::DivFOp>(m.number(1), add(create<math::ExpOp>(negated), m.number(1)));
  }
  /// dy y (1 - y), of a sigmoid y.
  Value ofSigmoid(Value dy, Value y) { return mul(mul(dy, y), fromOne(y)); }
  /// dy (1 - y y), of a tanh y.
  Value ofTanh(Value dy, Value y) { return mul(dy, fromOne(mul(y, y))); }

  OpBuilder& builder;
  Location loc;
  RecurrenceMachine& m;
  kernel::RecurrenceAttr a;
  ir::RecurrenceShape s;
  kernel::RecurrenceOperands numbers;
  SmallVector<Value> operands;
  FloatType scalar;
  int64_t gates, rows, padded; ///< G; G H; columns of all panels of a gate
  Value first;                 ///< of the samples
};

class Forward : public Steps {
public:
  Forward(OpBuilder& builder, kernel::CallOp call, ArrayRef<Value> operands,
          RecurrenceMachine& machine)
      : Steps(builder, call, operands, machine), factors(m.scratch(s.width)),
        products(m.scratch(gates * padded)) {}

private:
  void emitSteps() override {
    forLanes([&](const Lanes& at) { setFactor(read(operand(numbers.h0), ofState(at), at), at); });
    forSteps([&](Value step) { emitStep(step); });
  }

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
        create<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, m.number(0)); // NaN is none
    return create<arith::SelectOp>(isNegative, m.number(0), x);
  }

  /// What the inputs and the states give to gate `g`.
  Value ofInputs(unsigned g, const Lanes& at) {
    return read(operand(numbers.projected), ofGate(t, g, at), at, m.element);
  }
  Value ofStates(unsigned g, const Lanes& at) {
    Value product = read(products, inRow(at, gates * padded, s.order[g] * padded), at);
    if (!numbers.bias)
      return product;
    return add(product, read(operand(numbers.bias), plus(at.column, s.order[g] * s.width), at));
  }
  Value sum(unsigned g, const Lanes& at) { return add(ofInputs(g, at), ofStates(g, at)); }

  Value keep(unsigned g, Value value, const Lanes& at) {
    write(value, operand(numbers.gates), ofGate(t, g, at), at);
    return value;
  }
  void setFactor(Value value, const Lanes& at) {
    write(m.rounded(value), factors, inRow(at, s.width), at);
  }

  /// The products of `factors` with the weights of `blocks` row blocks, from `block` on.
  void multiply(int64_t block, int64_t blocks) {
    const int64_t panel = s.width * a.getColumns();
    m.multiply({.left = factors,
                .leftRow = s.width,
                .panels = m.address(operand(numbers.panels), index(block * a.getPanels() * panel)),
                .panelStride = panel,
                .count = blocks * a.getPanels(),
                .product = m.address(products, index(block * padded)),
                .productRow = gates * padded,
                .depth = s.width});
  }

  Value factors;  ///< [samples, H]: what the weights are multiplied with
  Value products; ///< [samples, row block, padded]
  Value t;        ///< the place in time of the step
};

class Backward : public Steps {
public:
  Backward(OpBuilder& builder, kernel::CallOp call, ArrayRef<Value> operands,
           RecurrenceMachine& machine)
      : Steps(builder, call, operands, machine), factors(m.scratch(rows)),
        products(m.scratch(padded)), carried(m.scratch(s.width)) {}

private:
  void emitSteps() override {
    forLanes([&](const Lanes& at) {
      for (Value buffer : {products, carried})
        write(m.number(0), buffer, inRow(at, buffer == products ? padded : s.width), at);
    });
    forSteps([&](Value i) { emitStep(minus(index(s.steps - 1), i)); });
    forLanes([&](const Lanes& at) {
      write(adjointOfState(Value(), at), operand(numbers.dh0), ofState(at), at);
      if (numbers.dc0)
        write(getCarried(at), operand(numbers.dc0), ofState(at), at);
    });
  }

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
    Value isPositive = create<arith::CmpFOp>(arith::CmpFPredicate::OGT, y, m.number(0));
    return create<arith::SelectOp>(isPositive, dy, m.number(0));
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
    write(ofInputs, operand(numbers.projected), ofGate(t, g, at), at, m.element);
    if (numbers.dsums)
      write(ofStates, operand(numbers.dsums), ofGate(t, g, at), at, m.element);
    write(m.rounded(ofStates), factors, inRow(at, rows, s.order[g] * s.width), at);
  }
  void setAdjoint(unsigned g, Value both, const Lanes& at) { setAdjoint(g, both, both, at); }

  /// The products of `factors` with `length` rows of the weights, from `row` on.
  void multiply(int64_t row, int64_t length) {
    m.multiply({.left = m.address(factors, index(row)),
                .leftRow = rows,
                .panels = m.address(operand(numbers.panels), index(row * a.getColumns())),
                .panelStride = rows * a.getColumns(),
                .count = a.getPanels(),
                .product = products,
                .productRow = padded,
                .depth = length});
  }

  Value factors;  ///< [samples, G H]: adjoints of the sums of states
  Value products; ///< [samples, padded]: what the step behind gives to h through its products
  Value carried;  ///< [samples, H]: what it gives to c of an lstm, to h of a gru without one
  Value t, h, c;  ///< of the step
};

} // namespace

int64_t scratchOfSample(kernel::RecurrenceAttr routine) {
  const ir::RecurrenceShape shape = routine.getShape();
  const int64_t padded = routine.getPanels() * routine.getColumns();
  return routine.getGradient() ? shape.rows() + padded + shape.width
                               : shape.width + ir::gatesOf(shape.cell) * padded;
}

std::unique_ptr<RecurrenceSteps> RecurrenceSteps::create(OpBuilder& builder, kernel::CallOp call,
                                                         ArrayRef<Value> operands,
                                                         RecurrenceMachine& machine) {
  if (cast<kernel::RecurrenceAttr>(call.getRoutine()).getGradient())
    return std::make_unique<Backward>(builder, call, operands, machine);
  return std::make_unique<Forward>(builder, call, operands, machine);
}

} // namespace titan::codegen
