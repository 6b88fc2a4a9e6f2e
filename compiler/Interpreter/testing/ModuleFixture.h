// What tests share that parse modules, run passes on them and run them in the interpreter.
#pragma once

#include "compiler/Interpreter/Interpreter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

namespace titan::interpreter::testing {

/// Registers what the stage under test attaches to ops.
using RegisterInterfaces = void (*)(mlir::DialectRegistry&);

/// Every dialect that a module may hold, with the interpreter's models and `more`.
mlir::DialectRegistry moduleRegistry(RegisterInterfaces more = nullptr);

class ModuleFixture : public ::testing::Test {
protected:
  explicit ModuleFixture(RegisterInterfaces more = nullptr);

  /// The test fails where `text` is no module.
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text);
  /// The text of a file, by its path in the repository.
  static std::string readFile(llvm::StringRef path);
  static std::string replaceAll(std::string text, llvm::StringRef from, llvm::StringRef to);
  Tensor floats(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<double> values);
  Tensor integer(int64_t value); ///< i64 scalar
  /// Random arguments for a tagged function, integers in [0, integerBound).
  static Arguments namedArguments(mlir::func::FuncOp function, int64_t integerBound);

  mlir::MLIRContext context;
  std::string message; ///< the last diagnostic
};

} // namespace titan::interpreter::testing
