// Verifiers of the titan dialect. The label in each message is the constraint's number in the op's
// description.
#include "dialects/Titan/ResultTypes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace titan::ir {

namespace {

bool isPermutation(ArrayRef<int64_t> values, int64_t rank) {
  if (static_cast<int64_t>(values.size()) != rank)
    return false;
  SmallVector<bool> seen(rank, false);
  for (int64_t v : values) {
    if (v < 0 || v >= rank || seen[v])
      return false;
    seen[v] = true;
  }
  return true;
}

bool isIncreasingWithin(ArrayRef<int64_t> values, int64_t rank) {
  int64_t previous = -1;
  for (int64_t v : values) {
    if (v <= previous || v >= rank)
      return false;
    previous = v;
  }
  return true;
}

LogicalResult verifyDim(Operation* op, int64_t dim, int64_t rank) {
  if (dim < 0 || dim >= rank)
    return op->emitOpError("(C1) dim ") << dim << " is outside the rank " << rank;
  return success();
}

} // namespace

LogicalResult TitanDialect::verifyOperationAttribute(Operation* op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == tag::recipe || name == tag::target) {
    if (!isa<ModuleOp>(op) || !isa<DictionaryAttr>(attribute.getValue()))
      return op->emitOpError() << "'" << name << "' is a dictionary on a module";
    return success();
  }
  if (name == tag::model || name == tag::stage)
    return isa<StringAttr>(attribute.getValue())
               ? success()
               : op->emitOpError() << "'" << name << "' is a string";
  return op->emitOpError() << "'" << name << "' is not an attribute of the titan dialect";
}

/// (C1) of the function tags: `titan.state` and `titan.gradient` are references to states of the
/// module, the others strings.
static LogicalResult verifyTag(Operation* op, StringRef where, NamedAttribute attribute,
                               ArrayRef<StringRef> symbols, ArrayRef<StringRef> strings) {
  StringRef name = attribute.getName();
  if (llvm::is_contained(symbols, name)) {
    auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute.getValue());
    if (!symbol)
      return op->emitOpError() << "'" << name << "' of " << where << " is a symbol reference";
    auto module = op->getParentOfType<ModuleOp>();
    if (module && !module.lookupSymbol<StateOp>(symbol.getAttr()))
      return op->emitOpError() << "'" << name << "' of " << where << " is " << symbol
                               << ", which the module does not declare";
    return success();
  }
  if (llvm::is_contained(strings, name))
    return isa<StringAttr>(attribute.getValue())
               ? success()
               : op->emitOpError() << "'" << name << "' of " << where << " is a string";
  return op->emitOpError() << "'" << name << "' is not a tag of " << where;
}

LogicalResult TitanDialect::verifyRegionArgAttribute(Operation* op, unsigned, unsigned,
                                                     NamedAttribute attribute) {
  // Metrics and outputs are arguments from *plan* on, where results are buffers that the caller
  // owns.
  return verifyTag(op, "an argument", attribute, {tag::state},
                   {tag::input, tag::control, tag::metric, tag::output});
}

LogicalResult TitanDialect::verifyRegionResultAttribute(Operation* op, unsigned, unsigned,
                                                        NamedAttribute attribute) {
  return verifyTag(op, "a result", attribute, {tag::state, tag::gradient},
                   {tag::metric, tag::output});
}

LogicalResult StateOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError("(C1) type ") << getType() << " is not a tensor of static shape";
  if (getTrainable() && getKind() != StateKind::Param)
    return emitOpError("(C2) only a param is trainable, this is a ")
           << stringifyStateKind(getKind());
  if (getKind() == StateKind::Counter &&
      (type.getRank() != 0 || !type.getElementType().isInteger(64)))
    return emitOpError("(C3) a counter is tensor<i64>, not ") << type;
  if (auto file = dyn_cast<FileInitAttr>(getInit())) {
    if (!file.getPermutation().empty() && !isPermutation(file.getPermutation(), type.getRank()))
      return emitOpError("(C4) init permutation [")
             << file.getPermutation() << "] does not permute " << type.getRank() << " dimensions";
    uint64_t bytes = type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
    if (file.getBytes() != bytes)
      return emitOpError("(C5) init has ")
             << file.getBytes() << " bytes, " << type << " needs " << bytes;
  } else if (!isa<RuleInitAttr>(getInit())) {
    return emitOpError("init is neither #titan.init_file nor #titan.init_rule");
  }
  return success();
}

