#include "frontend/raise/AttentionMask.h"

#include "frontend/raise/Matching.h"

#include <array>
#include <cmath>

using namespace mlir;

namespace titan::frontend {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Scores are far smaller than this, so that what is added to them rounds to itself: the key's
/// probability is 0 unless the query has no other.
bool forbids(double added) { return added <= -1e30; }

/// A mask is taken apart into that many terms, through that many ops; what is left is a term as it
/// stands. Models have a handful, but sums of a value with itself double with each of them.
constexpr size_t kMostTerms = 64, kMostSteps = 1024;

/// The parts that `term` is the sum or the conjunction of, in the order of the computation; none:
/// it is one part. With -inf it does not matter what it is written over; with other numbers the
/// order of sums would.
SmallVector<MaskTerm> partsOf(const MaskTerm& term) {
  Operation* op = term.view.value.getDefiningOp();
  if (!op)
    return {};
  auto part = [&](Value value) {
    MaskTerm next = term;
    next.view.value = value;
    return next;
  };
  if (term.kind == MaskTerm::Kind::Fill) {
    // Parts of a conjunction forbid one by one, and so do the alternatives of what forbids.
    if ((isa<ir::AndOp>(op) && term.keeps) || (isa<ir::OrOp>(op) && !term.keeps))
      return {part(op->getOperand(0)), part(op->getOperand(1))};
    if (!isa<ir::NotOp>(op))
      return {};
    MaskTerm inverse = part(op->getOperand(0));
    inverse.keeps = !inverse.keeps;
    return {inverse};
  }
  if (isa<ir::AddOp>(op))
    return {part(op->getOperand(0)), part(op->getOperand(1))};
  auto select = dyn_cast<ir::SelectOp>(op);
  if (!select)
    return {};
  for (auto [filled, other, keeps] : {std::tuple(select.getOnFalse(), select.getOnTrue(), true),
                                      {select.getOnTrue(), select.getOnFalse(), false}}) {
    if (splatOf(filled).value_or(0) * term.factor != -kInfinity)
      continue;
    SmallVector<MaskTerm> parts;
    if (!splatOf(other) || *splatOf(other) != 0)
      parts.push_back(part(other));
    MaskTerm fill = part(select.getCondition());
    fill.kind = MaskTerm::Kind::Fill;
    fill.keeps = keeps;
    fill.fill = -kInfinity;
    parts.push_back(fill);
    return parts;
  }
  return {};
}

/// Splits conjunctions, and sums and selections of masks, into terms of their own. Without
/// recursion: how deep they nest is the model's choice.
void split(const MaskTerm& written, SmallVectorImpl<MaskTerm>& terms) {
  SmallVector<MaskTerm> open = {written}; // the next one last
  for (size_t steps = 0; !open.empty(); ++steps) {
    MaskTerm term = open.pop_back_val();
    term.view = withoutMovement(term.view);
    SmallVector<MaskTerm> parts;
    if (steps < kMostSteps && terms.size() + open.size() < kMostTerms)
      parts = partsOf(term);
    if (parts.empty())
      terms.push_back(term);
    open.append(parts.rbegin(), parts.rend());
  }
}

/// What constant terms add to the score of each query and key.
struct Grid {
  int64_t queries, keys;
  std::vector<double> added;
  double& at(int64_t query, int64_t key) { return added[query * keys + key]; }
};

class MaskBuilder {
public:
  MaskBuilder(const ir::TensorBuilder& b, int64_t queries, int64_t keys, bool causal, Type type,
              Evaluator& evaluator)
      : b_(b), type_(type), evaluator_(evaluator), causal_(causal),
        grid_{queries, keys, std::vector<double>(queries * keys, 0)} {
    if (causal)
      for (int64_t i = 0; i < queries; ++i)
        for (int64_t k = i + 1; k < keys; ++k)
          grid_.at(i, k) = -kInfinity;
  }

