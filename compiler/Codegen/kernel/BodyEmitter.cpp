#include "compiler/Codegen/kernel/BodyEmitter.h"

#include "compiler/Codegen/kernel/LaneAnalysis.h"
#include "compiler/Codegen/kernel/Passes.h"
#include "compiler/Codegen/kernel/RandomBits.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace titan::codegen {
namespace {

bool isVector(Value value) { return isa<VectorType>(value.getType()); }

/// Integer division traps on zero, which lanes that are off hold.
bool trapsOnZero(Operation* op) {
  return isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::CeilDivSIOp,
             arith::CeilDivUIOp, arith::FloorDivSIOp>(op);
}

/// Whether an op is e^(x - m), m the maximum of x along some dimension.
bool isExpBelowMaximum(Operation* op) {
  auto exp = dyn_cast<math::ExpOp>(op);
  auto difference = exp ? exp.getOperand().getDefiningOp<arith::SubFOp>() : arith::SubFOp();
  auto maximum =
      difference ? difference.getRhs().getDefiningOp<kernel::ReduceOp>() : kernel::ReduceOp();
  return maximum && maximum.getKind() == kernel::ReduceKind::Max &&
         maximum.getValue() == difference.getLhs();
}

} // namespace

BodyEmitter::BodyEmitter(OpBuilder& builder, const LoopNest& nest, ValueRange operands,
                         BodyMemory& access)
    : builder(builder), loc(kernel::FusedOp(nest.op).getLoc()), nest(nest), access(access) {
  for (auto [i, access] : llvm::enumerate(nest.ins))
    ins.push_back(std::make_unique<Memory>(Memory{operands[i], access, std::nullopt}));
  for (auto [i, access] : llvm::enumerate(nest.outs))
    outs.push_back(
        std::make_unique<Memory>(Memory{operands[ins.size() + i], access, std::nullopt}));
}

BodyEmitter::Scope::Scope(BodyEmitter& emitter, ArrayRef<std::pair<unsigned, Value>> coordinates,
                          std::optional<Lanes> lanes)
    : emitter(emitter), parent(emitter.scope), coordinates(coordinates), lanes(lanes) {
  if (lanes)
    this->coordinates.push_back({lanes->dim, lanes->base});
  else if (parent)
    this->lanes = parent->lanes;
  emitter.scope = this;
}

BodyEmitter::Scope::~Scope() { emitter.scope = parent; }

const std::optional<Lanes>& BodyEmitter::lanes() const { return scope->lanes; }

Value BodyEmitter::coordinate(unsigned dim) const {
  for (Scope* s = scope; s; s = s->parent)
    for (auto [bound, value] : s->coordinates)
      if (bound == dim)
        return value;
  llvm_unreachable("a dimension that no loop has bound");
}

