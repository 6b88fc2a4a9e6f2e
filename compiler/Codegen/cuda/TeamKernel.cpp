#include "compiler/Codegen/cuda/TeamKernel.h"

#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "compiler/Codegen/cuda/Threads.h"
#include "compiler/Codegen/kernel/Combine.h"
#include "compiler/Codegen/kernel/Loops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <bit>

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

constexpr int64_t blockThreads = 128; ///< of short rows, several to a block

DimSet setOf(ArrayRef<unsigned> dims) {
  DimSet set = 0;
  for (unsigned dim : dims)
    set |= bit(dim);
  return set;
}

/// Teams of a block: as many as fill it, no more than there are units, and whole warps. A team of
/// several warps has a block of its own: they meet at its barriers.
int64_t teamsOf(int64_t slots, int64_t units) {
  if (slots > warpSize)
    return 1;
  const int64_t most = blockThreads / slots, fewest = warpSize / slots;
  const auto needed = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(units)));
  return std::clamp(needed, fewest, most);
}

} // namespace

std::optional<TeamPlan> planTeams(const LoopNest& nest) {
  TeamPlan plan;
  DimSet inner = 0;
  for (const Reduction& reduction : nest.reductions)
    if (contains(reduction.over, nest.rank() - 1) && inner == 0)
      inner = reduction.over;
  if (inner == 0)
    return std::nullopt;
  const DimSet rows = nest.allDims() & ~nest.parallelDims() & ~inner;
  for (const Reduction& reduction : nest.reductions) {
    if (reduction.combines() && reduction.over != inner && reduction.over != rows)
      return std::nullopt;
    for (const Reduction& earlier : nest.reductions)
      if (earlier.over == rows && rows != 0 && reduction.combines() &&
          nest.needs(reduction, earlier))
        return std::nullopt;
  }
  plan.outer = listOf(nest.parallelDims());
  plan.rows = listOf(rows);
  plan.inner = listOf(inner);
  plan.units = nest.pointsOf(nest.parallelDims());
  SmallVector<int64_t> extents;
  for (unsigned dim : plan.inner)
    extents.push_back(nest.extents[dim]);
  plan.chunks = chunksOf(extents);
  plan.slots = slotsOf(plan.chunks);
  plan.streams = llvm::count_if(
      nest.ins, [&](const Access& in) { return contains(in.dims(), plan.inner.back()); });
  plan.teams = teamsOf(plan.slots, plan.units);
  plan.isExact = plan.chunks == plan.slots && extents.back() % chunkLength == 0;
  return plan;
}

DimSet TeamKernel::innerSet() const { return setOf(plan.inner); }

bool TeamKernel::varies(kernel::ReduceOp reduce) const {
  return (nest.dependence(reduce.getValue()) & innerSet()) != 0;
}

void TeamKernel::emit() {
  BodyEmitter::Scope root(body, {});
  body.hoist(roots());
  for (const Reduction& reduction : nest.reductions)
    if (reduction.combines() && reduction.over != innerSet())
      columns.push_back(reduction.op);
  Value thread = threadNumber(builder, loc), unit = blockNumber(builder, loc);
  slot = thread;
  if (plan.slots > warpSize)
    shared = kernels.shared(builder, loc, meetingBytes());
  Value team;
  if (plan.teams > 1) {
    SmallVector<Value> places = splitNumber(builder, loc, thread, {plan.teams, plan.slots});
    team = places[0], slot = places[1];
    unit = arith::AddIOp::create(
        builder, loc, arith::MulIOp::create(builder, loc, unit, body.index(plan.teams)), places[0]);
  }
  if (plan.units % plan.teams != 0) {
    isActive = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, unit,
                                     body.index(plan.units));
    // A team without a unit takes part where lanes meet: it has the last one's scalars and no row.
    unit = arith::MinUIOp::create(builder, loc, unit, body.index(plan.units - 1));
  }
  SmallVector<std::pair<unsigned, Value>> coordinates;
  for (auto [dim, place] :
       llvm::zip_equal(plan.outer, splitNumber(builder, loc, unit, extentsOf(plan.outer))))
    coordinates.push_back({dim, place});
  keepRow(team);
  BodyEmitter::Scope scope(body, coordinates);
  emitTeam();
}