  AttentionMask build(ArrayRef<MaskTerm> written) {
    SmallVector<MaskTerm> terms, others;
    for (const MaskTerm& term : written)
      split(term, terms);
    bool constant = true, finite = false; // finite: forbidden by a number, not by -inf
    for (const MaskTerm& term : terms) {
      if (addToGrid(term))
        continue;
      others.push_back(term);
      constant &= neverForbids(term);
    }
    bool anyForbidden = false, soft = false, all = true, isCausal = true, beyondCausal = false;
    for (int64_t i = 0; i < grid_.queries; ++i) {
      bool attends = false;
      for (int64_t k = 0; k < grid_.keys; ++k) {
        double added = grid_.at(i, k);
        bool forbidden = forbids(added);
        attends |= !forbidden;
        anyForbidden |= forbidden;
        finite |= forbidden && added != -kInfinity;
        soft |= !forbidden && added != 0;
        isCausal &= forbidden || k <= i;
        beyondCausal |= forbidden && k <= i;
      }
      all &= attends;
    }
    AttentionMask mask;
    if (isCausal && finite && !causal_ && !(constant && all))
      mask.whyNotCausal = constant
                              ? "a query has no key left, and numbers other than -inf forbid"
                              : "the mask also depends on inputs, and a number other than -inf "
                                "forbids: a query without any key attends to all of them";
    // Where a query may have no key left it matters that such scores are not added to.
    const bool isFilled = llvm::any_of(written, writesNumber);
    if (std::optional<double> fill = commonFill(written);
        fill && !(constant && all && forbids(*fill))) {
      mask.operand = combine(Summands{conditions(terms), {}});
      mask.fill = fill;
      return mask;
    }
    if (isFilled && !(constant && all))
      mask.whyAdded = "some scores are replaced by a number, and others changed";
    // A query without any key attends to all of them alike where it is forbidden by a number, and
    // to none in titan.attention.
    if (finite && !(constant && all)) {
      mask.operand = asWritten(written);
      mask.causal = causal_;
      return mask;
    }
    mask.causal = isCausal && anyForbidden;
    Summands summands;
    if (mask.causal ? beyondCausal : anyForbidden)
      summands.allowed.push_back(allowedView());
    if (soft)
      summands.added.push_back(softView());
    for (const MaskTerm& term : others) {
      if (term.kind == MaskTerm::Kind::Fill && term.fill == -kInfinity) {
        llvm::append_range(summands.allowed, conditions(term));
      } else {
        summands.added.push_back(asAdded(term));
      }
    }
    mask.operand = combine(summands);
    return mask;
  }

private:
  struct Summands {
    SmallVector<View> allowed; ///< boolean
    SmallVector<View> added;   ///< of type_
  };

  static bool writesNumber(const MaskTerm& term) {
    return term.kind == MaskTerm::Kind::Fill && term.fill != -kInfinity;
  }
  /// The number other than -inf that every term writes over scores.
  std::optional<double> commonFill(ArrayRef<MaskTerm> written) const {
    if (causal_ || written.empty() || !llvm::all_of(written, [&](const MaskTerm& term) {
          return writesNumber(term) && term.fill == written.front().fill;
        }))
      return std::nullopt;
    return written.front().fill;
  }
  /// Where terms that write over scores keep them.
  SmallVector<View> conditions(ArrayRef<MaskTerm> terms) {
    return llvm::map_to_vector(terms, [&](const MaskTerm& term) {
      View view = term.view;
      if (!term.keeps)
        view.value = b_.create<ir::NotOp>(view.value);
      return view;
    });
  }

  /// Adds a constant term that is the same for every sample and head.
  bool addToGrid(const MaskTerm& term) {
    const View& view = term.view;
    auto elements = evaluator_.evaluate(view.value);
    if (!elements)
      return false;
    // By role; 0 where the view lacks it.
    std::array<int64_t, kOrder.size()> strides = {}, extents = {1, 1, 1, 1};
    int64_t stride = 1;
    for (size_t d = view.roles.size(); d-- > 0;) {
      for (auto [i, role] : llvm::enumerate(kOrder))
        if (view.roles[d] == role) {
          strides[i] = stride;
          extents[i] = elements->shape[d];
        }
      stride *= elements->shape[d];
    }
    auto [batches, heads, queries, keys] = extents;
    int64_t plane = strides[2] == 0 && strides[3] == 0 ? 1 : queries * keys;
    for (int64_t i = 0; batches * heads > 1 && i < batches * heads * plane; ++i) {
      int64_t inPlane = i / keys % queries * strides[2] + i % keys * strides[3];
      int64_t sample = i / plane / heads, head = i / plane % heads;
      if (elements->data[sample * strides[0] + head * strides[1] + inPlane] !=
          elements->data[inPlane])
        return false;
    }
    for (int64_t i = 0; i < grid_.queries; ++i)
      for (int64_t k = 0; k < grid_.keys; ++k) {
        double element = elements->data[i * strides[2] + k * strides[3]];
        double& cell = grid_.at(i, k);
        if (term.kind == MaskTerm::Kind::Add)
          cell += element * term.factor;
        else if ((element != 0) != term.keeps)
          cell = term.fill;
      }
    return true;
  }

