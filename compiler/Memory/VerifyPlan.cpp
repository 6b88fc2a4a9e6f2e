// titan-plan-verify-offsets: the proof of the plan.
#include "compiler/Memory/Passes.h"
#include "compiler/Memory/Plan.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_VERIFYPLAN
#include "compiler/Memory/Passes.h.inc"

namespace {

using namespace titan::memory;

/// Bytes of the arena, and what they are for.
struct Extent {
  int64_t offset, bytes;
  Location loc;
  std::string name;
};

struct VerifyPlan : impl::VerifyPlanBase<VerifyPlan> {
  void runOnOperation() override {
    FailureOr<ModulePlan> plan = readPlan(getOperation());
    if (failed(plan) || failed(checkRegions(*plan)))
      return signalPassFailure();
    for (const FunctionPlan& function : plan->functions)
      if (failed(checkTemporaries(function, *plan)) || failed(checkWrites(function)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }

  static LogicalResult checkPlace(const Extent& extent, const ModulePlan& plan, int64_t begin,
                                  int64_t end) {
    if (extent.offset % plan.alignment != 0)
      return emitError(extent.loc) << extent.name << " at offset " << extent.offset
                                   << " is not aligned to " << plan.alignment << " bytes";
    if (extent.offset < begin || extent.offset + extent.bytes > end)
      return emitError(extent.loc)
             << extent.name << " at [" << extent.offset << ", " << extent.offset + extent.bytes
             << ") leaves its region [" << begin << ", " << end << ")";
    return success();
  }

  /// What is live all the time: states, constants and bindings, disjoint and below the temporaries.
  static LogicalResult checkRegions(const ModulePlan& plan) {
    SmallVector<Extent> extents;
    for (const StatePlan& s : plan.states) {
      ir::StateOp state = s.state;
      extents.push_back(
          {s.offset, s.bytes, state.getLoc(), "state '" + state.getSymName().str() + "'"});
    }
    for (const ConstantPlan& c : plan.constants)
      extents.push_back({c.offset, c.bytes, UnknownLoc::get(c.value.getContext()), "constant"});
    for (const FunctionPlan& function : plan.functions)
      for (const BindingPlan& b : function.bindings)
        if (b.role != BindingRole::Output)
          extents.push_back(
              {b.offset, b.bytes, b.argument.getLoc(), "binding '" + b.name.str() + "'"});
    int64_t end = plan.arenaBytes - plan.temporaryBytes;
    llvm::sort(extents, [](const Extent& a, const Extent& b) {
      return std::tie(a.offset, a.bytes) < std::tie(b.offset, b.bytes);
    });
    for (auto [i, extent] : llvm::enumerate(extents)) {
      if (failed(checkPlace(extent, plan, 0, end)))
        return failure();
      if (i > 0 && extents[i - 1].offset + extents[i - 1].bytes > extent.offset)
        return emitError(extent.loc) << extent.name << " shares bytes with " << extents[i - 1].name;
    }
    // The argument of a state lies where the state lies.
    for (const FunctionPlan& function : plan.functions)
      for (BlockArgument argument : func::FuncOp(function.function).getArguments())
        if (FlatSymbolRefAttr symbol = stateOf(argument)) {
          FailureOr<int64_t> offset = offsetOf(argument);
          auto found = llvm::find_if(plan.states, [&](const StatePlan& s) {
            return ir::StateOp(s.state).getSymName() == symbol.getValue();
          });
          if (failed(offset) || found == plan.states.end() || found->offset != *offset)
            return emitError(argument.getLoc())
                   << "argument of state " << symbol << " is not at the state's offset";
        }
    return success();
  }

  /// Outputs lie among the temporaries, live in the whole function.
  static LogicalResult checkOutputs(const FunctionPlan& function, const ModulePlan& plan) {
    const int64_t end = plan.arenaBytes, begin = end - plan.temporaryBytes;
    SmallVector<Extent> outputs;
    for (const BindingPlan& b : function.bindings)
      if (b.role == BindingRole::Output)
        outputs.push_back(
            {b.offset, b.bytes, b.argument.getLoc(), "output '" + b.name.str() + "'"});
    for (auto [i, output] : llvm::enumerate(outputs)) {
      if (failed(checkPlace(output, plan, begin, end)))
        return failure();
      auto overlaps = [&, &output = output](int64_t offset, int64_t bytes) {
        return output.offset < offset + bytes && offset < output.offset + output.bytes;
      };
      for (const Extent& other : ArrayRef(outputs).drop_front(i + 1))
        if (overlaps(other.offset, other.bytes))
          return emitError(other.loc) << other.name << " shares bytes with " << output.name;
      for (const TemporaryPlan& t : function.temporaries)
        if (overlaps(t.offset, t.bytes))
          return emitError(kernel::BufferOp(t.buffer).getLoc())
                 << "temporary at " << t.offset << " shares bytes with " << output.name;
    }
    return success();
  }

  static LogicalResult checkTemporaries(const FunctionPlan& function, const ModulePlan& plan) {
    int64_t begin = plan.arenaBytes - plan.temporaryBytes;
    if (failed(checkOutputs(function, plan)))
      return failure();
    ArrayRef<TemporaryPlan> all = function.temporaries;
    for (const TemporaryPlan& t : all) {
      kernel::BufferOp buffer = t.buffer;
      if (failed(checkPlace({t.offset, t.bytes, buffer.getLoc(), "temporary"}, plan, begin,
                            plan.arenaBytes)))
        return failure();
    }
    for (auto [i, a] : llvm::enumerate(all))
      for (const TemporaryPlan& b : all.drop_front(i + 1)) {
        bool sameTime = a.live.first <= b.live.last && b.live.first <= a.live.last;
        bool sameBytes = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        if (sameTime && sameBytes) {
          kernel::BufferOp first = a.buffer, second = b.buffer;
          auto error = emitError(second.getLoc())
                       << "temporary at " << b.offset << ", live in [" << b.live.first << ", "
                       << b.live.last << "], shares bytes with another that is live then";
          error.attachNote(first.getLoc()) << "the other, at " << a.offset << ", live in ["
                                           << a.live.first << ", " << a.live.last << "]";
          return error;
        }
      }
    return success();
  }

  /// Inputs, controls and constants are never written; states only from the first update command
  /// on.
  static LogicalResult checkWrites(const FunctionPlan& function) {
    bool updating = false;
    for (const Command& command : function.commands) {
      if (command.kind != Command::Kind::Run)
        continue;
      updating |= ir::getPhase(command.op) == ir::Phase::Update;
      for (Value root : writesOf(command.op)) {
        if (root.getDefiningOp<kernel::ConstantOp>())
          return command.op->emitOpError("writes a constant");
        auto argument = dyn_cast<BlockArgument>(root);
        if (!argument)
          continue;
        if (FlatSymbolRefAttr state = stateOf(argument)) {
          if (!updating)
            return command.op->emitOpError("writes state ")
                   << state << " before the phase 'update'";
        } else if (auto binding = bindingOf(argument);
                   binding && (binding->first == BindingRole::Input ||
                               binding->first == BindingRole::Control)) {
          return command.op->emitOpError("writes '")
                 << binding->second << "', which belongs to the caller";
        }
      }
    }
    return success();
  }
};

} // namespace
} // namespace titan
