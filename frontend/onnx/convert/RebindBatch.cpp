#include "frontend/onnx/convert/RebindBatch.h"

#include "dialects/Titan/TensorBuilder.h"
#include "frontend/onnx/convert/UntoldDraws.h"
#include "frontend/onnx/read/Protos.h"
#include "frontend/raise/Matching.h"

using namespace mlir;

namespace titan::frontend {

namespace {

/// Where the batch lies in a value: dimension `dim`, whose index is (outer, sample, inner) in
/// row-major order, `inner` counting the elements behind the sample's. Merged dimensions have the
/// batch in their midst.
struct BatchDim {
  int64_t dim = 0, inner = 1;
};

class BatchRebinder {
public:
  BatchRebinder(func::FuncOp function, int64_t from, int64_t to)
      : function_(function), from_(from), to_(to) {}

  Status run(const BoundInputs& inputs) {
    for (BlockArgument argument : function_.getArguments()) {
      auto tag = function_.getArgAttrOfType<StringAttr>(argument.getArgNumber(), ir::tag::input);
      for (const BoundInput& input : inputs.inputs)
        if (tag && tag.getValue() == input.name && input.batched)
          batchDims_[argument] = {};
    }
    // Operands are visited before their users; what `widened` inserts needs no visit.
    for (Operation& op :
         llvm::make_early_inc_range(function_.getBody().front().without_terminator()))
      TITAN_TRY(follow(&op));
    if (ir::RandomOp draw = findUntoldDraw(function_, from_,
                                           [&](Value value) { return batchDims_.contains(value); }))
      return refuse(draw,
                    fmt::format("draws {} numbers that may be one for each sample, which "
                                "nothing that reads them tells",
                                toString(Shape(ir::tensorType(draw.getResult()).getShape()))));
    for (auto [value, dim] : batchDims_)
      retype(value, dim);
    function_.setFunctionType(
        FunctionType::get(function_.getContext(), function_.getBody().getArgumentTypes(),
                          function_.getBody().front().getTerminator()->getOperandTypes()));
    return {};
  }

private:
  void retype(Value value, const BatchDim& batch) {
    auto type = ir::tensorType(value);
    SmallVector<int64_t> shape(type.getShape());
    shape[batch.dim] = shape[batch.dim] / from_ * to_;
    value.setType(type.clone(shape));
  }

  Error refuse(Operation* op, const std::string& why) {
    std::string node = op->getName().getStringRef().str(), path = ir::pathString(op);
    if (auto name = dyn_cast<NameLoc>(op->getLoc())) {
      std::string label = printable(name.getName().getValue().str());
      node = fmt::format("node '{}'", label);
      if (path == label)
        path.clear();
    }
    std::string where = path.empty() ? "" : fmt::format(" in module '{}'", path);
    return Error::badInput(
        "{}{} {}: the exported batch of {} cannot become batch.micro = {}; export with "
        "dynamic_shapes={{\"{}\": {{0: torch.export.Dim(\"batch\")}}}}, or set batch.micro = {}",
        node, where, why, from_, to_, firstInput(), from_);
  }

  std::string firstInput() {
    for (unsigned i = 0; i < function_.getNumArguments(); ++i)
      if (auto tag = function_.getArgAttrOfType<StringAttr>(i, ir::tag::input))
        return printable(tag.getValue().str());
    return "x";
  }