LogicalResult ReshapeOp::verify() {
  int64_t from = tensorType(getOperand()).getNumElements(),
          to = tensorType(getResult()).getNumElements();
  if (from != to)
    return emitOpError("(C1) reshapes ") << from << " elements to " << to;
  return success();
}

LogicalResult TransposeOp::verify() {
  RankedTensorType from = tensorType(getOperand()), to = tensorType(getResult());
  if (!isPermutation(getPermutation(), from.getRank()))
    return emitOpError("(C1) [") << getPermutation() << "] does not permute " << from.getRank()
                                 << " dimensions";
  SmallVector<int64_t> shape;
  for (int64_t d : getPermutation())
    shape.push_back(from.getDimSize(d));
  if (to != from.clone(shape))
    return emitOpError("(C2) the permuted type is ") << from.clone(shape) << ", not " << to;
  return success();
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType from = tensorType(getOperand()), to = tensorType(getResult());
  if (static_cast<int64_t>(getDims().size()) != from.getRank() ||
      !isIncreasingWithin(getDims(), to.getRank()))
    return emitOpError("(C1) dims [") << getDims() << "] do not map " << from << " into " << to;
  for (auto [i, d] : llvm::enumerate(getDims()))
    if (from.getDimSize(i) != to.getDimSize(d))
      return emitOpError("(C2) operand dimension ")
             << i << " has extent " << from.getDimSize(i) << ", result dimension " << d << " has "
             << to.getDimSize(d);
  return success();
}

LogicalResult ConcatOp::verify() {
  if (getInputs().empty())
    return emitOpError("(C1) has no operands");
  RankedTensorType first = tensorType(getInputs().front());
  int64_t dim = getDim(), extent = 0;
  if (dim < 0 || dim >= first.getRank())
    return emitOpError("(C2) dim ") << dim << " is outside the rank " << first.getRank();
  SmallVector<int64_t> shape(first.getShape());
  for (Value input : getInputs()) {
    RankedTensorType type = tensorType(input);
    if (type.getRank() != first.getRank() || type.getElementType() != first.getElementType())
      return emitOpError("(C1) joins ") << first << " and " << type;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (d != dim && type.getDimSize(d) != first.getDimSize(d))
        return emitOpError("(C1) joins ") << first << " and " << type << " along " << dim;
    extent += type.getDimSize(dim);
  }
  shape[dim] = extent;
  if (tensorType(getResult()) != first.clone(shape))
    return emitOpError("(C2) the joined type is ") << first.clone(shape);
  return success();
}

LogicalResult SliceOp::verify() {
  RankedTensorType from = tensorType(getOperand()), to = tensorType(getResult());
  int64_t rank = from.getRank();
  if (to.getRank() != rank || static_cast<int64_t>(getOffsets().size()) != rank ||
      static_cast<int64_t>(getStrides().size()) != rank ||
      llvm::any_of(getStrides(), [](int64_t s) { return s <= 0; }))
    return emitOpError("(C1) needs one offset and one positive stride for each of ")
           << rank << " dimensions";
  for (int64_t d = 0; d < rank; ++d) {
    int64_t last = getOffsets()[d] + (to.getDimSize(d) - 1) * getStrides()[d];
    if (getOffsets()[d] < 0 || (to.getDimSize(d) > 0 && last >= from.getDimSize(d)))
      return emitOpError("(C2) dimension ")
             << d << " reads element " << last << " of " << from.getDimSize(d);
  }
  return success();
}

LogicalResult PadOp::verify() {
  RankedTensorType from = tensorType(getOperand()), to = tensorType(getResult());
  int64_t rank = from.getRank();
  auto negative = [](int64_t v) { return v < 0; };
  if (to.getRank() != rank || static_cast<int64_t>(getLow().size()) != rank ||
      static_cast<int64_t>(getInterior().size()) != rank || llvm::any_of(getLow(), negative) ||
      llvm::any_of(getInterior(), negative))
    return emitOpError("(C1) needs one non-negative low and interior for each of ")
           << rank << " dimensions";
  for (int64_t d = 0; d < rank; ++d) {
    int64_t last = getLow()[d] + (from.getDimSize(d) - 1) * (1 + getInterior()[d]);
    if (from.getDimSize(d) > 0 && last >= to.getDimSize(d))
      return emitOpError("(C2) dimension ")
             << d << " writes element " << last << " of " << to.getDimSize(d);
  }
  return success();
}

LogicalResult IotaOp::verify() {
  return verifyDim(*this, getDim(), tensorType(getResult()).getRank());
}

