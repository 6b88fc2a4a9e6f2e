// Sequences: torch.export splits and joins through them. They exist during import only.
#include "frontend/onnx/convert/Conversion.h"
#include "frontend/onnx/convert/Rows.h"

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

constexpr size_t kMostPieces = 1024;

/// Pieces of the sizes that `split` lists, of one size (a scalar), or of 1.
Status splitToSequence(Conversion& c) {
  Value x = TITAN_TRY(c.operand(0));
  int64_t axis = TITAN_TRY(c.axis(0, c.rankOf(x))), extent = c.shapeOf(x)[axis];
  std::vector<int64_t> sizes;
  if (c.has(1) && c.constant(1) && !c.constant(1)->shape.empty()) {
    sizes = TITAN_TRY(splitSizes(c.node, extent, TITAN_TRY(c.list(1, "split")), 0));
  } else {
    int64_t piece = c.has(1) ? TITAN_TRY(c.integerScalar(1, "split")) : 1;
    if (piece <= 0)
      return c.error("pieces of {}", piece);
    for (int64_t left = extent; left > 0; left -= sizes.back())
      sizes.push_back(std::min(piece, left));
  }
  if (sizes.size() > kMostPieces)
    return c.error("more than {} pieces", kMostPieces);
  std::vector<Value>& pieces = c.sequenceResult.emplace();
  int64_t begin = 0;
  for (int64_t size : sizes) {
    if (size == 0)
      return c.error("piece {} is empty", pieces.size());
    Value piece = c.run(x, axis, begin, size);
    if (!c.has(1) && c.node.integer("keepdims", 1) == 0) {
      Shape shape = c.shapeOf(piece);
      shape.erase(shape.begin() + axis);
      piece = c.reshape(piece, shape);
    }
    pieces.push_back(piece);
    begin += size;
  }
  return {};
}

/// `position` counted from the front, in [0, size).
Result<int64_t> positionOf(Conversion& c, size_t operand, size_t size) {
  int64_t position = TITAN_TRY(c.integerScalar(operand, "the position"));
  return normalizeAxis(c.node, position, static_cast<int64_t>(size));
}

Status sequenceAt(Conversion& c) {
  auto elements = TITAN_TRY(c.sequence(0));
  return c.give(elements[TITAN_TRY(positionOf(c, 1, elements.size()))]);
}

Status sequenceConstruct(Conversion& c) {
  if (c.count() > kMostPieces)
    return c.error("more than {} elements", kMostPieces);
  std::vector<Value>& elements = c.sequenceResult.emplace();
  for (size_t i = 0; i < c.count(); ++i)
    elements.push_back(TITAN_TRY(c.operand(i)));
  return {};
}

Status sequenceEmpty(Conversion& c) {
  c.sequenceResult.emplace();
  return {};
}

Status sequenceInsert(Conversion& c) {
  auto elements = TITAN_TRY(c.sequence(0));
  Value tensor = TITAN_TRY(c.operand(1));
  // In front of the element there, so that -1 is no end; the size is one.
  size_t position = elements.size();
  if (c.has(2) && TITAN_TRY(c.integerScalar(2, "the position")) != int64_t(elements.size()))
    position = static_cast<size_t>(TITAN_TRY(positionOf(c, 2, elements.size())));
  if (elements.size() >= kMostPieces)
    return c.error("more than {} elements", kMostPieces);
  elements.insert(elements.begin() + static_cast<long>(position), tensor);
  c.sequenceResult = std::move(elements);
  return {};
}

Status sequenceErase(Conversion& c) {
  auto elements = TITAN_TRY(c.sequence(0));
  if (elements.empty())
    return c.error("takes an element of an empty sequence");
  size_t position = elements.size() - 1;
  if (c.has(1))
    position = static_cast<size_t>(TITAN_TRY(positionOf(c, 1, elements.size())));
  elements.erase(elements.begin() + static_cast<long>(position));
  c.sequenceResult = std::move(elements);
  return {};
}

/// Joined along an axis, or stacked along a new one.
Status concatFromSequence(Conversion& c) {
  auto elements = TITAN_TRY(c.sequence(0));
  if (elements.empty())
    return c.error("joins an empty sequence");
  bool stack = c.node.integer("new_axis", 0) != 0;
  int64_t rank = c.rankOf(elements.front()) + (stack ? 1 : 0);
  int64_t axis = TITAN_TRY(c.axis(0, rank));
  for (Value& element : elements)
    if (stack) {
      Shape shape = c.shapeOf(element);
      if (static_cast<int64_t>(shape.size()) < axis)
        return c.error("elements differ in rank");
      shape.insert(shape.begin() + axis, 1);
      element = c.reshape(element, shape);
    }
  if (axis == 0 && !c.shapeOf(elements.front()).empty())
    if (Value rows = rowsOf(c, elements)) {
      Shape shape = c.shapeOf(elements.front());
      shape.front() *= static_cast<int64_t>(elements.size());
      return c.give(c.reshaped(rows, shape));
    }
  return c.give(TITAN_TRY(c.joined(elements, axis)));
}

} // namespace

ArrayRef<ConverterEntry> sequenceConverters() {
  static const ConverterEntry table[] = {
      {"ConcatFromSequence", 11, concatFromSequence, ""},
      {"SequenceAt", 11, sequenceAt, "static position"},
      {"SequenceConstruct", 11, sequenceConstruct, ""},
      {"SequenceEmpty", 11, sequenceEmpty, ""},
      {"SequenceErase", 11, sequenceErase, "static position"},
      {"SequenceInsert", 11, sequenceInsert, "static position"},
      {"SplitToSequence", 11, splitToSequence, "static sizes"},
  };
  return table;
}

} // namespace titan::frontend
