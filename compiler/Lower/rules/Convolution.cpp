// Lowering of titan.convolution and its gradients: a product over a matrix of patches, which are
// read where they stand in the operand, or copied first for machines whose products do not. Zeros
// around the operand are written first: a padded copy is little larger, and no product asks for
// bounds.
#include "compiler/Lower/Rules.h"
#include "compiler/Lower/TileGrid.h"
#include "compiler/Support/Products.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

#include <numeric>

using namespace mlir;
using titan::ir::ConvolutionShape;

namespace titan::lower {

namespace {

int64_t product(ArrayRef<int64_t> extents) { return ShapedType::getNumElements(extents); }

/// One side of a matrix of patches: digits, most significant first. Neighbours that chain are one.
struct Digits {
  SmallVector<int64_t> extents, strides;

  void append(int64_t extent, int64_t stride) {
    if (extent == 1)
      return;
    if (!extents.empty() && strides.back() == extent * stride) {
      extents.back() *= extent;
      strides.back() = stride;
      return;
    }
    extents.push_back(extent);
    strides.push_back(stride);
  }
  int64_t count() const { return product(extents); }
};

/// A matrix as #kernel.gemm takes it: rows that stand `leading` apart, or patches.
struct Matrix {
  Value value;
  int64_t leading;
  kernel::PatchesAttr patches = {};
};

/// Lines and columns of `value`, from element `offset` on.
Matrix matrixOf(LoweringBuilder& l, Value value, Digits lines, Digits columns, int64_t offset = 0) {
  // The last digit of the columns stands for neighbours in memory, if for one alone.
  if (columns.extents.empty() || columns.strides.back() != 1) {
    columns.extents.push_back(1);
    columns.strides.push_back(1);
  }
  if (lines.extents.empty()) {
    lines.extents.push_back(1);
    lines.strides.push_back(0);
  }
  const bool isPlain = offset == 0 && lines.extents.size() == 1 && columns.extents.size() == 1 &&
                       (lines.extents[0] == 1 || lines.strides[0] >= columns.extents[0]);
  if (isPlain)
    return {value, lines.extents[0] == 1 ? columns.extents[0] : lines.strides[0]};
  return {value, columns.count(),
          kernel::PatchesAttr::get(l.context, lines.extents, lines.strides, columns.extents,
                                   columns.strides, offset)};
}

class Lowering {
public:
  Lowering(LoweringBuilder& lowering, const ConvolutionShape& shape, RankedTensorType result)
      : l(lowering), s(shape), result(result) {}

  /// [N, space..., g C] with the zeros that its windows read.
  Value paddedOperand(Value operand) {
    SmallVector<int64_t> shape = {s.batch}, low = {0};
    for (size_t d = 0; d < s.rank(); ++d) {
      shape.push_back(s.padded(d));
      low.push_back(s.low[d]);
    }
    shape.push_back(s.groups * s.inputs);
    low.push_back(0);
    return padded(operand, shape, low, SmallVector<int64_t>(shape.size(), 0));
  }

protected:
  Value padded(Value value, ArrayRef<int64_t> shape, ArrayRef<int64_t> low,
               ArrayRef<int64_t> interior) {
    RankedTensorType type = tensorType(value);
    return l.pad(type.clone(shape), value, low, interior,
                 [&](Body& b) { return b.constant(Body::computeType(type.getElementType()), 0); });
  }

  LoweringBuilder& l;
  const ConvolutionShape& s;
  RankedTensorType result;
};

/// As products of a matrix for each group.
class AsProduct : Lowering {
public:
  using Lowering::Lowering;

  /// Rows are positions of all samples, columns the channels of the result.
  Value forward(Value operand, Value kernel) {
    operand = paddedOperand(operand);
    SmallVector<int64_t> strides = computeStrides(tensorType(operand).getShape());
    Digits rows, depth;
    rows.append(s.batch, strides[0]);
    for (size_t d = 0; d < s.rank(); ++d)
      rows.append(s.positions[d], s.strides[d] * strides[d + 1]);
    for (size_t d = 0; d < s.rank(); ++d)
      depth.append(s.taps[d], s.dilations[d] * strides[d + 1]);
    depth.append(s.inputs, 1);
    const int64_t k = product(s.taps) * s.inputs;
    return multiply({.a = matrixOf(l, operand, rows, depth),
                     .b = {kernel, k},
                     .type = result,
                     .transposeB = true,
                     .m = s.batch * product(s.positions),
                     .n = s.outputs,
                     .k = k,
                     .leadingC = s.groups * s.outputs,
                     .strideA = s.inputs,
                     .strideB = s.outputs * k,
                     .strideC = s.outputs});
  }

