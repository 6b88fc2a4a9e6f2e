#include "compiler/Codegen/CommandTable.h"

#include "compiler/Codegen/CostModel.h"
#include "compiler/Codegen/LabelClasses.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace titan::codegen {
namespace {

Phase toPhase(Operation* op) {
  switch (ir::getPhase(op)) {
  case ir::Phase::Forward:
    return Phase::Forward;
  case ir::Phase::Backward:
    return Phase::Backward;
  case ir::Phase::Update:
    return Phase::Update;
  }
  return Phase::Forward;
}

Binding::Role toRole(memory::BindingRole role) {
  switch (role) {
  case memory::BindingRole::Input:
    return Binding::Role::Input;
  case memory::BindingRole::Control:
    return Binding::Role::Control;
  case memory::BindingRole::Metric:
    return Binding::Role::Metric;
  case memory::BindingRole::Output:
    return Binding::Role::Output;
  }
  return Binding::Role::Input;
}

class FunctionBuilder {
public:
  FunctionBuilder(const memory::FunctionPlan& plan, const Recipe& recipe, KernelTable& table,
                  CollectiveTable& collectives)
      : plan(plan), recipe(recipe), table(table), collectives(collectives) {}

  FailureOr<Function> build() {
    func::FuncOp source = plan.function;
    result.name = source.getName();
    if (failed(addBindings()))
      return failure();
    for (const memory::Command& command : plan.commands)
      if (failed(add(command)))
        return failure();
    for (const memory::TemporaryPlan& temporary : plan.temporaries)
      result.temporaries.push_back(
          {temporary.offset, temporary.bytes, temporary.live.first, temporary.live.last});
    result.maxLiveBytes = plan.maxLiveBytes;
    addWorkspace();
    result.modelFlops = modelFlopsOf(source);
    return result;
  }

private:
  LogicalResult addBindings() {
    for (const memory::BindingPlan& planned : plan.bindings) {
      auto type = cast<MemRefType>(planned.argument.getType());
      std::optional<DType> dtype = dtypeOf(type.getElementType());
      if (!dtype)
        return emitError(planned.argument.getLoc(), "'")
               << planned.name << "' has elements of type " << type.getElementType()
               << ", which a job cannot exchange";
      Binding binding;
      binding.role = toRole(planned.role);
      binding.name = planned.name.str();
      binding.dtype = *dtype;
      binding.shape = binding.local = shapeOf(type);
      // Each rank has its microbatches of the step.
      if (planned.role == memory::BindingRole::Input && result.name == ir::function::step &&
          !binding.shape.empty())
        binding.shape.front() *= recipe.dataRanks();
      binding.offset = planned.offset;
      binding.bytes = planned.bytes;
      if (planned.role == memory::BindingRole::Input) {
        binding.classes = labelClasses(planned.argument);
        binding.runs =
            classRuns(planned.argument, binding.classes, result.name == ir::function::step ? 2 : 1);
      }
      result.bindings.push_back(std::move(binding));
    }
    return success();
  }

  LogicalResult add(const memory::Command& planned) {
    Command command;
    command.phase = toPhase(planned.op);
    if (planned.kind == memory::Command::Kind::EndRepeat) {
      command.kind = CommandKind::EndRepeat;
      loops.pop_back();
    } else {
      LogicalResult added =
          TypeSwitch<Operation*, LogicalResult>(planned.op)
              .Case<accum::LoopOp, kernel::FusedOp, kernel::CallOp, kernel::CopyOp, dist::StartOp,
                    dist::WaitOp>([&](auto op) { return fill(op, command); })
              .Default(
                  [](Operation* op) { return op->emitOpError("has no place in a command table"); });
      if (failed(added))
        return failure();
    }
    result.commands.push_back(std::move(command));
    return success();
  }

  LogicalResult fill(accum::LoopOp loop, Command& command) {
    if (loops.size() == maxRepeatDepth)
      return loop.emitOpError("is nested deeper than ") << loops.size();
    command.kind = CommandKind::Repeat;
    command.launch.units = loop.getCount();
    loops.push_back(loop.getIndex());
    return success();
  }

  LogicalResult fill(kernel::FusedOp op, Command& command) {
    command.kind = CommandKind::Kernel;
    FailureOr<uint32_t> kernel = table.kernelFor(op);
    if (failed(kernel))
      return failure();
    command.target = *kernel;
    setCost(op, command);
    if (failed(addScalars(op.getScalars(), command)) ||
        failed(addOperands(op.getIns(), titan::Access::Read, command)) ||
        failed(addOperands(op.getOuts(), titan::Access::Write, command)))
      return failure();
    return checkOverlaps(op, command);
  }

  /// Once for all commands of one kernel.
  void setCost(kernel::FusedOp op, Command& command) {
    auto [known, isNew] = costs.try_emplace(command.target);
    if (isNew) {
      const LoopNest nest(op);
      setCost(nest, costOf(nest, table.target().machine()), known->second);
    }
    command.flops = known->second.flops;
    command.bytes = known->second.bytes;
    command.launch = known->second.launch;
  }