Value BodyEmitter::index(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void BodyEmitter::hoist(ArrayRef<Value> roots) {
  Hoisting hoisting;
  for (Scope* s = scope; s; s = s->parent)
    for (auto [dim, coordinate] : s->coordinates)
      hoisting.bound |= bit(dim);
  for (Value root : roots)
    hoistFrom(root, hoisting);
}

bool BodyEmitter::isKnown(Value value) const {
  for (Scope* s = scope; s; s = s->parent)
    if (s->values.contains(value))
      return true;
  return false;
}

/// Whether every reduction that `value` needs has its result.
bool BodyEmitter::isReady(Value value, llvm::DenseMap<Value, bool>& memo) const {
  Operation* definition = value.getDefiningOp();
  if (!definition || isKnown(value) || memoryOf(value))
    return true;
  auto found = memo.find(value);
  if (found != memo.end())
    return found->second;
  auto reduce = dyn_cast<kernel::ReduceOp>(definition);
  bool ready = !(reduce && nest.reductionOf(reduce).combines()) &&
               llvm::all_of(definition->getOperands(),
                            [&](Value operand) { return isReady(operand, memo); });
  memo[value] = ready;
  return ready;
}

void BodyEmitter::hoistFrom(Value value, Hoisting& hoisting) {
  if (!hoisting.visited.insert(value).second || isKnown(value))
    return;
  if ((nest.dependence(value) & ~hoisting.bound) == 0 && isReady(value, hoisting.ready)) {
    get(value);
    return;
  }
  if (const Memory* memory = memoryOf(value)) {
    elementIndex(*memory, scope);
    return;
  }
  Operation* definition = value.getDefiningOp();
  if (!definition)
    return;
  for (Value operand : definition->getOperands())
    hoistFrom(operand, hoisting);
  if (auto random = dyn_cast<kernel::RandomHalfOp>(definition))
    if (isKnown(random.getSeed()))
      randomKey(random);
}

Value BodyEmitter::get(Value value) {
  for (Scope* s = scope; s; s = s->parent) {
    auto found = s->values.find(value);
    if (found != s->values.end())
      return found->second;
  }
  Value computed = evaluate(value);
  scope->values[value] = computed;
  return computed;
}

Value BodyEmitter::getLanes(Value value) {
  Value computed = get(value);
  if (!scope->lanes || isVector(computed))
    return computed;
  // A constant is written as a vector where it is used: code generation folds it into the
  // instruction.
  if (auto constant = value.getDefiningOp<arith::ConstantOp>()) {
    auto type = VectorType::get({scope->lanes->length}, value.getType());
    return arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, cast<Attribute>(constant.getValue())));
  }
  return splat(computed, computed.getType());
}

Value BodyEmitter::splat(Value scalar, Type element) {
  std::pair<Value, int64_t> key = {scalar, scope->lanes->length};
  for (Scope* s = scope; s; s = s->parent) {
    auto found = s->splats.find(key);
    if (found != s->splats.end())
      return found->second;
  }
  auto type = VectorType::get({scope->lanes->length}, element);
  Value vector = vector::BroadcastOp::create(builder, loc, type, scalar);
  scope->splats[key] = vector;
  return vector;
}

Value BodyEmitter::evaluate(Value value) {
  if (const Memory* memory = memoryOf(value))
    return load(*memory);
  Type indexType = builder.getIndexType();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Value scalar = access.scalar(builder, loc, argument.getArgNumber() - ins.size());
    return arith::IndexCastOp::create(builder, loc, indexType, scalar);
  }
  Operation* definition = value.getDefiningOp();
  if (isa<arith::ConstantOp>(definition))
    return builder.clone(*definition)->getResult(0);
  if (auto coordinateOp = dyn_cast<kernel::IndexOp>(definition)) {
    std::optional<unsigned> dim = nest.dimOf(coordinateOp);
    if (!dim)
      return index(0);
    if (!scope->lanes || scope->lanes->dim != *dim)
      return coordinate(*dim);
    SmallVector<int64_t> steps(scope->lanes->length);
    std::iota(steps.begin(), steps.end(), 0);
    auto type = VectorType::get({scope->lanes->length}, indexType);
    Value counting = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, ArrayRef<int64_t>(steps)));
    return arith::AddIOp::create(builder, loc, splat(scope->lanes->base, indexType), counting);
  }
  if (auto reduce = dyn_cast<kernel::ReduceOp>(definition)) {
    if (nest.reductionOf(reduce).combines())
      llvm::report_fatal_error("a kernel reads a reduction before the loop that computes it");
    return get(reduce.getValue());
  }
  if (auto random = dyn_cast<kernel::RandomHalfOp>(definition))
    return evaluateRandom(random);

  SmallVector<Value> operands;
  for (Value operand : definition->getOperands())
    operands.push_back(get(operand));
  bool varies = llvm::any_of(operands, isVector);
  SmallVector<Type> results;
  for (Type type : definition->getResultTypes())
    results.push_back(varies ? VectorType::get({scope->lanes->length}, type) : type);
  if (varies)
    for (auto [operand, source] : llvm::zip_equal(operands, definition->getOperands()))
      operand = getLanes(source);
  if (varies && scope->lanes->mask && trapsOnZero(definition)) {
    auto ones = DenseElementsAttr::get(
        cast<VectorType>(operands[1].getType()),
        cast<Attribute>(builder.getIntegerAttr(definition->getOperand(1).getType(), 1)));
    operands[1] = arith::SelectOp::create(builder, loc, scope->lanes->mask, operands[1],
                                          arith::ConstantOp::create(builder, loc, ones));
  }
  OperationState state(loc, definition->getName(), operands, results, definition->getAttrs());
  Operation* computed = builder.create(state);
  if (isExpBelowMaximum(definition))
    computed->setAttr(nonPositiveAttr, builder.getUnitAttr());
  for (auto [from, to] : llvm::zip_equal(definition->getResults(), computed->getResults()))
    scope->values[from] = to;
  return scope->values[value];
}