  /// Of the operand's places those of one residue modulo the stride meet the same taps: a product
  /// for each residue, over the gradient as it is. Rows are places of all samples, columns the
  /// channels of the operand.
  Value inputGrad(Value dresult, Value kernel) {
    SmallVector<Residues> dims;
    SmallVector<int64_t> shape = {s.batch}, low = {0};
    for (size_t d = 0; d < s.rank(); ++d) {
      dims.push_back(Residues(s.windows(d)));
      shape.push_back(dims.back().extent);
      low.push_back(dims.back().before);
    }
    shape.push_back(s.groups * s.outputs);
    low.push_back(0);
    dresult = padded(dresult, shape, low, SmallVector<int64_t>(shape.size(), 0));
    if (llvm::all_of(s.strides, [](int64_t stride) { return stride == 1; }))
      return ofResidue(dresult, kernel, dims, SmallVector<int64_t>(s.rank(), 0), result);

    Value whole;
    if (llvm::any_of(dims, [](const Residues& dim) { return dim.hasGaps(); }))
      whole = l.fused(result.getShape(), {},
                      LoweringBuilder::Write{result, l.identity(result.getRank())},
                      [&](Body& b, ValueRange) {
                        return SmallVector<Value>{b.constant(result.getElementType(), 0)};
                      })[0];
    for (int64_t number = 0; number < product(s.strides); ++number) {
      const SmallVector<int64_t> residue = delinearize(number, computeStrides(s.strides));
      SmallVector<int64_t> places = {s.batch};
      SmallVector<AffineExpr> at = {l.dim(0)};
      bool isEmpty = false;
      for (size_t d = 0; d < s.rank(); ++d) {
        const Residue& of = dims[d].all[residue[d]];
        isEmpty |= of.taps == 0 || of.places == 0;
        places.push_back(of.places);
        at.push_back(l.dim(1 + d) * s.strides[d] + residue[d]);
      }
      if (isEmpty)
        continue;
      places.push_back(s.groups * s.inputs);
      at.push_back(l.dim(1 + s.rank()));
      Value part = ofResidue(dresult, kernel, dims, residue, result.clone(places));
      LoweringBuilder::Read read = {part, l.identity(places.size())};
      whole = l.fused(places, read, LoweringBuilder::Write{result, l.map(places.size(), at), whole},
                      [](Body&, ValueRange v) { return SmallVector<Value>(v); })[0];
    }
    return whole;
  }

  /// Rows are channels of the result, columns taps and channels of the operand.
  Value kernelGrad(Value operand, Value dresult, Value acc) {
    operand = paddedOperand(operand);
    SmallVector<int64_t> strides = computeStrides(tensorType(operand).getShape());
    Digits depth, columns;
    depth.append(s.batch, strides[0]);
    for (size_t d = 0; d < s.rank(); ++d)
      depth.append(s.positions[d], s.strides[d] * strides[d + 1]);
    for (size_t d = 0; d < s.rank(); ++d)
      columns.append(s.taps[d], s.dilations[d] * strides[d + 1]);
    columns.append(s.inputs, 1);
    const int64_t n = product(s.taps) * s.inputs;
    return multiply({.a = {dresult, s.groups * s.outputs},
                     .b = matrixOf(l, operand, depth, columns),
                     .type = result,
                     .acc = acc,
                     .transposeA = true,
                     .m = s.outputs,
                     .n = n,
                     .k = s.batch * product(s.positions),
                     .leadingC = n,
                     .strideA = s.outputs,
                     .strideB = s.inputs,
                     .strideC = s.outputs * n});
  }

private:
  struct Product {
    Matrix a, b;
    RankedTensorType type;
    Value acc = {};
    bool transposeA = false, transposeB = false;
    int64_t m, n, k, leadingC;
    int64_t strideA, strideB, strideC; ///< from group to group
  };