  /// Finds the dimensions of the results that carry the batch of the operands.
  Status follow(Operation* op) {
    if (llvm::any_of(op->getOperands(), [&](Value v) { return sums_.contains(v); }))
      return followSum(op);
    if (llvm::any_of(op->getOperands(), [&](Value v) { return means_.contains(v); }))
      followMean(op);
    if (llvm::none_of(op->getOperands(), [&](Value v) { return batchDims_.contains(v); }))
      return {};
    if (auto reshape = dyn_cast<ir::ReshapeOp>(op))
      return followReshape(reshape);
    if (auto join = dyn_cast<ir::ConcatOp>(op); join && followJoin(join))
      return {};
    if (auto slice = dyn_cast<ir::SliceOp>(op); slice && followPiece(slice))
      return {};
    if (followGroups(op))
      return {};
    auto shardable = dyn_cast<ir::ShardableOpInterface>(op);
    if (!shardable)
      return refuse(op, "has no sharding rule");
    ir::ShardingRule rule = shardable.getShardingRule();
    std::optional<int64_t> factor;
    int64_t inner = 1;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      auto it = batchDims_.find(operand);
      if (it == batchDims_.end())
        continue;
      const auto& factors = rule.operands[i][it->second.dim];
      if (factors.empty())
        return refuse(op, "does not keep samples apart");
      if (factor && (*factor != factors.front() || inner != it->second.inner))
        return refuse(op, "combines different samples");
      factor = factors.front();
      inner = it->second.inner;
    }
    const ir::Factor& batch = rule.factors[*factor];
    if (batch.size % (from_ * inner) != 0)
      return refuse(op, "splits the batch");
    if (auto sum = dyn_cast<ir::ReduceOp>(op);
        sum && sum.getKind() == ir::ReduceKind::Sum && batch.kind == ir::FactorKind::Reduction) {
      sums_.insert(sum.getResult());
      return {};
    }
    const bool isJoint = batch.kind == ir::FactorKind::Joint;
    if (batch.kind != ir::FactorKind::Parallel && !isJoint)
      return refuse(op, "combines the samples of a batch");
    // Operands that share the factor must have the new batch too.
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      int64_t dim = ir::ShardingRule::findDim(rule.operands[i], *factor);
      if (dim < 0 || batchDims_.contains(operand))
        continue;
      Value wide = widened(op, operand, {dim, inner});
      if (!wide) {
        Operation* draw = from_ == 1 ? drawOf(operand) : nullptr;
        return draw ? refuse(draw, "draws numbers of one sample or of all, which nothing tells")
                    : refuse(op, "holds a tensor of the exported batch");
      }
      op->setOperand(static_cast<unsigned>(i), wide);
    }
    for (auto [i, result] : llvm::enumerate(op->getResults())) {
      int64_t dim = ir::ShardingRule::findDim(rule.results[i], *factor);
      if (dim < 0 && isJoint) // a statistic of any batch
        continue;
      if (dim < 0)
        return refuse(op, "does not keep samples apart");
      batchDims_[result] = {dim, inner};
    }
    return {};
  }

  /// Where the batch at `at` of a tensor of shape `from` lies under the shape `to`: in row-major
  /// order the samples stand equally far apart before and after.
  std::optional<BatchDim> reshaped(const BatchDim& at, ArrayRef<int64_t> from,
                                   ArrayRef<int64_t> to) const {
    int64_t distance = at.inner, behind = 1;
    for (int64_t extent : from.drop_front(at.dim + 1))
      distance *= extent;
    for (int64_t extent : to)
      behind *= extent;
    // A batch of 1 fits beside every dimension. Where its own dimension goes and another one is
    // split, it joins the first of the parts: [T, B, C] becomes [T, B * heads, width]
    // (nn.MultiheadAttention). Where dimensions are merged, it joins the rows before it.
    auto wide = [](ArrayRef<int64_t> shape) {
      return llvm::count_if(shape, [](int64_t extent) { return extent != 1; });
    };
    bool joinsParts = from_ == 1 && at.inner == 1 && wide(to) > wide(from);
    std::optional<BatchDim> found;
    for (auto [d, extent] : llvm::enumerate(to)) {
      behind /= extent;
      int64_t inner = distance / behind;
      if (distance % behind != 0 || extent % (inner * from_) != 0)
        continue;
      bool own = inner == 1 && extent == from_;
      if (own || !found || (joinsParts && inner > 1 && extent == inner))
        found = BatchDim{static_cast<int64_t>(d), inner};
      if (own)
        break;
    }
    return found;
  }

  Status followReshape(ir::ReshapeOp op) {
    auto at =
        reshaped(batchDims_.lookup(op.getOperand()), ir::tensorType(op.getOperand()).getShape(),
                 ir::tensorType(op.getResult()).getShape());
    if (!at)
      return refuse(op, "splits the batch");
    batchDims_[op.getResult()] = *at;
    return {};
  }

  /// Batches one after another, as twin networks read both of their inputs at once.
  bool followJoin(ir::ConcatOp op) {
    std::optional<BatchDim> at;
    for (Value input : op.getInputs()) {
      auto it = batchDims_.find(input);
      if (it == batchDims_.end() || it->second.dim != static_cast<int64_t>(op.getDim()) ||
          (at && at->inner != it->second.inner))
        return false;
      at = it->second;
    }
    batchDims_[op.getResult()] = *at;
    return true;
  }