/// Of the shared memory in which the warps of a team meet.
int64_t TeamKernel::meetingBytes() const {
  int64_t bytes = 0;
  if (plan.slots > warpSize)
    for (const ReductionGroup& group :
         groupReductions(nest, nest.allDims(), [](const Reduction&) { return true; }))
      bytes = std::max(bytes, sharedPlaces(group).back());
  return bytes;
}

/// Chooses what of a row the passes over it leave in shared memory. In an exact plan a row's values
/// stay in registers.
void TeamKernel::keepRow(Value team) {
  if (plan.isExact)
    return;
  kept.choose(passesOfRow(), plan.inner, plan.chunks,
              (mostSharedBytes - meetingBytes()) / plan.teams);
  if (kept.bytes() == 0)
    return;
  Value base = kernels.dynamicShared(builder, loc, plan.teams * kept.bytes());
  if (team) {
    Value offset = arith::MulIOp::create(builder, loc, team, body.index(kept.bytes()));
    offset = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), offset);
    base = LLVM::GEPOp::create(builder, loc, base.getType(), builder.getI8Type(), base,
                               LLVM::GEPArg(offset));
  }
  kept.place(base);
}

/// What each pass over a row evaluates: one for each group of its reductions, one over its points.
SmallVector<SmallVector<Value>> TeamKernel::passesOfRow() {
  SmallVector<SmallVector<Value>> passes;
  for (const ReductionGroup& group : rowGroups(/*ofEachRow=*/true)) {
    passes.emplace_back();
    for (const Reduction* reduction : group)
      passes.back().push_back(kernel::ReduceOp(reduction->op).getValue());
  }
  passes.emplace_back();
  for (unsigned out : pointsOfRow())
    passes.back().push_back(yielded()[out]);
  for (kernel::ReduceOp column : columns)
    if (varies(column))
      passes.back().push_back(column.getValue());
  return passes;
}

/// The reductions over a row, in the order of their passes: those of each row, or those that are
/// the same for all of a team's rows.
SmallVector<ReductionGroup> TeamKernel::rowGroups(bool ofEachRow) const {
  const DimSet rows = setOf(plan.rows), inner = innerSet();
  return groupReductions(nest, nest.allDims() & ~inner, [&](const Reduction& reduction) {
    return reduction.over == inner && (rows == 0 || (reduction.space & rows) != 0) == ofEachRow;
  });
}

/// Is a result of these dimensions written row by row?
bool TeamKernel::belongsToRow(DimSet dims) const {
  return plan.rows.empty() || (dims & setOf(plan.rows)) != 0;
}

/// The outs that each row writes along its points.
SmallVector<unsigned> TeamKernel::pointsOfRow() {
  return outsWhere([&](DimSet dims) { return belongsToRow(dims) && (dims & innerSet()) != 0; });
}

