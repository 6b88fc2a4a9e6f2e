// What a Model and its Scopes write to: the module under construction. Layers get from here what
// MLIR needs to know of a scope.
#pragma once

#include "dialects/Titan/TensorBuilder.h"
#include "frontend/nn/Model.h"
#include "frontend/state/InitRules.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

#include <map>
#include <set>

namespace titan::nn {

class Builder {
public:
  /// `name` is what errors and `titan.model` call the model.
  Builder(mlir::MLIRContext& context, std::string name, const Recipe& recipe);

  const Recipe& recipe() const { return recipe_; }
  /// Keeps the first one.
  void fail(const std::string& message);
  bool hasFailed() const { return error_.has_value(); }

  int64_t dim(const std::string& symbol, int64_t otherwise);
  Tensor input(const std::string& name, DType dtype, const Shape& sample);
  void output(const std::string& name, Tensor value);
  Tensor parameter(const frontend::StateNames& names, const Shape& shape, Init init);
  Tensor buffer(const std::string& name, const Shape& shape, Init init, DType dtype);

  /// Builds ops of the module `scope`.
  ir::TensorBuilder at(const Scope& scope);
  /// The random stream of the next op that draws numbers in `scope`.
  int64_t nextStream(const Scope& scope);

  static mlir::Value valueOf(Tensor tensor) {
    return mlir::Value::getFromOpaquePointer(tensor.value_);
  }
  static Tensor tensorOf(mlir::Value value) { return Tensor(value.getAsOpaquePointer()); }

  /// The module, raised and verified as an import is. `instrument` gets the manager of the passes
  /// before they run. Errors (BadInput): the first one of the model.
  Result<mlir::OwningOpRef<mlir::ModuleOp>>
  finish(const std::function<void(mlir::PassManager&)>& instrument);

private:
  /// An argument of @model for a new state; no value, after an error, if the name is taken or the
  /// shape is none.
  Tensor declare(const frontend::StateNames& names, const Shape& shape, DType dtype, bool trains,
                 ir::RuleInitAttr init);
  /// The function's type and tags follow when the module is complete.
  Tensor insertArgument(unsigned index, mlir::Type type, mlir::NamedAttribute tag);
  ir::RuleInitAttr ruleOf(Init init);
  Status check() const;

  mlir::MLIRContext& context_;
  std::string name_;
  Recipe recipe_;
  mlir::OpBuilder builder_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::func::FuncOp function_;
  llvm::SmallVector<mlir::Attribute> argumentTags_; ///< dictionaries
  std::optional<std::string> error_;
  std::set<std::string> names_; ///< of states, with their aliases
  std::vector<frontend::StateNames> parameters_;
  unsigned states_ = 0; ///< arguments of @model before the inputs
  std::set<std::string> inputs_;
  std::vector<std::pair<std::string, mlir::Value>> outputs_;
  std::map<std::string, int64_t> dims_;   ///< that were asked for
  std::map<std::string, uint64_t> drawn_; ///< random ops of each path
};

/// The module of the model that `build` makes under `recipe`.
Result<mlir::OwningOpRef<mlir::ModuleOp>>
buildModule(mlir::MLIRContext& context, const std::string& name, const Recipe& recipe,
            const ModelFunction& build,
            const std::function<void(mlir::PassManager&)>& instrument = {});

} // namespace titan::nn