  /// The patches of all groups, one group behind the other, as rows that stand a line apart; those
  /// of a group stand `groupStride` behind those of the one before it, and then do in the copy.
  Matrix copied(const Matrix& matrix, int64_t& groupStride) {
    SmallVector<int64_t> extents = {s.groups};
    AffineExpr place = l.dim(0) * groupStride + matrix.patches.getOffset();
    auto append = [&](ArrayRef<int64_t> digits, ArrayRef<int64_t> strides) {
      for (auto [extent, stride] : llvm::zip_equal(digits, strides)) {
        place = place + l.dim(extents.size()) * stride;
        extents.push_back(extent);
      }
    };
    append(matrix.patches.getLineExtents(), matrix.patches.getLineStrides());
    append(matrix.patches.getColumnExtents(), matrix.patches.getColumnStrides());
    const int64_t lines = matrix.patches.getLines(), columns = matrix.patches.getColumns();
    RankedTensorType type = tensorType(matrix.value);
    Value copy = l.move(type.clone(extents), l.castShape(matrix.value, {type.getNumElements()}),
                        l.map(extents.size(), place));
    groupStride = lines * columns;
    return {l.castShape(copy, {s.groups * lines, columns}), columns};
  }

  Value multiply(Product p) {
    const bool several = s.groups > 1;
    if (p.a.patches && !l.machine.patchesInPlace)
      p.a = copied(p.a, p.strideA);
    if (p.b.patches && !l.machine.patchesInPlace)
      p.b = copied(p.b, p.strideB);
    const int64_t bytes = tensorType(p.a.value).getElementTypeBitWidth() / 8;
    const TileGrid grid = chooseTileGrid(l.machine, s.groups, p.m, p.n, p.k, bytes);
    auto routine = kernel::GemmAttr::get(
        l.context, s.groups, p.m, p.n, p.k, p.a.leading, p.b.leading, p.leadingC,
        several ? p.strideA : 0, several ? p.strideB : 0, several ? p.strideC : 0, p.transposeA,
        p.transposeB, /*accumulate=*/p.acc != nullptr, /*bias=*/false, /*relu=*/false, grid.tileM,
        grid.tileN, p.a.patches, p.b.patches);
    Value out = p.acc ? p.acc : l.empty(p.type);
    return kernel::CallOp::create(l.builder, l.loc, TypeRange(p.type),
                                  ValueRange{p.a.value, p.b.value}, ValueRange(out), ValueRange(),
                                  routine, l.path, l.phase)
        ->getResult(0);
  }

  /// What the places of one residue along a dimension meet: taps `first`, `first + step`, ... of
  /// the kernel. Place q and the last of them meet position `position` + q, which is within the
  /// padded gradient, and each tap before it one `distance` further on.
  struct Residue {
    int64_t taps = 0, first = 0, step = 1, places = 0, position = 0, distance = 0;
  };

  /// All residues along a dimension, and the zeros around the gradient that they read.
  struct Residues {
    SmallVector<Residue> all;
    int64_t before = 0, extent;

    explicit Residues(const ir::Windows& w) : extent(w.positions) {
      for (int64_t r = 0; r < w.stride; ++r) {
        Residue of;
        of.places = llvm::divideCeilSigned(w.extent - r, w.stride);
        // Place r + q stride meets tap t at a position only if t dilation has its residue.
        const auto meets = [&](int64_t t) { return (r + w.low - t * w.dilation) % w.stride == 0; };
        of.step = w.stride / std::gcd(w.stride, w.dilation);
        of.distance = of.step * w.dilation / w.stride;
        while (of.first < w.taps && !meets(of.first))
          ++of.first;
        if (of.first < w.taps && of.places > 0) {
          of.taps = (w.taps - 1 - of.first) / of.step + 1;
          of.position =
              (r + w.low - of.first * w.dilation) / w.stride - (of.taps - 1) * of.distance;
          before = std::max(before, -of.position);
        }
        all.push_back(of);
      }
      extent += before;
      for (Residue& of : all)
        if (of.taps > 0) {
          of.position += before;
          extent = std::max(extent, of.position + (of.taps - 1) * of.distance + of.places);
        }
    }
    bool hasGaps() const {
      return llvm::any_of(all, [](const Residue& of) { return of.taps == 0 && of.places > 0; });
    }
  };

