#include "frontend/raise/AttentionChain.h"
#include "frontend/raise/Matching.h"
#include "frontend/raise/Passes.h"
#include "frontend/raise/RaisePass.h"

#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <utility>

using namespace mlir;

namespace titan::frontend {

#define GEN_PASS_DEF_RAISEATTENTION
#include "frontend/raise/Passes.h.inc"

namespace {

/// One operand of a contraction.
struct Side {
  Value value;
  ArrayRef<int64_t> batch, contracting;
  SmallVector<int64_t> free;
};
Side leftOf(ir::ContractOp op) {
  return {op.getLhs(), op.getLhsBatch(), op.getLhsContracting(), op.getLhsFree()};
}
Side rightOf(ir::ContractOp op) {
  return {op.getRhs(), op.getRhsBatch(), op.getRhsContracting(), op.getRhsFree()};
}

/// Scales that stand on queries or keys.
void takeScale(Value& value, double& scale) {
  while (true) {
    if (auto mul = value.getDefiningOp<ir::MulOp>()) {
      if (std::optional<double> factor = splatOf(mul.getRhs())) {
        scale *= *factor;
        value = mul.getLhs();
        continue;
      }
    }
    if (auto div = value.getDefiningOp<ir::DivOp>()) {
      if (std::optional<double> divisor = splatOf(div.getRhs())) {
        scale /= *divisor;
        value = div.getLhs();
        continue;
      }
    }
    return;
  }
}

/// Does a trainable parameter reach `value` through floating numbers?
bool needsGradient(Value value, func::FuncOp function) {
  if (!isa<FloatType>(ir::tensorType(value).getElementType()))
    return false;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto symbol =
        function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), ir::tag::state);
    auto state = symbol ? SymbolTable::lookupNearestSymbolFrom<ir::StateOp>(function, symbol)
                        : ir::StateOp();
    return symbol && (!state || state.getTrainable());
  }
  return llvm::any_of(value.getDefiningOp()->getOperands(),
                      [&](Value operand) { return needsGradient(operand, function); });
}

/// Attention around one softmax: matches first, then builds; `problem` says why not.
class AttentionRaiser {
public:
  AttentionRaiser(ir::SoftmaxOp softmax, Evaluator& evaluator)
      : softmax_(softmax), evaluator_(evaluator) {}

  /// False: not attention, or `problem` tells why it cannot be raised.
  bool run() {
    if (!followScores(softmax_.getOperand(), 1, scores_))
      return lacksProduct();
    probabilities_ = followProbabilities(softmax_.getResult());
    if (!probabilities_.product)
      // A classifier's probabilities, for example: nothing that anyone would call attention.
      return probabilities_.problem.empty() || isClassifier() ? false
                                                              : refuse(probabilities_.problem);
    if (!assignRoles() || !checkProbabilities() || !checkMask())
      return false;
    build();
    return true;
  }

  std::string problem;
  ir::AttentionOp attention;
  std::string whyNotCausal;

private:
  bool refuse(const std::string& why) {
    problem = why;
    return false;
  }

  bool lacksProduct() {
    // Probabilities that weigh values, of scores that are no product.
    Probabilities found = followProbabilities(softmax_.getResult());
    if (!found.product)
      return false;
    Side side = found.isLhs ? leftOf(found.product) : rightOf(found.product);
    if (side.contracting == ArrayRef<int64_t>{static_cast<int64_t>(softmax_.getDim())})
      return refuse("its scores are not a product of queries and keys that is scaled and masked");
    return false;
  }

  /// Scores that are a product with a parameter are those of a classifier or a router.
  bool isClassifier() {
    return isa<BlockArgument>(scores_.product.getLhs()) ||
           isa<BlockArgument>(scores_.product.getRhs());
  }

  /// Which dimension of the scores is what.
  bool assignRoles() {
    Side lhs = leftOf(scores_.product), rhs = rightOf(scores_.product);
    auto batch = static_cast<int64_t>(lhs.batch.size());
    auto dim = static_cast<int64_t>(softmax_.getDim());
    if (lhs.contracting.size() != 1)
      return refuse("queries and keys meet in more than one dimension");
    if (dim < batch)
      return refuse("its softmax is not over keys");
    bool keysRight = dim >= batch + static_cast<int64_t>(lhs.free.size());
    const Side &query = keysRight ? lhs : rhs, &key = keysRight ? rhs : lhs;
    SmallVector<int64_t> common = commonRoles(batch);
    if (query.free.size() != 1 || key.free.size() != 1 || common.empty() != (batch == 0))
      return refuse(
          llvm::formatv("queries have {0} and keys {1} dimensions of their own beside {2} "
                        "common ones; 1, 1 and up to 2 are supported",
                        query.free.size(), key.free.size(), batch));
    roles_ = common;
    roles_.push_back(keysRight ? kQuery : kKey);
    roles_.push_back(keysRight ? kKey : kQuery);
    query_ = viewOf(query, common, kQuery, kWidth);
    key_ = viewOf(key, common, kKey, kWidth);
    for (MaskTerm& term : scores_.terms)
      term.view.roles = roles_;
    return true;
  }