  /// Is the term a constant of small numbers, such as biases by distance?
  bool neverForbids(const MaskTerm& term) {
    auto elements = evaluator_.evaluate(term.view.value);
    return term.kind == MaskTerm::Kind::Add && elements &&
           llvm::none_of(elements->data,
                         [&](double element) { return forbids(element * term.factor); });
  }

  View gridView(Type element, llvm::function_ref<double(double)> read) {
    Elements elements{{grid_.queries, grid_.keys}, {}};
    for (double added : grid_.added)
      elements.data.push_back(read(added));
    auto type = RankedTensorType::get(elements.shape, element);
    Value value = b_.create<ir::ConstantOp>(cast<TypedAttr>(toAttribute(elements, type)));
    return {value, {kQuery, kKey}};
  }
  View allowedView() {
    return gridView(b_.builder.getI1Type(),
                    [](double added) { return forbids(added) ? 0.0 : 1.0; });
  }
  View softView() {
    return gridView(type_, [](double added) { return forbids(added) ? 0.0 : added; });
  }

  View asAdded(const MaskTerm& term) {
    View view = term.view;
    if (term.kind == MaskTerm::Kind::Fill) {
      Value zero = b_.splat(ir::tensorType(view.value).clone(type_), 0);
      Value fill = b_.splatLike(zero, term.fill);
      view.value =
          term.keeps ? b_.select(view.value, zero, fill) : b_.select(view.value, fill, zero);
      return view;
    }
    view.value = b_.convert(view.value, type_);
    if (term.factor != 1)
      view.value = b_.scale(view.value, term.factor);
    return view;
  }

  /// The dimensions that any of `views` has, and all of the keys.
  SmallVector<int64_t> commonShape(ArrayRef<View> views) {
    SmallVector<int64_t> shape = {1, 1, 1, grid_.keys};
    for (const View& view : views)
      for (auto [i, role] : llvm::enumerate(ArrayRef<int64_t>(kOrder)))
        shape[i] = std::max(shape[i], view.extent(role));
    return shape;
  }

  Value widened(const View& view, ArrayRef<int64_t> shape) {
    SmallVector<int64_t> present, dims, extents;
    for (auto [i, role] : llvm::enumerate(ArrayRef<int64_t>(kOrder)))
      if (view.extent(role) == shape[i]) {
        present.push_back(role);
        dims.push_back(static_cast<int64_t>(i));
      }
    Value value = arranged(b_, view, present);
    return dims.size() == shape.size() ? value : b_.broadcast(value, shape, dims);
  }

  Value combine(const Summands& summands) {
    SmallVector<View> all(summands.allowed);
    all.append(summands.added);
    if (all.empty())
      return {};
    SmallVector<int64_t> shape = commonShape(all);
    Value allowed, added;
    for (const View& view : summands.allowed) {
      Value wide = widened(view, shape);
      allowed = allowed ? b_.create<ir::AndOp>(allowed, wide) : wide;
    }
    for (const View& view : summands.added) {
      Value wide = widened(view, shape);
      added = added ? b_.add(added, wide) : wide;
    }
    if (!allowed || !added)
      return allowed ? allowed : added;
    return b_.select(allowed, added, b_.splatLike(added, -kInfinity));
  }

  /// The steps from scores of zero on: scores + that is what the steps make of the scores.
  Value asWritten(ArrayRef<MaskTerm> written) {
    SmallVector<View> views;
    for (const MaskTerm& term : written)
      views.push_back(withoutMovement(term.view));
    SmallVector<int64_t> shape = commonShape(views);
    Value mask = b_.splat(RankedTensorType::get(shape, type_), 0);
    for (auto [term, view] : llvm::zip_equal(written, views)) {
      if (term.kind == MaskTerm::Kind::Add) {
        MaskTerm added = term;
        added.view = view;
        mask = b_.add(mask, widened(asAdded(added), shape));
      } else {
        Value condition = widened(view, shape), fill = b_.splatLike(mask, term.fill);
        mask = term.keeps ? b_.select(condition, mask, fill) : b_.select(condition, fill, mask);
      }
    }
    return mask;
  }

  static constexpr std::array<int64_t, 4> kOrder = {kBatch, kHead, kQuery, kKey};

  const ir::TensorBuilder& b_;
  Type type_;
  Evaluator& evaluator_;
  bool causal_;
  Grid grid_;
};

} // namespace

AttentionMask buildMask(const ir::TensorBuilder& b, ArrayRef<MaskTerm> terms, int64_t queries,
                        int64_t keys, bool causal, Type type, Evaluator& evaluator) {
  return MaskBuilder(b, queries, keys, causal, type, evaluator).build(terms);
}

} // namespace titan::frontend