  /// The gradient of the places of one residue.
  Value ofResidue(Value dresult, Value kernel, ArrayRef<Residues> dims, ArrayRef<int64_t> residue,
                  RankedTensorType type) {
    SmallVector<int64_t> strides = computeStrides(tensorType(dresult).getShape());
    Digits rows, depth;
    int64_t offset = 0, m = s.batch, k = s.outputs;
    rows.append(s.batch, strides[0]);
    SmallVector<Residue> of;
    for (size_t d = 0; d < s.rank(); ++d) {
      of.push_back(dims[d].all[residue[d]]);
      rows.append(of[d].places, strides[d + 1]);
      offset += of[d].position * strides[d + 1];
      m *= of[d].places;
      k *= of[d].taps;
    }
    for (size_t d = 0; d < s.rank(); ++d)
      depth.append(of[d].taps, of[d].distance * strides[d + 1]);
    depth.append(s.outputs, 1);
    return multiply({.a = matrixOf(l, dresult, rows, depth, offset),
                     .b = {kernelByInputs(kernel, of), s.inputs},
                     .type = type,
                     .m = m,
                     .n = s.inputs,
                     .k = k,
                     .leadingC = s.groups * s.inputs,
                     .strideA = s.outputs,
                     .strideB = k * s.inputs,
                     .strideC = s.inputs});
  }

  /// [g, taps of the residue backwards..., O, C]
  Value kernelByInputs(Value kernel, ArrayRef<Residue> of) {
    if (product(s.taps) == 1)
      return kernel;
    SmallVector<int64_t> shape = {s.groups};
    for (const Residue& residue : of)
      shape.push_back(residue.taps);
    llvm::append_range(shape, ArrayRef{s.outputs, s.inputs});
    const auto rank = static_cast<unsigned>(shape.size());
    SmallVector<AffineExpr> places = {l.dim(0) * s.outputs + l.dim(rank - 2)};
    for (unsigned d = 0; d < s.rank(); ++d)
      places.push_back(l.dim(d + 1) * -of[d].step + (of[d].first + (of[d].taps - 1) * of[d].step));
    places.push_back(l.dim(rank - 1));
    return l.move(tensorType(kernel).clone(shape), kernel, l.map(rank, places));
  }
};

/// As kernels that multiply and sum: element types that no product takes, and depthwise ones, whose
/// channels are lanes.
class AsLoops : Lowering {
public:
  using Lowering::Lowering;

  Value forward(Value operand, Value kernel) {
    SmallVector<AffineExpr> places;
    for (unsigned d = 0; d < s.rank(); ++d)
      places.push_back(place(d) * s.strides[d] + tap(d) * s.dilations[d]);
    kernel = laidOut(kernel, {s.inputs, s.groups, s.outputs}, [&](Dims at) {
      return Element{at.group * s.outputs + at.last, at.taps, at.first};
    });
    return sumOfTaps(paddedOperand(operand), kernel, s.positions, places);
  }

  Value inputGrad(Value dresult, Value kernel) {
    SmallVector<AffineExpr> places;
    for (unsigned d = 0; d < s.rank(); ++d)
      places.push_back(place(d) + tap(d) * s.dilations[d] + firstOfSpread(d));
    kernel = laidOut(kernel, {s.outputs, s.groups, s.inputs}, [&](Dims at) {
      for (unsigned d = 0; d < s.rank(); ++d)
        at.taps[d] = at.taps[d] * -1 + (s.taps[d] - 1);
      return Element{at.group * s.outputs + at.first, at.taps, at.last};
    });
    return sumOfTaps(spreadGradient(dresult), kernel, s.operand, places);
  }

