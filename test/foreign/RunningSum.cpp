// The routine #foreign.running_sum: its constraints, its meaning, its kernel.
#include "test/foreign/Foreign.h"

#include "compiler/Codegen/Routines.h"
#include "compiler/Codegen/cpu/CpuRoutines.h"
#include "compiler/Codegen/cpu/KernelBuilder.h"
#include "compiler/Interpreter/Routines.h"

using namespace mlir;
using titan::codegen::Cost;
using titan::codegen::CpuRoutine;
using titan::codegen::KernelBuilder;
using titan::interpreter::Frame;
using titan::interpreter::Tensor;

namespace titan::foreign {

LogicalResult RunningSumAttr::verifyCall(Operation* op) const {
  auto call = cast<kernel::CallOp>(op);
  auto isRight = [&](ValueRange operands) {
    return operands.size() == 1 &&
           cast<ShapedType>(operands[0].getType()).getNumElements() == getRows() * getColumns() &&
           getElementTypeOrSelf(operands[0]).isF32();
  };
  if (!isRight(call.getIns()) || !isRight(call.getOuts()))
    return call.emitOpError("takes and gives ") << getRows() << " x " << getColumns() << " f32";
  return success();
}

bool RunningSumAttr::readsOut(unsigned) const { return false; }
int64_t RunningSumAttr::getUnits() const { return getRows(); }

namespace {

struct Meaning : interpreter::RoutineMeaning {
  using RoutineMeaning::RoutineMeaning;

  LogicalResult call(kernel::CallOp op, Frame& frame) const override {
    auto routine = cast<RunningSumAttr>(op.getRoutine());
    const Tensor& in = frame.get(op.getIns()[0]);
    Tensor result = frame.get(op.getOuts()[0]);
    for (int64_t row = 0; row < routine.getRows(); ++row) {
      double sum = 0;
      for (int64_t i = 0; i < routine.getColumns(); ++i) {
        int64_t column = routine.getReverse() ? routine.getColumns() - 1 - i : i;
        int64_t at = row * routine.getColumns() + column;
        sum = i == 0 ? in.floats()[at] : frame.round(sum + in.floats()[at], in.element());
        result.mutableFloats()[at] = sum;
      }
    }
    frame.setExact(op->getResult(0), std::move(result));
    return success();
  }
};

LogicalResult emit(OpBuilder& builder, kernel::CallOp call, StringRef symbol,
                   const codegen::VectorShape&) {
  OpBuilder::InsertionGuard guard(builder);
  auto routine = cast<RunningSumAttr>(call.getRoutine());
  func::FuncOp function = codegen::createKernelFunction(builder, call.getLoc(), symbol);
  builder.setInsertionPointToStart(&function.getBody().front());
  KernelBuilder b(builder, call.getLoc(), /*width=*/1);
  SmallVector<Value> operands = codegen::loadOperands(builder, b.loc, function, 2);
  b.loop(b.toIndex(function.getArgument(2)), b.toIndex(function.getArgument(3)), 1, [&](Value row) {
    // From -0, to which adding changes nothing.
    Value zero = b.create<arith::ConstantOp>(builder.getF32FloatAttr(-0.0f));
    codegen::emitLoop(
        builder, b.loc, b.index(0), b.index(routine.getColumns()), 1, zero,
        [&](Value i, ValueRange sum) {
          Value column = routine.getReverse() ? b.sub(b.index(routine.getColumns() - 1), i) : i;
          Value at = b.add(b.mul(row, routine.getColumns()), column);
          Value next = b.create<arith::AddFOp>(sum[0], b.load(b.f32, b.at(operands[0], at, b.f32)));
          b.store(next, b.at(operands[1], at, b.f32));
          return SmallVector<Value>{next};
        });
  });
  func::ReturnOp::create(builder, b.loc);
  return success();
}

std::string describe(kernel::CallOp call) {
  auto routine = cast<RunningSumAttr>(call.getRoutine());
  return fmt::format("running_sum [{}, {}]", routine.getRows(), routine.getColumns());
}

Cost cost(kernel::CallOp call, const MachineModel& machine) {
  auto routine = cast<RunningSumAttr>(call.getRoutine());
  int64_t elements = routine.getRows() * routine.getColumns();
  // One addition waits for the other.
  return {elements, 8 * elements, static_cast<double>(elements) * 16 / machine.laneOpsPerNs};
}

const CpuRoutine runningSum = {{describe, cost, codegen::codeOfParameters, codegen::insThenOuts},
                               emit};

struct Kernels : codegen::CpuRoutineTable {
  using CpuRoutineTable::CpuRoutineTable;
  const CpuRoutine* find(Attribute routine) const override {
    return isa<RunningSumAttr>(routine) ? &runningSum : nullptr;
  }
};

} // namespace

void registerForeign(DialectRegistry& registry) {
  registry.insert<ForeignDialect>();
  registry.addExtension(
      +[](MLIRContext*, ForeignDialect* dialect) { dialect->addInterfaces<Meaning, Kernels>(); });
}

} // namespace titan::foreign
