// What the command table asks of a target: the code of a kernel, how it is launched, and which
// library may do its work. A target is a folder here (cpu/); Targets.cpp lists them.
#pragma once

#include "compiler/Codegen/CodeCache.h"
#include "compiler/Codegen/CostModel.h"
#include "compiler/Support/TargetInfo.h"
#include "runtime/program/Error.h"
#include "runtime/program/Program.h"

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <string>
#include <vector>

namespace titan::codegen {

/// Machine code with all kernels of a program, for one architecture.
struct CompiledImage {
  Image image;       ///< its range and digest are filled in where the bytes find their place
  std::string bytes; ///< for a CPU an archive of objects, for a card a cubin or PTX
  std::string log;   ///< of the assembler, if there was one
};

/// What decides the code of a kernel.call: two calls with one key (`KeyBuilder`) share a kernel.
/// What differs between them all the same is handed to the kernel as further scalars.
struct RoutineCode {
  std::string key;
  llvm::SmallVector<int64_t> scalars;
};

/// How the calls of one kind of routine become kernels.
struct RoutineEmitter {
  /// What it computes, for labels: "embedding [2048 of 65, 384]".
  std::string (*describe)(kernel::CallOp call);
  Cost (*cost)(kernel::CallOp call, const MachineModel& machine);
  RoutineCode (*code)(kernel::CallOp call);
  /// The order in which kernel and library take the operands: numbers of ins, then of outs behind
  /// them.
  llvm::SmallVector<unsigned> (*operands)(kernel::CallOp call);
};

class Target {
public:
  virtual ~Target() = default;

  const TargetInfo& info() const { return info_; }
  const MachineModel& machine() const { return *info_.machine; }
  /// The device that a job runs on, and what its start-up check requires of it.
  virtual ProgramTarget device() const = 0;

  /// The emitter for a routine, or null: it has no kernel on this target.
  virtual const RoutineEmitter* routine(mlir::Attribute routine) const = 0;

  /// Generates the kernel `symbol` (KernelFunction, runtime/program/Program.h). Fails with a
  /// diagnostic on the op.
  virtual mlir::LogicalResult emit(kernel::FusedOp op, llvm::StringRef symbol) = 0;
  /// Is there code for all that *lower* makes? Then a kernel without is a bug of ours, and not a
  /// model that this target cannot train.
  virtual bool coversAll() const { return true; }
  virtual mlir::LogicalResult emit(kernel::CallOp op, llvm::StringRef symbol) = 0;
  /// What decides the code of a kernel besides its body, as text: kernels are shared by calls of
  /// one body and one variant.
  virtual std::string variant(kernel::FusedOp) const { return {}; }
  virtual std::string variant(kernel::CallOp) const { return {}; }
  /// How a card launches the kernel that was emitted as `symbol`; empty for a CPU.
  virtual std::vector<GridLaunch> launches(llvm::StringRef) const { return {}; }

  virtual Launch launch(const LoopNest& nest, const Cost& cost) const = 0;
  virtual Launch launch(kernel::CallOp op, const Cost& cost) const = 0;

  /// The configuration of a library's routine that may do the call's work; its label and fallback
  /// are the table's to fill in.
  virtual std::optional<LibraryCall> library(kernel::CallOp op) const = 0;

  /// The code of all kernels emitted so far, for each architecture; called once. Internal, with
  /// MLIR's or LLVM's message, when one of them refuses.
  virtual Result<std::vector<CompiledImage>> finish() = 0;
  /// The same as text, in place of finish().
  virtual Result<std::string> finishAsText() = 0;
  /// What the user is to know of finish().
  const std::vector<std::string>& notes() const { return notes_; }

  /// Where finish() looks for code before it compiles, and keeps it afterwards; null: nowhere.
  void setCache(CodeCache* cache) { cache_ = cache; }

protected:
  /// `info` has a machine model.
  explicit Target(TargetInfo info) : info_(std::move(info)) {}
  CodeCache* cache() const { return cache_; }
  void note(std::string text) { notes_.push_back(std::move(text)); }

private:
  TargetInfo info_;
  std::vector<std::string> notes_;
  CodeCache* cache_ = nullptr;
};

} // namespace titan::codegen