void TeamKernel::emitTeam() {
  body.hoist(roots());
  for (const ReductionGroup& group : rowGroups(/*ofEachRow=*/false))
    emitRowReductions(group);
  SmallVector<Value> sums;
  for (kernel::ReduceOp column : columns)
    sums.append(varies(column) ? turns() : 1, identity(column, varies(column) ? chunkLength : 0));
  sums = overPoints(plan.rows, roots(), sums, [&](ValueRange carried) {
    BodyEmitter::Scope scope(body, {});
    body.hoist(roots());
    if (!plan.isExact)
      return emitRow(carried);
    return inChunk(plan.inner, slot, carried, [&](ValueRange values) { return emitRow(values); });
  });
  emitColumns(sums);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Reads what any pass over the row reads, so that nothing waits for memory behind a meeting.
void TeamKernel::loadRow() {
  llvm::DenseSet<Value> sources;
  for (const SmallVector<Value>& pass : passesOfRow())
    for (Value root : pass)
      collectSources(nest, root, sources);
  Block& block = kernel::FusedOp(nest.op).getBlock();
  for (auto [in, argument] : llvm::zip(nest.ins, block.getArguments()))
    if (contains(in.dims(), plan.inner.back()) && sources.contains(argument))
      body.get(argument);
}

/// The row's own sums, then its results and its terms of the column sums.
SmallVector<Value> TeamKernel::emitRow(ValueRange columnSums) {
  const DimSet rows = setOf(plan.rows), inner = innerSet();
  if (plan.isExact)
    loadRow();
  for (const ReductionGroup& group : rowGroups(/*ofEachRow=*/true))
    emitRowReductions(group);
  SmallVector<Value> sums = addToColumns(columnSums, pointsOfRow());
  kept.end();
  SmallVector<unsigned> scalars =
      outsWhere([&](DimSet dims) { return belongsToRow(dims) && (dims & inner) == 0; });
  if (!scalars.empty())
    inFirstThread([&] { storeOuts(scalars, setOf(plan.outer) | rows); });
  return sums;
}

/// What a thread combines: the terms, or the bf16 that are widened to them where that changes
/// nothing, since a card compares two of these at once.
Value TeamKernel::combinedBy(kernel::ReduceOp reduce) {
  auto widened = reduce.getValue().getDefiningOp<arith::ExtFOp>();
  const bool chooses =
      reduce.getKind() == kernel::ReduceKind::Max || reduce.getKind() == kernel::ReduceKind::Min;
  return widened && chooses && widened.getIn().getType().isBF16() ? widened.getIn()
                                                                  : reduce.getValue();
}

void TeamKernel::emitRowReductions(const ReductionGroup& group) {
  SmallVector<Value> wanted, start;
  for (const Reduction* reduction : group) {
    kernel::ReduceOp op = reduction->op;
    wanted.push_back(combinedBy(op));
    start.push_back(
        reductionIdentity(builder, loc, op.getKind(), wanted.back().getType(), chunkLength));
  }
  SmallVector<Value> partials = overChunks(wanted, start, [&](ValueRange carried) {
    SmallVector<Value> terms;
    for (Value value : wanted)
      terms.push_back(body.getLanes(value));
    kept.keep(wanted);
    for (auto [i, term] : llvm::enumerate(terms))
      term = combineTerm(group[i]->op, carried[i], term);
    return terms;
  });
  kept.passed(wanted);
  for (auto [reduction, partial] : llvm::zip_equal(group, partials))
    if (Type element = kernel::ReduceOp(reduction->op).getType();
        element != getElementTypeOrSelf(partial.getType()))
      partial =
          arith::ExtFOp::create(builder, loc, VectorType::get({chunkLength}, element), partial);
  for (auto [reduction, total] : llvm::zip_equal(group, meet(group, partials)))
    body.setReduction(reduction->op, total);
}

SmallVector<Value> TeamKernel::meet(const ReductionGroup& group, ValueRange partials) {
  SmallVector<Value> sums;
  for (auto [reduction, partial] : llvm::zip_equal(group, partials)) {
    const kernel::ReduceKind kind = kernel::ReduceOp(reduction->op).getKind();
    Value sum = foldLanes(builder, loc, kind, partial);
    sums.push_back(combineLanes(builder, loc, kind, sum, std::min(plan.slots, warpSize)));
  }
  return plan.slots > warpSize ? meetWarps(group, sums) : sums;
}

/// Where each sum of a group has its warps' values, in bytes, and where the last one ends.
SmallVector<int64_t> TeamKernel::sharedPlaces(const ReductionGroup& group) const {
  SmallVector<int64_t> places = {0};
  for (const Reduction* reduction : group) {
    const int64_t bytes = plan.slots / warpSize *
                          kernel::ReduceOp(reduction->op).getType().getIntOrFloatBitWidth() / 8;
    places.push_back(places.back() + llvm::alignTo(bytes, widestAccess));
  }
  return places;
}

/// The first thread of each warp writes. Then each warp meets the values of all warps, a lane one
/// of them: the lanes beyond the last warp have the identity.
SmallVector<Value> TeamKernel::meetWarps(const ReductionGroup& group, ValueRange sums) {
  const int64_t warps = plan.slots / warpSize;
  const auto lanes = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(warps)));
  const SmallVector<int64_t> begins = sharedPlaces(group);
  auto place = [&](size_t sum, Value warp) {
    Value begin = LLVM::GEPOp::create(builder, loc, shared.getType(), builder.getI8Type(), shared,
                                      LLVM::GEPArg(static_cast<int32_t>(begins[sum])));
    warp = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), warp);
    return LLVM::GEPOp::create(builder, loc, shared.getType(), sums[sum].getType(), begin,
                               LLVM::GEPArg(warp))
        .getResult();
  };
  auto alignment = [&](size_t sum) { return sums[sum].getType().getIntOrFloatBitWidth() / 8; };
  SmallVector<Value> places = splitNumber(builder, loc, slot, {warps, warpSize});
  Value isFirst =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, places[1], body.index(0));
  when(isFirst, {}, [&] {
    for (auto [i, sum] : llvm::enumerate(sums))
      LLVM::StoreOp::create(builder, loc, sum, place(i, places[0]), alignment(i));
    return SmallVector<Value>();
  });
  emitBarrier(builder, loc);
  Value warp = arith::RemUIOp::create(builder, loc, slot, body.index(lanes));
  Value isWarp =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, warp, body.index(warps));
  SmallVector<Value> totals;
  for (const Reduction* reduction : group)
    totals.push_back(identity(reduction->op, 0));
  totals = when(isWarp, totals, [&] {
    SmallVector<Value> read;
    for (auto [i, sum] : llvm::enumerate(sums))
      read.push_back(
          LLVM::LoadOp::create(builder, loc, sum.getType(), place(i, warp), alignment(i)));
    return read;
  });
  for (auto [total, reduction] : llvm::zip_equal(totals, group))
    total = combineLanes(builder, loc, kernel::ReduceOp(reduction->op).getKind(), total, lanes);
  emitBarrier(builder, loc);
  return totals;
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

