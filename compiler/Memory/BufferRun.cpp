#include "compiler/Memory/BufferRun.h"

#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/ShardedRun.h"
#include "compiler/Memory/Plan.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstring>

using namespace mlir;
using titan::interpreter::Tensor;

namespace titan::memory {

namespace {

int64_t elementBytes(Type element) { return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8); }

RankedTensorType tensorOf(Type buffer) {
  auto type = cast<ShapedType>(buffer);
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

uint64_t encode(const Tensor& tensor, int64_t i) {
  if (tensor.element().isF32())
    return llvm::bit_cast<uint32_t>(static_cast<float>(tensor.floats()[i]));
  if (auto type = dyn_cast<FloatType>(tensor.element())) {
    APFloat value(tensor.floats()[i]);
    bool loses;
    value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    return value.bitcastToAPInt().getZExtValue();
  }
  return static_cast<uint64_t>(tensor.integers()[i]);
}

void decode(uint64_t bits, Tensor& tensor, int64_t i) {
  if (tensor.element().isF32()) {
    tensor.mutableFloats()[i] = llvm::bit_cast<float>(static_cast<uint32_t>(bits));
    return;
  }
  unsigned width = tensor.element().getIntOrFloatBitWidth();
  if (auto type = dyn_cast<FloatType>(tensor.element())) {
    APFloat value(type.getFloatSemantics(), APInt(width, bits, false, /*implicitTrunc=*/true));
    bool loses;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
    tensor.mutableFloats()[i] = value.convertToDouble();
    return;
  }
  bool isUnsigned = tensor.element().isUnsignedInteger() || width == 1;
  APInt value(width, bits, false, /*implicitTrunc=*/true);
  tensor.mutableIntegers()[i] = isUnsigned ? value.getZExtValue() : value.getSExtValue();
}

Tensor tensorOf(kernel::ConstantOp constant) {
  auto elements = cast<DenseElementsAttr>(constant.getValue());
  Tensor tensor(elements.getType());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.isFloat())
      tensor.mutableFloats()[i] = elements.getValues<APFloat>()[i].convertToDouble();
    else
      tensor.mutableIntegers()[i] = elements.getValues<APInt>()[i].getSExtValue();
  }
  return tensor;
}

} // namespace

FailureOr<BufferRun> BufferRun::create(func::FuncOp function, interpreter::Rank* rank) {
  BufferRun run(function, rank);
  const bool isPlanned = function->getParentOp()->hasAttr(arenaTag);
  for (BlockArgument argument : function.getArguments())
    if (isa<MemRefType>(argument.getType()) && failed(run.place(argument, isPlanned)))
      return failure();
  SmallVector<kernel::ConstantOp> constants;
  WalkResult placed = function.walk([&](Operation* op) -> WalkResult {
    if (auto constant = dyn_cast<kernel::ConstantOp>(op))
      constants.push_back(constant);
    if (isa<kernel::BufferOp, kernel::ConstantOp>(op))
      return run.place(op->getResult(0), isPlanned);
    return WalkResult::advance();
  });
  if (placed.wasInterrupted())
    return failure();
  for (kernel::ConstantOp constant : constants)
    run.store(run.addressOf(constant.getResult()), tensorOf(constant));
  return run;
}

LogicalResult BufferRun::place(Value root, bool isPlanned) {
  FailureOr<int64_t> offset = static_cast<int64_t>(arena_.size());
  if (isPlanned)
    offset = offsetOf(root);
  if (failed(offset))
    return failure();
  offsets_[root] = *offset;
  // What is placed one behind the other starts as aligned as the host's widest vector.
  const int64_t end = *offset + llvm::alignTo(bytesOf(cast<ShapedType>(root.getType())), 64);
  if (end > static_cast<int64_t>(arena_.size()))
    arena_.resize(end, 0xA5);
  return success();
}

int64_t BufferRun::addressOf(Value buffer) const {
  if (auto slice = buffer.getDefiningOp<kernel::SliceOp>())
    return addressOf(slice.getSource()) +
           indexOf(slice.getIndex()) * bytesOf(cast<ShapedType>(slice.getType()));
  if (auto cast = buffer.getDefiningOp<kernel::CastShapeOp>())
    return addressOf(cast.getSource());
  if (auto rows = buffer.getDefiningOp<kernel::RowsOp>())
    return addressOf(rows.getSource()) + indexOf(rows.getFirst()) * rowBytesOf(rows.getSource());
  return offsets_.lookup(buffer);
}

