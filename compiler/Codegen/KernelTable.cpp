#include "compiler/Codegen/KernelTable.h"

#include "compiler/Codegen/Comparisons.h"
#include "compiler/Codegen/CostModel.h"
#include "compiler/Codegen/kernel/ErrorBound.h"
#include "compiler/Support/KernelKey.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// Two ops with one key share a kernel's code.
std::string keyOf(kernel::FusedOp op) {
  KeyBuilder key;
  key.addKernel(op);
  return key.str().str();
}

/// "row [64, 10] max exp add div"
std::string describe(kernel::FusedOp op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << stringifyKernelClass(op.getKernelClass()) << " [";
  llvm::interleaveComma(op.getSpace(), stream);
  stream << ']';
  constexpr unsigned mostNames = 6;
  llvm::SetVector<StringRef> names;
  for (Operation& inner : op.getBlock().without_terminator()) {
    if (auto reduce = dyn_cast<kernel::ReduceOp>(inner))
      names.insert(stringifyReduceKind(reduce.getKind()));
    else if (isa<kernel::RandomHalfOp>(inner))
      names.insert("random");
    else if (!isa<arith::ConstantOp, arith::IndexCastOp, kernel::IndexOp>(inner))
      names.insert(inner.getName().stripDialect());
  }
  for (StringRef name : names.getArrayRef().take_front(mostNames))
    stream << ' ' << name;
  if (names.size() > mostNames)
    stream << " ...";
  return text;
}

/// Of a program for a card; a program for a CPU has names of its own.
std::string hostSymbol(size_t index) { return "titan_reference_" + std::to_string(index); }
std::string boundSymbol(size_t index) { return "titan_bound_" + std::to_string(index); }

/// "gemm"
StringRef nameOf(Attribute routine) {
  StringRef name = routine.getAbstractAttribute().getName();
  return name.substr(name.find('.') + 1);
}

} // namespace

FailureOr<uint32_t> KernelTable::kernelFor(kernel::FusedOp op) {
  return find(fused_, keyOf(op) + target_.variant(op), op, [&] { return describe(op); });
}

FailureOr<KernelTable::Routine> KernelTable::routineFor(kernel::CallOp op) {
  Routine routine;
  routine.emitter = target_.routine(op.getRoutine());
  for (Target* target : {&target_, reference_})
    if (target && !target->routine(op.getRoutine())) {
      refusesInput_ = true;
      return op.emitError() << ir::describePlace(op) << ": " << nameOf(op.getRoutine())
                            << " has no kernel on " << target->info().kind;
    }
  RoutineCode code = routine.emitter->code(op);
  FailureOr<uint32_t> kernel = find(routines_, code.key + target_.variant(op), op,
                                    [&] { return routine.emitter->describe(op); });
  if (failed(kernel))
    return failure();
  routine.kernel = *kernel;
  routine.scalars = std::move(code.scalars);
  if (std::optional<LibraryCall> call = target_.library(op)) {
    call->fallback = *kernel;
    auto found = llvm::find(libraryCalls_, *call);
    routine.library = found - libraryCalls_.begin();
    if (found == libraryCalls_.end())
      libraryCalls_.push_back(std::move(*call));
  }
  return routine;
}

template <typename Op>
FailureOr<uint32_t> KernelTable::find(llvm::StringMap<uint32_t>& known, StringRef key, Op op,
                                      llvm::function_ref<std::string()> describe) {
  auto [slot, isNew] = known.try_emplace(key, kernels_.size());
  uint32_t index = slot->second;
  if (isNew) {
    Entry entry{"titan_kernel_" + std::to_string(index), describe(), {}, {}, {}};
    if (failed(target_.emit(op, entry.symbol))) {
      // Calls are refused for blocks that do not suit the target: numbers of a printed stage.
      refusesInput_ = !target_.coversAll() || isa<kernel::CallOp>(op);
      return failure();
    }
    if (reference_) {
      FailureOr<Comparison> comparison = addReference(op, index);
      if (failed(comparison))
        return failure();
      entry.comparison = std::move(*comparison);
    }
    entry.launches = target_.launches(entry.symbol);
    kernels_.push_back(std::move(entry));
  }
  ArrayAttr paths = ir::getPath(op);
  kernels_[index].paths.insert(paths.begin(), paths.end());
  return index;
}

FailureOr<Comparison> KernelTable::addReference(kernel::FusedOp op, size_t index) {
  if (failed(reference_->emit(op, hostSymbol(index))))
    return failure();
  ErrorBounds bounds = boundErrors(op);
  Comparison comparison = compareFused(op, bounds.bounded);
  if (bounds.bounded.empty())
    return comparison;
  const LoopNest nest(bounds.op);
  comparison.boundUnits = reference_->launch(nest, costOf(nest, reference_->machine())).units;
  // The bounds of many values may not fit on the stack: then the results' size has to do.
  ScopedDiagnosticHandler quiet(op.getContext(), [](Diagnostic&) { return success(); });
  if (succeeded(reference_->emit(bounds.op, boundSymbol(index))))
    return comparison;
  comparison.boundUnits = 0;
  for (ComparedOperand& operand : comparison.operands)
    if (operand.tolerance == Tolerance::Bounded) {
      operand.tolerance = Tolerance::Scale;
      operand.factor = scaleTolerance;
    }
  return comparison;
}

FailureOr<Comparison> KernelTable::addReference(kernel::CallOp op, size_t index) {
  if (failed(reference_->emit(op, hostSymbol(index))))
    return failure();
  return compareRoutine(op, target_.routine(op.getRoutine())->operands(op));
}

std::vector<std::string> KernelTable::hostSymbols() const {
  std::vector<std::string> symbols;
  if (!reference_) {
    if (target_.device().kind == "cpu")
      for (const Entry& entry : kernels_)
        symbols.push_back(entry.symbol);
    return symbols;
  }
  for (size_t i = 0; i < kernels_.size(); ++i)
    symbols.push_back(hostSymbol(i));
  for (size_t i = 0; i < kernels_.size(); ++i)
    if (kernels_[i].comparison.boundUnits > 0)
      symbols.push_back(boundSymbol(i));
  return symbols;
}

std::string KernelTable::Entry::label() const {
  std::string text = description;
  for (auto [i, path] : llvm::enumerate(paths))
    text += (i == 0 ? " : " : ", ") + cast<StringAttr>(path).getValue().str();
  return text;
}

void KernelTable::finish(Program& program) {
  for (const Entry& entry : kernels_)
    program.kernels.push_back({entry.symbol, entry.label(), entry.launches});
  if (reference_)
    for (const Entry& entry : kernels_)
      program.comparisons.push_back(entry.comparison);
  for (LibraryCall& call : libraryCalls_) {
    if (call.workspace > 0)
      program.arenaBytes = std::max(program.arenaBytes, workspaceOffset_ + call.workspace);
    call.label = kernels_[call.fallback].label();
    program.libraryCalls.push_back(std::move(call));
  }
}

} // namespace titan::codegen
