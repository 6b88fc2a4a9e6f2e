#include "frontend/onnx/RebindBatch.h"

#include "dialects/Titan/TensorBuilder.h"
#include "frontend/onnx/Protos.h"

using namespace mlir;

namespace titan::frontend {

namespace {

class BatchRebinder {
public:
  BatchRebinder(func::FuncOp function, int64_t from, int64_t to)
      : function_(function), from_(from), to_(to) {}

  Status run(const BoundInputs& inputs) {
    for (BlockArgument argument : function_.getArguments()) {
      auto tag = function_.getArgAttrOfType<StringAttr>(argument.getArgNumber(), ir::tag::input);
      for (const BoundInput& input : inputs.inputs)
        if (tag && tag.getValue() == input.name && input.batched)
          batchDims_[argument] = 0;
    }
    // Operands are visited before their users; what `widen` inserts needs no visit.
    for (Operation& op :
         llvm::make_early_inc_range(function_.getBody().front().without_terminator()))
      TITAN_TRY(follow(&op));
    for (auto [value, dim] : batchDims_)
      retype(value, dim);
    function_.setFunctionType(
        FunctionType::get(function_.getContext(), function_.getBody().getArgumentTypes(),
                          function_.getBody().front().getTerminator()->getOperandTypes()));
    return {};
  }

private:
  void retype(Value value, int64_t dim) {
    auto type = ir::tensorType(value);
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = shape[dim] / from_ * to_;
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
    auto shardable = dyn_cast<ir::ShardableOpInterface>(op);
    if (llvm::none_of(op->getOperands(), [&](Value v) { return batchDims_.contains(v); }))
      return {};
    if (!shardable)
      return refuse(op, "has no sharding rule");
    ir::ShardingRule rule = shardable.getShardingRule();
    std::optional<int64_t> factor;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      auto it = batchDims_.find(operand);
      if (it == batchDims_.end())
        continue;
      const auto& factors = rule.operands[i][it->second];
      if (factors.empty())
        return refuse(op, "does not keep samples apart");
      if (factor && *factor != factors.front())
        return refuse(op, "combines different samples");
      factor = factors.front();
    }
    const ir::Factor& batch = rule.factors[*factor];
    if (batch.kind != ir::FactorKind::Parallel)
      return refuse(op, "combines the samples of a batch");
    if (batch.size % from_ != 0)
      return refuse(op, "splits the batch");
    // Operands that share the factor must have the new batch too.
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      int64_t dim = ir::ShardingRule::findDim(rule.operands[i], *factor);
      if (dim < 0 || batchDims_.contains(operand))
        continue;
      Value wide = widened(op, operand, dim);
      if (!wide)
        return refuse(op, "holds a tensor of the exported batch");
      op->setOperand(static_cast<unsigned>(i), wide);
    }
    for (auto [i, result] : llvm::enumerate(op->getResults())) {
      int64_t dim = ir::ShardingRule::findDim(rule.results[i], *factor);
      if (dim < 0)
        return refuse(op, "does not keep samples apart");
      batchDims_[result] = dim;
    }
    return {};
  }

  /// A value that is the same for every sample, with the new batch along `dim`; null where it is
  /// not known to be one.
  Value widened(Operation* user, Value value, int64_t dim) {
    OpBuilder builder(user);
    ir::TensorBuilder b(builder, user);
    auto type = ir::tensorType(value);
    SmallVector<int64_t> shape(type.getShape());
    bool single = shape[dim] == 1;
    shape[dim] = shape[dim] / from_ * to_;
    if (auto constant = value.getDefiningOp<ir::ConstantOp>())
      if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
        return b.create<ir::ConstantOp>(cast<TypedAttr>(splat.resizeSplat(type.clone(shape))));
    if (auto broadcast = value.getDefiningOp<ir::BroadcastOp>())
      if (!llvm::is_contained(broadcast.getDims(), dim))
        return b.broadcast(broadcast.getOperand(), shape, broadcast.getDims());
    if (!single)
      return {};
    SmallVector<int64_t> kept, dims;
    for (auto [d, extent] : llvm::enumerate(type.getShape()))
      if (static_cast<int64_t>(d) != dim) {
        kept.push_back(extent);
        dims.push_back(static_cast<int64_t>(d));
      }
    return b.broadcast(b.reshape(value, kept), shape, dims);
  }

  func::FuncOp function_;
  int64_t from_, to_;
  llvm::MapVector<Value, int64_t> batchDims_;
};

} // namespace

Status rebindBatch(func::FuncOp function, const BoundInputs& inputs, int64_t batch) {
  return BatchRebinder(function, inputs.bakedBatch, batch).run(inputs);
}

} // namespace titan::frontend