SmallVector<int64_t> ContractOp::getLhsFree() {
  SmallVector<int64_t> free;
  for (int64_t d = 0; d < tensorType(getLhs()).getRank(); ++d)
    if (!llvm::is_contained(getLhsBatch(), d) && !llvm::is_contained(getLhsContracting(), d))
      free.push_back(d);
  return free;
}

SmallVector<int64_t> ContractOp::getRhsFree() {
  SmallVector<int64_t> free;
  for (int64_t d = 0; d < tensorType(getRhs()).getRank(); ++d)
    if (!llvm::is_contained(getRhsBatch(), d) && !llvm::is_contained(getRhsContracting(), d))
      free.push_back(d);
  return free;
}

LogicalResult ContractOp::verify() {
  RankedTensorType lhs = tensorType(getLhs()), rhs = tensorType(getRhs());
  auto distinctWithin = [](ArrayRef<int64_t> a, ArrayRef<int64_t> b, int64_t rank) {
    llvm::SmallSet<int64_t, 8> seen;
    for (int64_t d : llvm::concat<const int64_t>(a, b))
      if (d < 0 || d >= rank || !seen.insert(d).second)
        return false;
    return true;
  };
  if (getLhsBatch().size() != getRhsBatch().size() ||
      getLhsContracting().size() != getRhsContracting().size() ||
      !distinctWithin(getLhsBatch(), getLhsContracting(), lhs.getRank()) ||
      !distinctWithin(getRhsBatch(), getRhsContracting(), rhs.getRank()))
    return emitOpError("(C1) batch and contracting dimensions do not pair up for ")
           << lhs << " and " << rhs;
  for (auto [l, r] : llvm::concat<const std::tuple<int64_t, int64_t>>(
           llvm::to_vector(llvm::map_range(llvm::zip(getLhsBatch(), getRhsBatch()),
                                           [](auto p) { return std::tuple<int64_t, int64_t>(p); })),
           llvm::to_vector(
               llvm::map_range(llvm::zip(getLhsContracting(), getRhsContracting()),
                               [](auto p) { return std::tuple<int64_t, int64_t>(p); }))))
    if (lhs.getDimSize(l) != rhs.getDimSize(r))
      return emitOpError("(C2) lhs dimension ")
             << l << " has extent " << lhs.getDimSize(l) << ", rhs dimension " << r << " has "
             << rhs.getDimSize(r);
  if (lhs.getElementType() != rhs.getElementType() ||
      tensorType(getResult()).getElementType() != accumulationType(lhs.getElementType()))
    return emitOpError("(C3) ") << lhs.getElementType() << " and " << rhs.getElementType()
                                << " do not give " << tensorType(getResult()).getElementType();
  RankedTensorType expected = contractType(lhs, rhs, getLhsBatch(), getRhsBatch(),
                                           getLhsContracting(), getRhsContracting());
  if (tensorType(getResult()) != expected || (getAcc() && tensorType(getAcc()) != expected))
    return emitOpError("(C4) the result's type is ") << expected;
  return success();
}

LogicalResult ReduceOp::verify() {
  RankedTensorType type = tensorType(getOperand());
  if (!isIncreasingWithin(getDims(), type.getRank()))
    return emitOpError("(C1) dims [")
           << getDims() << "] are not increasing within the rank " << type.getRank();
  if (tensorType(getResult()) != type.clone(withoutDims(type.getShape(), getDims())))
    return emitOpError("(C2) the reduced type is ")
           << type.clone(withoutDims(type.getShape(), getDims()));
  return success();
}

LogicalResult ArgmaxOp::verify() {
  RankedTensorType type = tensorType(getOperand());
  if (failed(verifyDim(*this, getDim(), type.getRank())))
    return failure();
  if (tensorType(getResult()).getShape() != ArrayRef(withoutDims(type.getShape(), getDim())))
    return emitOpError("(C1) the result lacks dimension ") << getDim() << " only";
  return success();
}

LogicalResult SoftmaxOp::verify() {
  return verifyDim(*this, getDim(), tensorType(getOperand()).getRank());
}

LogicalResult LogSoftmaxOp::verify() {
  return verifyDim(*this, getDim(), tensorType(getOperand()).getRank());
}

LogicalResult LayerNormOp::verify() {
  RankedTensorType type = tensorType(getOperand());
  int64_t axis = getAxis();
  if (axis < 0 || axis >= type.getRank())
    return emitOpError("(C1) axis ") << axis << " is outside the rank " << type.getRank();
  for (Value affine : {getScale(), getBias()})
    if (affine && tensorType(affine).getShape() != type.getShape().drop_front(getAxis()))
      return emitOpError("(C2) scale or bias ")
             << tensorType(affine) << " does not have the shape of dimensions " << getAxis()
             << " on of " << type;
  if (tensorType(getResult()) != type ||
      tensorType(getMean()).getShape() != type.getShape().take_front(getAxis()) ||
      tensorType(getMean()) != tensorType(getRstd()) ||
      tensorType(getMean()).getElementType() != accumulationType(type.getElementType()))
    return emitOpError("(C3) results do not match ") << type << " normalised from " << getAxis();
  return success();
}

