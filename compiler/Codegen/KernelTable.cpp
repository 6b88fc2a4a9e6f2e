#include "compiler/Codegen/KernelTable.h"

#include "compiler/Codegen/CostModel.h"

#include "compiler/Codegen/cpu/AttentionKernel.h"
#include "compiler/Codegen/cpu/EmbeddingKernel.h"
#include "compiler/Codegen/cpu/GemmKernel.h"

#include "dialects/Kernel/AttentionRoutine.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// Everything that decides a kernel's code, and nothing else: two ops with one text share it.
std::string textOf(kernel::FusedOp op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << op.getSpaceAttr() << op.getMaps() << op.getIns().getTypes() << '|'
         << op.getOuts().getTypes() << '|' << op.getScalars().size();
  llvm::DenseMap<Value, unsigned> numbers;
  for (BlockArgument argument : op.getBlock().getArguments())
    numbers.try_emplace(argument, numbers.size());
  for (Operation& inner : op.getBlock()) {
    stream << '\n' << inner.getName() << inner.getAttrDictionary();
    for (Value operand : inner.getOperands())
      stream << ' ' << numbers.lookup(operand);
    for (Value result : inner.getResults()) {
      stream << ':' << result.getType();
      numbers.try_emplace(result, numbers.size());
    }
  }
  return text;
}

/// The same for a routine: its parameters and the operands' types.
std::string textOf(kernel::CallOp op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  Attribute routine = op.getRoutine();
  if (auto attention = dyn_cast<kernel::AttentionAttr>(routine))
    routine = kernel::withoutStream(attention);
  stream << routine << op.getIns().getTypes() << '|' << op.getOuts().getTypes();
  return text;
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

std::string describe(const Gemm& gemm) {
  return fmt::format(
      "gemm {}[{}, {}, {}]{}{}{}{}{}{}{}", gemm.batch > 1 ? std::to_string(gemm.batch) + " x " : "",
      gemm.m, gemm.n, gemm.k, gemm.transposeA ? " A^T" : "", gemm.transposeB ? " B^T" : "",
      gemm.a == DType::BF16 ? " bf16" : "", gemm.accumulate ? " accumulate" : "",
      gemm.bias ? " bias" : "", gemm.relu ? " relu" : "", gemm.c == DType::BF16 ? " to bf16" : "");
}

/// "attention backward [8, 6 / 2, 256, 256, 64] causal dropout": batch, query and key heads,
/// queries, keys, widths.
std::string describe(kernel::AttentionAttr attention) {
  auto both = [](int64_t a, int64_t b) {
    return a == b ? std::to_string(a) : fmt::format("{} / {}", a, b);
  };
  std::string element;
  llvm::raw_string_ostream(element) << attention.getElement();
  return fmt::format("attention {} [{}, {}, {}, {}, {}] {}{}{}{}",
                     attention.getGradient() ? "backward" : "forward", attention.getBatch(),
                     both(attention.getHeads(), attention.getKeyHeads()), attention.getQueries(),
                     attention.getKeys(), both(attention.getWidth(), attention.getValueWidth()),
                     element, attention.getCausal() ? " causal" : "",
                     attention.getMask() ? " mask" : "", attention.getDropout() ? " dropout" : "");
}

std::string describe(kernel::EmbeddingAttr routine) {
  return fmt::format("embedding [{} of {}, {}]", routine.getRows(), routine.getEntries(),
                     routine.getWidth());
}

std::string describe(kernel::EmbeddingGradAttr routine) {
  return fmt::format("embedding_grad [{} into {}, {}]{}", routine.getRows(), routine.getEntries(),
                     routine.getWidth(), routine.getAccumulate() ? " accumulate" : "");
}

} // namespace

Gemm toGemm(kernel::CallOp op) {
  kernel::GemmAttr gemm = op.getGemm();
  auto dtype = [](Value operand) {
    return cast<ShapedType>(operand.getType()).getElementType().isBF16() ? DType::BF16 : DType::F32;
  };
  Gemm call;
  call.m = gemm.getM();
  call.n = gemm.getN();
  call.k = gemm.getK();
  call.batch = gemm.getBatch();
  call.lda = gemm.getLda();
  call.ldb = gemm.getLdb();
  call.ldc = gemm.getLdc();
  call.batchStrideA = gemm.getStrideA();
  call.batchStrideB = gemm.getStrideB();
  call.batchStrideC = gemm.getStrideC();
  call.transposeA = gemm.getTransposeA();
  call.transposeB = gemm.getTransposeB();
  call.accumulate = gemm.getAccumulate();
  call.bias = gemm.getBias();
  call.relu = gemm.getRelu();
  call.a = dtype(op.getIns()[0]);
  call.b = dtype(op.getIns()[1]);
  call.c = dtype(op.getOuts()[0]);
  call.tileM = gemm.getTileM();
  call.tileN = gemm.getTileN();
  return call;
}

