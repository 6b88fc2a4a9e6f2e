#include "compiler/Autodiff/testing/RandomGraph.h"

#include "dialects/Titan/TensorBuilder.h"
#include "mlir/IR/Builders.h"
#include "runtime/program/Random.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff::testing {

namespace {

class GraphBuilder {
public:
  GraphBuilder(TensorBuilder b, uint64_t seed, ValueRange inputs)
      : b(b), key(randomKey(seed, 0)), values(inputs) {}

  /// One more value [4, 4] from those that are there.
  void grow() {
    Value x = pick(), y = pick();
    values.push_back(choose(x, y));
  }
  Value result() {
    // The newest values are sums of most of the graph.
    return b.add(values.back(), b.scale(values[values.size() - 2], 0.5));
  }

private:
  uint64_t draw(uint64_t bound) {
    return static_cast<uint64_t>(uniformDraw(key, 0, position++) * static_cast<float>(bound));
  }
  Value pick() { return values[draw(values.size())]; }

  Value choose(Value x, Value y) {
    auto type = tensorType(x);
    switch (draw(17)) {
    case 0:
      return b.create<TanhOp>(x);
    case 1:
      return b.create<SigmoidOp>(b.add(x, y));
    case 2:
      return b.sub(b.create<SiluOp>(x), y);
    case 3:
      return b.create<SinOp>(b.mul(x, y));
    case 4:
      return b.create<SoftmaxOp>(x, b.builder.getI64IntegerAttr(static_cast<int64_t>(draw(2))));
    case 5:
      return b.transpose(x, {1, 0});
    case 6: { // any of the four layouts of a product
      auto left = static_cast<int64_t>(draw(2)), right = static_cast<int64_t>(draw(2));
      Value product = b.create<ContractOp>(x, y, Value(), ArrayRef<int64_t>{}, ArrayRef<int64_t>{},
                                           ArrayRef<int64_t>{left}, ArrayRef<int64_t>{right});
      return b.create<TanhOp>(b.scale(product, 0.25));
    }
    case 7: { // a statistic of the rows or columns, put back
      auto dim = static_cast<int64_t>(draw(2));
      Value mean = b.scale(b.reduce(ReduceKind::Sum, x, {dim}), 0.25);
      return b.sub(y, b.unreduce(mean, type.getShape(), {dim}));
    }
    case 8: {
      Value joined = b.create<ConcatOp>(ValueRange{x, y}, 1);
      return b.create<SliceOp>(type, joined, ArrayRef<int64_t>{0, 1}, ArrayRef<int64_t>{1, 2});
    }
    case 9:
      return b.reshape(b.create<ErfOp>(b.reshape(x, {2, 8})), {4, 4});
    case 10: {
      Value normalised =
          b.create<LayerNormOp>(x, Value(), Value(), ArrayRef<int64_t>{1}, 0.1).getResult();
      return b.create<GeluOp>(normalised, GeluForm::Erf);
    }
    case 11: {
      Value heads = asHeads(x);
      return asMatrix(b.create<AttentionOp>(heads, asHeads(y), asHeads(pick()), Value(), 0.5,
                                            /*causal=*/draw(2) == 1, FloatAttr())
                          .getResult());
    }
    case 12:
      return b.create<RmsNormOp>(x, Value(), int64_t(1), 0.1).getResult();
    case 13: { // rows of x: some twice, some never
      Value indices =
          b.create<IotaOp>(RankedTensorType::get({4}, b.builder.getI64Type()), int64_t(0));
      Value rows = b.create<EmbeddingOp>(x, b.create<MulOp>(indices, indices));
      return b.add(rows, y);
    }
    case 14: {
      auto angle = RankedTensorType::get({4, 1}, type.getElementType());
      Value angles = b.create<SliceOp>(angle, y, ArrayRef<int64_t>{0, 1}, ArrayRef<int64_t>{1, 1});
      Value heads = asHeads(x);
      return asMatrix(b.create<RotaryOp>(heads.getType(), heads, b.create<CosOp>(angles),
                                         b.create<SinOp>(angles), /*interleaved=*/draw(2) == 1));
    }
    case 15: { // two halves of one value, beside each other or taking turns
      auto half = RankedTensorType::get({4, 2}, type.getElementType());
      bool turns = draw(2) == 1;
      SmallVector<int64_t> strides = {1, turns ? 2 : 1};
      Value first = b.create<SliceOp>(half, x, ArrayRef<int64_t>{0, 0}, ArrayRef(strides));
      Value second =
          b.create<SliceOp>(half, x, ArrayRef<int64_t>{0, turns ? 1 : 2}, ArrayRef(strides));
      Value joined = b.create<ConcatOp>(ValueRange{second, b.create<TanhOp>(first)}, 1);
      return b.mul(joined, y);
    }
    default:
      return b.div(x, b.shift(b.mul(y, y), 1));
    }
  }

  /// One sequence of four positions with two heads.
  Value asHeads(Value x) { return b.reshape(x, {1, 4, 2, 2}); }
  Value asMatrix(Value x) { return b.reshape(x, {4, 4}); }

  TensorBuilder b;
  uint64_t key, position = 0;
  SmallVector<Value> values;
};

} // namespace

OwningOpRef<ModuleOp> createRandomGraph(MLIRContext& context, uint64_t seed) {
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  Type type = RankedTensorType::get({4, 4}, builder.getF32Type());
  auto function = func::FuncOp::create(builder, loc, "f",
                                       builder.getFunctionType(SmallVector<Type>(3, type), type));
  builder.setInsertionPointToEnd(function.addEntryBlock());
  GraphBuilder graph(TensorBuilder(builder, loc), seed, function.getArguments());
  for (int i = 0; i < 15; ++i)
    graph.grow();
  Value result = graph.result();
  func::ReturnOp::create(builder, loc, result);
  return module;
}

} // namespace titan::autodiff::testing