  /// Some of the batches that lie one after another.
  bool followPiece(ir::SliceOp op) {
    const BatchDim at = batchDims_.lookup(op.getOperand());
    const int64_t batch = from_ * at.inner,
                  extent = ir::tensorType(op.getResult()).getDimSize(at.dim);
    SmallVector<int64_t> offsets(op.getOffsets());
    if (op.getStrides()[at.dim] != 1 || offsets[at.dim] % batch != 0 || extent % batch != 0)
      return false;
    offsets[at.dim] = offsets[at.dim] / from_ * to_;
    op.setOffsets(offsets);
    batchDims_[op.getResult()] = at;
    return true;
  }

  /// A convolution whose groups are samples, each with a kernel of its own.
  bool followGroups(Operation* op) {
    if (!isa<ir::ConvolutionOp, ir::ConvolutionInputGradOp>(op))
      return false;
    const auto groups = op->getAttrOfType<IntegerAttr>("groups");
    if (groups.getInt() % from_ != 0)
      return false;
    const auto inDim = [&](Value value, int64_t dim) {
      return BatchDim{dim, ir::tensorType(value).getDimSize(dim) / from_};
    };
    const auto inChannels = [&](Value image) {
      return inDim(image, ir::tensorType(image).getRank() - 1);
    };
    const BatchDim places[] = {inChannels(op->getOperand(0)), inDim(op->getOperand(1), 0)};
    for (auto [i, at] : llvm::enumerate(places)) {
      Value operand = op->getOperand(static_cast<unsigned>(i));
      auto known = batchDims_.find(operand);
      if (known == batchDims_.end()) {
        operand = widened(op, operand, at);
        if (!operand)
          return false;
        op->setOperand(static_cast<unsigned>(i), operand);
      } else if (known->second.dim != at.dim || known->second.inner != at.inner) {
        return false;
      }
    }
    batchDims_[op->getResult(0)] = inChannels(op->getResult(0));
    op->setAttr("groups", IntegerAttr::get(groups.getType(), groups.getInt() / from_ * to_));
    return true;
  }

  /// A sum over the samples of a batch: it may be a result, be divided by another one, or by the
  /// number of its terms (a mean); any other op could have a number of the exported batch in it.
  Status followSum(Operation* op) {
    if (isa<ir::CompareOp>(op) && llvm::all_of(op->getUsers(), keepsOffZero))
      return {};
    if (isa<ir::ReshapeOp, ir::ConvertOp, ir::NegOp>(op) || keepsOffZero(op)) {
      sums_.insert(op->getResult(0));
      return {};
    }
    if (auto divide = dyn_cast<ir::DivOp>(op);
        divide && sums_.contains(divide.getOperand(0)) && sums_.contains(divide.getOperand(1)))
      return {};
    if (auto scale = dyn_cast<ir::MulOp>(op); scale && op->hasAttr(kMeanAttribute)) {
      const double count = std::round(1 / *splatOf(scale.getOperand(1)));
      setSplat(op, 1 / rebound(count));
      means_[scale.getResult()] = {.count = count,
                                   .isVariance = isOfSquaredDeviations(scale.getOperand(0))};
      return {};
    }
    return refuse(op, "combines the samples of a batch");
  }

  /// sum + 1e-8 and max(sum, 1), which a quotient of sums has as its divisor: no number of samples
  /// is less than 1, and none is a bound of another.
  static bool keepsOffZero(Operation* op) {
    const auto isWithin = [&](double most) {
      const std::optional<double> number = splatOf(op->getOperand(1));
      return number && *number > 0 && *number <= most;
    };
    return isa<ir::AddOp>(op) ? isWithin(0.5) : isa<ir::MaxOp, ir::SelectOp>(op) && isWithin(1);
  }

  /// A mean over samples may go on to any op. The count in an unbiased variance is that of the
  /// samples: the mean of n squares times n, by n - 1, or times n / (n - 1) at once.
  void followMean(Operation* op) {
    const auto found = means_.find(op->getOperand(0));
    if (found == means_.end())
      return;
    const Mean mean = found->second;
    if (isa<ir::ReshapeOp>(op))
      means_[op->getResult(0)] = mean;
    if (!mean.isVariance || !isa<ir::MulOp>(op))
      return;
    const double before = mean.count, after = rebound(before);
    const std::optional<double> factor = splatOf(op->getOperand(1));
    auto quotient = op->hasOneUse() ? dyn_cast<ir::DivOp>(*op->user_begin()) : nullptr;
    if (factor == before && quotient && splatOf(quotient.getRhs()) == before - 1) {
      setSplat(op, after);
      setSplat(quotient, after - 1);
    } else if (factor && isClose(*factor, before / (before - 1))) {
      setSplat(op, after / (after - 1));
    }
  }

