#include "compiler/Interpreter/Collectives.h"

#include "runtime/program/Collective.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace titan::interpreter {

namespace {

/// A collective, as one op or as its first half.
struct Description {
  dist::Collective kind;
  ArrayAttr axes;
  ArrayRef<int64_t> dims;
  std::optional<dist::Order> order;
};

Description describe(Operation* collective) {
  return llvm::TypeSwitch<Operation*, Description>(collective)
      .Case([](dist::AllGatherOp op) -> Description {
        return {dist::Collective::AllGather, op.getAxes(), op.getDims(), std::nullopt};
      })
      .Case([](dist::ReduceScatterOp op) -> Description {
        return {dist::Collective::ReduceScatter, op.getAxes(), op.getDims(), op.getOrder()};
      })
      .Case([](dist::AllReduceOp op) -> Description {
        return {dist::Collective::AllReduce, op.getAxes(), {}, op.getOrder()};
      })
      .Case([](dist::StartOp op) -> Description {
        return {op.getCollective(), op.getAxes(), op.getDims().value_or(ArrayRef<int64_t>()),
                op.getOrder()};
      });
}

/// The walk over part `position` of `whole`, of parts with `extent` elements along `dim`.
Walk walkOfPart(const Tensor& whole, int64_t dim, int64_t extent, int64_t position) {
  Walk walk = wholeWalk(whole);
  walk.start = position * extent * walk.strides[dim];
  return walk;
}

/// Adds as the ranks do: in the terms' type, bf16 in f32.
class Adder {
public:
  Adder(Type element, Engine engine)
      : type_(element.isBF16() ? Builder(element.getContext()).getF32Type() : element),
        engine_(engine) {}

  Tensor add(Tensor a, const Tensor& b) const {
    if (a.isFloat())
      for (auto [x, y] : llvm::zip_equal(a.mutableFloats(), b.floats()))
        x = roundTo(type_, x + y, engine_);
    else
      for (auto [x, y] : llvm::zip_equal(a.mutableIntegers(), b.integers()))
        x = static_cast<int64_t>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
    return a;
  }

  Tensor inOrder(ArrayRef<Tensor> terms) const {
    Tensor sum = terms.front();
    for (const Tensor& term : terms.drop_front())
      sum = add(std::move(sum), term);
    return sum;
  }

  Tensor asTree(ArrayRef<Tensor> terms) const {
    if (terms.size() == 1)
      return add(Tensor(terms.front().type()), terms.front());
    const size_t half = terms.size() / 2;
    return add(asTree(terms.take_front(half)), asTree(terms.drop_front(half)));
  }

private:
  Type type_;
  Engine engine_;
};

Tensor sumOf(ArrayRef<Tensor> terms, dist::Order order, Engine engine) {
  Type element = terms.front().element();
  const Adder adder(element, engine);
  Tensor sum = order == dist::Order::Tree ? adder.asTree(terms) : adder.inOrder(terms);
  if (element.isBF16())
    for (double& x : sum.mutableFloats())
      x = roundTo(element, x, engine);
  return sum;
}

Tensor join(ArrayRef<Tensor> parts, int64_t dim) {
  const Tensor& first = parts.front();
  SmallVector<int64_t> shape(first.shape());
  shape[dim] *= static_cast<int64_t>(parts.size());
  Tensor whole(shape, first.element());
  for (auto [position, part] : llvm::enumerate(parts))
    copyElements(part.shape(), part, wholeWalk(part), whole,
                 walkOfPart(whole, dim, part.extent(dim), position));
  return whole;
}

} // namespace

Group groupAt(int64_t rank, ArrayAttr axes, std::span<const MeshAxis> mesh) {
  SmallVector<uint8_t> positions;
  for (auto name : axes.getAsRange<StringAttr>())
    positions.push_back(
        llvm::find_if(mesh, [&](const MeshAxis& axis) { return axis.name == name.getValue(); }) -
        mesh.begin());
  Group group{groupOf(rank, positions, mesh)};
  group.position = llvm::find(group.ranks, rank) - group.ranks.begin();
  return group;
}

Tensor shardOf(const Tensor& whole, int64_t dim, const Group& group) {
  SmallVector<int64_t> shape(whole.shape());
  shape[dim] /= static_cast<int64_t>(group.ranks.size());
  Tensor part(shape, whole.element());
  copyElements(shape, whole, walkOfPart(whole, dim, shape[dim], group.position), part,
               wholeWalk(part));
  return part;
}

Tensors resultsOf(Operation* collective, ArrayRef<Tensors> terms, int64_t rank,
                  std::span<const MeshAxis> mesh, Engine engine) {
  const Description description = describe(collective);
  const Group group = groupAt(rank, description.axes, mesh);
  Tensors results;
  for (size_t i = 0; i < terms[rank].size(); ++i) {
    Tensors ofGroup;
    for (int64_t member : group.ranks)
      ofGroup.push_back(terms[member][i]);
    switch (description.kind) {
    case dist::Collective::AllGather:
      results.push_back(join(ofGroup, description.dims[i]));
      break;
    case dist::Collective::ReduceScatter:
      results.push_back(
          shardOf(sumOf(ofGroup, *description.order, engine), description.dims[i], group));
      break;
    case dist::Collective::AllReduce:
      results.push_back(sumOf(ofGroup, *description.order, engine));
      break;
    }
  }
  return results;
}

} // namespace titan::interpreter