  /// The first `batch` dimensions of the scores: batch and head, and what has extent 1; empty if
  /// there are more.
  SmallVector<int64_t> commonRoles(int64_t batch) {
    SmallVector<int64_t> roles(batch, kBatch);
    int64_t surplus = batch - 2;
    ArrayRef<int64_t> shape = ir::tensorType(scores_.product.getResult()).getShape();
    for (int64_t d = batch - 1; d >= 0 && surplus > 0; --d)
      if (shape[d] == 1) {
        roles[d] = View::kUnit;
        --surplus;
      }
    if (surplus > 0)
      return {};
    int64_t next = kBatch;
    for (int64_t& role : roles)
      if (role != View::kUnit)
        role = next == kBatch ? std::exchange(next, kHead) : kHead;
    return roles;
  }

  static View viewOf(const Side& side, ArrayRef<int64_t> common, int64_t free,
                     int64_t contracting) {
    View view{side.value, SmallVector<int64_t>(ir::tensorType(side.value).getRank(), free)};
    for (auto [d, role] : llvm::zip_equal(side.batch, common))
      view.roles[d] = role;
    view.roles[side.contracting.front()] = contracting;
    return view;
  }

  bool checkProbabilities() {
    ir::ContractOp product = probabilities_.product;
    Side lhs = leftOf(product), rhs = rightOf(product);
    const Side &weights = probabilities_.isLhs ? lhs : rhs,
               &values = probabilities_.isLhs ? rhs : lhs;
    if (product.getAcc() || weights.value == values.value)
      return refuse("its probabilities do not weigh values");
    if (weights.contracting != ArrayRef<int64_t>{static_cast<int64_t>(softmax_.getDim())})
      return refuse("its probabilities do not weigh values by key");
    if (weights.batch.size() + 2 != roles_.size() || weights.free.size() != 1 ||
        roles_[weights.free.front()] != kQuery || values.free.size() != 1)
      return refuse("values are not per sample and head");
    value_ =
        View{values.value, SmallVector<int64_t>(ir::tensorType(values.value).getRank(), kWidth)};
    resultRoles_.clear();
    for (auto [w, v] : llvm::zip_equal(weights.batch, values.batch)) {
      value_.roles[v] = roles_[w];
      resultRoles_.push_back(roles_[w]);
    }
    value_.roles[values.contracting.front()] = kKey;
    resultRoles_.push_back(probabilities_.isLhs ? kQuery : kWidth);
    resultRoles_.push_back(probabilities_.isLhs ? kWidth : kQuery);
    if (probabilities_.dropout && roles_.back() != kKey)
      return refuse("its dropout counts elements in another order than batch, head, query, key");
    takeScale(query_.value, scores_.scale);
    takeScale(key_.value, scores_.scale);
    Type type = elementOf(query_.value);
    if (elementOf(key_.value) != type || elementOf(value_.value) != type)
      return refuse("queries, keys and values differ in their element types");
    return true;
  }

  bool checkMask() {
    auto function = softmax_->getParentOfType<func::FuncOp>();
    for (const MaskTerm& term : scores_.terms)
      if (needsGradient(term.view.value, function))
        return refuse("what is added to its scores depends on trainable parameters");
    return true;
  }

  static Type elementOf(Value value) { return ir::tensorType(value).getElementType(); }