  /// Units run in any order, at once: an out may lie on an in only where every unit writes exactly
  /// what it alone reads.
  LogicalResult checkOverlaps(kernel::FusedOp op, const Command& command) {
    std::optional<LoopNest> built;
    size_t inCount = op.getIns().size();
    for (size_t j = 0; j < op.getOuts().size(); ++j) {
      const Operand& out = command.operands[inCount + j];
      for (size_t i = 0; i < inCount; ++i) {
        const Operand& in = command.operands[i];
        bool overlap = in.address.terms == out.address.terms &&
                       in.address.base < out.address.base + out.bytes &&
                       out.address.base < in.address.base + in.bytes;
        if (!overlap || op.getBlock().getArgument(i).use_empty())
          continue;
        const LoopNest& nest = built ? *built : built.emplace(op);
        bool alike = in.address.base == out.address.base &&
                     nest.ins[i].strides == nest.outs[j].strides &&
                     nest.ins[i].offset == nest.outs[j].offset;
        if (!alike || (nest.parallelDims() & ~nest.outs[j].dims()) != 0)
          return op.emitOpError("writes outs[")
                 << j << "] over ins[" << i << "], which other units of the kernel read";
      }
    }
    return success();
  }

  LogicalResult fill(kernel::CallOp op, Command& command) {
    FailureOr<KernelTable::Routine> routine = table.routineFor(op);
    if (failed(routine))
      return failure();
    command.kind = routine->library ? CommandKind::Library : CommandKind::Kernel;
    command.target = routine->library.value_or(routine->kernel);
    setCost(op, routine->emitter->cost(op, table.target().machine()), command);
    if (failed(addScalars(op.getScalars(), command)))
      return failure();
    for (int64_t scalar : routine->scalars)
      command.scalars.push_back({scalar, {}});
    for (unsigned number : routine->emitter->operands(op))
      if (failed(addOperand(op, number, command)))
        return failure();
    if (int64_t bytes = routine->library ? table.workspaceBytes(*routine->library) : 0) {
      command.operands.push_back({{table.workspaceOffset(), {}}, bytes, titan::Access::Write});
      workspaceBytes = std::max(workspaceBytes, bytes);
    }
    return success();
  }

  /// The workspace of the function's library calls as one temporary.
  void addWorkspace() {
    if (workspaceBytes == 0)
      return;
    auto& commands = result.commands;
    auto usesIt = [&](const Command& command) {
      return command.kind == CommandKind::Library && table.workspaceBytes(command.target) > 0;
    };
    LiveRange range = {table.workspaceOffset(), workspaceBytes, 0, 0};
    range.first = llvm::find_if(commands, usesIt) - commands.begin();
    range.last = commands.rend() - std::find_if(commands.rbegin(), commands.rend(), usesIt) - 1;
    // The whole of a repeat that the range leaves; inner ones end first, outer ones include them.
    SmallVector<uint32_t> open;
    for (uint32_t i = 0; i < commands.size(); ++i) {
      if (commands[i].kind == CommandKind::Repeat)
        open.push_back(i);
      if (commands[i].kind != CommandKind::EndRepeat)
        continue;
      uint32_t begin = open.pop_back_val();
      bool holds = begin < range.first && range.last < i;
      bool meets = begin <= range.last && range.first <= i;
      if (meets && !holds)
        range = {range.offset, range.bytes, std::min(range.first, begin), std::max(range.last, i)};
    }
    result.temporaries.push_back(range);
    for (uint32_t i = range.first; i <= range.last; ++i) {
      int64_t live = 0;
      for (const LiveRange& temporary : result.temporaries)
        if (temporary.first <= i && i <= temporary.last)
          live += llvm::alignTo(temporary.bytes, table.target().machine().arenaAlignment);
      result.maxLiveBytes = std::max(result.maxLiveBytes, live);
    }
  }

  LogicalResult addScalars(ValueRange scalars, Command& command) {
    for (Value scalar : scalars) {
      FailureOr<Affine> value = indexOf(scalar);
      if (failed(value))
        return failure();
      command.scalars.push_back(*value);
    }
    return success();
  }

  LogicalResult fill(dist::StartOp op, Command& command) {
    command.kind = CommandKind::CollectiveStart;
    FailureOr<uint32_t> collective = collectives.add(op);
    if (failed(collective))
      return failure();
    command.target = started[op] = *collective;
    return fillHalf(op, command);
  }

  LogicalResult fill(dist::WaitOp op, Command& command) {
    command.kind = CommandKind::CollectiveWait;
    command.target = started.lookup(op.getStart());
    return fillHalf(op, command);
  }

  LogicalResult fillHalf(auto op, Command& command) {
    return failure(failed(addOperands(op.getIns(), titan::Access::Read, command)) ||
                   failed(addOperands(op.getOuts(), titan::Access::Write, command)));
  }

  LogicalResult fill(kernel::CopyOp op, Command& command) {
    command.kind = CommandKind::Copy;
    command.bytes = 2 * memory::bytesOf(cast<ShapedType>(op.getSource().getType()));
    return failure(failed(addOperands(op.getTarget(), titan::Access::Write, command)) ||
                   failed(addOperands(op.getSource(), titan::Access::Read, command)));
  }

