#include "compiler/Autodiff/RoundContractions.h"

#include "dialects/Titan/TensorBuilder.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace titan::ir;

namespace titan {
namespace {

bool isF32(Value value) { return tensorType(value).getElementType().isF32(); }

/// The only op that reads `value`; null where there are several.
Operation* onlyUser(Value value) { return value.hasOneUse() ? *value.user_begin() : nullptr; }

bool isBf16(Value value) { return tensorType(value).getElementType().isBF16(); }

/// Is `value` a widened bf16, moved or not?
bool isWidened(Value value) {
  Operation* source = value.getDefiningOp();
  if (!source)
    return false;
  if (isa<ConvertOp>(source))
    return isBf16(source->getOperand(0));
  return isa<BroadcastOp, ReshapeOp, TransposeOp, SliceOp, ReverseOp, ConcatOp>(source) &&
         llvm::all_of(source->getOperands(), isWidened);
}

/// Is rounding in front of `op` better than behind it? Not in front of a part that is cut out of
/// more, unless all of it is rounded anyway.
bool roundsInFront(Operation* op) {
  return isa<BroadcastOp, ReshapeOp, TransposeOp, ReverseOp, ConcatOp>(op) ||
         (isa<SliceOp>(op) && isWidened(op->getOperand(0)));
}

/// Is `op` the addition of a vector that is broadcast, such as a bias?
bool addsBias(Operation* op) {
  auto add = dyn_cast_or_null<AddOp>(op);
  return add &&
         (add.getLhs().getDefiningOp<BroadcastOp>() || add.getRhs().getDefiningOp<BroadcastOp>());
}

/// Is `value` a bias along one dimension? Other sums have no place in a product: a mask, a table of
/// positions.
bool isBias(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  return broadcast && tensorType(broadcast.getOperand()).getRank() == 1;
}

/// Does a product's `result` reach the end of its block through sums and moves alone? Such a
/// product is the gradient of a weight, or a part of it, and is accumulated in f32.
bool isYielded(Value result) {
  return llvm::any_of(result.getUsers(), [](Operation* user) {
    if (user->hasTrait<OpTrait::IsTerminator>())
      return true;
    return isa<AddOp, ReshapeOp, TransposeOp>(user) && isYielded(user->getResult(0));
  });
}

/// Does a product have an operand that is known when the job is compiled? The weights of a
/// resampling stay as exact as its operand.
bool isResampling(ComputesNarrowOpInterface op) {
  return llvm::any_of(op.getNarrowOperands(),
                      [&](unsigned i) { return op->getOperand(i).getDefiningOp<ConstantOp>(); });
}

/// The value in which a linear layer ends: the product behind bias and relu. The decision may not
/// depend on what else reads it, because backward does and evaluation has none.
Value endOfLayer(Value product) {
  Value end = product;
  for (Operation* user = onlyUser(end); user; user = onlyUser(end)) {
    if (!isa<ReshapeOp, ReluOp>(user) && !addsBias(user))
      break;
    end = user->getResult(0);
  }
  // A reshape alone ends no layer: rounding stands before it.
  while (end != product && isa<ReshapeOp>(end.getDefiningOp()))
    end = end.getDefiningOp()->getOperand(0);
  return end;
}

class Rounding {
public:
  explicit Rounding(MLIRContext* context)
      : builder(context), bf16(builder.getBF16Type()), f32(builder.getF32Type()) {}

  void round(func::FuncOp function) {
    SmallVector<ComputesNarrowOpInterface> ops;
    function.walk([&](ComputesNarrowOpInterface op) {
      if (isF32(op->getOperand(op.getNarrowOperands().front())) && !isResampling(op))
        ops.push_back(op);
    });
    // Ends of layers first: what the next contraction reads is then rounded already.
    for (ComputesNarrowOpInterface op : ops)
      for (Value result : resultsOf(op, ResultRounding::EndOfLayer))
        roundEndOfLayer(op, result);
    for (ComputesNarrowOpInterface op : ops) {
      roundOperands(op);
      narrowResults(op);
    }
    // What was there in f32 and is needed in bf16 only.
    function.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation* op) {
      if (isOpTriviallyDead(op))
        op->erase();
    });
  }

private:
  static SmallVector<Value> resultsOf(ComputesNarrowOpInterface op, ResultRounding rounding) {
    SmallVector<Value> results;
    for (OpResult result : op->getResults())
      if (op.getResultRounding(result.getResultNumber()) == rounding)
        results.push_back(result);
    return results;
  }

