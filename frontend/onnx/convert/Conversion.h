// What a converter sees: one ONNX node, its operands as constants or as titan values, and a builder
// that carries the node's location and module path.
#pragma once

#include "dialects/Titan/ResultTypes.h"
#include "dialects/Titan/TensorBuilder.h"
#include "frontend/onnx/convert/RebindBatch.h"
#include "frontend/onnx/fold/Fold.h"
#include "frontend/state/ElementTypes.h"

#include <functional>
#include <map>

namespace titan::frontend {

/// What a value of the graph is during import: known on the host (small constants), in the file
/// (large constants), or computed by the function. A failed node leaves its results unset.
struct Known {
  std::optional<HostTensor> host;
  const Tensor* file = nullptr;
  mlir::Value value;
  std::optional<std::vector<mlir::Value>> sequence; ///< of a sequence value: its elements

  bool isKnown() const { return host || file || value || sequence; }
};

/// A dense constant of these little-endian bytes; a splat where all elements are equal.
mlir::DenseElementsAttr denseFromBytes(mlir::MLIRContext* context, DType dtype, const Shape& shape,
                                       const std::string& bytes);

class Conversion : public ir::TensorBuilder {
public:
  Conversion(const Node& node, mlir::OpBuilder& builder, mlir::Location loc, mlir::ArrayAttr path,
             std::vector<Known> inputs)
      : TensorBuilder(builder, loc, path), node(node), inputs_(std::move(inputs)),
        results(node.outputs.size()) {}

  const Node& node;

  //===--- operands ---===//
  bool has(size_t i) const { return node.hasInput(i) && i < inputs_.size(); }
  size_t count() const { return inputs_.size(); }
  /// Operand i as a value; constants are materialised. Errors: absent, or empty.
  Result<mlir::Value> operand(size_t i);
  /// The elements of operand i, a sequence.
  Result<std::vector<mlir::Value>> sequence(size_t i) const;
  /// Operand i if it is known on the host.
  const HostTensor* constant(size_t i) const;
  /// Operand i as a list of integers. Error: it is computed by the model.
  Result<std::vector<int64_t>> list(size_t i, const char* what) const;
  /// The one element of operand i. Error: it is computed by the model, or has several elements.
  Result<double> scalar(size_t i, const char* what) const;
  /// The one integer of operand i. Error: as above, or it is not an integer.
  Result<int64_t> integerScalar(size_t i, const char* what) const;
  /// Axes: operand i where the opset has them as one, else the attribute. Nothing: not given.
  Result<std::optional<std::vector<int64_t>>> axes(size_t i, const char* attribute = "axes") const;
  /// The element type that an attribute names, by its number; `otherwise` where there is none.
  /// Nothing: it is not one that is known.
  std::optional<DType> namedType(const char* attribute,
                                 std::optional<DType> otherwise = std::nullopt) const;
  Result<int64_t> axis(int64_t otherwise, int64_t rank) const {
    return normalizeAxis(node, node.integer("axis", otherwise), rank);
  }

  //===--- building ---===//
  static Shape shapeOf(mlir::Value value) {
    return Shape(ir::tensorType(value).getShape().begin(), ir::tensorType(value).getShape().end());
  }
  static int64_t rankOf(mlir::Value value) { return ir::tensorType(value).getRank(); }
  static bool isFloat(mlir::Value value) {
    return llvm::isa<mlir::FloatType>(ir::tensorType(value).getElementType());
  }
  /// `value` repeated to `shape`, to which it broadcasts.
  mlir::Value broadcastTo(mlir::Value value, llvm::ArrayRef<int64_t> shape) const;
  /// Operands `i...` broadcast to their common shape. Error: there is none, or element types
  /// differ.
  Result<std::vector<mlir::Value>> broadcastOperands(llvm::ArrayRef<size_t> operands);
  /// The product over the contracting dimensions in the operands' element type; transpositions of
  /// operands are absorbed.
  Result<mlir::Value> contract(mlir::Value lhs, mlir::Value rhs, llvm::ArrayRef<int64_t> lhsBatch,
                               llvm::ArrayRef<int64_t> rhsBatch, int64_t lhsContracting,
                               int64_t rhsContracting) const;
  Result<mlir::Value> floatOperand(size_t i);
  /// Operand i, which must have integers (not booleans).
  Result<mlir::Value> integerOperand(size_t i);
  /// Elements offsets[d] + i * strides[d]; the value itself where that is all of it.
  mlir::Value slice(mlir::Value value, llvm::ArrayRef<int64_t> shape,
                    llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> strides) const;

