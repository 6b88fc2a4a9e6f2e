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

/// What decides the code of a kernel.call, as text: two calls with one text share a kernel. What
/// differs between them all the same is handed to the kernel as further scalars.
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
  virtual mlir::LogicalResult emit(kernel::CallOp op, llvm::StringRef symbol) = 0;

  virtual Launch launch(const LoopNest& nest, const Cost& cost) const = 0;
  virtual Launch launch(kernel::CallOp op, const Cost& cost) const = 0;

  /// The configuration of a library's routine that may do the call's work; its label and fallback
  /// are the table's to fill in.
  virtual std::optional<LibraryCall> library(kernel::CallOp op) const = 0;

  enum class CodeForm { Image, Assembly };
  /// The code of all kernels emitted so far; called once. Internal, with MLIR's or LLVM's message,
  /// when one of them refuses.
  virtual Result<std::string> finish(CodeForm form) = 0;
  /// How a job names the image of finish(); its range and digest are filled in by the caller.
  virtual Image image() const = 0;

  /// Where finish() looks for code before it compiles, and keeps it afterwards; null: nowhere.
  void setCache(CodeCache* cache) { cache_ = cache; }

protected:
  /// `info` has a machine model.
  explicit Target(TargetInfo info) : info_(std::move(info)) {}
  CodeCache* cache() const { return cache_; }

private:
  TargetInfo info_;
  CodeCache* cache_ = nullptr;
};

} // namespace titan::codegen