LogicalResult RmsNormOp::verify() {
  RankedTensorType type = tensorType(getOperand());
  int64_t axis = getAxis();
  if (axis < 0 || axis >= type.getRank())
    return emitOpError("(C1) axis ") << axis << " is outside the rank " << type.getRank();
  if (getScale() && tensorType(getScale()).getShape() != type.getShape().drop_front(axis))
    return emitOpError("(C2) scale ")
           << tensorType(getScale()) << " does not have the shape of dimensions " << axis
           << " on of " << type;
  if (tensorType(getResult()) != type ||
      tensorType(getRstd()).getShape() != type.getShape().take_front(axis) ||
      tensorType(getRstd()).getElementType() != accumulationType(type.getElementType()))
    return emitOpError("(C3) results do not match ") << type << " normalised from " << axis;
  return success();
}

/// What all random ops share (C1 to C3 of titan.dropout): `shape` is that of the decisions.
template <typename OpTy> static LogicalResult verifyRandom(OpTy op, ArrayRef<int64_t> shape) {
  double p = op.getP().convertToDouble();
  if (!(p >= 0 && p < 1))
    return op.emitOpError("(C1) p = ") << p << " is outside [0, 1)";
  if (!op.getSeed() != !op.getStep())
    return op.emitOpError("(C2) seed and step come together");
  if (op.getMicrobatch() && !op.getWindow())
    return op.emitOpError("(C2) microbatch needs a window");
  if (auto window = op.getWindow()) {
    ArrayRef<int64_t> global = window->getGlobal();
    int64_t dim = window->getDim(), rank = shape.size();
    bool fits = static_cast<int64_t>(global.size()) == rank && dim >= 0 && dim < rank;
    for (int64_t d = 0; fits && d < rank; ++d)
      fits = d == dim ? global[d] >= shape[d] : global[d] == shape[d];
    if (!fits)
      return op.emitOpError("(C3) [") << shape << "] is no window of " << *window;
  }
  return success();
}

LogicalResult DropoutOp::verify() {
  RankedTensorType type = tensorType(getOperand());
  if (tensorType(getResult()) != type)
    return emitOpError("the result's type is ") << type;
  return verifyRandom(*this, type.getShape());
}

LogicalResult EmbeddingOp::verify() {
  RankedTensorType table = tensorType(getTable()), indices = tensorType(getIndices());
  if (table.getRank() == 0)
    return emitOpError("(C1) the table has no rows");
  if (tensorType(getResult()) != embeddingType(table, indices))
    return emitOpError("(C1) the result's type is ") << embeddingType(table, indices);
  return success();
}

LogicalResult EmbeddingGradOp::verify() {
  RankedTensorType dresult = tensorType(getDresult()), indices = tensorType(getIndices()),
                   result = tensorType(getResult());
  int64_t rank = indices.getRank();
  if (dresult.getRank() < rank || dresult.getShape().take_front(rank) != indices.getShape())
    return emitOpError("(C1) dresult ")
           << dresult << " does not begin with the dimensions of " << indices;
  SmallVector<int64_t> shape = {static_cast<int64_t>(getRows())};
  llvm::append_range(shape, dresult.getShape().drop_front(rank));
  if (result != RankedTensorType::get(shape, accumulationType(dresult.getElementType())))
    return emitOpError("(C1) ") << result << " is no gradient of " << getRows() << " rows for "
                                << dresult;
  if (getAcc() && tensorType(getAcc()) != result)
    return emitOpError("(C2) acc ") << tensorType(getAcc()) << " is not " << result;
  return success();
}

