#include "compiler/Codegen/cuda/TileKernel.h"

#include "compiler/Codegen/cuda/Threads.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <bit>

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

/// Elements of a tile: in few, the neighbours of a chunk share lines anyway, and a block has little
/// to do.
constexpr int64_t leastTile = 1024, mostTile = 4096;
/// Neighbouring chunks that a warp reaches at once, where a tile's row has so many.
constexpr int64_t warpChunks = 8;
/// Of a bank of shared memory.
constexpr int64_t wordBytes = 4;

int64_t byteWidth(const Access& access) {
  return storedType(access.element).getIntOrFloatBitWidth() / 8;
}

/// Elements from one row of a tile to the next, of `length` elements each. An odd number of words:
/// neighbours down a column are in different banks.
int64_t pitchOf(int64_t length, int64_t bytes) {
  return bytes >= wordBytes ? length + 1 : (length * bytes / wordBytes | 1) * wordBytes / bytes;
}

/// Do lanes along `lane` lie apart in memory?
bool isNarrow(const Access& access, unsigned lane) {
  return access.strides[lane] != 0 && access.strides[lane] != 1;
}

SmallVector<unsigned, 4> stagedOf(ArrayRef<Access> accesses, unsigned lane, unsigned across) {
  SmallVector<unsigned, 4> staged;
  for (auto [i, access] : llvm::enumerate(accesses))
    if (isNarrow(access, lane) && access.strides[across] == 1)
      staged.push_back(i);
  return staged;
}

int64_t narrowBytes(const LoopNest& nest, unsigned lane) {
  int64_t bytes = 0;
  for (ArrayRef<Access> accesses : {ArrayRef(nest.ins), ArrayRef(nest.outs)})
    for (const Access& access : accesses)
      if (isNarrow(access, lane))
        bytes += nest.bytesOf(access);
  return bytes;
}

int64_t stagedBytes(const LoopNest& nest, const TilePlan& plan) {
  int64_t bytes = 0;
  for (unsigned in : plan.ins)
    bytes += nest.bytesOf(nest.ins[in]);
  for (unsigned out : plan.outs)
    bytes += nest.bytesOf(nest.outs[out]);
  return bytes;
}

/// Of a tile of shared memory with rows along `across`.
Access accessInTile(const TilePlan& plan, const Access& access) {
  Access tile{access.element, 0, {}};
  tile.strides.assign(access.strides.size(), 0);
  tile.strides[plan.across.dim] = 1;
  tile.strides[plan.lane.dim] = pitchOf(plan.across.length, byteWidth(access));
  return tile;
}

int64_t tileBytes(const TilePlan& plan, const Access& access) {
  return plan.lane.length * pitchOf(plan.across.length, byteWidth(access)) * byteWidth(access);
}

int64_t sharedBytes(const LoopNest& nest, const TilePlan& plan) {
  int64_t bytes = 0;
  for (unsigned in : plan.ins)
    bytes += llvm::alignTo(tileBytes(plan, nest.ins[in]), widestAccess);
  for (unsigned out : plan.outs)
    bytes += llvm::alignTo(tileBytes(plan, nest.outs[out]), widestAccess);
  return bytes;
}

/// A tile of up to `elements`, as square as the extents allow.
void shapeTile(TilePlan& plan, int64_t elements) {
  auto upTo = [](const TileSide& side, int64_t most) {
    return std::min(most, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(side.extent))));
  };
  plan.across.length = upTo(plan.across, int64_t{1} << llvm::Log2_64(elements) / 2);
  plan.lane.length = upTo(plan.lane, elements / plan.across.length);
  plan.across.length = upTo(plan.across, elements / plan.lane.length);
}

} // namespace

std::optional<TilePlan> planTiles(const LoopNest& nest) {
  if (!nest.blockDim() || nest.parallelDims() != nest.allDims())
    return std::nullopt;
  // What stays narrow counts first, then what takes the way through shared memory.
  using Merit = std::pair<int64_t, int64_t>;
  std::optional<TilePlan> best;
  Merit least = {narrowBytes(nest, *nest.blockDim()), 0};
  auto consider = [&](unsigned lane, unsigned across) {
    TilePlan plan;
    plan.lane = {lane, nest.extents[lane]};
    plan.across = {across, nest.extents[across]};
    plan.ins = stagedOf(nest.ins, lane, across);
    plan.outs = stagedOf(nest.outs, lane, across);
    const int64_t staged = stagedBytes(nest, plan);
    const Merit merit = {narrowBytes(nest, lane) - staged, staged};
    shapeTile(plan, mostTile);
    if (staged == 0 || merit >= least || plan.lane.length * plan.across.length < leastTile)
      return;
    least = merit;
    best = plan;
  };
  SmallVector<unsigned, 4> dims = listOf(nest.allDims());
  llvm::erase_if(dims, [&](unsigned dim) { return nest.extents[dim] < chunkLength; });
  for (unsigned lane : llvm::reverse(dims))
    for (unsigned across : dims)
      if (lane != across)
        consider(lane, across);
  if (!best)
    return std::nullopt;
  for (int64_t elements = mostTile; sharedBytes(nest, *best) > mostDeclaredBytes; elements /= 2) {
    if (elements == leastTile)
      return std::nullopt;
    shapeTile(*best, elements / 2);
  }
  const DimSet others = nest.allDims() & ~bit(best->lane.dim) & ~bit(best->across.dim);
  best->others = listOf(others);
  best->points = nest.pointsOf(others);
  return best;
}

