#include "compiler/Codegen/cpu/ReductionPass.h"

#include "compiler/Codegen/kernel/Combine.h"
#include "compiler/Codegen/kernel/Loops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// Stack that a kernel may use for intermediate results: an eighth of a thread's usual 8 MiB.
constexpr int64_t stackLimit = int64_t{1} << 20;

/// Equal reductions up to this number are computed together: their accumulators are registers, and
/// they need no loop over them.
constexpr size_t mostTogether = 3;

std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

} // namespace

struct ReductionPass::Group {
  ArrayRef<const Reduction*> members;
  SmallVector<Value> roots;
  llvm::function_ref<void()> alongside;
  bool lanes = false; ///< lane order; otherwise column order
  int64_t length = 0; ///< of the accumulators' vectors
};

ReductionPass::ReductionPass(BodyEmitter& body, const VectorShape& shape, func::FuncOp function)
    : bound(body.nest.parallelDims()), body(body), builder(body.builder), loc(body.loc),
      nest(body.nest), shape(shape), function(function) {}

FailureOr<Value> ReductionPass::allocateBytes(Value value, int64_t elements) {
  Type type = storedType(value.getType());
  allocated += elements * type.getIntOrFloatBitWidth() / 8;
  if (allocated > stackLimit)
    return value.getDefiningOp()->emitError("intermediate results of ")
           << allocated << " bytes do not fit in the " << stackLimit
           << " bytes of a kernel's stack: lower the reduction to a kernel of its own";
  return allocateStack(type, elements);
}

Value ReductionPass::allocateStack(Type type, int64_t elements) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getBody().front());
  Value count = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(elements));
  return LLVM::AllocaOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext()),
                                type, count, /*alignment=*/64);
}

FailureOr<const Memory*> ReductionPass::allocate(Value value, DimSet dims) {
  int64_t elements = 1;
  SmallVector<int64_t, 4> strides(nest.rank(), 0);
  const SmallVector<unsigned, 4> inOrder = listOf(dims);
  for (unsigned dim : llvm::reverse(inOrder)) {
    strides[dim] = elements;
    elements *= nest.extents[dim];
  }
  FailureOr<Value> pointer = allocateBytes(value, elements);
  if (failed(pointer))
    return failure();
  return &memory.emplace_back(Memory{*pointer, Access{value.getType(), 0, strides}, std::nullopt});
}

FailureOr<const Memory*> ReductionPass::allocateBlock(Value value, unsigned dim, Value start,
                                                      int64_t length) {
  FailureOr<Value> pointer = allocateBytes(value, std::min(length, nest.extents[dim]));
  if (failed(pointer))
    return failure();
  // Addresses count from coordinate 0.
  Value distance = arith::SubIOp::create(builder, loc, body.index(0), start);
  distance = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), distance);
  Value origin = LLVM::GEPOp::create(builder, loc, pointer->getType(), storedType(value.getType()),
                                     *pointer, LLVM::GEPArg(distance));
  SmallVector<int64_t, 4> strides(nest.rank(), 0);
  strides[dim] = 1;
  return &memory.emplace_back(Memory{origin, Access{value.getType(), 0, strides}, std::nullopt});
}

void ReductionPass::overScalars(ArrayRef<unsigned> dims, ArrayRef<Value> roots,
                                llvm::function_ref<void()> step) {
  if (dims.empty())
    return step();
  body.hoist(roots);
  emitLoop(builder, loc, body.index(0), body.index(nest.extents[dims.front()]), 1, {},
           [&](Value induction, ValueRange) {
             BodyEmitter::Scope scope(body, {{dims.front(), induction}});
             overScalars(dims.drop_front(), roots, step);
             return SmallVector<Value>();
           });
}

