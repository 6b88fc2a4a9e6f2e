#include "compiler/Memory/BufferFormer.h"

#include "compiler/Memory/Liveness.h"
#include "dialects/Titan/Titan.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace titan::memory {

namespace {

MemRefType bufferType(Type tensor) {
  auto type = cast<ShapedType>(tensor);
  return MemRefType::get(type.getShape(), type.getElementType());
}

/// A command that reads nothing: it can be run again for each buffer that it fills.
kernel::CommandLikeOpInterface fillOf(Value tensor) {
  auto command = tensor.getDefiningOp<kernel::CommandLikeOpInterface>();
  bool fills = command && command->getNumResults() == 1 && command->getNumOperands() == 1 &&
               command.getReads().empty() &&
               command->getOperand(0).getDefiningOp<kernel::EmptyOp>();
  return fills ? command : kernel::CommandLikeOpInterface();
}

/// Does `index` have another value on another rank?
bool isOfRank(Value index) {
  Operation* op = index.getDefiningOp();
  return op && (isa<dist::CoordinateOp>(op) || llvm::any_of(op->getOperands(), isOfRank));
}

/// Does `buffer`, a view, lie elsewhere on another rank?
bool differsByRank(Value buffer) {
  for (Operation* op = buffer.getDefiningOp(); op && isView(op);
       op = op->getOperand(0).getDefiningOp())
    if (llvm::any_of(op->getOperands().drop_front(), isOfRank))
      return true;
  return false;
}

/// Is `tensor` what an argument or a constant holds when the function begins? States keep that
/// until the update, and those who write them then look who still reads it.
bool isFixed(Value tensor) {
  while (Operation* op = tensor.getDefiningOp()) {
    if (!isView(op))
      return isa<kernel::ConstantOp>(op);
    tensor = op->getOperand(0);
  }
  return isa<func::FuncOp>(cast<BlockArgument>(tensor).getOwner()->getParentOp());
}

bool isOutside(Value value, accum::LoopOp loop) {
  return !loop.getBody().isAncestor(value.getParentRegion());
}

bool fillsAccumulatorsOnly(kernel::CommandLikeOpInterface op) {
  return fillOf(op->getResult(0)) &&
         llvm::all_of(op->getUsers(), [](Operation* user) { return isa<accum::LoopOp>(user); });
}

} // namespace

Value BufferFormer::newBuffer(Type tensor, Location loc) {
  return kernel::BufferOp::create(builder, loc, bufferType(tensor), -1);
}

Value BufferFormer::viewAs(Value buffer, Type tensor, Location loc) {
  MemRefType type = bufferType(tensor);
  return type == buffer.getType()
             ? buffer
             : kernel::CastShapeOp::create(builder, loc, type, buffer).getResult();
}

void BufferFormer::copy(Value from, Value to, Location loc, ir::PhaseAttr phase) {
  kernel::CopyOp::create(builder, loc, from, to, phase);
}

Value BufferFormer::bufferOf(Value tensor) {
  Value& buffer = buffers[tensor];
  if (!buffer) // kernel.empty read as it is
    buffer = newBuffer(tensor.getType(), tensor.getLoc());
  return buffer;
}

//===----------------------------------------------------------------------===//
// Signature
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Exit>> BufferFormer::formSignature() {
  Block& body = function.getBody().front();
  llvm::DenseMap<Attribute, BlockArgument> states;
  SmallVector<Type> types;
  SmallVector<Attribute> tags;
  for (BlockArgument argument : body.getArguments()) {
    if (!isa<RankedTensorType>(argument.getType()))
      return function.emitError("argument ")
             << argument.getArgNumber() << " is no tensor: " << argument.getType();
    argument.setType(bufferType(argument.getType()));
    buffers[argument] = argument;
    types.push_back(argument.getType());
    tags.push_back(function.getArgAttrDict(argument.getArgNumber()));
    if (auto state =
            function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), ir::tag::state))
      states[state] = argument;
  }

  SmallVector<Exit> exits;
  auto results = cast<func::ReturnOp>(body.getTerminator());
  for (auto [i, value] : llvm::enumerate(results.getOperands())) {
    DictionaryAttr attributes = function.getResultAttrDict(i);
    if (auto state = function.getResultAttrOfType<FlatSymbolRefAttr>(i, ir::tag::state)) {
      BlockArgument argument = states.lookup(state);
      if (!argument)
        return function.emitError("result ")
               << i << " is state " << state << ", which is no argument";
      exits.push_back({value, {argument, argument, true}});
      continue;
    }
    BlockArgument argument = body.addArgument(bufferType(value.getType()), value.getLoc());
    types.push_back(argument.getType());
    tags.push_back(attributes ? attributes : DictionaryAttr::get(function.getContext()));
    exits.push_back({value, {argument, Value(), false}});
  }
  function.setFunctionType(FunctionType::get(function.getContext(), types, {}));
  for (auto& tag : tags)
    if (!tag)
      tag = DictionaryAttr::get(function.getContext());
  function.setArgAttrsAttr(ArrayAttr::get(function.getContext(), tags));
  function.removeResAttrsAttr();
  return exits;
}