  /// `work` is the loops of a fused kernel, or a call.
  void setCost(const auto& work, const Cost& cost, Command& command) {
    command.flops = cost.flops;
    command.bytes = cost.bytes;
    command.launch = table.host().launch(work, cost);
  }

  LogicalResult addOperands(ValueRange buffers, titan::Access access, Command& command) {
    for (Value buffer : buffers) {
      FailureOr<Affine> address = addressOf(buffer);
      if (failed(address))
        return failure();
      int64_t bytes = memory::bytesOf(cast<ShapedType>(buffer.getType()));
      command.operands.push_back({std::move(*address), bytes, access});
    }
    return success();
  }

  /// Operand `number` of a call: its ins, then its outs, of which a routine may read some.
  LogicalResult addOperand(kernel::CallOp op, unsigned number, Command& command) {
    if (number < op.getIns().size())
      return addOperands(op.getIns()[number], titan::Access::Read, command);
    unsigned out = number - op.getIns().size();
    return addOperands(op.getOuts()[out],
                       op.getRoutine().readsOut(out) ? titan::Access::Both : titan::Access::Write,
                       command);
  }

  /// Byte offset of a buffer in the arena.
  FailureOr<Affine> addressOf(Value buffer) {
    if (auto cast = buffer.getDefiningOp<kernel::CastShapeOp>())
      return addressOf(cast.getSource());
    if (auto slice = buffer.getDefiningOp<kernel::SliceOp>()) {
      FailureOr<Affine> source = addressOf(slice.getSource()), index = indexOf(slice.getIndex());
      if (failed(source) || failed(index))
        return failure();
      return *source + *index * memory::bytesOf(cast<ShapedType>(slice.getType()));
    }
    if (auto rows = buffer.getDefiningOp<kernel::RowsOp>()) {
      FailureOr<Affine> source = addressOf(rows.getSource()), first = indexOf(rows.getFirst());
      if (failed(source) || failed(first))
        return failure();
      return *source + *first * memory::rowBytesOf(rows.getSource());
    }
    FailureOr<int64_t> offset = memory::offsetOf(buffer);
    if (failed(offset))
      return failure();
    return Affine{*offset, {}};
  }

  /// An index as a function of the loops' counters and of the rank's coordinates.
  FailureOr<Affine> indexOf(Value index) {
    auto loop = llvm::find(loops, index);
    if (loop != loops.end())
      return Affine::counter(loop - loops.begin());
    Operation* op = index.getDefiningOp();
    if (auto coordinate = dyn_cast_or_null<dist::CoordinateOp>(op))
      return collectives.coordinate(coordinate);
    if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
      return Affine{cast<IntegerAttr>(constant.getValue()).getInt(), {}};
    if (isa_and_present<arith::AddIOp, arith::MulIOp>(op)) {
      FailureOr<Affine> a = indexOf(op->getOperand(0)), b = indexOf(op->getOperand(1));
      if (failed(a) || failed(b))
        return failure();
      if (isa<arith::AddIOp>(op))
        return *a + *b;
      if (a->isConstant())
        return *b * a->base;
      if (b->isConstant())
        return *a * b->base;
    }
    return emitError(index.getLoc(),
                     "index is not a sum of loop counters and coordinates times constants");
  }

  const memory::FunctionPlan& plan;
  const Recipe& recipe;
  KernelTable& table;
  CollectiveTable& collectives;
  llvm::DenseMap<Operation*, uint32_t> started; ///< the collectives of starts
  Function result;
  llvm::DenseMap<uint32_t, Command> costs; ///< of kernels by number
  int64_t workspaceBytes = 0;              ///< of the library calls so far
  SmallVector<Value> loops;                ///< counters of the open repeats, outermost first
};

} // namespace

FailureOr<Function> buildFunction(const memory::FunctionPlan& plan, const Recipe& recipe,
                                  KernelTable& table, CollectiveTable& collectives) {
  return FunctionBuilder(plan, recipe, table, collectives).build();
}

int64_t modelFlopsOf(func::FuncOp function) {
  auto flops = function->getAttrOfType<IntegerAttr>(ir::tag::modelFlops);
  return flops ? flops.getInt() : 0;
}

std::optional<DType> dtypeOf(Type element) {
  if (element.isF64())
    return DType::F64;
  if (element.isF32())
    return DType::F32;
  if (element.isF16())
    return DType::F16;
  if (element.isBF16())
    return DType::BF16;
  bool isUnsigned = element.isUnsignedInteger();
  if (element.isInteger(1))
    return DType::Bool;
  if (element.isInteger(8))
    return isUnsigned ? DType::U8 : DType::I8;
  if (element.isInteger(16))
    return isUnsigned ? DType::U16 : DType::I16;
  if (element.isInteger(32))
    return isUnsigned ? DType::U32 : DType::I32;
  if (element.isInteger(64) && !isUnsigned)
    return DType::I64;
  return std::nullopt;
}

Shape shapeOf(ShapedType type) { return Shape(type.getShape().begin(), type.getShape().end()); }

} // namespace titan::codegen
