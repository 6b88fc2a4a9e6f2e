#include "compiler/Support/StateNames.h"

#include "runtime/program/Recipe.h"

using namespace mlir;

namespace titan {

bool matchesName(StringRef glob, ir::StateOp state) {
  if (matchesGlob(glob, state.getName()))
    return true;
  ArrayAttr aliases = state.getAliasesAttr();
  return aliases && llvm::any_of(aliases.getAsValueRange<StringAttr>(),
                                 [&](StringRef alias) { return matchesGlob(glob, alias); });
}

std::string averageSymbol(llvm::StringRef profile, llvm::StringRef symbol) {
  return ("ema." + profile + "." + symbol).str();
}

llvm::StringRef profileOf(ir::StateOp state) {
  if (state.getKind() != ir::StateKind::Ema)
    return {};
  llvm::StringRef symbol = state.getSymName();
  return symbol.consume_front("ema.") ? symbol.split('.').first : llvm::StringRef();
}

} // namespace titan