int64_t BufferRun::indexOf(Value index) const {
  if (auto constant = index.getDefiningOp<arith::ConstantIndexOp>())
    return constant.value();
  if (auto add = index.getDefiningOp<arith::AddIOp>())
    return indexOf(add.getLhs()) + indexOf(add.getRhs());
  if (auto mul = index.getDefiningOp<arith::MulIOp>())
    return indexOf(mul.getLhs()) * indexOf(mul.getRhs());
  if (auto coordinate = index.getDefiningOp<dist::CoordinateOp>())
    return rank_->coordinateOn(coordinate.getAxis());
  return counters_.lookup(index);
}

Tensor BufferRun::load(int64_t address, ShapedType type) const {
  Tensor tensor(type);
  int64_t bytes = elementBytes(type.getElementType());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, &arena_[address + i * bytes], bytes);
    decode(bits, tensor, i);
  }
  return tensor;
}

void BufferRun::store(int64_t address, const Tensor& tensor) {
  int64_t bytes = elementBytes(tensor.element());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    uint64_t bits = encode(tensor, i);
    std::memcpy(&arena_[address + i * bytes], &bits, bytes);
  }
}

void BufferRun::write(Value argument, const Tensor& tensor) { store(addressOf(argument), tensor); }

Tensor BufferRun::read(Value argument) const {
  return load(addressOf(argument), cast<ShapedType>(argument.getType()));
}

LogicalResult BufferRun::run() { return runRange(listCommands(function_)); }

LogicalResult BufferRun::runRange(ArrayRef<Command> commands) {
  for (size_t i = 0; i < commands.size(); ++i) {
    if (commands[i].kind == Command::Kind::Run) {
      if (failed(runCommand(commands[i].op)) || failed(checkHeld(commands[i].op)))
        return failure();
      continue;
    }
    auto loop = cast<accum::LoopOp>(commands[i].op);
    size_t end = i;
    while (commands[end].kind != Command::Kind::EndRepeat || commands[end].op != loop)
      ++end;
    for (int64_t k = 0; k < static_cast<int64_t>(loop.getCount()); ++k) {
      counters_[loop.getIndex()] = k;
      if (failed(runRange(commands.slice(i + 1, end - i - 1))))
        return failure();
    }
    i = end;
  }
  return success();
}

interpreter::Tensors BufferRun::loadAll(ValueRange buffers) const {
  return llvm::map_to_vector(buffers, [&](Value buffer) {
    return load(addressOf(buffer), cast<ShapedType>(buffer.getType()));
  });
}

LogicalResult BufferRun::start(dist::StartOp op) {
  if (failed(rank_->start(op, loadAll(op.getIns()))))
    return failure();
  for (Value out : op.getOuts())
    store(addressOf(out), Tensor::unspecified(cast<ShapedType>(out.getType())));
  for (ValueRange buffers : {ValueRange(op.getIns()), ValueRange(op.getOuts())})
    for (Value buffer : buffers) {
      const int64_t address = addressOf(buffer);
      const auto begin = arena_.begin() + address;
      held_.push_back({op, address, {begin, begin + bytesOf(cast<ShapedType>(buffer.getType()))}});
    }
  return success();
}

LogicalResult BufferRun::wait(dist::WaitOp op) {
  Operation* start = op.getStart();
  llvm::erase_if(held_, [&](const Held& held) { return held.start == start; });
  FailureOr<interpreter::Tensors> results = rank_->wait(op, interpreter::Engine::F32);
  if (failed(results))
    return failure();
  for (auto [out, tensor] : llvm::zip_equal(op.getOuts(), *results))
    store(addressOf(out), tensor);
  return success();
}

LogicalResult BufferRun::checkHeld(Operation* command) const {
  for (const Held& held : held_)
    if (std::memcmp(&arena_[held.address], held.bytes.data(), held.bytes.size()) != 0) {
      InFlightDiagnostic error =
          command->emitOpError("writes to a buffer of a collective between its start and its wait");
      error.attachNote(held.start->getLoc()) << "started here";
      return error;
    }
  return success();
}