SmallVector<Value> ReductionPass::overLanes(unsigned dim, Value low, Value high, int64_t length,
                                            ValueRange carried, Step step) {
  int64_t extent = nest.extents[dim], rest = extent % length;
  Value fullHigh = high;
  if (rest != 0) {
    if (auto known = constantOf(high))
      fullHigh = body.index(*known / length * length);
    else
      fullHigh = arith::SubIOp::create(
          builder, loc, high, arith::RemUIOp::create(builder, loc, high, body.index(length)));
  }
  SmallVector<Value> result = emitLoop(
      builder, loc, low, fullHigh, length, carried, [&](Value induction, ValueRange values) {
        BodyEmitter::Scope scope(body, {}, Lanes{dim, induction, length, Value()});
        return step(values);
      });
  if (rest == 0)
    return result;
  Value isLast =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, high, body.index(extent));
  if (auto known = constantOf(high))
    isLast = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(*known == extent));
  return emitIf(builder, loc, isLast, result, [&] {
    int64_t tail = vectorLength(rest, shape.width, length);
    Value mask;
    if (tail != rest) {
      SmallVector<bool> on(tail, false);
      std::fill_n(on.begin(), rest, true);
      mask = arith::ConstantOp::create(builder, loc, builder.getBoolVectorAttr(on));
    }
    BodyEmitter::Scope scope(body, {}, Lanes{dim, body.index(extent - rest), tail, mask});
    return step(result);
  });
}

void ReductionPass::overPoints(DimSet dims, int64_t longest, ArrayRef<Value> roots, Step step) {
  SmallVector<unsigned, 4> list = listOf(dims);
  if (list.empty() || body.lanes()) {
    overScalars(list, roots, [&] { step({}); });
    return;
  }
  unsigned dim = list.pop_back_val();
  overScalars(list, roots, [&] {
    body.hoist(roots);
    int64_t length = vectorLength(nest.extents[dim], shape.width, longest);
    overLanes(dim, body.index(0), body.index(nest.extents[dim]), length, {}, step);
  });
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

LogicalResult ReductionPass::emit(ArrayRef<const Reduction*> members,
                                  llvm::function_ref<void()> alongside) {
  const Reduction& first = *members.front();
  const bool areWhole = (first.space & ~bound & ~first.over) == 0 && !body.lanes();
  if (!areWhole || alongside || members.size() <= mostTogether)
    return emitTogether(members, alongside);
  SmallVector<const Reduction*> rest;
  for (const EqualReductions& equal :
       findEqualReductions(nest, members, [&](Value value) { return body.isStored(value); })) {
    if (equal.members.size() <= mostTogether)
      llvm::append_range(rest, equal.members);
    else if (failed(emitEqual(equal)))
      return failure();
  }
  return rest.empty() ? success() : emitTogether(rest, alongside);
}

LogicalResult ReductionPass::emitEqual(const EqualReductions& equal) {
  const Reduction& first = *equal.members.front();
  kernel::ReduceOp op = first.op;
  auto count = static_cast<int64_t>(equal.members.size());
  FailureOr<Value> results = allocateBytes(op, count);
  if (failed(results))
    return failure();
  const Access single{op.getType(), 0, SmallVector<int64_t, 4>(nest.rank(), 0)};
  auto resultAt = [&](LLVM::GEPArg index) {
    Value pointer = LLVM::GEPOp::create(builder, loc, results->getType(), storedType(op.getType()),
                                        *results, index);
    return &memory.emplace_back(Memory{pointer, single, std::nullopt});
  };
  SmallVector<Value> tables;
  for (ArrayRef<unsigned> places : equal.places)
    tables.push_back(storeNumbers(places));
  auto inOf = [&](unsigned number) {
    return kernel::FusedOp(nest.op).getBlock().getArgument(number);
  };
  emitLoop(builder, loc, body.index(0), body.index(count), 1, {}, [&](Value member, ValueRange) {
    BodyEmitter::Scope scope(body, {});
    Value index = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), member);
    for (auto [in, table] : llvm::zip_equal(equal.ins, tables))
      body.setMemory(inOf(in),
                     &memory.emplace_back(Memory{selectOperand(table, index), nest.ins[in], {}}));
    Group group{ArrayRef(equal.members).take_front(), {op.getValue()}, nullptr, true, 0};
    body.store(*resultAt(index), reduce(group, listOf(first.over)).front());
    return SmallVector<Value>();
  });
  for (unsigned in : equal.ins)
    body.setMemory(inOf(in), nullptr);
  for (auto [i, reduction] : llvm::enumerate(equal.members))
    body.setMemory(kernel::ReduceOp(reduction->op).getResult(), resultAt(static_cast<int32_t>(i)));
  return success();
}

