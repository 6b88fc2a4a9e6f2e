#include "compiler/Interpreter/Division.h"

#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/Ranks.h"
#include "compiler/Support/LocalType.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/TaggedFunction.h"
#include "runtime/program/Collective.h"

#include <map>

using namespace mlir;

namespace titan::interpreter {

namespace {

ModuleOp moduleOf(func::FuncOp function) { return function->getParentOfType<ModuleOp>(); }

bool isBatch(func::FuncOp function, unsigned argument) {
  return function.getName() == ir::function::step && function.getArgAttr(argument, ir::tag::input);
}

bool isPartOf(ir::StateOp state, Type type) { return state && state.getType() != type; }

/// A state as each rank holds it, or what all ranks hold.
FailureOr<Division> placed(func::FuncOp function, Type type, ir::StateOp state, bool isOfRank) {
  auto local = cast<RankedTensorType>(type);
  Division division{Division::Kind::Placed, local, local, {}};
  if (!isOfRank || !state)
    return division;
  const std::vector<MeshAxis> mesh = meshAxesOf(function);
  FailureOr<Placement> placement = placementOf(state, mesh);
  FailureOr<RankedTensorType> expected = localTypeOf(state, mesh);
  if (failed(placement) || failed(expected))
    return failure();
  if (*expected != local)
    return function.emitError() << "@" << function.getName() << " has state @" << state.getSymName()
                                << " as " << local << ", a rank has " << *expected << " of it";
  return Division{Division::Kind::Placed, state.getTensorType(), local, *placement};
}

/// [k, ...] or, where loops nest, [n, m, ...] with n * m = k, of the job's [G, ...].
FailureOr<Division> microbatches(func::FuncOp function, unsigned index) {
  FailureOr<Recipe> recipe = getRecipe(moduleOf(function));
  if (failed(recipe))
    return failure();
  auto local = cast<RankedTensorType>(function.getArgumentTypes()[index]);
  int64_t count = 1, dims = 0;
  do
    count *= dims < local.getRank() ? local.getDimSize(dims) : 0;
  while (++dims < local.getRank() && count < recipe->localMicrobatches());
  if (count != recipe->localMicrobatches())
    return function.emitError() << "argument " << index << " of @" << function.getName() << " is "
                                << local << ", a rank runs " << recipe->localMicrobatches()
                                << " microbatches";
  SmallVector<int64_t> job = {recipe->globalMicrobatches()};
  llvm::append_range(job, local.getShape().drop_front(dims));
  return Division{Division::Kind::Microbatches, local.clone(job), local, {}};
}

/// Rows of `elements` elements.
void copyRow(const Tensor& from, int64_t fromRow, Tensor& to, int64_t toRow, int64_t elements) {
  copyElements({elements}, from, {fromRow * elements, {1}}, to, {toRow * elements, {1}});
}

Tensor cutBatch(const Tensor& whole, const Division& division, MicrobatchOrder order) {
  Tensor part(division.local);
  const int64_t elements = whole.size() / whole.extent(0);
  for (int64_t i = 0; i < part.size() / elements; ++i)
    copyRow(whole, order.at(i), part, i, elements);
  return part;
}

/// The part of `from` that begins at `begin` to that of `to` at `at`.
void copyBox(ArrayRef<int64_t> extent, const Tensor& from, ArrayRef<int64_t> begin, Tensor& to,
             ArrayRef<int64_t> at) {
  auto walkFrom = [](const Tensor& tensor, ArrayRef<int64_t> start) {
    Walk walk = wholeWalk(tensor);
    for (auto [position, stride] : llvm::zip_equal(start, walk.strides))
      walk.start += position * stride;
    return walk;
  };
  copyElements(extent, from, walkFrom(from, begin), to, walkFrom(to, at));
}

Shape shapeOf(ShapedType type) { return Shape(type.getShape().begin(), type.getShape().end()); }

/// A part that is padding alone.
Tensor paddingOf(RankedTensorType type, Padding padding) {
  Tensor part = Tensor::unspecified(type);
  if (padding == Padding::LargeNumbers && part.isFloat())
    for (auto [i, x] : llvm::enumerate(part.mutableFloats()))
      x = 1000 + static_cast<double>(i % 256);
  return part;
}

} // namespace

bool Division::hasPadding(std::span<const MeshAxis> mesh) const {
  int64_t parts = 1;
  for (const Cut& cut : placement)
    parts *= mesh[cut.axis].ranks;
  return parts * local.getNumElements() != job.getNumElements() && kind == Kind::Placed;
}

FailureOr<bool> isOfOneRank(func::FuncOp function) {
  const std::vector<MeshAxis> mesh = meshAxesOf(function);
  if (rankCount(mesh) == 1)
    return false;
  FailureOr<Recipe> recipe = getRecipe(moduleOf(function));
  if (failed(recipe))
    return failure();
  if (rankCount(recipe->mesh.axes) != rankCount(mesh))
    return moduleOf(function).emitError()
           << "'" << dist::meshTag << "' has " << rankCount(mesh) << " ranks, the recipe's mesh "
           << rankCount(recipe->mesh.axes);
  WalkResult walk = function.walk([](Operation* op) {
    return isa<dist::DistDialect>(op->getDialect()) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
  });
  bool isOfRank = walk.wasInterrupted();
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    isOfRank |= isPartOf(TaggedFunction(function).argumentState(i), type);
    if (isBatch(function, i))
      isOfRank |= cast<ShapedType>(type).getDimSize(0) != recipe->globalMicrobatches();
  }
  return isOfRank;
}