/// The command as a function on tensors, by the interpreter.
LogicalResult BufferRun::runCommand(Operation* op) {
  if (auto startOp = dyn_cast<dist::StartOp>(op))
    return start(startOp);
  if (auto waitOp = dyn_cast<dist::WaitOp>(op))
    return wait(waitOp);
  if (auto copy = dyn_cast<kernel::CopyOp>(op)) {
    store(addressOf(copy.getTarget()),
          load(addressOf(copy.getSource()), copy.getSource().getType()));
    return success();
  }
  SmallVector<Value> outs;
  for (OpOperand* write : cast<kernel::CommandLikeOpInterface>(op).getWrites())
    outs.push_back(write->get());
  SmallVector<Type> arguments, results;
  SmallVector<Tensor> values;
  for (Value operand : op->getOperands()) {
    if (isa<MemRefType>(operand.getType())) {
      arguments.push_back(tensorOf(operand.getType()));
      values.push_back(load(addressOf(operand), cast<ShapedType>(operand.getType())));
    } else {
      arguments.push_back(operand.getType());
      values.push_back(Tensor::scalar(operand.getType(), indexOf(operand)));
    }
  }
  for (Value out : outs)
    results.push_back(tensorOf(out.getType()));

  OpBuilder builder(op->getContext());
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(op->getLoc());
  auto function =
      func::FuncOp::create(op->getLoc(), "command", builder.getFunctionType(arguments, results));
  scratch->push_back(function);
  Block* body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  OperationState state(op->getLoc(), op->getName(), body->getArguments(), results, op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  for (Region& region : op->getRegions()) {
    IRMapping mapping;
    region.cloneInto(state.addRegion(), mapping);
  }
  Operation* onTensors = builder.create(state);
  func::ReturnOp::create(builder, op->getLoc(), onTensors->getResults());
  auto computed = interpreter::run(function, values, interpreter::Engine::F32);
  if (failed(computed))
    return failure();
  for (auto [out, tensor] : llvm::zip_equal(outs, *computed))
    store(addressOf(out), tensor);
  return success();
}

namespace {

/// Where each result of `before` is after a run of `after`: in the state of its tag, else in an
/// argument behind those of `before`, in order.
SmallVector<BlockArgument> placesOfResults(func::FuncOp before, func::FuncOp after) {
  SmallVector<BlockArgument> places;
  unsigned next = before.getNumArguments();
  for (unsigned i = 0; i < before.getNumResults(); ++i) {
    BlockArgument place;
    if (Attribute state = before.getResultAttr(i, ir::tag::state))
      for (BlockArgument argument : after.getArguments())
        if (stateOf(argument) == state)
          place = argument;
    places.push_back(place ? place : after.getArgument(next++));
  }
  return places;
}

/// Runs `after` on an arena of its own with `arguments`, those of `rank`: the results of `before`.
/// Inputs and controls must be left as they were.
FailureOr<interpreter::Tensors> runOnBuffers(func::FuncOp before, func::FuncOp after,
                                             interpreter::Rank* rank, ArrayRef<Tensor> arguments) {
  FailureOr<BufferRun> machine = BufferRun::create(after, rank);
  if (failed(machine))
    return failure();
  for (auto [argument, tensor] : llvm::zip(after.getArguments(), arguments))
    machine->write(argument, tensor);
  if (failed(machine->run()))
    return failure();
  for (auto [argument, tensor] : llvm::zip(after.getArguments(), arguments)) {
    if (stateOf(argument))
      continue;
    std::string difference = interpreter::describeDifference(tensor, machine->read(argument), 0);
    if (!difference.empty())
      return after.emitError() << "@" << after.getName() << " writes to an input (argument "
                               << argument.getArgNumber() << "): " << difference;
  }
  return interpreter::Tensors(llvm::map_range(
      placesOfResults(before, after), [&](BlockArgument place) { return machine->read(place); }));
}

} // namespace

namespace {

/// `after` with the `arguments` of `job` gives the bits of `expected`.
LogicalResult checkResults(const interpreter::ShardedRun& job, func::FuncOp after,
                           ArrayRef<Tensor> arguments, ArrayRef<Tensor> expected) {
  func::FuncOp before = job.function();
  FailureOr<interpreter::Tensors> computed =
      job.runEach(arguments, [&](interpreter::Rank* rank, ArrayRef<Tensor> mine) {
        return runOnBuffers(before, after, rank, mine);
      });
  if (failed(computed))
    return failure();
  const SmallVector<BlockArgument> places = placesOfResults(before, after);
  for (auto [i, place, wanted, found] : llvm::enumerate(places, expected, *computed)) {
    std::string difference = interpreter::describeDifference(wanted, found, 0);
    if (!difference.empty())
      return after.emitError() << "@" << after.getName() << " result " << i << " (argument "
                               << place.getArgNumber() << "): " << difference;
  }
  return success();
}

} // namespace

LogicalResult checkEquivalent(func::FuncOp before, func::FuncOp after,
                              const interpreter::RandomOptions& random) {
  FailureOr<interpreter::ShardedRun> job = interpreter::ShardedRun::create(before);
  if (failed(job))
    return failure();
  const interpreter::Tensors arguments =
      interpreter::randomArguments(before, job->argumentTypes(), random);
  FailureOr<interpreter::Tensors> expected = job->run(arguments, interpreter::Engine::F32);
  if (failed(expected) || failed(checkResults(*job, after, arguments, *expected)))
    return failure();
  if (!job->hasPadding())
    return success();
  job->setPadding(interpreter::Padding::LargeNumbers);
  return checkResults(*job, after, arguments, *expected);
}

} // namespace titan::memory
