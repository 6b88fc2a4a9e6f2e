// titan-plan-assign-offsets: the arena.
#include "compiler/Memory/Packing.h"
#include "compiler/Memory/Passes.h"
#include "compiler/Memory/Plan.h"
#include "compiler/Support/LocalType.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/TargetInfo.h"
#include "runtime/program/Program.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_ASSIGNOFFSETS
#include "compiler/Memory/Passes.h.inc"

namespace {

struct AssignOffsets : impl::AssignOffsetsBase<AssignOffsets> {
  int64_t end = 0;       ///< of what is placed so far
  int64_t alignment = 0; ///< of offsets and sizes, bytes

  void runOnOperation() override {
    end = 0;
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getRecipe(module);
    FailureOr<MachineModel> machine = getMachine(module);
    if (failed(recipe) || failed(machine))
      return signalPassFailure();
    alignment = machine->arenaAlignment;
    NamedAttrList figures;
    auto region = [&](StringRef name, function_ref<void()> place) {
      int64_t begin = end;
      place();
      figures.set(name, i64(end - begin));
    };
    region("states", [&] { placeStates(module, recipe->mesh.axes); });
    region("constants", [&] { placeConstants(module); });
    region("bindings", [&] { placeBindings(module); });
    std::vector<FunctionBuffers> functions;
    for (func::FuncOp function : module.getOps<func::FuncOp>())
      functions.push_back(buffersOf(function));
    placeStaging(functions, figures);
    region("temporaries", [&] { placeTemporaries(functions); });
    figures.set("bytes", i64(end));
    module->setAttr(memory::arenaTag, figures.getDictionary(&getContext()));
  }

  IntegerAttr i64(int64_t value) {
    return IntegerAttr::get(IntegerType::get(&getContext(), 64), value);
  }

  int64_t place(ShapedType type) {
    int64_t offset = end;
    end += static_cast<int64_t>(llvm::alignTo(memory::bytesOf(type), alignment));
    return offset;
  }

  /// Tags the arguments to which `offsetOf` gives an offset: all at once, because a change of one
  /// argument's tags copies the tags of all.
  void tagArguments(func::FuncOp function,
                    function_ref<std::optional<int64_t>(BlockArgument)> offsetOf) {
    SmallVector<DictionaryAttr> tags;
    bool isTagged = false;
    for (BlockArgument argument : function.getArguments()) {
      tags.push_back(function.getArgAttrDict(argument.getArgNumber()));
      if (std::optional<int64_t> offset = offsetOf(argument)) {
        NamedAttrList tagged(tags.back());
        tagged.set(kernel::offsetTag, i64(*offset));
        tags.back() = tagged.getDictionary(&getContext());
        isTagged = true;
      }
    }
    if (isTagged)
      function.setAllArgAttrs(tags);
  }

  void placeStates(ModuleOp module, ArrayRef<MeshAxis> mesh) {
    llvm::DenseMap<Attribute, int64_t> offsets;
    for (ir::StateOp state : module.getOps<ir::StateOp>()) {
      FailureOr<RankedTensorType> local = localTypeOf(state, mesh);
      if (failed(local))
        return signalPassFailure();
      int64_t offset = place(*local);
      state->setAttr(kernel::offsetTag, i64(offset));
      offsets[FlatSymbolRefAttr::get(state.getSymNameAttr())] = offset;
    }
    for (func::FuncOp function : module.getOps<func::FuncOp>())
      tagArguments(function, [&](BlockArgument argument) -> std::optional<int64_t> {
        auto found = offsets.find(memory::stateOf(argument));
        return found == offsets.end() ? std::nullopt : std::optional(found->second);
      });
  }

  void placeConstants(ModuleOp module) {
    llvm::DenseMap<Attribute, int64_t> offsets;
    module.walk([&](kernel::ConstantOp constant) {
      auto [found, isNew] = offsets.try_emplace(constant.getValueAttr(), 0);
      if (isNew)
        found->second = place(cast<ShapedType>(constant.getType()));
      constant.setOffsetAttr(i64(found->second));
    });
  }

