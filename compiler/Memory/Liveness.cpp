#include "compiler/Memory/Liveness.h"

using namespace mlir;

namespace titan::memory {

namespace {

void list(Block& block, SmallVectorImpl<Command>& commands) {
  for (Operation& op : block) {
    if (auto loop = dyn_cast<accum::LoopOp>(op)) {
      commands.push_back({Command::Kind::Repeat, loop});
      list(loop.getBlock(), commands);
      commands.push_back({Command::Kind::EndRepeat, loop});
    } else if (isa<kernel::CommandLikeOpInterface>(op)) {
      commands.push_back({Command::Kind::Run, &op});
    }
  }
}

SmallVector<Value> rootsOf(ArrayRef<OpOperand*> operands) {
  return llvm::map_to_vector(operands, [](OpOperand* operand) { return rootOf(operand->get()); });
}

} // namespace

SmallVector<Command> listCommands(func::FuncOp function) {
  SmallVector<Command> commands;
  if (!function.isDeclaration())
    list(function.getBody().front(), commands);
  return commands;
}

bool isView(Operation* op) { return isa<kernel::CastShapeOp, kernel::SliceOp, kernel::RowsOp>(op); }

Value rootOf(Value value) {
  for (Operation* op = value.getDefiningOp(); op && isView(op); op = value.getDefiningOp())
    value = op->getOperand(0);
  return value;
}

SmallVector<Value> readsOf(Operation* command) {
  return rootsOf(cast<kernel::CommandLikeOpInterface>(command).getReads());
}

SmallVector<Value> writesOf(Operation* command) {
  return rootsOf(cast<kernel::CommandLikeOpInterface>(command).getWrites());
}

namespace {

bool isReadByRanks(Value buffer) {
  return llvm::any_of(buffer.getUses(), [](OpOperand& use) {
    Operation* user = use.getOwner();
    if (isView(user))
      return isReadByRanks(user->getResult(0));
    auto start = dyn_cast<dist::StartOp>(user);
    return start && llvm::is_contained(start.getReads(), &use);
  });
}

} // namespace

bool isSource(kernel::BufferOp buffer) { return isReadByRanks(buffer.getResult()); }

llvm::MapVector<kernel::BufferOp, LiveRange> computeLiveRanges(func::FuncOp function) {
  SmallVector<Command> commands = listCommands(function);
  llvm::DenseMap<Operation*, LiveRange> loops;
  for (auto [number, command] : llvm::enumerate(commands)) {
    if (command.kind == Command::Kind::Repeat)
      loops[command.op].first = number;
    if (command.kind == Command::Kind::EndRepeat)
      loops[command.op].last = number;
  }
  llvm::MapVector<kernel::BufferOp, LiveRange> ranges;
  auto use = [&](Value root, Operation* op, uint32_t number) {
    auto buffer = root.getDefiningOp<kernel::BufferOp>();
    if (!buffer)
      return;
    LiveRange now = {number, number};
    for (Operation* parent = op->getParentOp(); parent && parent != buffer->getParentOp();
         parent = parent->getParentOp())
      if (auto loop = loops.find(parent); loop != loops.end())
        now = loop->second;
    auto [found, isNew] = ranges.insert({buffer, now});
    if (!isNew) {
      found->second.first = std::min(found->second.first, now.first);
      found->second.last = std::max(found->second.last, now.last);
    }
  };
  for (auto [number, command] : llvm::enumerate(commands)) {
    if (command.kind != Command::Kind::Run)
      continue;
    // What is a buffer is read or written.
    for (Value operand : command.op->getOperands())
      use(rootOf(operand), command.op, number);
  }
  return ranges;
}

int64_t bytesOf(ShapedType type) {
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

int64_t rowBytesOf(Value buffer) {
  auto type = cast<ShapedType>(buffer.getType());
  return bytesOf(type) / type.getDimSize(0);
}

} // namespace titan::memory