  void roundEndOfLayer(Operation* op, Value result) {
    bool isGradient = getPhase(op) == Phase::Backward && isYielded(result);
    if (!isGradient) {
      Value end = endOfLayer(result);
      if (getPhase(op) == Phase::Forward)
        roundBiases(result, end);
      roundForAll(end);
    }
    report(op, isGradient ? "its sum stays f32" : "its result is rounded to bf16");
  }

  /// Biases between a product and the end of its layer: their sum stays f32, in which they are
  /// widened again.
  void roundBiases(Value product, Value end) {
    for (Value value = product; value != end; value = reader->getResult(0)) {
      reader = onlyUser(value);
      if (!addsBias(reader))
        continue;
      for (OpOperand& operand : reader->getOpOperands())
        if (isBias(operand.get()))
          operand.set(widened(rounded(operand.get())));
    }
  }

  /// Every reader of `value` gets it as bf16, or rounded and widened again.
  void roundForAll(Value value) {
    Value narrow = rounded(value);
    Operation* rounding = narrow.getDefiningOp();
    value.replaceUsesWithIf(widened(narrow),
                            [&](OpOperand& use) { return use.getOwner() != rounding; });
  }

  void roundOperands(ComputesNarrowOpInterface op) {
    reader = op;
    for (unsigned i : op.getNarrowOperands())
      op->setOperand(i, rounded(op->getOperand(i)));
  }

  /// Results that are bf16 from now on: their readers get them widened.
  void narrowResults(ComputesNarrowOpInterface op) {
    SmallVector<Value> results = resultsOf(op, ResultRounding::Narrow);
    for (Value result : results) {
      result.setType(tensorType(result).clone(bf16));
      Value wide = widened(result);
      result.replaceAllUsesExcept(wide, wide.getDefiningOp());
    }
    if (!results.empty())
      report(op, results.size() == 1 ? "its result is bf16" : "its results are bf16");
  }

  /// `value` in bf16, built once.
  Value rounded(Value value) {
    if (isBf16(value))
      return value;
    if (auto convert = value.getDefiningOp<ConvertOp>(); convert && isBf16(convert.getOperand()))
      return convert.getOperand();
    if (Value narrow = narrow_.lookup(value))
      return narrow;
    Operation* source = value.getDefiningOp();
    Value result;
    if (source && roundsInFront(source)) {
      SmallVector<Value> parts;
      for (Value operand : source->getOperands())
        parts.push_back(rounded(operand));
      builder.setInsertionPointAfter(source);
      Operation* moved = builder.clone(*source);
      moved->setOperands(parts);
      moved->getResult(0).setType(tensorType(value).clone(bf16));
      result = moved->getResult(0);
    } else {
      builder.setInsertionPointAfterValue(value);
      result = at(value).convert(value, bf16);
    }
    return narrow_[value] = result;
  }

  /// `narrow` in f32, built once, directly behind it.
  Value widened(Value narrow) {
    Value& wide = wide_[narrow];
    if (!wide) {
      builder.setInsertionPointAfterValue(narrow);
      wide = at(narrow).convert(narrow, f32);
    }
    return wide;
  }

  /// Builds for the module that computes `value`, or that reads an argument first.
  TensorBuilder at(Value value) {
    if (Operation* source = value.getDefiningOp())
      return TensorBuilder(builder, source);
    return TensorBuilder(builder, value.getLoc(), reader ? getPath(reader) : ArrayAttr());
  }

  static void report(Operation* op, StringRef result) {
    remark::passed(op->getLoc(),
                   remark::RemarkOpts::name("decide-precision").category("differentiate"))
        << remark::add("{0} of '{1}' reads bf16, {2}", op->getName().stripDialect(),
                       describePlace(op), result);
  }

  OpBuilder builder;
  Type bf16, f32;
  Operation* reader = nullptr; ///< the op whose operands are rounded
  llvm::DenseMap<Value, Value> narrow_, wide_;
};

} // namespace

void roundContractions(func::FuncOp function) { Rounding(function.getContext()).round(function); }

} // namespace titan
