// The attention routine of kernel.call: its units, and what its views touch.
#include "dialects/Kernel/Kernel.h"

using namespace mlir;

namespace titan::kernel {

FloatType AttentionAttr::getAccumulation() const {
  Builder builder(getContext());
  return getElement().isF64() ? FloatType(builder.getF64Type()) : FloatType(builder.getF32Type());
}

int64_t AttentionAttr::getRowBlock() const {
  int64_t columns = std::max(getWidth(), getValueWidth());
  return columns <= 256 ? 64 : 32;
}

int64_t AttentionAttr::padded(int64_t width) {
  constexpr int64_t widestVector = 16;
  return static_cast<int64_t>(llvm::alignTo(width, widestVector));
}

int64_t AttentionAttr::getWorkspaceElements() const {
  int64_t width = padded(getWidth()), valueWidth = padded(getValueWidth());
  if (getElement() == getAccumulation() && width == getWidth() && valueWidth == getValueWidth())
    return 0;
  return getBatch() * getKeyHeads() * getKeys() * (width + valueWidth);
}

bool AttentionAttr::readsOut(unsigned) const { return false; }

int64_t AttentionAttr::getUnits() const {
  return getGradient()
             ? getBatch() * getKeyHeads()
             : getBatch() * getHeads() * llvm::divideCeilSigned(getQueries(), getRowBlock());
}

LogicalResult AttentionAttr::verifyCall(Operation* op) const { return success(); }

} // namespace titan::kernel