  /// First along the last dimension of space, so that long sums are made of short ones.
  Value kernelGrad(Value operand, Value dresult, Value acc) {
    operand = paddedOperand(operand);
    const auto rank = static_cast<unsigned>(s.rank());
    // [taps..., N, positions but the last..., g, O, C] of [..., the last position, g, O, C]
    SmallVector<int64_t> partialShape(s.taps);
    partialShape.push_back(s.batch);
    llvm::append_range(partialShape, ArrayRef(s.positions).drop_back());
    SmallVector<int64_t> space = partialShape;
    space.push_back(s.positions.back());
    const SmallVector<int64_t> channels = {s.groups, s.outputs, s.inputs};
    llvm::append_range(space, channels);
    llvm::append_range(partialShape, channels);
    const auto all = static_cast<unsigned>(space.size()), last = 2 * rank, group = all - 3;
    SmallVector<AffineExpr> x = {l.dim(rank)}, dy = {l.dim(rank)};
    for (unsigned d = 0; d < rank; ++d) {
      AffineExpr position = l.dim(rank + 1 + d);
      x.push_back(position * s.strides[d] + l.dim(d) * s.dilations[d]);
      dy.push_back(position);
    }
    x.push_back(l.dim(group) * s.inputs + l.dim(group + 2));
    dy.push_back(l.dim(group) * s.outputs + l.dim(group + 1));
    SmallVector<int64_t> kept;
    for (unsigned d = 0; d < all; ++d)
      if (d != last)
        kept.push_back(d);
    RankedTensorType partialType = result.clone(partialShape);
    LoweringBuilder::Read reads[] = {{operand, l.map(all, x)}, {dresult, l.map(all, dy)}};
    Value partial = l.fused(space, reads, LoweringBuilder::Write{partialType, l.project(all, kept)},
                            [&](Body& b, ValueRange v) {
                              return SmallVector<Value>{b.reduce(
                                  kernel::ReduceKind::Add, b.mul(v[0], v[1]), {int64_t(last)})};
                            })[0];
    // [g O, taps..., C]
    const auto rest = static_cast<unsigned>(partialShape.size());
    SmallVector<AffineExpr> out = {l.dim(rest - 3) * s.outputs + l.dim(rest - 2)};
    for (unsigned d = 0; d < rank; ++d)
      out.push_back(l.dim(d));
    out.push_back(l.dim(rest - 1));
    SmallVector<int64_t> summed;
    for (unsigned d = rank; d < rest - 3; ++d)
      summed.push_back(d);
    SmallVector<LoweringBuilder::Read> terms = {{partial, l.identity(rest)}};
    if (acc)
      terms.push_back({acc, l.map(rest, out)});
    return l.fused(partialShape, terms, LoweringBuilder::Write{result, l.map(rest, out)},
                   [&](Body& b, ValueRange v) {
                     Value sum = b.reduce(kernel::ReduceKind::Add, v[0], summed);
                     return SmallVector<Value>{acc ? b.add(v[1], sum) : sum};
                   })[0];
  }

private:
  /// The gradient of the result as windows over it give that of the operand.
  Value spreadGradient(Value dresult) {
    SmallVector<int64_t> shape = {s.batch}, low = {0}, interior = {0};
    for (size_t d = 0; d < s.rank(); ++d) {
      const ir::SpreadGradient spread(s.windows(d));
      shape.push_back(spread.extent);
      low.push_back(spread.before);
      interior.push_back(spread.interior);
    }
    shape.push_back(s.groups * s.outputs);
    low.push_back(0);
    interior.push_back(0);
    return padded(dresult, shape, low, interior);
  }

  int64_t firstOfSpread(size_t d) const { return ir::SpreadGradient(s.windows(d)).first; }

  /// Dimensions of the space of sumOfTaps.
  AffineExpr place(unsigned d) const { return l.dim(1 + d); }
  AffineExpr tap(unsigned d) const { return l.dim(1 + s.rank() + d); }

  /// Coordinates in a kernel that is laid out as sumOfTaps reads it, and in the one that there is.
  struct Dims {
    SmallVector<AffineExpr> taps;
    AffineExpr first, group, last;
  };
  struct Element {
    AffineExpr output;
    SmallVector<AffineExpr> taps;
    AffineExpr input;
  };

