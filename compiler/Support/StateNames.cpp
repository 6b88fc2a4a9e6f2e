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

} // namespace titan