/// The address of `numbers`, each an i16.
Value ReductionPass::storeNumbers(ArrayRef<unsigned> numbers) {
  SmallVector<int16_t> words(numbers);
  words.resize(llvm::PowerOf2Ceil(words.size()));
  auto type = VectorType::get(static_cast<int64_t>(words.size()), builder.getI16Type());
  Value table = allocateStack(type.getElementType(), type.getNumElements());
  Value constant = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, ArrayRef<int16_t>(words)));
  LLVM::StoreOp::create(builder, loc, constant, table, /*alignment=*/64);
  return table;
}

/// The address of the operand whose number stands at `index` of `table`.
Value ReductionPass::selectOperand(Value table, Value index) {
  Type pointer = table.getType(), word = builder.getI16Type();
  Value slot = LLVM::GEPOp::create(builder, loc, pointer, word, table, LLVM::GEPArg(index));
  Value number = LLVM::LoadOp::create(builder, loc, word, slot);
  number = arith::ExtUIOp::create(builder, loc, builder.getI64Type(), number);
  slot = LLVM::GEPOp::create(builder, loc, pointer, pointer, function.getArgument(0),
                             LLVM::GEPArg(number));
  return LLVM::LoadOp::create(builder, loc, pointer, slot);
}

LogicalResult ReductionPass::emitTogether(ArrayRef<const Reduction*> members,
                                          llvm::function_ref<void()> alongside) {
  const Reduction& first = *members.front();
  Group group{members, {}, alongside, false, 0};
  DimSet inner = first.space & ~bound;
  for (const Reduction* reduction : members)
    group.roots.push_back(kernel::ReduceOp(reduction->op).getValue());
  bool hasLanes = body.lanes().has_value();
  group.lanes = !hasLanes && contains(first.over, innermost(inner));

  DimSet kept = inner & ~first.over;
  SmallVector<unsigned, 4> over = listOf(first.over), keptDims = listOf(kept);
  std::optional<unsigned> laneDim; // the kept dimension that vectors of a column pass lie along
  if (!group.lanes && !hasLanes)
    laneDim = keptDims.pop_back_val();

  // One slot for each point of the kept dimensions, by the vector where the block gives the lanes.
  SmallVector<const Memory*> slots;
  if (kept != 0) {
    int64_t lanes = hasLanes ? body.lanes()->length : 1, elements = lanes;
    SmallVector<int64_t, 4> strides(nest.rank(), 0);
    const SmallVector<unsigned, 4> inOrder = listOf(kept);
    for (unsigned dim : llvm::reverse(inOrder)) {
      strides[dim] = elements;
      elements *= nest.extents[dim];
    }
    for (const Reduction* reduction : members) {
      kernel::ReduceOp op = reduction->op;
      FailureOr<Value> pointer = allocateBytes(op, elements);
      if (failed(pointer))
        return failure();
      slots.push_back(
          &memory.emplace_back(Memory{*pointer, Access{op.getType(), 0, strides},
                                      hasLanes ? std::optional<int64_t>(1) : std::nullopt}));
      body.setMemory(op.getResult(), slots.back());
    }
  }

  SmallVector<Value> results;
  auto reduceHere = [&] {
    results = reduce(group, over);
    for (auto [slot, result] : llvm::zip(slots, results))
      body.store(*slot, result);
  };
  overScalars(keptDims, group.roots, [&] {
    if (!laneDim)
      return reduceHere();
    body.hoist(group.roots);
    int64_t extent = nest.extents[*laneDim];
    overLanes(*laneDim, body.index(0), body.index(extent),
              vectorLength(extent, shape.width, shape.reduction()), {}, [&](ValueRange) {
                reduceHere();
                return SmallVector<Value>();
              });
  });

  if (kept == 0)
    for (auto [reduction, result] : llvm::zip_equal(members, results))
      body.setReduction(reduction->op, result);
  return success();
}