/// (C1) to (C4) of titan.attention.
template <typename OpTy>
static LogicalResult verifyAttention(OpTy op, Value result, Value logSumExp) {
  RankedTensorType query = tensorType(op.getQuery()), key = tensorType(op.getKey()),
                   value = tensorType(op.getValue());
  Type element = query.getElementType();
  if (query.getRank() != 4 || key.getRank() != 4 || value.getRank() != 4 ||
      key.getElementType() != element || value.getElementType() != element)
    return op.emitOpError("(C1) ")
           << query << ", " << key << " and " << value << " are not of rank 4 and one element type";
  ArrayRef<int64_t> q = query.getShape(), k = key.getShape(), v = value.getShape();
  if (q[0] != k[0] || k.drop_back() != v.drop_back() || q[3] != k[3] || k[2] == 0 ||
      q[2] % k[2] != 0)
    return op.emitOpError("(C1) query ")
           << query << ", key " << key << " and value " << value << " do not fit together";
  SmallVector<int64_t> scores = {q[0], q[2], q[1], k[1]};
  if (Value mask = op.getMask()) {
    RankedTensorType type = tensorType(mask);
    bool fits =
        type.getRank() == 4 && type.getDimSize(3) == scores[3] &&
        (type.getElementType().isInteger(1) || type.getElementType() == accumulationType(element));
    for (int64_t d = 0; fits && d < 3; ++d)
      fits = type.getDimSize(d) == scores[d] || type.getDimSize(d) == 1;
    if (!fits)
      return op.emitOpError("(C2) mask ") << type << " does not fit scores [" << scores << "]";
  }
  if (tensorType(result) != attentionType(query, value) ||
      tensorType(logSumExp) != logSumExpType(query))
    return op.emitOpError("(C3) results are ")
           << attentionType(query, value) << " and " << logSumExpType(query);
  if (op.getP().isZero() && (op.getSeed() || op.getWindow()))
    return op.emitOpError("(C4) has a seed or a window, but p = 0");
  return verifyRandom(op, scores);
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this, getResult(), getLogSumExp()); }

LogicalResult AttentionGradOp::verify() {
  if (getDresult().getType() != getResult().getType() ||
      getDquery().getType() != getQuery().getType() || getDkey().getType() != getKey().getType() ||
      getDvalue().getType() != getValue().getType())
    return emitOpError("(C5) adjoints do not have the types of their values");
  return verifyAttention(*this, getResult(), getLogSumExp());
}

LogicalResult RotaryOp::verify() {
  RankedTensorType type = tensorType(getOperand()), cos = tensorType(getCos());
  ArrayRef<int64_t> shape = type.getShape(), angles = cos.getShape();
  bool fits = type.getRank() == 4 && cos == tensorType(getSin()) &&
              (cos.getRank() == 2 || cos.getRank() == 3) && angles.take_back(2)[0] == shape[1] &&
              (cos.getRank() == 2 || angles[0] == 1 || angles[0] == shape[0]);
  if (!fits)
    return emitOpError("(C1) cos ")
           << cos << " and sin " << tensorType(getSin()) << " do not fit " << type;
  if (angles.back() < 1 || 2 * angles.back() > shape[3])
    return emitOpError("(C2) rotates ") << 2 * angles.back() << " of " << shape[3] << " elements";
  return success();
}

static LogicalResult verifyCrossEntropy(Operation* op, Value logits, Value targets, Value loss,
                                        double smoothing) {
  RankedTensorType type = tensorType(logits);
  if (type.getRank() == 0)
    return op->emitOpError("(C1) logits have no class dimension");
  ArrayRef<int64_t> rows = type.getShape().drop_back();
  if (tensorType(targets).getShape() != rows || tensorType(loss).getShape() != rows ||
      tensorType(loss).getElementType() != accumulationType(type.getElementType()))
    return op->emitOpError("(C1) targets ") << tensorType(targets) << " and loss "
                                            << tensorType(loss) << " do not fit logits " << type;
  if (!(smoothing >= 0 && smoothing <= 1))
    return op->emitOpError("(C2) label_smoothing ") << smoothing << " is outside [0, 1]";
  return success();
}

LogicalResult CrossEntropyOp::verify() {
  return verifyCrossEntropy(*this, getLogits(), getTargets(), getLoss(),
                            getLabelSmoothing().convertToDouble());
}

LogicalResult CrossEntropyGradOp::verify() {
  return verifyCrossEntropy(*this, getLogits(), getTargets(), getDloss(),
                            getLabelSmoothing().convertToDouble());
}

LogicalResult SgdOp::verify() {
  RankedTensorType type = tensorType(getParam());
  if (!getMomentumBuffer() != !getNewMomentumBuffer())
    return emitOpError("(C1) momentum buffer operand and result come together");
  if (tensorType(getGradient()) != type || tensorType(getNewParam()) != type ||
      (getMomentumBuffer() &&
       (tensorType(getMomentumBuffer()) != type || tensorType(getNewMomentumBuffer()) != type)))
    return emitOpError("(C1) all tensors have the parameter's type ") << type;
  return success();
}

} // namespace titan::ir
