// A titan function seen through its tags: arguments and results by what they are, not by position.
#pragma once

#include "dialects/Titan/Titan.h"

#include "llvm/ADT/StringMap.h"

namespace titan {

class TaggedFunction {
public:
  explicit TaggedFunction(mlir::func::FuncOp function) : function_(function) {}

  /// A new one at `builder`'s place, without arguments and results.
  static TaggedFunction create(mlir::OpBuilder& builder, mlir::Location loc, llvm::StringRef name);

  mlir::func::FuncOp function() const { return function_; }
  mlir::func::ReturnOp terminator() const;

  /// The argument tagged `tag = name`, or null. `name` of a symbol tag is the symbol.
  mlir::BlockArgument findArgument(llvm::StringRef tag, llvm::StringRef name) const;
  /// All of `tag` by their names, for who looks for many; of several with one name the first.
  llvm::StringMap<mlir::BlockArgument> argumentsBy(llvm::StringRef tag) const;
  llvm::StringMap<mlir::Value> resultsBy(llvm::StringRef tag) const;
  struct TaggedType {
    mlir::Type type;
    llvm::StringRef tag;
    mlir::Attribute name; ///< a string or a symbol reference
  };
  /// Appends arguments with those tags. Several at once: each call copies the signature.
  llvm::MutableArrayRef<mlir::BlockArgument> addArguments(llvm::ArrayRef<TaggedType> arguments);
  mlir::BlockArgument addArgument(mlir::Type type, llvm::StringRef tag, mlir::Attribute name);
  /// The argument tagged so, appended if it is not there.
  mlir::BlockArgument getArgument(mlir::Type type, llvm::StringRef tag, mlir::Attribute value);
  /// What argument `index` (result `index`) is tagged with under `tag`: the string or the symbol;
  /// empty if it is not.
  llvm::StringRef argumentTag(unsigned index, llvm::StringRef tag) const;
  llvm::StringRef resultTag(unsigned index, llvm::StringRef tag) const;
  /// The state that argument `index` brings (result `index` gives back); null if it is none's.
  ir::StateOp argumentState(unsigned index) const;
  ir::StateOp resultState(unsigned index) const;
  /// The returned value tagged `tag = name`, or null.
  mlir::Value findResult(llvm::StringRef tag, llvm::StringRef name) const;

  struct TaggedValue {
    mlir::Value value;
    llvm::StringRef tag;
    mlir::Attribute name;
  };
  /// Appends results with those tags; several at once, as with arguments.
  void addResults(llvm::ArrayRef<TaggedValue> results);
  void addResult(mlir::Value value, llvm::StringRef tag, mlir::Attribute name);
  /// Replaces what the function returns.
  void setResults(llvm::ArrayRef<TaggedValue> results);

private:
  mlir::func::FuncOp function_;
};

} // namespace titan
