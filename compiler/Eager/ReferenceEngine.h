// The engine `reference` of eager runs: a module as *accumulate* left it, executed by the
// interpreter under the job's own command line. The job's runtime sees an ordinary Program whose
// functions are one command each; the command's kernel is the interpreter.
#pragma once

#include "compiler/Interpreter/Interpreter.h"
#include "runtime/program/Program.h"

#include "mlir/IR/BuiltinOps.h"

namespace titan::eager {

/// One per process: a kernel is a plain function, so the engine that runs is global while the
/// object lives.
class ReferenceEngine {
public:
  /// `module` has gone through *accumulate* and outlives the engine. Internal: it has not.
  static Result<std::unique_ptr<ReferenceEngine>> create(mlir::ModuleOp module,
                                                         interpreter::Engine engine);
  ~ReferenceEngine();

  /// States, bindings and one command per function; equal modules give equal programs.
  const Program& program() const { return program_; }
  /// What Program::kernels stands for.
  static KernelFunction kernel();

private:
  /// An argument or a result of a function, and where it lies in the arena.
  struct Slot {
    mlir::RankedTensorType type;
    DType dtype = DType::F32;
    std::string state; ///< canonical name; empty: no state
    int64_t offset = 0, bytes = 0;
  };
  struct FunctionSlots {
    mlir::func::FuncOp function;
    std::vector<Slot> arguments, results;
  };
  /// A state as the interpreter last left it: in f64 more exact than the bytes in the arena, which
  /// are its rounding.
  struct Remembered {
    interpreter::Tensor tensor;
    std::string bytes;
  };

  ReferenceEngine(mlir::ModuleOp module, interpreter::Engine engine)
      : module_(module), engine_(engine) {}
  mlir::LogicalResult describe();
  mlir::LogicalResult describeFunction(mlir::func::FuncOp function);
  int64_t place(int64_t bytes);
  void run(size_t function, char* const* operands);
  interpreter::Tensor read(const Slot& slot, const char* bytes);
  void write(const Slot& slot, const interpreter::Tensor& tensor, char* bytes);

  static void runKernel(char* const* operands, const int64_t* scalars, int64_t begin, int64_t end);

  mlir::ModuleOp module_;
  interpreter::Engine engine_;
  Program program_;
  std::vector<FunctionSlots> functions_;
  std::map<std::string, int64_t> stateIndex_;
  std::map<std::string, Remembered> remembered_;
};

} // namespace titan::eager
