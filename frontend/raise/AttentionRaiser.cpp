#include "frontend/raise/AttentionRaiser.h"

#include "frontend/raise/AttentionChain.h"
#include "frontend/raise/Layout.h"
#include "frontend/raise/Matching.h"
#include "frontend/raise/RaisePass.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <array>
#include <cmath>

using namespace mlir;

namespace titan::frontend {

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
  llvm::SetVector<Value> reached;
  reached.insert(value);
  for (size_t i = 0; i < reached.size(); ++i) {
    Value each = reached[i];
    if (!isa<FloatType>(ir::tensorType(each).getElementType()))
      continue;
    auto argument = dyn_cast<BlockArgument>(each);
    if (!argument) {
      reached.insert_range(each.getDefiningOp()->getOperands());
      continue;
    }
    auto symbol =
        function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), ir::tag::state);
    auto state = symbol ? SymbolTable::lookupNearestSymbolFrom<ir::StateOp>(function, symbol)
                        : ir::StateOp();
    if (symbol && (!state || state.getTrainable()))
      return true;
  }
  return false;
}

/// Attention around one softmax: matches first, then builds; `problem` says why not.
class AttentionRaiser {
public:
  AttentionRaiser(ir::SoftmaxOp softmax, Evaluator& evaluator)
      : softmax_(softmax), evaluator_(evaluator) {}

