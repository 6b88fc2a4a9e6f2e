#include "compiler/Codegen/cuda/FusedKernel.h"

#include "compiler/Codegen/cuda/ChunkKernel.h"
#include "compiler/Codegen/cuda/TallKernel.h"
#include "compiler/Codegen/cuda/TeamKernel.h"
#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "compiler/Codegen/cuda/TileKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Remarks.h"

#include <variant>

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

/// Functions that are instructions, whatever the type.
bool isInstruction(Operation& op) {
  return isa<math::SqrtOp, math::RsqrtOp, math::AbsFOp, math::AbsIOp, math::FmaOp, math::CopySignOp,
             math::FloorOp, math::CeilOp, math::TruncOp, math::RoundEvenOp,
             math::CountLeadingZerosOp, math::CountTrailingZerosOp, math::CtPopOp, math::IsNaNOp,
             math::IsInfOp, math::IsFiniteOp>(op);
}

/// Functions that kernel/ExpandMath makes arithmetic, or kernel/ExpandWideMath by way of f64.
bool isExpandedF32(Operation& op) {
  return isa<math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log2Op, math::Log1pOp,
             math::TanhOp, math::ErfOp, math::ErfcOp, math::SinOp, math::CosOp, math::AtanOp,
             math::Atan2Op, math::SinhOp, math::CoshOp, math::AsinhOp, math::AcoshOp, math::AtanhOp,
             math::PowFOp>(op);
}

/// Functions that kernel/ExpandWideMath makes arithmetic.
bool isExpandedF64(Operation& op) {
  if (auto power = dyn_cast<math::PowFOp>(op))
    return power.getRhs().getDefiningOp<arith::SIToFPOp>() != nullptr;
  return isa<math::SinOp, math::CosOp>(op);
}

bool hasCode(Operation& op) {
  if (isa<arith::RemFOp>(op)) // the back end's is x - trunc(x / y) y, rounded thrice
    return false;
  if (!isa<math::MathDialect>(op.getDialect()) || isInstruction(op))
    return true;
  Type type = op.getResult(0).getType();
  return (type.isF32() && isExpandedF32(op)) || (type.isF64() && isExpandedF64(op));
}

bool isKnownType(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth());
  return type.isIndex() || type.isF32() || type.isF64() || type.isBF16();
}

LogicalResult checkBody(kernel::FusedOp op) {
  auto check = [&](Type type) -> LogicalResult {
    if (isKnownType(type))
      return success();
    return op.emitError() << ir::describePlace(op) << ": values of " << type
                          << " have no code on cuda";
  };
  for (BlockArgument argument : op.getBlock().getArguments())
    if (failed(check(argument.getType())))
      return failure();
  for (Operation& inner : op.getBlock().without_terminator()) {
    for (Type type : inner.getResultTypes())
      if (failed(check(type)))
        return failure();
    if (!hasCode(inner))
      return op.emitError() << ir::describePlace(op) << ": " << inner.getName() << " on "
                            << inner.getResult(0).getType() << " has no code on cuda";
  }
  return success();
}

bool computesF64(kernel::FusedOp op) {
  return llvm::any_of(op.getBlock(), [](Operation& inner) {
    return llvm::any_of(inner.getResultTypes(), [](Type type) { return type.isF64(); });
  });
}

Entry entryOf(kernel::FusedOp op, StringRef symbol, int64_t blocks, int64_t threads) {
  Entry entry{symbol.str(), blocks, threads, {}, static_cast<unsigned>(op.getScalars().size())};
  for (Value in : op.getIns())
    entry.operands.push_back(wholeOf(in, EntryOperand::Use::Read));
  for (Value out : op.getOuts())
    entry.operands.push_back(wholeOf(out, EntryOperand::Use::Write));
  return entry;
}

SmallVector<int64_t> alignmentsOf(kernel::FusedOp op) {
  SmallVector<int64_t> alignments;
  for (Value in : op.getIns())
    alignments.push_back(alignmentOf(in));
  for (Value out : op.getOuts())
    alignments.push_back(alignmentOf(out));
  return alignments;
}

remark::RemarkOpts remarkOptions() {
  return remark::RemarkOpts::name("schedule").category("codegen");
}

void report(kernel::FusedOp op, const ChunkPlan& plan) {
  remark::passed(op.getLoc(), remarkOptions()) << remark::add(
      "'{0}': a thread has 8 neighbours{1}, {2} blocks of {3} threads", ir::describePlace(op),
      plan.reduced.empty() ? "" : " and goes over what is reduced", plan.blocks(), plan.threads());
}