  /// Where a new dimension `dim` of `extent` counts up to the index at its place: [shape with
  /// extent inserted at dim].
  mlir::Value isIndex(mlir::Value indices, int64_t dim, int64_t extent) const;
  /// `count` elements along `axis` from `begin` on.
  mlir::Value run(mlir::Value value, int64_t axis, int64_t begin, int64_t count) const;
  /// Under another shape; what only undoes an earlier change of shape disappears with it.
  mlir::Value reshaped(mlir::Value value, llvm::ArrayRef<int64_t> shape) const;
  /// The same for an order of dimensions.
  mlir::Value transposed(mlir::Value value, llvm::ArrayRef<int64_t> permutation) const;
  /// `sum`, of `count` terms, divided by it.
  mlir::Value mean(mlir::Value sum, double count) const {
    mlir::Value result = scale(sum, 1 / count);
    result.getDefiningOp()->setAttr(kMeanAttribute, builder.getUnitAttr());
    return result;
  }
  /// Joined along `axis`. Error: shapes or types that do not fit.
  Result<mlir::Value> joined(llvm::ArrayRef<mlir::Value> values, int64_t axis) const;
  /// -log softmax(scores)[target] per target, classes last; 0 where the target is `ignored`.
  /// `smoothing` of it is the mean over the classes.
  mlir::Value pickLoss(mlir::Value scores, mlir::Value targets, int64_t ignored = INT64_MIN,
                       double smoothing = 0) const;

  Status give(mlir::Value value) {
    results[0] = value;
    return {};
  }
  /// A piece of `value` without elements, which only Concat and shape arithmetic take: no value has
  /// an empty shape.
  void giveEmpty(size_t output, mlir::Value value, Shape shape) {
    if (auto dtype = dtypeOf(ir::tensorType(value).getElementType()))
      empty[output] = HostTensor::empty(*dtype, std::move(shape));
  }
  /// "node 'x' (Gemm): <message>"
  template <typename... Args>
  Error error(fmt::format_string<Args...> format, Args&&... args) const {
    return Error::badInput("{}: {}", node.shown(),
                           fmt::format(format, std::forward<Args>(args)...));
  }
  bool wants(size_t output) const {
    return output < node.outputs.size() && !node.outputs[output].empty();
  }

  /// model.mode = "train": dropout is active whatever the export says.
  bool trainingMode = false;
  bool fromPyTorch = false; ///< the model comes from a PyTorch exporter
  /// The random stream of this node's op: of its module path, by ordinal.
  std::function<uint64_t()> randomStream;
  /// The row that this node, a look-up in `table`, does not train; nothing: it trains all.
  std::function<std::optional<int64_t>(mlir::Value table)> paddingOf;

private:
  std::vector<Known> inputs_;

public:
  /// The first output, where it is a sequence.
  std::optional<std::vector<mlir::Value>> sequenceResult;
  std::vector<mlir::Value> results;   ///< one per output; unset where none is wanted
  std::map<size_t, HostTensor> empty; ///< outputs that have no elements
};

/// Is a BatchNormalization written, or was it run, in training form?
bool usesBatchStatistics(const Node& node);

/// Converts the node of `c` and sets its results.
using Converter = Status (*)(Conversion& c);

struct ConverterEntry {
  const char* opType;
  int64_t since; ///< first opset whose semantics the converter knows
  Converter convert;
  const char* notes; ///< restrictions, for the coverage table; may be empty
};

/// Every op of the ONNX domain that can be imported. Ops that only occur in shape arithmetic are
/// folded and need no converter.
llvm::ArrayRef<ConverterEntry> converterTable();
/// Null: not supported.
const ConverterEntry* findConverter(const Node& node);

// The families of the table.
llvm::ArrayRef<ConverterEntry> elementwiseConverters();
llvm::ArrayRef<ConverterEntry> functionConverters();
llvm::ArrayRef<ConverterEntry> scatterConverters();
llvm::ArrayRef<ConverterEntry> activationConverters();
llvm::ArrayRef<ConverterEntry> contractionConverters();
llvm::ArrayRef<ConverterEntry> convolutionConverters();
llvm::ArrayRef<ConverterEntry> resizeConverters();
llvm::ArrayRef<ConverterEntry> normalizationConverters();
llvm::ArrayRef<ConverterEntry> randomConverters();
llvm::ArrayRef<ConverterEntry> einsumConverters();
llvm::ArrayRef<ConverterEntry> movementConverters();
llvm::ArrayRef<ConverterEntry> pieceConverters();
llvm::ArrayRef<ConverterEntry> indexingConverters();
llvm::ArrayRef<ConverterEntry> sequenceConverters();
llvm::ArrayRef<ConverterEntry> attentionConverters();
llvm::ArrayRef<ConverterEntry> lossConverters();
llvm::ArrayRef<ConverterEntry> recurrenceConverters();
llvm::ArrayRef<ConverterEntry> reductionConverters();

} // namespace titan::frontend