  void build() {
    OpBuilder builder(probabilities_.product);
    ir::TensorBuilder b(builder, softmax_);
    b.path = joinedPath(softmax_, probabilities_.product);
    // Heads that are repeated for several query heads stay single.
    View key = withoutRepetition(key_, kHead), value = withoutRepetition(value_, kHead);
    if (key.extent(kHead) != value.extent(kHead) || key.extent(kHead) == 0 ||
        query_.extent(kHead) % key.extent(kHead) != 0) {
      key = key_;
      value = value_;
    }
    Value q = arranged(b, query_, {kBatch, kQuery, kHead, kWidth});
    Value k = arranged(b, key, {kBatch, kKey, kHead, kWidth});
    Value v = arranged(b, value, {kBatch, kKey, kHead, kWidth});
    Type accumulation = elementOf(q).isF64() ? b.builder.getF64Type() : b.builder.getF32Type();
    AttentionMask mask = buildMask(b, scores_.terms, query_.extent(kQuery), key_.extent(kKey),
                                   /*causal=*/false, accumulation, evaluator_);
    whyNotCausal = mask.whyNotCausal;
    attention = b.create<ir::AttentionOp>(q, k, v, mask.operand, exactScale(), mask.causal);
    if (ir::DropoutOp dropout = probabilities_.dropout) {
      attention.setPAttr(dropout.getPAttr());
      attention.setStreamAttr(dropout.getStreamAttr());
    }
    // [B, T, H, E] in the order of the product that it replaces.
    View result{attention.getResult(), {kBatch, kQuery, kHead, kWidth}};
    Value replacement = arranged(b, result, resultRoles_);
    replacement = b.convert(replacement, elementOf(probabilities_.product.getResult()));
    probabilities_.product.getResult().replaceAllUsesWith(replacement);
  }

  /// 1 / sqrt(D), which exporters write with various precision, is meant exactly.
  double exactScale() {
    double usual = 1 / std::sqrt(static_cast<double>(query_.extent(kWidth)));
    return std::abs(scores_.scale - usual) <= 1e-6 * usual ? usual : scores_.scale;
  }

  ir::SoftmaxOp softmax_;
  Evaluator& evaluator_;
  Scores scores_;
  Probabilities probabilities_;
  SmallVector<int64_t> roles_, resultRoles_; ///< of the scores' and of the result's dimensions
  View query_, key_, value_;
};

/// Without heads that are repeated for groups of queries, and with a mask that is known as
/// `causal`: what the patterns do, for attention that the model file has as one op.
void simplify(ir::AttentionOp op, Evaluator& evaluator) {
  OpBuilder builder(op);
  ir::TensorBuilder b(builder, op);
  View key{op.getKey(), {kBatch, kKey, kHead, kWidth}};
  View value{op.getValue(), {kBatch, kKey, kHead, kWidth}};
  View oneKey = withoutRepetition(key, kHead), oneValue = withoutRepetition(value, kHead);
  if (oneKey.extent(kHead) == oneValue.extent(kHead) && oneKey.extent(kHead) < key.extent(kHead)) {
    op.getKeyMutable().assign(arranged(b, oneKey, {kBatch, kKey, kHead, kWidth}));
    op.getValueMutable().assign(arranged(b, oneValue, {kBatch, kKey, kHead, kWidth}));
  }
  if (!op.getMask())
    return;
  Type type = ir::tensorType(op.getLogSumExp()).getElementType();
  bool isBoolean = ir::tensorType(op.getMask()).getElementType().isInteger(1);
  MaskTerm term{isBoolean ? MaskTerm::Kind::Fill : MaskTerm::Kind::Add,
                {op.getMask(), {kBatch, kHead, kQuery, kKey}},
                1,
                true,
                -std::numeric_limits<double>::infinity()};
  AttentionMask mask =
      buildMask(b, term, ir::tensorType(op.getQuery()).getDimSize(1),
                ir::tensorType(op.getKey()).getDimSize(1), op.getCausal(), type, evaluator);
  op.setCausal(mask.causal);
  op.getMaskMutable().clear();
  if (mask.operand)
    op.getMaskMutable().assign(mask.operand);
}

struct RaiseAttention : impl::RaiseAttentionBase<RaiseAttention> {
  using RaiseAttentionBase::RaiseAttentionBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    Evaluator evaluator(largestMask, Evaluator::Buffers::AsInFile);
    for (ir::AttentionOp op : llvm::to_vector(function.getOps<ir::AttentionOp>()))
      simplify(op, evaluator);
    auto softmaxes = llvm::to_vector(function.getOps<ir::SoftmaxOp>());
    for (ir::SoftmaxOp softmax : softmaxes) {
      AttentionRaiser raiser(softmax, evaluator);
      if (raiser.run()) {
        remarkRaised(raiser.attention);
        if (!raiser.whyNotCausal.empty())
          remark::missed(raiser.attention.getLoc(),
                         remark::RemarkOpts::name("raise-causal").category("import"))
              << remark::reason("{0}", raiser.whyNotCausal)
              << remark::add("the causal mask of '{0}' stays an operand",
                             ir::describePlace(raiser.attention));
      } else if (!raiser.problem.empty()) {
        remarkNotRaised(softmax, "titan.attention", raiser.problem);
      }
    }
    eraseDeadOps(function);
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      function.removeArgAttr(i, kInitialValue);
  }
};

} // namespace
} // namespace titan::frontend
