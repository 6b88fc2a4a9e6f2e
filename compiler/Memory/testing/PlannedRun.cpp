#include "compiler/Memory/testing/PlannedRun.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstring>

using namespace mlir;
using titan::interpreter::Tensor;

namespace titan::memory::testing {

namespace {

int64_t elementBytes(Type element) { return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8); }

RankedTensorType tensorOf(Type buffer) {
  auto type = cast<ShapedType>(buffer);
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

uint64_t encode(const Tensor& tensor, int64_t i) {
  if (auto type = dyn_cast<FloatType>(tensor.element())) {
    APFloat value(tensor.floats()[i]);
    bool loses;
    value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    return value.bitcastToAPInt().getZExtValue();
  }
  return static_cast<uint64_t>(tensor.integers()[i]);
}

void decode(uint64_t bits, Tensor& tensor, int64_t i) {
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

} // namespace

PlannedRun::PlannedRun(ModuleOp module) {
  FailureOr<ModulePlan> plan = readPlan(module);
  if (failed(plan))
    llvm::report_fatal_error("the module has no plan");
  plan_ = std::move(*plan);
  arena_.assign(plan_.arenaBytes, 0xA5);
  for (const ConstantPlan& constant : plan_.constants) {
    auto elements = cast<DenseElementsAttr>(constant.value);
    Tensor tensor(elements.getType());
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (tensor.isFloat())
        tensor.mutableFloats()[i] = elements.getValues<APFloat>()[i].convertToDouble();
      else
        tensor.mutableIntegers()[i] = elements.getValues<APInt>()[i].getSExtValue();
    }
    store(constant.offset, tensor);
  }
}

int64_t PlannedRun::addressOf(Value buffer) const {
  if (auto slice = buffer.getDefiningOp<kernel::SliceOp>())
    return addressOf(slice.getSource()) +
           counters_.lookup(slice.getIndex()) * bytesOf(cast<ShapedType>(slice.getType()));
  if (auto cast = buffer.getDefiningOp<kernel::CastShapeOp>())
    return addressOf(cast.getSource());
  return *offsetOf(buffer);
}

Tensor PlannedRun::load(int64_t address, ShapedType type) const {
  Tensor tensor(type);
  int64_t bytes = elementBytes(type.getElementType());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, &arena_[address + i * bytes], bytes);
    decode(bits, tensor, i);
  }
  return tensor;
}

void PlannedRun::store(int64_t address, const Tensor& tensor) {
  int64_t bytes = elementBytes(tensor.element());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    uint64_t bits = encode(tensor, i);
    std::memcpy(&arena_[address + i * bytes], &bits, bytes);
  }
}

void PlannedRun::write(Value argument, const Tensor& tensor) { store(addressOf(argument), tensor); }

Tensor PlannedRun::read(Value argument) const {
  return load(addressOf(argument), cast<ShapedType>(argument.getType()));
}

LogicalResult PlannedRun::run(const FunctionPlan& function) { return runRange(function.commands); }

LogicalResult PlannedRun::runRange(ArrayRef<Command> commands) {
  for (size_t i = 0; i < commands.size(); ++i) {
    if (commands[i].kind == Command::Kind::Run) {
      if (failed(runCommand(commands[i].op)))
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

/// The command as a function on tensors, by the interpreter.
LogicalResult PlannedRun::runCommand(Operation* op) {
  if (auto copy = dyn_cast<kernel::CopyOp>(op)) {
    store(addressOf(copy.getTarget()),
          load(addressOf(copy.getSource()), copy.getSource().getType()));
    return success();
  }
  SmallVector<Value> outs(isa<kernel::FusedOp>(op)
                              ? ValueRange(cast<kernel::FusedOp>(op).getOuts())
                              : ValueRange(cast<kernel::CallOp>(op).getOuts()));
  SmallVector<Type> arguments, results;
  SmallVector<Tensor> values;
  for (Value operand : op->getOperands()) {
    if (isa<MemRefType>(operand.getType())) {
      arguments.push_back(tensorOf(operand.getType()));
      values.push_back(load(addressOf(operand), cast<ShapedType>(operand.getType())));
    } else {
      arguments.push_back(operand.getType());
      values.push_back(Tensor::scalar(operand.getType(), counters_.lookup(operand)));
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

} // namespace titan::memory::testing
