// Compiles the kernels of a module text and calls them in this process.
#pragma once

#include "compiler/Codegen/cpu/FusedKernel.h"
#include "compiler/Codegen/cpu/testing/LoadedCode.h"
#include "compiler/Support/TargetInfo.h"
#include "dialects/Kernel/Kernel.h"
#include "runtime/program/Program.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace titan::codegen::testing {

/// The target's, but for the matrix unit, which takes products of any size.
VectorShape shapeWith(MatrixUnitKind unit, const TargetInfo& target);

class KernelRunner {
public:
  /// The kernels (kernel.fused and kernel.call) of `text`, in order, for this machine.
  static Result<std::unique_ptr<KernelRunner>> compile(std::string_view text);
  static Result<std::unique_ptr<KernelRunner>> compile(std::string_view text,
                                                       const TargetInfo& target);
  /// With other vectors and another matrix unit than the target's.
  static Result<std::unique_ptr<KernelRunner>>
  compile(std::string_view text, const TargetInfo& target, const VectorShape& shape);

  struct Entry {
    mlir::Operation* op = nullptr;
    KernelFunction function = nullptr;
    int64_t units = 0;
  };
  const std::vector<Entry>& kernels() const { return kernels_; }

  /// Runs a kernel in calls of at most `step` units (0: all at once), last range first.
  void run(size_t kernel, std::span<char* const> operands, std::span<const int64_t> scalars = {},
           int64_t step = 0) const;

private:
  KernelRunner();
  std::unique_ptr<mlir::MLIRContext> context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::unique_ptr<LoadedCode> code_;
  std::vector<Entry> kernels_;
};

} // namespace titan::codegen::testing