  /// Is `sum` of the squares of differences from a mean over samples?
  bool isOfSquaredDeviations(Value sum) const {
    auto reduction = throughReshapes(sum).getDefiningOp<ir::ReduceOp>();
    auto square = reduction ? reduction.getOperand().getDefiningOp<ir::MulOp>() : nullptr;
    auto difference = square && square.getLhs() == square.getRhs()
                          ? square.getLhs().getDefiningOp<ir::SubOp>()
                          : nullptr;
    return difference && means_.contains(throughBroadcast(difference.getRhs()));
  }

  static Value throughReshapes(Value value) {
    while (auto reshape = value.getDefiningOp<ir::ReshapeOp>())
      value = reshape.getOperand();
    return value;
  }

  double rebound(double count) const {
    return count / static_cast<double>(from_) * static_cast<double>(to_);
  }

  /// Makes operand 1 of `op` a constant of `value`.
  static void setSplat(Operation* op, double value) {
    OpBuilder builder(op);
    op->setOperand(1, ir::TensorBuilder(builder, op).splatLike(op->getOperand(1), value));
  }

  /// A value that is the same for every sample, with the new batch along `at`; null where it is
  /// not known to be one.
  Value widened(Operation* user, Value value, const BatchDim& at) {
    OpBuilder builder(user);
    ir::TensorBuilder b(builder, user);
    auto type = ir::tensorType(value);
    SmallVector<int64_t> shape(type.getShape());
    bool single = shape[at.dim] == 1;
    if (single && drawOf(value))
      return {}; // one number for each sample, or one for all of them?
    shape[at.dim] = shape[at.dim] / from_ * to_;
    auto constant = value.getDefiningOp<ir::ConstantOp>();
    auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
    if (elements && elements.isSplat())
      return b.create<ir::ConstantOp>(cast<TypedAttr>(elements.resizeSplat(type.clone(shape))));
    if (auto broadcast = value.getDefiningOp<ir::BroadcastOp>()) {
      Value operand = broadcast.getOperand();
      for (auto [i, dim] : llvm::enumerate(broadcast.getDims()))
        if (dim == at.dim)
          operand = widened(user, operand, {static_cast<int64_t>(i), at.inner});
      if (operand)
        return b.broadcast(operand, shape, broadcast.getDims());
    } else if (auto reshape = value.getDefiningOp<ir::ReshapeOp>(); reshape && !single) {
      auto inside = reshaped(at, type.getShape(), ir::tensorType(reshape.getOperand()).getShape());
      if (Value operand = inside ? widened(user, reshape.getOperand(), *inside) : Value())
        return b.reshape(operand, shape);
    }
    if (elements)
      return widenedConstant(b, elements, at);
    if (auto join = value.getDefiningOp<ir::ConcatOp>(); join && !single && isRepeated(join, at))
      return repeated(b, join.getInputs().front(), spreadOf(type.getShape(), at));
    if (from_ == 1 && !drawOf(value))
      return repeated(b, value, spreadOf(type.getShape(), at));
    return value.getDefiningOp<ir::ReshapeOp>() || value.getDefiningOp<ir::BroadcastOp>()
               ? Value()
               : widenedOp(user, value, at);
  }

  /// Does `join` consist of one sample, once for each of the batch at `at`? So are rows of a table
  /// that constants look up.
  bool isRepeated(ir::ConcatOp join, const BatchDim& at) {
    const auto inputs = join.getInputs();
    const auto isTheFirst = [&](Value input) {
      Operation *first = inputs.front().getDefiningOp(), *other = input.getDefiningOp();
      return input == inputs.front() || (first && other &&
                                         OperationEquivalence::isEquivalentTo(
                                             first, other, OperationEquivalence::IgnoreLocations));
    };
    return static_cast<int64_t>(join.getDim()) == at.dim && llvm::all_of(inputs, isTheFirst) &&
           static_cast<int64_t>(inputs.size()) == from_ && !drawOf(inputs.front());
  }

  /// The source of the random numbers that `value`, which does not depend on the batch, is made of;
  /// null: it is made of none.
  Operation* drawOf(Value value) {
    Operation* op = value.getDefiningOp();
    if (!op)
      return nullptr;
    auto [entry, isNew] = draws_.try_emplace(op, isa<ir::RandomOp>(op) ? op : nullptr);
    if (!isNew || entry->second)
      return entry->second;
    Operation* draw = nullptr;
    for (Value operand : op->getOperands())
      if (!draw)
        draw = drawOf(operand);
    return draws_[op] = draw;
  }