/// One pass over the row: terms of the column sums, and results of its points.
SmallVector<Value> TeamKernel::addToColumns(ValueRange columnSums, ArrayRef<unsigned> outs) {
  SmallVector<Value> wanted;
  for (unsigned out : outs)
    wanted.push_back(yielded()[out]);
  if (columns.empty()) {
    if (!outs.empty())
      overChunks(wanted, {}, [&](ValueRange) {
        SmallVector<Value> results;
        for (Value value : wanted)
          results.push_back(body.get(value));
        writePoints(outs, results);
        return SmallVector<Value>();
      });
    return {};
  }
  SmallVector<Value> sums(columnSums);
  for (int64_t turn = 0; turn < turns(); ++turn) {
    SmallVector<size_t> places; // of this turn's sums
    SmallVector<kernel::ReduceOp> varying;
    size_t place = 0;
    for (kernel::ReduceOp column : columns) {
      if (varies(column)) {
        places.push_back(place + turn);
        varying.push_back(column);
      }
      place += varies(column) ? turns() : 1;
    }
    SmallVector<Value> mine;
    for (size_t at : places)
      mine.push_back(sums[at]);
    mine = inTurn(turn, mine, [&](ValueRange carried) {
      SmallVector<Value> terms, results;
      for (kernel::ReduceOp column : varying)
        terms.push_back(body.getLanes(column.getValue()));
      for (Value value : wanted)
        results.push_back(body.get(value));
      for (auto [i, term] : llvm::enumerate(terms))
        term = combineTerm(varying[i], carried[i], term);
      writePoints(outs, results);
      return terms;
    });
    for (auto [at, sum] : llvm::zip_equal(places, mine))
      sums[at] = sum;
  }
  size_t place = 0;
  for (kernel::ReduceOp column : columns) {
    if (!varies(column))
      sums[place] = combineTerm(column, sums[place], body.get(column.getValue()));
    place += varies(column) ? turns() : 1;
  }
  return sums;
}

