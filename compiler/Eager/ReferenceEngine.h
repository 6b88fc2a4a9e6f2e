// The engine `reference` of eager runs: a module as *shard* left it, executed by the
// interpreter under the job's own command line. The job's runtime sees an ordinary Program whose
// functions are one command each, and a device that runs it.
#pragma once

#include "compiler/Interpreter/Interpreter.h"
#include "runtime/device/HostDevice.h"
#include "runtime/program/Program.h"

#include "mlir/IR/BuiltinOps.h"

namespace titan::eager {

/// What a module is as a program, and where the interpreter's values lie in its arena.
class ReferenceProgram {
public:
  /// `module` has gone through *accumulate* and outlives the object. Internal: it has not.
  static Result<ReferenceProgram> create(mlir::ModuleOp module, interpreter::Engine engine);

  /// States, bindings and one command per function; equal modules give equal programs.
  const Program& program() const { return program_; }

private:
  friend class ReferenceEngine;

  /// An argument or a result of a function, and where it lies in the arena.
  struct Slot {
    mlir::RankedTensorType type;
    DType dtype = DType::F32;
    bool isState = false;
    int64_t offset = 0, bytes = 0;
  };
  struct FunctionSlots {
    mlir::func::FuncOp function;
    std::vector<Slot> arguments, results;
  };
  ReferenceProgram(mlir::ModuleOp module, interpreter::Engine engine)
      : module_(module), engine_(engine) {}
  mlir::LogicalResult describe();
  mlir::LogicalResult describeFunction(mlir::func::FuncOp function);
  int64_t place(int64_t bytes);

  mlir::ModuleOp module_;
  interpreter::Engine engine_;
  Program program_;
  std::vector<FunctionSlots> functions_;
  std::map<std::string, int64_t> stateIndex_;
};

class ReferenceEngine final : public HostDevice {
public:
  /// Environment when there is no memory for the arena.
  static Result<std::unique_ptr<ReferenceEngine>> create(ReferenceProgram program);

  /// Internal, with the command's label, when the interpreter cannot run it.
  Status run(uint32_t function, CommandObserver* observer) override;

private:
  using Slot = ReferenceProgram::Slot;
  /// A state as the interpreter last left it: in f64 more exact than the bytes in the arena, which
  /// are its rounding.
  struct Remembered {
    interpreter::Tensor tensor;
    std::string bytes;
  };

  ReferenceEngine(ReferenceProgram program, HostMemory memory)
      : HostDevice(memory.bytes().data(), static_cast<int64_t>(memory.bytes().size())),
        source_(std::move(program)), memory_(std::move(memory)) {}
  interpreter::Tensor read(const Slot& slot);
  void write(const Slot& slot, const interpreter::Tensor& tensor);

  ReferenceProgram source_;
  HostMemory memory_;
  std::map<int64_t, Remembered> remembered_; ///< by the offset of a state
};

} // namespace titan::eager
