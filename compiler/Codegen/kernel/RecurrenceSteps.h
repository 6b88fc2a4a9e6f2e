// The steps of #kernel.recurrence and of its gradient, on any machine.
#pragma once

#include "dialects/Kernel/Kernel.h"

#include "mlir/IR/Builders.h"

#include <memory>

namespace titan::codegen {

/// What a machine makes steps of. Numbers are of the type of sums, in memory too where no other
/// type is given; the routine's element type stands in memory as `element`.
class RecurrenceMachine {
public:
  /// Elements of one of the samples at hand: the one in `column`, or a vector from there on, of
  /// which `mask` names those that there are.
  struct Lanes {
    mlir::Value sample, column, mask;
  };

  /// product[sample][column] = sum over k, in its order, of left[sample][k] and row k of the panel
  /// that has the column, for all columns of `count` panels. Strides are in elements.
  struct Product {
    mlir::Value left;
    int64_t leftRow;
    mlir::Value panels;
    int64_t panelStride, count;
    mlir::Value product;
    int64_t productRow, depth;
  };

  explicit RecurrenceMachine(mlir::Type element) : element(element) {}
  virtual ~RecurrenceMachine() = default;

  /// Memory for that many numbers of each sample, which all that forLanes() runs sees.
  virtual mlir::Value scratch(int64_t numbers) = 0;
  /// Runs `body` for all columns of all samples at hand. What it writes is seen by what comes
  /// behind.
  virtual void forLanes(llvm::function_ref<void(const Lanes&)> body) = 0;
  virtual void multiply(const Product& product) = 0;

  virtual mlir::Value address(mlir::Value pointer, mlir::Value offset) = 0;
  virtual mlir::Value read(mlir::Value pointer, mlir::Value offset, const Lanes& at,
                           mlir::Type type) = 0;
  virtual void write(mlir::Value value, mlir::Value pointer, mlir::Value offset, const Lanes& at,
                     mlir::Type type) = 0;
  virtual mlir::Value number(double value) = 0;
  /// To the routine's element type and back.
  virtual mlir::Value rounded(mlir::Value value) = 0;

  const mlir::Type element;
};

/// Numbers of scratch memory that a sample takes in all.
int64_t scratchOfSample(kernel::RecurrenceAttr routine);

class RecurrenceSteps {
public:
  /// Takes the scratch memory. `operands` are addresses.
  static std::unique_ptr<RecurrenceSteps> create(mlir::OpBuilder& builder, kernel::CallOp call,
                                                 llvm::ArrayRef<mlir::Value> operands,
                                                 RecurrenceMachine& machine);
  virtual ~RecurrenceSteps() = default;
  /// All steps of the samples at hand, the first of which has the number `first`.
  virtual void emit(mlir::Value first) = 0;
};

} // namespace titan::codegen