/// The results of all members, in vectors of column order.
SmallVector<Value> ReductionPass::reduce(Group& group, ArrayRef<unsigned> over) {
  group.length = body.lanes()
                     ? body.lanes()->length
                     : vectorLength(nest.extents[over.back()], shape.width, shape.reduction());
  SmallVector<Value> results = accumulate(group, over, true, {});
  if (group.lanes)
    for (auto [result, reduction] : llvm::zip_equal(results, group.members))
      result = foldLanes(builder, loc, kernel::ReduceOp(reduction->op).getKind(), result);
  return results;
}

SmallVector<Value> ReductionPass::identities(const Group& group) {
  SmallVector<Value> values;
  for (const Reduction* reduction : group.members) {
    kernel::ReduceOp op = reduction->op;
    values.push_back(reductionIdentity(builder, loc, op.getKind(), op.getType(), group.length));
  }
  return values;
}

/// Totals over the dimensions `over`, outermost first; see ReductionOrder.h. `alone`: there is
/// nothing to add to yet, and the loops so far ran once.
SmallVector<Value> ReductionPass::accumulate(const Group& group, ArrayRef<unsigned> over,
                                             bool alone, ValueRange totals) {
  unsigned dim = over.front();
  int64_t extent = nest.extents[dim];
  body.hoist(group.roots);
  Value zero = body.index(0), end = body.index(extent);
  SmallVector<Value> start = alone ? identities(group) : SmallVector<Value>(totals);
  if (over.size() > 1)
    return emitLoop(builder, loc, zero, end, 1, start, [&](Value induction, ValueRange carried) {
      BodyEmitter::Scope scope(body, {{dim, induction}});
      return accumulate(group, over.drop_front(), false, carried);
    });

  int64_t chunk = group.lanes ? laneChunk : columnChunk;
  if (alone && extent <= chunk)
    return partialSums(group, dim, zero, end);
  return emitLoop(builder, loc, zero, end, chunk, start, [&](Value low, ValueRange carried) {
    Value high = end;
    if (extent > chunk) {
      high = arith::AddIOp::create(builder, loc, low, body.index(chunk));
      if (extent % chunk != 0)
        high = arith::MinUIOp::create(builder, loc, high, end);
    }
    SmallVector<Value> sums = partialSums(group, dim, low, high);
    for (auto [i, reduction] : llvm::enumerate(group.members))
      sums[i] =
          combine(builder, loc, kernel::ReduceOp(reduction->op).getKind(), carried[i], sums[i]);
    return sums;
  });
}

SmallVector<Value> ReductionPass::partialSums(const Group& group, unsigned dim, Value low,
                                              Value high) {
  auto kindOf = [&](size_t i) { return kernel::ReduceOp(group.members[i]->op).getKind(); };
  SmallVector<Value> start = identities(group);
  if (!group.lanes)
    return emitLoop(builder, loc, low, high, 1, start, [&](Value induction, ValueRange carried) {
      BodyEmitter::Scope scope(body, {{dim, induction}});
      SmallVector<Value> sums;
      for (Value root : group.roots)
        sums.push_back(body.getLanes(root));
      if (group.alongside)
        group.alongside();
      for (auto [i, sum] : llvm::enumerate(sums))
        sum = combine(builder, loc, kindOf(i), carried[i], sum);
      return sums;
    });
  return overLanes(dim, low, high, group.length, start, [&](ValueRange carried) {
    SmallVector<Value> sums;
    for (Value root : group.roots)
      sums.push_back(body.getLanes(root));
    if (group.alongside)
      group.alongside();
    const Lanes lanes = *body.lanes();
    for (auto [i, term] : llvm::enumerate(sums)) {
      Type element = group.roots[i].getType();
      if (lanes.mask)
        term = arith::SelectOp::create(
            builder, loc, lanes.mask, term,
            reductionIdentity(builder, loc, kindOf(i), element, lanes.length));
      if (lanes.length < group.length)
        term = vector::InsertStridedSliceOp::create(
            builder, loc, term, reductionIdentity(builder, loc, kindOf(i), element, group.length),
            ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1});
      term = combine(builder, loc, kindOf(i), carried[i], term);
    }
    return sums;
  });
}

} // namespace titan::codegen
