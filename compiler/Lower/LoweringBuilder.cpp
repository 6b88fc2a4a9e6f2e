#include "compiler/Lower/LoweringBuilder.h"

#include "compiler/Lower/Classify.h"
#include "compiler/Support/KernelKey.h"

using namespace mlir;

namespace titan::lower {

LoweringBuilder::LoweringBuilder(RewriterBase& rewriter, Operation* op, const MachineModel& machine,
                                 SharedKernels& sharedKernels)
    : builder(rewriter), machine(machine), sharedKernels(sharedKernels), op(op), loc(op->getLoc()),
      context(op->getContext()), path(op->getAttrOfType<ArrayAttr>("path")),
      phase(op->getAttrOfType<ir::PhaseAttr>("phase")) {
  builder.setInsertionPoint(op);
}

Value LoweringBuilder::empty(RankedTensorType type) {
  return kernel::EmptyOp::create(builder, loc, type);
}

ValueRange LoweringBuilder::fused(ArrayRef<int64_t> space, ArrayRef<Read> reads,
                                  ArrayRef<Write> writes, BodyFunction body, ValueRange scalars) {
  SmallVector<Value> ins, outs;
  SmallVector<AffineMap> maps;
  SmallVector<Type> results, arguments;
  for (const Read& read : reads) {
    ins.push_back(read.tensor);
    maps.push_back(read.map);
    Type element = tensorType(read.tensor).getElementType();
    if (auto integer = dyn_cast<IntegerType>(element))
      element = builder.getIntegerType(integer.getWidth());
    arguments.push_back(element);
  }
  arguments.append(scalars.size(), builder.getIndexType());
  for (const Write& write : writes) {
    outs.push_back(write.into ? write.into : empty(write.type));
    maps.push_back(write.map);
    results.push_back(write.type);
  }
  auto fused =
      kernel::FusedOp::create(builder, loc, results, ins, outs, scalars, kernel::KernelClass::Flat,
                              space, builder.getAffineMapArrayAttr(maps), path, phase);
  Block* block = builder.createBlock(&fused.getBody());
  block->addArguments(arguments, SmallVector<Location>(arguments.size(), loc));

  Body scalar(builder, loc);
  SmallVector<Value> values;
  for (BlockArgument argument : block->getArguments())
    values.push_back(scalar.widen(argument));
  SmallVector<Value> yields = body(scalar, values);
  for (auto [value, write] : llvm::zip_equal(yields, writes))
    value = scalar.narrow(value, write.type.getElementType());
  kernel::YieldOp::create(builder, loc, yields);
  for (Operation& dead : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (isOpTriviallyDead(&dead))
      builder.eraseOp(&dead);
  builder.setInsertionPointAfter(fused);

  FailureOr<Loops> loops = classify(fused);
  fused.setKernelClass(succeeded(loops) ? loops->kernelClass : kernel::KernelClass::Column);
  return fused.getResults();
}

ValueRange LoweringBuilder::shared(ValueRange inputs, StringRef key,
                                   llvm::function_ref<SmallVector<Value>(LoweringBuilder&)> build) {
  KeyBuilder whole;
  whole.add(op->getBlock());
  whole.add(op->getName());
  whole.add(phase);
  for (Value input : inputs)
    whole.add(input);
  auto [slot, isNew] = sharedKernels.try_emplace((whole.str() + key).str());
  if (isNew) {
    LoweringBuilder pathless(*this);
    pathless.path = {};
    slot->second = build(pathless);
    isDecidedByOp = false;
  }
  llvm::append_range(sharedInputs, inputs);
  llvm::append_range(sharedResults, slot->second);
  return slot->second;
}

Value LoweringBuilder::elementwise(RankedTensorType type, ValueRange operands,
                                   function_ref<Value(Body&, ValueRange)> body) {
  if (point) {
    SmallVector<Value> elements;
    for (Value operand : operands)
      elements.push_back(point->lookup(operand));
    Body here(builder, loc);
    return here.widen(here.narrow(body(here, elements), type.getElementType()));
  }
  AffineMap same = identity(type.getRank());
  SmallVector<Read> reads;
  for (Value operand : operands)
    reads.push_back({operand, same});
  return fused(type.getShape(), reads, Write{type, same},
               [&](Body& b, ValueRange values) { return SmallVector<Value>{body(b, values)}; })[0];
}

Value LoweringBuilder::move(RankedTensorType type, Value source, AffineMap map) {
  return fused(type.getShape(), Read{source, map}, Write{type, identity(type.getRank())},
               [&](Body&, ValueRange values) { return SmallVector<Value>(values); })[0];
}

Value LoweringBuilder::pad(RankedTensorType type, Value source, ArrayRef<int64_t> low,
                           ArrayRef<int64_t> interior, function_ref<Value(Body&)> padding) {
  if (type == source.getType())
    return source;
  Value filled = fused(type.getShape(), {}, Write{type, identity(type.getRank())},
                       [&](Body& b, ValueRange) { return SmallVector<Value>{padding(b)}; })[0];
  ArrayRef<int64_t> shape = tensorType(source).getShape();
  SmallVector<AffineExpr> places;
  for (auto [d, pair] : llvm::enumerate(llvm::zip_equal(low, interior)))
    places.push_back(dim(d) * (1 + std::get<1>(pair)) + std::get<0>(pair));
  return fused(shape, Read{source, identity(shape.size())},
               Write{type, map(shape.size(), places), filled},
               [](Body&, ValueRange values) { return SmallVector<Value>(values); })[0];
}

Value LoweringBuilder::transpose(Value source, ArrayRef<int64_t> permutation) {
  // Result dimension i is source dimension permutation[i]: source dimension permutation[i] is read
  // at d_i.
  SmallVector<AffineExpr> results(permutation.size());
  SmallVector<int64_t> shape;
  for (auto [i, d] : llvm::enumerate(permutation)) {
    results[d] = dim(i);
    shape.push_back(tensorType(source).getDimSize(d));
  }
  return move(tensorType(source).clone(shape), source, map(permutation.size(), results));
}

Value LoweringBuilder::castShape(Value source, ArrayRef<int64_t> shape) {
  auto type = tensorType(source).clone(shape);
  return type == source.getType()
             ? source
             : kernel::CastShapeOp::create(builder, loc, type, source).getResult();
}

AffineMap LoweringBuilder::project(unsigned rank, ArrayRef<int64_t> dims) const {
  SmallVector<AffineExpr> results;
  for (int64_t d : dims)
    results.push_back(dim(d));
  return map(rank, results);
}

} // namespace titan::lower