FailureOr<Division> divisionOfArgument(func::FuncOp function, unsigned index, bool isOfRank) {
  if (isOfRank && isBatch(function, index))
    return microbatches(function, index);
  FailureOr<Division> division = placed(function, function.getArgumentTypes()[index],
                                        TaggedFunction(function).argumentState(index), isOfRank);
  auto control = function.getArgAttrOfType<StringAttr>(index, ir::tag::control);
  if (succeeded(division) && isOfRank && control && control.getValue() == dist::stopName)
    division->kind = Division::Kind::Term;
  return division;
}

FailureOr<Division> divisionOfResult(func::FuncOp function, unsigned index, bool isOfRank) {
  return placed(function, function.getResultTypes()[index],
                TaggedFunction(function).resultState(index), isOfRank);
}

Tensor cut(const Tensor& whole, const Division& division, std::span<const MeshAxis> mesh,
           std::span<const int64_t> coordinates, MicrobatchOrder order, Padding padding) {
  switch (division.kind) {
  case Division::Kind::Microbatches:
    return cutBatch(whole, division, order);
  case Division::Kind::Term: {
    // All of it is the last rank's: who takes rank 0's for the sum is wrong.
    const bool isLast = llvm::all_of(llvm::zip_equal(coordinates, mesh), [](auto pair) {
      return std::get<0>(pair) == std::get<1>(pair).ranks - 1;
    });
    return isLast ? whole : Tensor(division.local);
  }
  case Division::Kind::Placed:
    break;
  }
  if (division.placement.empty())
    return whole;
  Tensor part = paddingOf(division.local, padding);
  const SmallVector<int64_t> origin(part.rank(), 0);
  for (const Box& box : boxesOf(shapeOf(division.job), division.placement, mesh, coordinates))
    copyBox(box.extent, whole, box.at, part, origin);
  return part;
}

FailureOr<Tensor> join(ArrayRef<Tensor> parts, const Division& division,
                       std::span<const MeshAxis> mesh,
                       llvm::function_ref<InFlightDiagnostic()> emitError) {
  if (mesh.empty())
    return parts.front();
  Tensor whole(division.job);
  struct Holder {
    size_t rank;
    Tensor part; ///< without padding
  };
  std::map<Shape, Holder> holders; // by where the part begins
  for (auto [rank, part] : llvm::enumerate(parts)) {
    if (part.type() != division.local)
      return emitError() << "rank " << rank << " has " << part.type() << ", expected "
                         << division.local;
    const std::vector<int64_t> coordinates = coordinatesOf(static_cast<int64_t>(rank), mesh);
    for (const Box& box : boxesOf(shapeOf(division.job), division.placement, mesh, coordinates)) {
      const SmallVector<int64_t> origin(part.rank(), 0);
      Tensor valid(box.extent, part.element());
      copyBox(box.extent, part, origin, valid, origin);
      auto [holder, isFirst] = holders.try_emplace(box.at, Holder{rank, valid});
      std::string difference = describeDifference(holder->second.part, valid, /*tolerance=*/0);
      if (!difference.empty())
        return emitError() << "rank " << rank << " differs from rank " << holder->second.rank
                           << ": " << difference;
      if (isFirst)
        copyBox(box.extent, valid, origin, whole, box.at);
    }
  }
  return whole;
}

} // namespace titan::interpreter
