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

/// "slow.w" of the average @ema.slow.w; empty for states of other kinds.
static llvm::StringRef withoutPrefix(ir::StateOp average) {
  llvm::StringRef symbol = average.getSymName();
  return average.getKind() == ir::StateKind::Ema && symbol.consume_front("ema.")
             ? symbol
             : llvm::StringRef();
}

llvm::StringRef profileOf(ir::StateOp state) { return withoutPrefix(state).split('.').first; }

ir::StateOp averagedBy(ir::StateOp average) {
  llvm::StringRef symbol = withoutPrefix(average).split('.').second;
  return symbol.empty() ? ir::StateOp()
                        : average->getParentOfType<ModuleOp>().lookupSymbol<ir::StateOp>(symbol);
}

} // namespace titan