  /// [taps..., channels...] of a kernel [g O, taps..., C].
  Value laidOut(Value kernel, ArrayRef<int64_t> channels,
                llvm::function_ref<Element(Dims)> elementOf) {
    SmallVector<int64_t> shape(s.taps);
    llvm::append_range(shape, channels);
    const auto all = static_cast<unsigned>(shape.size());
    Dims at;
    for (unsigned d = 0; d < s.rank(); ++d)
      at.taps.push_back(l.dim(d));
    at.first = l.dim(all - 3);
    at.group = l.dim(all - 2);
    at.last = l.dim(all - 1);
    Element element = elementOf(at);
    SmallVector<AffineExpr> read = {element.output};
    llvm::append_range(read, element.taps);
    read.push_back(element.input);
    return l.move(tensorType(kernel).clone(shape), kernel, l.map(all, read));
  }

  /// Sums over taps and the channels of one group of `value`, which is read at `places`; `kernel`
  /// is [taps..., channels of a group of value, groups, channels of a group of the result]. Lanes
  /// are channels of the result, which has `extents` in space.
  Value sumOfTaps(Value value, Value kernel, ArrayRef<int64_t> extents,
                  ArrayRef<AffineExpr> places) {
    SmallVector<int64_t> space = {s.batch}, summed;
    llvm::append_range(space, extents);
    llvm::append_range(space, tensorType(kernel).getShape());
    const auto all = static_cast<unsigned>(space.size());
    AffineExpr in = l.dim(all - 3), group = l.dim(all - 2), out = l.dim(all - 1);
    SmallVector<AffineExpr> valueAt = {l.dim(0)}, kernelAt, resultAt = {l.dim(0)};
    llvm::append_range(valueAt, places);
    valueAt.push_back(group * space[all - 3] + in);
    for (unsigned d = 0; d < s.rank(); ++d)
      resultAt.push_back(place(d));
    resultAt.push_back(group * space[all - 1] + out);
    for (unsigned d = 1 + s.rank(); d < all; ++d) {
      kernelAt.push_back(l.dim(d));
      if (d < all - 2)
        summed.push_back(d);
    }
    LoweringBuilder::Read reads[] = {{value, l.map(all, valueAt)}, {kernel, l.map(all, kernelAt)}};
    return l.fused(space, reads, LoweringBuilder::Write{result, l.map(all, resultAt)},
                   [&](Body& b, ValueRange v) {
                     return SmallVector<Value>{
                         b.reduce(kernel::ReduceKind::Add, b.mul(v[0], v[1]), summed)};
                   })[0];
  }
};

struct Rules {
  static LogicalResult lower(ir::ConvolutionOp op, LoweringBuilder& l) {
    return replace(op, l, [&](auto& as) { return as.forward(op.getOperand(), op.getKernel()); });
  }
  static LogicalResult lower(ir::ConvolutionInputGradOp op, LoweringBuilder& l) {
    return replace(op, l, [&](auto& as) { return as.inputGrad(op.getDresult(), op.getKernel()); });
  }
  static LogicalResult lower(ir::ConvolutionKernelGradOp op, LoweringBuilder& l) {
    return replace(op, l, [&](auto& as) {
      return as.kernelGrad(op.getOperand(), op.getDresult(), op.getAcc());
    });
  }

private:
  template <typename Op, typename Build>
  static LogicalResult replace(Op op, LoweringBuilder& l, Build build) {
    const ConvolutionShape shape = op.getConvolutionShape();
    Type element = tensorType(op->getOperand(0)).getElementType();
    if (isProduct(shape, element)) {
      AsProduct as(l, shape, op.getType());
      l.replace(build(as));
    } else {
      AsLoops as(l, shape, op.getType());
      l.replace(build(as));
    }
    return success();
  }
};

} // namespace

void attachConvolutionRules(MLIRContext* context) {
  attachRules<Rules, ir::ConvolutionOp, ir::ConvolutionInputGradOp, ir::ConvolutionKernelGradOp>(
      context);
}

} // namespace titan::lower
