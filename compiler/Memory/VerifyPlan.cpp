// titan-plan-verify-offsets: the proof of the plan.
#include "compiler/Memory/Passes.h"
#include "compiler/Memory/Plan.h"
#include "mlir/IR/Matchers.h"

#include <map>

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
      if (failed(checkTemporaries(function, *plan)) || failed(checkWrites(function)) ||
          failed(checkCollectives(function)))
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
    int64_t end =
        plan.stagingBytes > 0 ? plan.stagingOffset : plan.arenaBytes - plan.temporaryBytes;
    llvm::sort(extents, [](const Extent& a, const Extent& b) {
      return std::tie(a.offset, a.bytes) < std::tie(b.offset, b.bytes);
    });
    for (auto [i, extent] : llvm::enumerate(extents)) {
      if (failed(checkPlace(extent, plan, 0, end)))
        return failure();
      if (i > 0 && extents[i - 1].offset + extents[i - 1].bytes > extent.offset)
        return emitError(extent.loc) << extent.name << " shares bytes with " << extents[i - 1].name;
    }
    llvm::DenseMap<StringAttr, int64_t> places; // by name
    for (const StatePlan& s : plan.states)
      places[ir::StateOp(s.state).getSymNameAttr()] = s.offset;
    // The argument of a state lies where the state lies.
    for (const FunctionPlan& function : plan.functions)
      for (BlockArgument argument : func::FuncOp(function.function).getArguments())
        if (FlatSymbolRefAttr symbol = stateOf(argument)) {
          FailureOr<int64_t> offset = offsetOf(argument);
          auto found = places.find(symbol.getAttr());
          if (failed(offset) || found == places.end() || found->second != *offset)
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
      const bool isShared = isSource(buffer);
      const int64_t first = isShared ? plan.stagingOffset : begin,
                    end = isShared ? plan.stagingOffset + plan.stagingBytes : plan.arenaBytes;
      const char* name = isShared ? "source of a collective" : "temporary";
      if (failed(checkPlace({t.offset, t.bytes, buffer.getLoc(), name}, plan, first, end)))
        return failure();
    }
    auto [a, b] = findShared(all);
    if (!a)
      return success();
    kernel::BufferOp first = a->buffer, second = b->buffer;
    auto error = emitError(second.getLoc())
                 << "temporary at " << b->offset << ", live in [" << b->live.first << ", "
                 << b->live.last << "], shares bytes with another that is live then";
    error.attachNote(first.getLoc()) << "the other, at " << a->offset << ", live in ["
                                     << a->live.first << ", " << a->live.last << "]";
    return error;
  }

  /// Two temporaries that share bytes while both are live, in their order; null if none do. Those
  /// that are live at one time lie apart, so that a new one has to be compared with its neighbours.
  static std::pair<const TemporaryPlan*, const TemporaryPlan*>
  findShared(ArrayRef<TemporaryPlan> all) {
    SmallVector<const TemporaryPlan*> begins;
    for (const TemporaryPlan& t : all)
      if (t.bytes > 0)
        begins.push_back(&t);
    llvm::sort(begins, [](auto* a, auto* b) {
      return std::pair(a->live.first, a) < std::pair(b->live.first, b);
    });
    std::map<int64_t, const TemporaryPlan*> byOffset; // live now
    std::multimap<uint32_t, const TemporaryPlan*> byEnd;
    for (const TemporaryPlan* t : begins) {
      while (!byEnd.empty() && byEnd.begin()->first < t->live.first) {
        byOffset.erase(byEnd.begin()->second->offset);
        byEnd.erase(byEnd.begin());
      }
      auto above = byOffset.lower_bound(t->offset);
      if (above != byOffset.end() && above->first < t->offset + t->bytes)
        return std::minmax(above->second, t);
      if (above != byOffset.begin()) {
        const TemporaryPlan* below = std::prev(above)->second;
        if (t->offset < below->offset + below->bytes)
          return std::minmax(below, t);
      }
      byOffset.emplace_hint(above, t->offset, t);
      byEnd.emplace(t->live.last, t);
    }
    return {};
  }

  /// The bytes of the arena that `buffer` shows; of a part whose place is no constant all of the
  /// whole.
  static FailureOr<Extent> extentOf(Value buffer) {
    const int64_t bytes = bytesOf(cast<ShapedType>(buffer.getType()));
    Operation* view = buffer.getDefiningOp();
    if (!view || !isView(view)) {
      FailureOr<int64_t> offset = offsetOf(buffer);
      if (failed(offset))
        return failure();
      return Extent{*offset, bytes, buffer.getLoc(), {}};
    }
    FailureOr<Extent> whole = extentOf(view->getOperand(0));
    if (failed(whole) || isa<kernel::CastShapeOp>(view))
      return whole;
    APInt first;
    if (!matchPattern(view->getOperand(1), m_ConstantInt(&first)))
      return whole;
    const int64_t row = rowBytesOf(view->getOperand(0));
    return Extent{whole->offset + first.getSExtValue() * row, bytes, buffer.getLoc(), {}};
  }

  static FailureOr<SmallVector<Extent>> extentsOf(ArrayRef<OpOperand*> operands) {
    SmallVector<Extent> extents;
    for (OpOperand* operand : operands) {
      FailureOr<Extent> extent = extentOf(operand->get());
      if (failed(extent))
        return failure();
      extents.push_back(*extent);
    }
    return extents;
  }

  static bool meet(ArrayRef<Extent> some, ArrayRef<Extent> others) {
    return llvm::any_of(some, [&](const Extent& a) {
      return llvm::any_of(others, [&](const Extent& b) {
        return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      });
    });
  }

  /// A collective between its start and its wait.
  struct Open {
    dist::StartOp start;
    SmallVector<Extent> ins, outs;
  };

  /// (C6) of dist.start, on bytes.
  static LogicalResult checkCollectives(const FunctionPlan& function) {
    SmallVector<Open> open;
    for (const Command& command : function.commands) {
      if (command.kind != Command::Kind::Run)
        continue;
      if (auto wait = dyn_cast<dist::WaitOp>(command.op)) {
        llvm::erase_if(open, [&](const Open& o) { return o.start == wait.getStart(); });
        continue;
      }
      auto start = dyn_cast<dist::StartOp>(command.op);
      if (!start && open.empty())
        continue;
      auto op = cast<kernel::CommandLikeOpInterface>(command.op);
      FailureOr<SmallVector<Extent>> reads = extentsOf(op.getReads()),
                                     writes = extentsOf(op.getWrites());
      if (failed(reads) || failed(writes))
        return failure();
      for (const Open& o : open)
        if (failed(checkUnderWay(command.op, o, *reads, *writes)))
          return failure();
      if (!start)
        continue;
      if (failed(checkStart(start, *reads, *writes)))
        return failure();
      open.push_back({start, *reads, *writes});
    }
    return success();
  }

  static LogicalResult checkUnderWay(Operation* op, const Open& open, ArrayRef<Extent> reads,
                                     ArrayRef<Extent> writes) {
    const bool touches = meet(reads, open.outs) || meet(writes, open.outs);
    if (!touches && !meet(writes, open.ins))
      return success();
    InFlightDiagnostic error =
        touches ? op->emitOpError("touches a result of a collective that is not waited for (C6)")
                : op->emitOpError("writes to a source of a collective that is not waited for (C6)");
    error.attachNote(dist::StartOp(open.start).getLoc()) << "the collective starts here";
    return error;
  }

  /// Sources are temporaries; results lie apart from each other and from all sources.
  static LogicalResult checkStart(dist::StartOp start, ArrayRef<Extent> ins,
                                  ArrayRef<Extent> outs) {
    for (Value root : readsOf(start))
      if (!root.getDefiningOp<kernel::BufferOp>())
        return start.emitOpError("has a source that is no temporary: other ranks cannot read it");
    for (auto [i, out] : llvm::enumerate(outs)) {
      // (C6) allows one buffer as ins and outs.
      const bool isInPlace = start.getCollective() == dist::Collective::AllReduce &&
                             start.getIns()[i] == start.getOuts()[i];
      for (auto [j, in] : llvm::enumerate(ins))
        if (!(isInPlace && i == j) && meet(out, in))
          return start.emitOpError("gives result ") << i << " where source " << j << " lies";
      if (meet(out, outs.drop_front(i + 1)))
        return start.emitOpError("gives two results at one place");
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