  RaisedAttention run() {
    if (match())
      build();
    return std::move(raised_);
  }

private:
  /// False: not attention, or `problem` tells why it cannot be raised.
  bool match() {
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, softmax_.getType().getRank()));
    bool isProduct = followScores({softmax_.getOperand(), dims}, 1, scores_);
    probabilities_ = followProbabilities({softmax_.getResult(), dims});
    if (!isProduct)
      return lacksProduct();
    if (!probabilities_.product)
      // A classifier's probabilities, for example: nothing that anyone would call attention.
      return probabilities_.problem.empty() || isClassifier() ? false
                                                              : refuse(probabilities_.problem);
    return assignRoles() && checkProbabilities() && checkMask();
  }

  bool refuse(const std::string& why) {
    raised_.problem = why;
    return false;
  }

  int64_t keyDim() { return static_cast<int64_t>(softmax_.getDim()); }

  bool lacksProduct() {
    // Probabilities that weigh values, of scores that are no product.
    if (!probabilities_.product)
      return false;
    Side side =
        probabilities_.isLhs ? leftOf(probabilities_.product) : rightOf(probabilities_.product);
    if (side.contracting.size() == 1 &&
        probabilities_.view.roles[side.contracting.front()] == keyDim())
      return refuse("its scores are not a product of queries and keys that is scaled and masked");
    return false;
  }

  /// Scores that are a product with a parameter are those of a classifier or a router.
  bool isClassifier() {
    return isa<BlockArgument>(scores_.contraction().getLhs()) ||
           isa<BlockArgument>(scores_.contraction().getRhs());
  }

  /// Which dimension of the scores is what.
  bool assignRoles() {
    ir::ContractOp product = scores_.contraction();
    Side lhs = leftOf(product), rhs = rightOf(product);
    if (lhs.contracting.size() != 1)
      return refuse("queries and keys meet in more than one dimension");
    // Dimensions of the product in the softmax's numbers: common ones, the left's, the right's.
    ArrayRef<int64_t> dims = scores_.product.roles;
    ArrayRef<int64_t> common = dims.take_front(lhs.batch.size());
    ArrayRef<int64_t> left = dims.slice(lhs.batch.size(), lhs.free.size());
    ArrayRef<int64_t> right = dims.take_back(rhs.free.size());
    bool keysRight = llvm::is_contained(right, keyDim());
    if (!keysRight && !llvm::is_contained(left, keyDim()))
      return refuse("its softmax is not over keys");
    ArrayRef<int64_t> queries = keysRight ? left : right, keys = keysRight ? right : left;
    SmallVector<int64_t> shared = wide(common), own = wide(queries);
    if (wide(keys).size() > 1 || own.size() > 2 || shared.size() > 2)
      return refuse(
          llvm::formatv("queries have {0} and keys {1} dimensions of their own beside {2} "
                        "common ones; up to 2, 1 and 2 are supported",
                        own.size(), wide(keys).size(), shared.size()));
    roles_.assign(softmax_.getType().getRank(), View::kUnit);
    roles_[keyDim()] = kKey;
    // Where two dimensions are common they are batch and head, also with a batch of 1.
    if (common.size() == 2 && own.size() < 2)
      shared.assign(common.begin(), common.end());
    llvm::erase(shared, View::kUnit);
    for (auto [i, dim] : llvm::enumerate(shared))
      roles_[dim] = i == 0 ? kBatch : kHead;
    if (own.size() == 2) {
      int64_t position = positionOf(own);
      roles_[position] = kQuery;
      // Heads of queries that all read one key head, or each the head of their group.
      roles_[own[0] == position ? own[1] : own[0]] = shared.size() < 2 ? kHead : kCopy;
    } else if (!own.empty()) {
      roles_[own.front()] = kQuery;
    }
    query_ = viewOf(keysRight ? lhs : rhs, common, queries);
    key_ = viewOf(keysRight ? rhs : lhs, common, keys);
    for (MaskTerm& term : scores_.terms)
      assign(term.view);
    for (View& factor : scores_.factors) {
      assign(factor);
      factor = withoutMovement(factor);
      if (factor.extent(kKey) > 1)
        return refuse("its scores are multiplied by another factor for each key");
    }
    return true;
  }

  /// Those of the softmax's dimensions whose extent is not 1.
  SmallVector<int64_t> wide(ArrayRef<int64_t> dims) {
    SmallVector<int64_t> result;
    for (int64_t dim : dims)
      if (dim != View::kUnit && softmax_.getType().getDimSize(dim) != 1)
        result.push_back(dim);
    return result;
  }

  /// Which of two dimensions counts positions: as in a sequence that attends to itself, there are
  /// as many as keys; else only one of them is masked. Without a mask either will do.
  int64_t positionOf(ArrayRef<int64_t> own) {
    auto isPosition = [&](int64_t dim) {
      return softmax_.getType().getDimSize(dim) == softmax_.getType().getDimSize(keyDim());
    };
    auto isMasked = [&](int64_t dim) {
      return llvm::any_of(scores_.terms, [&](const MaskTerm& term) {
        return withoutMovement(term.view).extent(dim) > 1;
      });
    };
    if (isPosition(own[0]) != isPosition(own[1]))
      return isPosition(own[0]) ? own[0] : own[1];
    return isMasked(own[0]) && !isMasked(own[1]) ? own[0] : own[1];
  }

  /// Roles of attention instead of the softmax's numbers.
  void assign(View& view) {
    for (int64_t& role : view.roles)
      if (role != View::kUnit)
        role = roles_[role];
  }

  /// An operand of the first product; `common` and `free` are its dimensions in the softmax's
  /// numbers.
  View viewOf(const Side& side, ArrayRef<int64_t> common, ArrayRef<int64_t> free) {
    View view{side.value, SmallVector<int64_t>(ir::tensorType(side.value).getRank(), kWidth)};
    auto roleOf = [&](int64_t dim) { return dim == View::kUnit ? dim : roles_[dim]; };
    for (auto [d, dim] : llvm::zip_equal(side.batch, common))
      view.roles[d] = roleOf(dim);
    for (auto [d, dim] : llvm::zip_equal(side.free, free))
      view.roles[d] = roleOf(dim);
    return view;
  }

  bool checkProbabilities() {
    ir::ContractOp product = probabilities_.product;
    Side lhs = leftOf(product), rhs = rightOf(product);
    const Side &weights = probabilities_.isLhs ? lhs : rhs,
               &values = probabilities_.isLhs ? rhs : lhs;
    if (product.getAcc() || weights.value == values.value)
      return refuse("its probabilities do not weigh values");
    assign(probabilities_.view);
    ArrayRef<int64_t> roles = probabilities_.view.roles;
    if (weights.contracting.size() != 1 || roles[weights.contracting.front()] != kKey)
      return refuse("its probabilities do not weigh values by key");
    value_ =
        View{values.value, SmallVector<int64_t>(ir::tensorType(values.value).getRank(), kWidth)};
    resultRoles_.clear();
    for (auto [w, v] : llvm::zip_equal(weights.batch, values.batch)) {
      value_.roles[v] = roles[w];
      resultRoles_.push_back(roles[w]);
    }
    value_.roles[values.contracting.front()] = kKey;
    SmallVector<int64_t> weightsFree, width(values.free.size(), View::kUnit);
    for (int64_t d : weights.free)
      weightsFree.push_back(roles[d]);
    for (auto [i, d] : llvm::enumerate(values.free)) {
      bool isUnit = ir::tensorType(values.value).getDimSize(d) == 1 && values.free.size() > 1;
      value_.roles[d] = width[i] = isUnit ? View::kUnit : static_cast<int64_t>(kWidth);
    }
    resultRoles_.append(probabilities_.isLhs ? weightsFree : width);
    resultRoles_.append(probabilities_.isLhs ? width : weightsFree);
    if (llvm::count(width, kWidth) > 1 || value_.has(kQuery) || value_.has(kCopy) ||
        value_.extent(kBatch) != query_.extent(kBatch) ||
        value_.extent(kHead) != key_.extent(kHead))
      return refuse("values are not per sample and head");
    if (probabilities_.dropout) {
      SmallVector<int64_t> order;
      for (int64_t dim : probabilities_.dropoutRoles)
        if (dim != View::kUnit && roles_[dim] != View::kUnit)
          order.push_back(roles_[dim]);
      SmallVector<int64_t> expected;
      for (int64_t role : {kBatch, kHead, kCopy, kQuery, kKey})
        if (llvm::is_contained(order, role))
          expected.push_back(role);
      if (order != expected)
        return refuse("its dropout counts elements in another order than batch, head, query, key");
    }
    takeScale(query_.value, scores_.scale);
    takeScale(key_.value, scores_.scale);
    Type type = elementOf(query_.value);
    if (elementOf(key_.value) != type || elementOf(value_.value) != type)
      return refuse("queries, keys and values differ in their element types");
    return true;
  }

  bool checkMask() {
    auto function = softmax_->getParentOfType<func::FuncOp>();
    for (const MaskTerm& term : scores_.terms) {
      if (needsGradient(term.view.value, function))
        return refuse("what is added to its scores depends on trainable parameters");
      View view = withoutMovement(term.view);
      if (query_.has(kCopy) && (view.extent(kHead) > 1 || view.extent(kCopy) > 1))
        return refuse("its mask differs between heads, whose groups have a dimension of their own");
    }
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
        heads() % key.extent(kHead) != 0) {
      key = key_;
      value = value_;
    }
    Value q = arranged(b, query_, {kBatch, kQuery, kHead, kCopy, kWidth});
    for (const View& factor : scores_.factors)
      q = b.mul(q, repeated(b, b.convert(factor.value, elementOf(q)), factor, q));
    q = reshaped(b, q,
                 {query_.extent(kBatch), query_.extent(kQuery), heads(), query_.extent(kWidth)});
    Value k = arranged(b, key, {kBatch, kKey, kHead, kWidth});
    Value v = arranged(b, value, {kBatch, kKey, kHead, kWidth});
    Type accumulation = elementOf(q).isF64() ? b.builder.getF64Type() : b.builder.getF32Type();
    AttentionMask mask = buildMask(b, scores_.terms, query_.extent(kQuery), key_.extent(kKey),
                                   /*causal=*/false, accumulation, evaluator_);
    raised_.whyNotCausal = mask.whyNotCausal;
    raised_.whyAdded = mask.whyAdded;
    FloatAttr fill = mask.fill ? builder.getF64FloatAttr(*mask.fill) : FloatAttr();
    auto attention =
        b.create<ir::AttentionOp>(q, k, v, mask.operand, exactScale(), mask.causal, fill);
    raised_.attention = attention;
    if (ir::DropoutOp dropout = probabilities_.dropout) {
      attention.setPAttr(dropout.getPAttr());
      attention.setStreamAttr(dropout.getStreamAttr());
    }
    // [B, T, H, E] in the order of the product that it replaces.
    Value attended = attention.getResult(), replaced = probabilities_.product.getResult();
    View result{reshaped(b, attended,
                         {query_.extent(kBatch), query_.extent(kQuery), query_.extent(kHead),
                          query_.extent(kCopy), value.extent(kWidth)}),
                {kBatch, kQuery, kHead, kCopy, kWidth}};
    Value replacement = arranged(b, result, resultRoles_);
    replaced.replaceAllUsesWith(b.convert(replacement, elementOf(replaced)));
  }

  /// `value`, which has the roles of `view`, repeated to the shape of the query `like`.
  static Value repeated(const ir::TensorBuilder& b, Value value, View view, Value like) {
    view.value = value;
    SmallVector<int64_t> roles, dims;
    for (auto [d, role] : llvm::enumerate(std::array<int64_t, 4>{kBatch, kQuery, kHead, kCopy}))
      if (view.extent(role) > 1) {
        roles.push_back(role);
        dims.push_back(static_cast<int64_t>(d));
      }
    return b.broadcast(arranged(b, view, roles), ir::tensorType(like).getShape(), dims);
  }

  int64_t heads() { return query_.extent(kHead) * query_.extent(kCopy); }

  /// 1 / sqrt(D), which exporters write with various precision, is meant exactly.
  double exactScale() {
    double usual = 1 / std::sqrt(static_cast<double>(query_.extent(kWidth)));
    return std::abs(scores_.scale - usual) <= 1e-6 * usual ? usual : scores_.scale;
  }

  ir::SoftmaxOp softmax_;
  Evaluator& evaluator_;
  RaisedAttention raised_;
  Scores scores_;
  Probabilities probabilities_;
  SmallVector<int64_t> roles_;       ///< of the softmax's dimensions
  SmallVector<int64_t> resultRoles_; ///< of the dimensions of the product that is replaced
  View query_, key_, value_;
};

} // namespace

RaisedAttention raiseAttention(ir::SoftmaxOp softmax, Evaluator& evaluator) {
  return AttentionRaiser(softmax, evaluator).run();
}

} // namespace titan::frontend