  /// What an op makes of operands that are the same for every sample: rows that it looks up by
  /// equal positions, for example. Random numbers are drawn for the new batch.
  Value widenedOp(Operation* user, Value value, const BatchDim& at) {
    Operation* op = value.getDefiningOp();
    auto shardable = dyn_cast_or_null<ir::ShardableOpInterface>(op);
    if (!shardable || isa<ir::DropoutOp>(op))
      return {};
    ir::ShardingRule rule = shardable.getShardingRule();
    const unsigned number = cast<OpResult>(value).getResultNumber();
    const auto& factors = rule.results[number][at.dim];
    if (factors.empty() || rule.factors[factors.front()].kind != ir::FactorKind::Parallel)
      return {};
    SmallVector<Value> operands(op->getOperands());
    for (auto [i, operand] : llvm::enumerate(operands)) {
      int64_t dim = ir::ShardingRule::findDim(rule.operands[i], factors.front());
      if (dim >= 0 && !(operand = widened(user, operand, {dim, at.inner})))
        return {};
    }
    OpBuilder builder(user);
    Operation* clone = builder.clone(*op);
    clone->setOperands(operands);
    for (auto [i, result] : llvm::enumerate(clone->getResults()))
      if (int64_t dim = ir::ShardingRule::findDim(rule.results[i], factors.front()); dim >= 0)
        retype(result, {dim, at.inner});
    return clone->getResult(number);
  }

  /// The constant with the new batch at `at`; null where its samples differ.
  Value widenedConstant(const ir::TensorBuilder& b, DenseElementsAttr elements,
                        const BatchDim& at) const {
    RankedTensorType type = cast<RankedTensorType>(elements.getType());
    int64_t stride = at.inner;
    for (int64_t extent : type.getShape().drop_front(at.dim + 1))
      stride *= extent;
    auto values = llvm::to_vector(elements.getValues<Attribute>());
    SmallVector<Attribute> first;
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      int64_t sample = i / stride % from_;
      if (values[i] != values[i - sample * stride])
        return {};
      if (sample == 0)
        first.push_back(values[i]);
    }
    const Spread spread = spreadOf(type.getShape(), at);
    auto sample =
        DenseElementsAttr::get(RankedTensorType::get(spread.single, type.getElementType()), first);
    return repeated(b, b.create<ir::ConstantOp>(cast<TypedAttr>(sample)), spread);
  }

  /// How a value of one sample becomes one of the new batch: [.., outer, inner, ..] is repeated to
  /// [.., outer, batch, inner, ..], and these are one dimension then.
  struct Spread {
    SmallVector<int64_t> single, wide, dims, shape;
  };

  Spread spreadOf(ArrayRef<int64_t> extents, const BatchDim& at) const {
    Spread spread;
    spread.shape.assign(extents.begin(), extents.end());
    spread.shape[at.dim] = extents[at.dim] / from_ * to_;
    auto add = [&](int64_t extent) {
      spread.dims.push_back(static_cast<int64_t>(spread.wide.size()));
      spread.single.push_back(extent);
      spread.wide.push_back(extent);
    };
    for (auto [d, extent] : llvm::enumerate(extents)) {
      if (static_cast<int64_t>(d) != at.dim) {
        add(extent);
        continue;
      }
      if (int64_t outer = extent / (from_ * at.inner); outer != 1)
        add(outer);
      spread.wide.push_back(to_);
      if (at.inner != 1)
        add(at.inner);
    }
    return spread;
  }

  Value repeated(const ir::TensorBuilder& b, Value sample, const Spread& spread) const {
    if (ir::tensorType(sample).getShape() != ArrayRef<int64_t>(spread.single))
      sample = b.reshape(sample, spread.single);
    Value all = b.broadcast(sample, spread.wide, spread.dims);
    return spread.wide == spread.shape ? all : b.reshape(all, spread.shape);
  }

  func::FuncOp function_;
  int64_t from_, to_;
  llvm::MapVector<Value, BatchDim> batchDims_;
  llvm::DenseSet<Value> sums_; ///< over the batch
  struct Mean {
    double count = 1; ///< of its terms, in the exported batch
    bool isVariance = false;
  };
  llvm::DenseMap<Value, Mean> means_;            ///< over the batch
  llvm::DenseMap<Operation*, Operation*> draws_; ///< what drawOf() found
};

} // namespace

Status rebindBatch(func::FuncOp function, const BoundInputs& inputs, int64_t batch) {
  return BatchRebinder(function, inputs.bakedBatch, batch).run(inputs);
}

} // namespace titan::frontend