void TileKernel::emit() {
  BodyEmitter::Scope root(body, {});
  body.hoist(roots());
  SmallVector<int64_t> extents = extentsOf(plan.others);
  llvm::append_values(extents, plan.lane.tiles(), plan.across.tiles());
  SmallVector<Value> place = splitNumber(builder, loc, blockNumber(builder, loc), extents);
  firstChunk[plan.across.dim] = thread.mul(place.pop_back_val(), plan.across.chunks());
  firstChunk[plan.lane.dim] = thread.mul(place.pop_back_val(), plan.lane.chunks());
  SmallVector<std::pair<unsigned, Value>> coordinates;
  for (auto [dim, at] : llvm::zip_equal(plan.others, place))
    coordinates.push_back({dim, at});

  BodyEmitter::Scope block(body, coordinates);
  const Tiles ins = placeTiles(plan.ins, nest.ins), outs = placeTiles(plan.outs, nest.outs);
  Block& definition = kernel::FusedOp(nest.op).getBlock();
  for (auto [in, tile] : llvm::zip_equal(plan.ins, ins))
    overTile(plan.across, plan.lane,
             [&] { body.store(tile, body.getLanes(definition.getArgument(in))); });
  if (!ins.empty())
    emitBarrier(builder, loc);
  for (auto [in, tile] : llvm::zip_equal(plan.ins, ins))
    body.setMemory(definition.getArgument(in), &tile);
  compute(outs);
  for (unsigned in : plan.ins)
    body.setMemory(definition.getArgument(in), nullptr);
  if (!outs.empty())
    emitBarrier(builder, loc);
  for (auto [out, tile] : llvm::zip_equal(plan.outs, outs))
    overTile(plan.across, plan.lane, [&] { writeOuts({out}, body.load(tile), nest.allDims()); });
}

/// Evaluates every out in the tile; those that are staged stay in shared memory.
void TileKernel::compute(const Tiles& outs) {
  SmallVector<unsigned> direct = outsWhere([](DimSet) { return true; });
  llvm::erase_if(direct, [&](unsigned out) { return llvm::is_contained(plan.outs, out); });
  body.hoist(roots());
  overTile(plan.lane, plan.across, [&] {
    for (auto [out, tile] : llvm::zip_equal(plan.outs, outs))
      body.store(tile, body.getLanes(yielded()[out]));
    storeOuts(direct, nest.allDims());
  });
}

TileKernel::Tiles TileKernel::placeTiles(ArrayRef<unsigned> operands, ArrayRef<Access> accesses) {
  Tiles tiles;
  for (unsigned operand : operands) {
    Memory tile{Value(), accessInTile(plan, accesses[operand]), std::nullopt};
    Value shared = kernels.shared(builder, loc, tileBytes(plan, accesses[operand]));
    // Coordinates count from the dimension's begin: the address is where its first element would
    // be.
    Value begin = body.index(0);
    for (auto [dim, chunk] : firstChunk)
      begin = thread.sub(begin, thread.mul(chunk, chunkLength * tile.access.strides[dim]));
    tile.pointer = thread.address(shared, storedType(tile.access.element), begin);
    access.setAlignment(tile.pointer, std::max(wordBytes, byteWidth(tile.access)));
    tiles.push_back(tile);
  }
  return tiles;
}

/// Runs `step` in the lanes of each chunk along `along`, at each point along `beside`, that the
/// thread has of the tile.
void TileKernel::overTile(const TileSide& along, const TileSide& beside,
                          llvm::function_ref<void()> step) {
  const int64_t together = std::min(along.chunks(), warpChunks), points = warpSize / together;
  const SmallVector<int64_t> extents = {beside.length / points, along.chunks() / together, points,
                                        together};
  for (int64_t first = 0; first < plan.units(); first += plan.threads()) {
    SmallVector<Value> places =
        splitNumber(builder, loc, thread.add(threadNumber(builder, loc), first), extents);
    Value point = thread.add(thread.mul(firstChunk.lookup(beside.dim), chunkLength),
                             thread.add(thread.mul(places[0], points), places[2]));
    Value chunk = thread.add(firstChunk.lookup(along.dim),
                             thread.add(thread.mul(places[1], together), places[3]));
    Value isIn = thread.both(
        beside.isExact() ? Value() : thread.isBelow(point, beside.extent),
        along.isExact() ? Value()
                        : thread.isBelow(chunk, llvm::divideCeilSigned(along.extent, chunkLength)));
    when(isIn, {}, [&] {
      BodyEmitter::Scope scope(body, {{beside.dim, point}});
      return inLanes(along.dim, chunk, {}, [&](ValueRange) {
        step();
        return SmallVector<Value>();
      });
    });
  }
}

} // namespace titan::codegen::cuda