KernelTable::KernelTable(MLIRContext* context, const TargetInfo& target)
    : builder_(context), shape_(vectorShape(target)) {
  context
      ->loadDialect<func::FuncDialect, LLVM::LLVMDialect, scf::SCFDialect, vector::VectorDialect>();
  module_ = ModuleOp::create(builder_.getUnknownLoc());
  builder_.setInsertionPointToEnd(module_->getBody());
}

FailureOr<uint32_t> KernelTable::kernelFor(kernel::FusedOp op) {
  auto [slot, isNew] = fused_.try_emplace(textOf(op), kernels_.size());
  uint32_t index = slot->second;
  if (isNew) {
    Entry entry{"titan_kernel_" + std::to_string(index), describe(op), {}};
    if (failed(emitFusedKernel(builder_, op, entry.symbol, shape_)))
      return failure();
    kernels_.push_back(std::move(entry));
  }
  ArrayAttr paths = ir::getPath(op);
  kernels_[index].paths.insert(paths.begin(), paths.end());
  return index;
}

FailureOr<uint32_t> KernelTable::kernelFor(kernel::CallOp op) {
  auto [slot, isNew] = routines_.try_emplace(textOf(op), kernels_.size());
  uint32_t index = slot->second;
  if (isNew) {
    Entry entry{"titan_kernel_" + std::to_string(index), {}, {}};
    LogicalResult emitted =
        llvm::TypeSwitch<kernel::RoutineAttrInterface, LogicalResult>(op.getRoutine())
            .Case([&](kernel::AttentionAttr routine) {
              entry.description = describe(routine);
              emitAttentionKernel(builder_, op.getLoc(), routine, entry.symbol, shape_);
              return success();
            })
            .Case([&](kernel::EmbeddingAttr routine) {
              entry.description = describe(routine);
              emitEmbeddingKernel(builder_, op, entry.symbol);
              return success();
            })
            .Case([&](kernel::EmbeddingGradAttr routine) {
              entry.description = describe(routine);
              emitEmbeddingGradKernel(builder_, op, entry.symbol);
              return success();
            })
            .Default([&](kernel::RoutineAttrInterface) {
              return op.emitOpError("has no kernel on this target");
            });
    if (failed(emitted))
      return failure();
    kernels_.push_back(std::move(entry));
  }
  ArrayAttr paths = ir::getPath(op);
  kernels_[index].paths.insert(paths.begin(), paths.end());
  return index;
}

uint32_t KernelTable::gemmFor(kernel::CallOp op) {
  Gemm gemm = toGemm(op);
  auto found = llvm::find_if(gemms_, [&](const GemmEntry& entry) { return entry.gemm == gemm; });
  if (found == gemms_.end()) {
    auto index = static_cast<uint32_t>(kernels_.size());
    Entry entry{"titan_kernel_" + std::to_string(index), describe(gemm), {}};
    emitGemmKernel(builder_, op, entry.symbol, shape_);
    kernels_.push_back(entry);
    gemms_.push_back({gemm, entry, index});
    found = std::prev(gemms_.end());
  }
  ArrayAttr paths = ir::getPath(op);
  for (Entry* entry : {&found->entry, &kernels_[found->fallback]})
    entry->paths.insert(paths.begin(), paths.end());
  return found - gemms_.begin();
}

std::string KernelTable::Entry::label() const {
  std::string text = description;
  for (auto [i, path] : llvm::enumerate(paths))
    text += (i == 0 ? " : " : ", ") + cast<StringAttr>(path).getValue().str();
  return text;
}

void KernelTable::finish(Program& program) {
  for (const Entry& entry : kernels_)
    program.kernels.push_back({entry.symbol, entry.label()});
  for (const GemmEntry& gemm : gemms_)
    program.libraryCalls.push_back({LibraryRoutine::Gemm, gemm.gemm, gemm.entry.label(),
                                    gemm.fallback, prefersGenerated(gemm.gemm)});
}

} // namespace titan::codegen