/// In an exact plan every team computes, also one without a unit.
void TeamKernel::writePoints(ArrayRef<unsigned> outs, ValueRange values) {
  when(plan.isExact ? isActive : Value(), {}, [&] {
    BodyEmitter::Scope scope(body, {});
    writeOuts(outs, values, nest.allDims());
    return SmallVector<Value>();
  });
}

/// What belongs to the columns, behind the last row.
void TeamKernel::emitColumns(ValueRange columnSums) {
  if (plan.rows.empty())
    return;
  const DimSet rows = setOf(plan.rows), inner = innerSet(), outer = setOf(plan.outer);
  auto setSums = [&](int64_t turn) {
    size_t place = 0;
    for (kernel::ReduceOp column : columns) {
      if (!varies(column))
        body.setReduction(column, columnSums[place]);
      else if (turn >= 0)
        body.setReduction(column, sumOfChunk(column, columnSums[place + turn]));
      place += varies(column) ? turns() : 1;
    }
  };
  BodyEmitter::Scope scope(body, {});
  setSums(-1);
  SmallVector<unsigned> points =
      outsWhere([&](DimSet dims) { return (dims & rows) == 0 && (dims & inner) != 0; });
  for (int64_t turn = 0; turn < turns() && !points.empty(); ++turn)
    inTurn(turn, {}, [&](ValueRange) {
      setSums(turn);
      storeOuts(points, outer | inner);
      return SmallVector<Value>();
    });
  SmallVector<unsigned> scalars =
      outsWhere([&](DimSet dims) { return (dims & (rows | inner)) == 0; });
  if (!scalars.empty())
    inFirstThread([&] { storeOuts(scalars, outer); });
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

SmallVector<Value> TeamKernel::overChunks(ArrayRef<Value> wanted, ValueRange carried, Step step) {
  if (plan.isExact)
    return body.lanes() ? step(carried) : inChunk(plan.inner, slot, carried, step);
  body.hoist(wanted);
  auto overFirst = [&](int64_t chunks, LoopBody chunk) {
    Value end = body.index(chunks);
    if (isActive)
      end = arith::SelectOp::create(builder, loc, isActive, end, body.index(0));
    return emitLoop(builder, loc, slot, end, plan.slots, carried, chunk);
  };
  const unsigned lane = plan.inner.back();
  const int64_t last = plan.chunks - 1, rest = nest.extents[lane] % chunkLength;
  if (plan.inner.size() > 1 || rest == 0 || last == 0)
    return overFirst(plan.chunks, [&](Value number, ValueRange values) {
      return inChunk(plan.inner, number, values, step);
    });
  // The thread whose turn it is has the short last chunk behind its loop, which then asks nothing.
  SmallVector<Value> sums = overFirst(last, [&](Value number, ValueRange values) {
    return onLanes(lane, number, chunkLength, values, step);
  });
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, slot,
                                       body.index(last % plan.slots));
  if (isActive)
    isLast = arith::AndIOp::create(builder, loc, isLast, isActive);
  return when(isLast, sums, [&] { return onLanes(lane, body.index(last), rest, sums, step); });
}

SmallVector<Value> TeamKernel::inTurn(int64_t turn, ValueRange carried, Step step) {
  if (plan.isExact && body.lanes())
    return step(carried);
  Value number = slot, isIn = isActive;
  if (turn > 0)
    number = arith::AddIOp::create(builder, loc, slot, body.index(turn * plan.slots));
  if ((turn + 1) * plan.slots > plan.chunks) {
    Value exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, number,
                                         body.index(plan.chunks));
    isIn = isIn ? arith::AndIOp::create(builder, loc, isIn, exists).getResult() : exists;
  }
  return when(isIn, carried, [&] { return inChunk(plan.inner, number, carried, step); });
}

void TeamKernel::inFirstThread(llvm::function_ref<void()> write) {
  Value isFirst =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, slot, body.index(0));
  if (isActive)
    isFirst = arith::AndIOp::create(builder, loc, isFirst, isActive);
  when(isFirst, {}, [&] {
    BodyEmitter::Scope scope(body, {});
    write();
    return SmallVector<Value>();
  });
}

} // namespace titan::codegen::cuda