//===----------------------------------------------------------------------===//
// Random bits
//===----------------------------------------------------------------------===//

Value BodyEmitter::randomKey(kernel::RandomHalfOp op) {
  for (Scope* s = scope; s; s = s->parent) {
    auto found = s->randomKeys.find(op);
    if (found != s->randomKeys.end())
      return found->second;
  }
  Value key = emitRandomKey(builder, loc, get(op.getSeed()), op.getStream());
  scope->randomKeys[op] = key;
  return key;
}

Value BodyEmitter::evaluateRandom(kernel::RandomHalfOp op) {
  Value key = randomKey(op), step = get(op.getStep());
  Type i64 = builder.getI64Type();
  const std::optional<Lanes>& lanes = scope->lanes;
  const bool isAligned = !op.getBase() || op.getMultiple() % 8 == 0;
  if (lanes && lanes->length % 8 == 0 && isAligned &&
      coefficientAlong(nest, op.getElement(), lanes->dim) == 1 &&
      isMultipleOf8(nest, op.getElement(), lanes->dim)) {
    Value first = evaluateAtFirstLane(op.getElement());
    if (op.getBase())
      first = arith::AddIOp::create(builder, loc, first, get(op.getBase()));
    first = arith::IndexCastOp::create(builder, loc, i64, first);
    return emitRandomHalfRun(builder, loc, key, step, first, lanes->length);
  }
  Value element = get(op.getElement());
  if (op.getBase()) {
    Value base = get(op.getBase());
    if (base.getType() != element.getType())
      base = vector::BroadcastOp::create(builder, loc, element.getType(), base);
    element = arith::AddIOp::create(builder, loc, element, base);
  }
  Type wide = i64;
  if (auto vector = dyn_cast<VectorType>(element.getType()))
    wide = vector.clone(i64);
  element = arith::IndexCastOp::create(builder, loc, wide, element);
  return emitRandomHalf(builder, loc, key, step, element);
}

/// `value`, a sum of products with the lanes' coordinate, on the first lane: a scalar.
Value BodyEmitter::evaluateAtFirstLane(Value value) {
  if (!contains(nest.dependence(value), scope->lanes->dim))
    return get(value);
  Operation* definition = value.getDefiningOp();
  if (isa<kernel::IndexOp>(definition))
    return scope->lanes->base;
  SmallVector<Value> operands;
  for (Value operand : definition->getOperands())
    operands.push_back(evaluateAtFirstLane(operand));
  OperationState state(loc, definition->getName(), operands, definition->getResultTypes(),
                       definition->getAttrs());
  return builder.create(state)->getResult(0);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

void BodyEmitter::setReduction(kernel::ReduceOp reduce, Value value) {
  scope->values[reduce.getResult()] = value;
}

void BodyEmitter::setMemory(Value value, const Memory* memory) { stored[value] = memory; }

const Memory* BodyEmitter::memoryOf(Value value) const {
  if (const Memory* memory = stored.lookup(value))
    return memory;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber() < ins.size() ? ins[argument.getArgNumber()].get() : nullptr;
  return nullptr;
}

void BodyEmitter::store(unsigned out, Value value) { store(*outs[out], value); }

} // namespace titan::codegen