LogicalResult BufferFormer::run() {
  if (function.isDeclaration())
    return success();
  FailureOr<SmallVector<Exit>> exits = formSignature();
  if (failed(exits))
    return failure();
  Block& body = function.getBody().front();
  SmallVector<Operation*> tensorOps;
  for (Operation& op : body)
    tensorOps.push_back(&op);
  builder.setInsertionPointToStart(&body);
  if (failed(formBlock(body, *exits)))
    return failure();
  func::ReturnOp::create(builder, tensorOps.back()->getLoc());
  for (Operation* op : llvm::reverse(tensorOps))
    op->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

LogicalResult BufferFormer::formBlock(Block& block, ArrayRef<Exit> exits) {
  chooseDestinations(block, exits, destinations);
  Operation* end = block.getTerminator();
  SmallVector<Operation*> ops;
  for (Operation& op : block)
    if (&op != end)
      ops.push_back(&op);
  for (Operation* op : ops)
    if (failed(formOp(op)))
      return failure();
  formExits(exits, end->getLoc());
  return success();
}

/// Copies the values that do not lie where they belong. One that lies in a buffer which another
/// copy overwrites goes aside first.
void BufferFormer::formExits(ArrayRef<Exit> exits, Location loc) {
  struct Move {
    Value from, to;
    bool isState;
  };
  SmallVector<Move> moves;
  llvm::DenseSet<Value> targets;
  for (const Exit& exit : exits) {
    Value from = bufferOf(exit.value);
    if (rootOf(from) == rootOf(exit.slot.buffer))
      continue;
    moves.push_back({from, exit.slot.buffer, exit.slot.isState});
    targets.insert(rootOf(exit.slot.buffer));
  }
  for (Move& move : moves)
    if (targets.contains(rootOf(move.from))) {
      Value aside = newBuffer(move.from.getType(), loc);
      copy(move.from, aside, loc);
      move.from = aside;
    }
  auto update = ir::PhaseAttr::get(loc.getContext(), ir::Phase::Update);
  for (const Move& move : moves)
    copy(move.from, move.to, loc, move.isState ? update : ir::PhaseAttr());
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult BufferFormer::formOp(Operation* op) {
  if (isa<kernel::EmptyOp>(op))
    return success(); // what writes into it chooses the buffer
  if (auto constant = dyn_cast<kernel::ConstantOp>(op)) {
    buffers[constant.getResult()] = kernel::ConstantOp::create(
        builder, op->getLoc(), bufferType(constant.getType()), constant.getValue(), IntegerAttr());
    return success();
  }
  if (auto cast = dyn_cast<kernel::CastShapeOp>(op)) {
    buffers[cast.getResult()] = viewAs(bufferOf(cast.getSource()), cast.getType(), op->getLoc());
    return success();
  }
  if (auto rows = dyn_cast<kernel::RowsOp>(op)) {
    buffers[rows.getResult()] =
        kernel::RowsOp::create(builder, op->getLoc(), bufferType(rows.getType()),
                               bufferOf(rows.getSource()), indexOf(rows.getFirst()));
    return success();
  }
  if (auto start = dyn_cast<dist::StartOp>(op)) {
    formStart(start);
    return success();
  }
  if (auto wait = dyn_cast<dist::WaitOp>(op)) {
    formWait(wait);
    return success();
  }
  if (auto command = dyn_cast<kernel::CommandLikeOpInterface>(op)) {
    if (!fillsAccumulatorsOnly(command))
      formCommand(command);
    return success();
  }
  if (auto loop = dyn_cast<accum::LoopOp>(op))
    return formLoop(loop);
  if (isa<arith::ArithDialect, dist::DistDialect>(op->getDialect()) && op->getNumResults() == 1 &&
      op->getResult(0).getType().isIndex()) {
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, indexOf(operand));
    buffers[op->getResult(0)] = builder.clone(*op, mapping)->getResult(0);
    return success();
  }
  return op->emitOpError("cannot be planned: the stage 'lower' leaves kernels only");
}

Value BufferFormer::wantedFor(OpResult result) {
  auto slot = destinations.find(result);
  return slot == destinations.end()
             ? Value()
             : viewAs(slot->second.buffer, result.getType(), result.getLoc());
}

Value BufferFormer::destinationOf(OpResult result, Value out) {
  Location loc = result.getLoc();
  Value wanted = wantedFor(result);
  if (out.getDefiningOp<kernel::EmptyOp>())
    return wanted ? wanted : newBuffer(result.getType(), loc);

  // The command continues a value: in its buffer if that ends here, else in a copy.
  Value continued = bufferOf(out);
  auto root = rootOf(continued).getDefiningOp<kernel::BufferOp>();
  if (wanted && rootOf(wanted) == rootOf(continued))
    return continued;
  if (!wanted && out.hasOneUse() && root && root->getBlock() == builder.getInsertionBlock() &&
      isa_and_present<kernel::CommandLikeOpInterface, accum::LoopOp>(out.getDefiningOp()))
    return continued;
  Value target = wanted ? wanted : newBuffer(result.getType(), loc);
  copy(continued, target, loc);
  return target;
}

void BufferFormer::formCommand(kernel::CommandLikeOpInterface op) {
  SmallVector<OpOperand*> writes = op.getWrites();
  SmallVector<Value> operands;
  for (OpOperand& operand : op->getOpOperands()) {
    auto* write = llvm::find(writes, &operand);
    if (write != writes.end()) {
      OpResult result = op->getResult(write - writes.begin());
      Value formed = destinationOf(result, operand.get());
      buffers[result] = formed;
      operands.push_back(formed);
    } else {
      bool isTensor = isa<RankedTensorType>(operand.get().getType());
      operands.push_back(isTensor ? bufferOf(operand.get()) : indexOf(operand.get()));
    }
  }
  createCommand(op, operands);
}

void BufferFormer::createCommand(kernel::CommandLikeOpInterface like, ValueRange operands) {
  Operation* formed = Operation::create(like->getLoc(), like->getName(), TypeRange(), operands,
                                        like->getRawDictionaryAttrs(), like->getPropertiesStorage(),
                                        BlockRange(), like->getNumRegions());
  for (auto [from, to] : llvm::zip_equal(like->getRegions(), formed->getRegions()))
    to.takeBody(from);
  builder.insert(formed);
}

// Both halves name the same buffers; what the wait gives is written from the start on.
void BufferFormer::formStart(dist::StartOp op) {
  SmallVector<Value> ins, outs;
  for (Value source : op.getIns())
    ins.push_back(sourceOf(source, op.getPhaseAttr()));
  for (OpResult result : op.getWait()->getResults()) {
    Value wanted = wantedFor(result);
    Value formed = wanted ? wanted : newBuffer(result.getType(), op.getLoc());
    buffers[result] = formed;
    outs.push_back(formed);
  }
  buffers[op.getToken()] = dist::StartOp::create(
      builder, op.getLoc(), op.getToken().getType(), ins, outs, op.getCollective(),
      op.getAxesAttr(), op.getDimsAttr(), op.getOrderAttr(), op.getPathAttr(), op.getPhaseAttr());
}

void BufferFormer::formWait(dist::WaitOp op) {
  auto start = buffers.lookup(op.getToken()).getDefiningOp<dist::StartOp>();
  dist::WaitOp::create(builder, op.getLoc(), TypeRange(), start.getToken(), start.getIns(),
                       start.getOuts(), op.getPathAttr(), op.getPhaseAttr());
}

Value BufferFormer::sourceOf(Value tensor, ir::PhaseAttr phase) {
  Value buffer = bufferOf(tensor);
  if (rootOf(buffer).getDefiningOp<kernel::BufferOp>() && !differsByRank(buffer))
    return buffer;
  while (auto cast = buffer.getDefiningOp<kernel::CastShapeOp>())
    buffer = cast.getSource();
  return viewAs(sharedCopyOf(buffer, isFixed(tensor), phase), tensor.getType(), tensor.getLoc());
}

Value BufferFormer::sharedCopyOf(Value buffer, bool isFixed, ir::PhaseAttr phase) {
  if (Value shared = isFixed ? sharedCopies.lookup(buffer) : Value())
    return shared;
  OpBuilder::InsertionGuard guard(builder);
  auto loopHere = [&] {
    return dyn_cast<accum::LoopOp>(builder.getInsertionBlock()->getParentOp());
  };
  for (auto loop = loopHere(); isFixed && loop && isOutside(buffer, loop); loop = loopHere())
    builder.setInsertionPoint(loop);
  Value shared = newBuffer(buffer.getType(), buffer.getLoc());
  copy(buffer, shared, buffer.getLoc(), phase);
  if (isFixed)
    sharedCopies[buffer] = shared;
  return shared;
}

Value BufferFormer::indexOf(Value scalar) {
  Value formed = buffers.lookup(scalar); // a loop's index, and what follows from it, is another now
  return formed ? formed : scalar;
}

Value BufferFormer::formAccumulator(OpResult result, Value init) {
  Location loc = result.getLoc();
  Value wanted = wantedFor(result);
  auto buffer = [&] { return wanted ? wanted : newBuffer(result.getType(), loc); };
  if (init.getDefiningOp<kernel::EmptyOp>())
    return buffer();
  if (kernel::CommandLikeOpInterface fill = fillOf(init); fill && !buffers.contains(init)) {
    Value filled = buffer();
    OwningOpRef<kernel::CommandLikeOpInterface> again = fill.clone();
    createCommand(*again, filled);
    return filled;
  }
  Value start = bufferOf(init);
  // What is made outside of a loop around this one is read in each of its iterations.
  bool ends = init.hasOneUse() && init.getParentBlock() == result.getOwner()->getBlock() &&
              rootOf(start).getDefiningOp<kernel::BufferOp>() &&
              isa_and_present<kernel::CommandLikeOpInterface>(init.getDefiningOp());
  if (!wanted && ends)
    return start;
  Value target = buffer();
  if (rootOf(target) != rootOf(start))
    copy(start, target, loc);
  return target;
}

LogicalResult BufferFormer::formLoop(accum::LoopOp loop) {
  Location loc = loop.getLoc();
  if (loop.getOrder() != accum::Order::Running)
    return loop.emitOpError("has no order of accumulation: run the stage 'accumulate' first");

  // Accumulators start where they stay.
  SmallVector<Exit> exits;
  for (auto [result, init, accumulator, next] : llvm::zip_equal(
           loop.getSums(), loop.getInits(), loop.getAccumulators(), loop.getYieldedSums())) {
    Value buffer = formAccumulator(cast<OpResult>(result), init);
    buffers[accumulator] = buffer;
    buffers[result] = buffer;
    exits.push_back({next, {buffer, accumulator, false}});
  }
  for (Value stack : loop.getStacks()) {
    Value wanted = wantedFor(cast<OpResult>(stack));
    buffers[stack] = wanted ? wanted : newBuffer(stack.getType(), loc);
  }

  auto formed = accum::LoopOp::create(builder, loc, TypeRange(), ValueRange(), ValueRange(),
                                      loop.getCount(), loop.getOrder());
  formed->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  OpBuilder::InsertionGuard guard(builder);
  Block* body = builder.createBlock(&formed.getBody());
  Value index = body->addArgument(builder.getIndexType(), loc);
  buffers[loop.getIndex()] = index;
  for (auto [slice, batch] : llvm::zip_equal(loop.getSlices(), loop.getBatches()))
    if (!slice.use_empty())
      buffers[slice] = kernel::SliceOp::create(builder, loc, bufferType(slice.getType()),
                                               bufferOf(batch), index);
  for (auto [stack, row] : llvm::zip_equal(loop.getStacks(), loop.getYieldedRows())) {
    Value slice =
        kernel::SliceOp::create(builder, loc, bufferType(row.getType()), bufferOf(stack), index);
    exits.push_back({row, {slice, Value(), false}});
  }
  if (failed(formBlock(loop.getBlock(), exits)))
    return failure();
  accum::YieldOp::create(builder, loc);
  return success();
}

} // namespace titan::memory
