#include "frontend/onnx/convert/Conversion.h"

using namespace mlir;

namespace titan::frontend {

ArrayRef<ConverterEntry> converterTable() {
  static const std::vector<ConverterEntry> table = [] {
    std::vector<ConverterEntry> all;
    for (auto family :
         {elementwiseConverters, functionConverters, scatterConverters, activationConverters,
          contractionConverters, convolutionConverters, resizeConverters, normalizationConverters,
          randomConverters, einsumConverters, movementConverters, pieceConverters,
          reductionConverters, indexingConverters, recurrenceConverters, sequenceConverters,
          attentionConverters, lossConverters})
      llvm::append_range(all, family());
    llvm::sort(all, [](const ConverterEntry& a, const ConverterEntry& b) {
      return StringRef(a.opType) < StringRef(b.opType);
    });
    return all;
  }();
  return table;
}

const ConverterEntry* findConverter(const Node& node) {
  if (!node.domain.empty())
    return nullptr;
  for (const ConverterEntry& entry : converterTable())
    if (node.opType == entry.opType && node.opset >= entry.since)
      return &entry;
  return nullptr;
}

} // namespace titan::frontend