  std::optional<int64_t> placed(BlockArgument argument) {
    return place(cast<ShapedType>(argument.getType()));
  }

  static bool isOutput(BlockArgument argument) {
    auto binding = memory::bindingOf(argument);
    return binding && binding->first == memory::BindingRole::Output;
  }

  void placeBindings(ModuleOp module) {
    for (func::FuncOp function : module.getOps<func::FuncOp>())
      tagArguments(function, [&](BlockArgument argument) {
        return memory::stateOf(argument) || isOutput(argument) ? std::nullopt : placed(argument);
      });
  }

  /// Some buffers of a function, which are packed together.
  struct Buffers {
    std::vector<kernel::BufferOp> ops;
    std::vector<memory::Interval> intervals;

    void add(kernel::BufferOp op, const memory::LiveRange& live) {
      ops.push_back(op);
      intervals.push_back({memory::bytesOf(op.getType()), live.first, live.last});
    }
    /// Packs them from `begin` on; returns their bytes.
    int64_t place(int64_t begin, int64_t alignment) {
      memory::Packing packing = memory::pack(intervals, alignment);
      for (auto [op, offset] : llvm::zip_equal(ops, packing.offsets))
        op.setOffset(begin + offset);
      return packing.bytes;
    }
  };

  /// The buffers of a function that are used: sources of collectives, and others.
  struct FunctionBuffers {
    func::FuncOp function;
    Buffers sources, others;

    /// What is live at once, in staging and elsewhere.
    int64_t maxLive(int64_t alignment) const {
      std::vector<memory::Interval> all = sources.intervals;
      llvm::append_range(all, others.intervals);
      return memory::maxLive(all, alignment);
    }
  };

  static FunctionBuffers buffersOf(func::FuncOp function) {
    FunctionBuffers buffers{function, {}, {}};
    for (auto [buffer, live] : memory::computeLiveRanges(function))
      (memory::isSource(buffer) ? buffers.sources : buffers.others).add(buffer, live);
    return buffers;
  }

  /// Functions run one after the other, and none ends before its sources are read.
  void placeStaging(MutableArrayRef<FunctionBuffers> functions, NamedAttrList& figures) {
    const int64_t begin = llvm::alignTo(end, stagingAlignment);
    int64_t largest = 0;
    for (FunctionBuffers& buffers : functions)
      largest = std::max(largest, buffers.sources.place(begin, alignment));
    if (largest == 0)
      return;
    end = begin + static_cast<int64_t>(llvm::alignTo(largest, stagingAlignment));
    figures.set("staging_offset", i64(begin));
    figures.set("staging", i64(end - begin));
  }

  static void eraseUnused(func::FuncOp function) {
    SmallVector<kernel::BufferOp> unused;
    function.walk([&](kernel::BufferOp buffer) {
      if (buffer->use_empty())
        unused.push_back(buffer);
    });
    for (kernel::BufferOp buffer : unused)
      buffer.erase();
  }

  void placeTemporaries(MutableArrayRef<FunctionBuffers> functions) {
    int64_t begin = end, largest = 0;
    for (FunctionBuffers& buffers : functions) {
      func::FuncOp function = buffers.function;
      eraseUnused(function);
      // Outputs are read before the next function runs, and hold nothing before this one does.
      end = begin;
      tagArguments(function, [&](BlockArgument argument) {
        return isOutput(argument) ? placed(argument) : std::nullopt;
      });
      const int64_t bytes = buffers.others.place(end, alignment);
      largest = std::max(largest, end - begin + bytes);
      function->setAttr(memory::maxLiveTag, i64(buffers.maxLive(alignment)));
    }
    end = begin + largest;
  }
};

} // namespace
} // namespace titan