void report(kernel::FusedOp op, const TilePlan& plan) {
  remark::passed(op.getLoc(), remarkOptions()) << remark::add(
      "'{0}': tiles of {1} x {2} through shared memory, {3} blocks of {4} threads",
      ir::describePlace(op), plan.lane.length, plan.across.length, plan.blocks(), plan.threads());
}

void report(kernel::FusedOp op, const TallPlan& plan) {
  remark::passed(op.getLoc(), remarkOptions())
      << remark::add("'{0}': {1} threads share the rows of 8 columns, {2} blocks of {3} threads",
                     ir::describePlace(op), columnSlots, plan.blocks(), plan.threads());
}

void report(kernel::FusedOp op, const TeamPlan& plan) {
  remark::passed(op.getLoc(), remarkOptions()) << remark::add(
      "'{0}': {1} threads have a row{2}, {3} blocks of {4} threads", ir::describePlace(op),
      plan.slots, plan.isExact ? " in registers" : "", plan.blocks(), plan.threads());
}

void report(kernel::FusedOp op, const NarrowOperand& narrow) {
  const bool isRead = narrow.number < op.getIns().size();
  remark::missed(op.getLoc(), remarkOptions())
      << remark::add("'{0}' {1} {2} {3} bytes at a time", ir::describePlace(op),
                     isRead ? "reads" : "writes", op->getOperand(narrow.number).getType(),
                     narrow.bytes)
      << remark::reason("{0}", narrow.reason);
}

using Schedule = std::variant<TallPlan, TilePlan, ChunkPlan, TeamPlan>;

std::optional<Schedule> scheduleOf(const LoopNest& nest) {
  if (std::optional<TallPlan> tall = planTallColumns(nest))
    return *tall;
  if (std::optional<TilePlan> tiles = planTiles(nest))
    return *tiles;
  if (std::optional<ChunkPlan> chunks = planChunks(nest))
    return *chunks;
  if (std::optional<TeamPlan> teams = planTeams(nest))
    return *teams;
  return std::nullopt;
}

struct Emission {
  BodyEmitter& body;
  ThreadMemory& memory;
  KernelModule& kernels;
};

void emit(const Emission& to, const TallPlan& plan) {
  TallKernel(to.body, plan, to.kernels).emit();
}
void emit(const Emission& to, const TilePlan& plan) {
  TileKernel(to.body, plan, to.kernels, to.memory).emit();
}
void emit(const Emission& to, const ChunkPlan& plan) { ChunkKernel(to.body, plan).emit(); }
void emit(const Emission& to, const TeamPlan& plan) {
  TeamKernel(to.body, plan, to.kernels, to.memory).emit();
}

} // namespace

LogicalResult emitFusedKernel(KernelModule& kernels, kernel::FusedOp op, StringRef symbol) {
  if (failed(checkBody(op)))
    return failure();
  LoopNest nest(op);
  if (nest.rank() > 64)
    return op.emitOpError("has ") << nest.rank() << " dimensions, more than 64";
  std::optional<Schedule> schedule = scheduleOf(nest);
  if (!schedule)
    return op.emitError() << ir::describePlace(op)
                          << ": sums over dimensions that no schedule on cuda covers";
  Entry entry = std::visit(
      [&](const auto& plan) { return entryOf(op, symbol, plan.blocks(), plan.threads()); },
      *schedule);
  // Values of f64 take twice the registers.
  if (const auto* teams = std::get_if<TeamPlan>(&*schedule); teams && !computesF64(op))
    entry.blocksTogether = teams->blocksTogether();
  OpBuilder builder(op.getContext());
  func::FuncOp function = kernels.add(builder, op.getLoc(), entry);
  const size_t operands = op.getIns().size() + op.getOuts().size();
  ValueRange arguments = function.getArguments();
  ThreadMemory memory(arguments.take_front(operands), alignmentsOf(op),
                      arguments.drop_front(operands));
  BodyEmitter body(builder, nest, arguments.take_front(operands), memory);
  std::visit(
      [&](const auto& plan) {
        emit({body, memory, kernels}, plan);
        report(op, plan);
      },
      *schedule);
  for (const NarrowOperand& narrow : memory.narrow())
    report(op, narrow);
  func::ReturnOp::create(builder, op.getLoc());
  return success();
}

} // namespace titan::codegen::cuda
