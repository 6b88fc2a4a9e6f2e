#include "frontend/onnx/name/Names.h"

#include "frontend/onnx/name/Namer.h"
#include "runtime/program/Names.h"

#include <algorithm>
#include <set>

namespace titan::frontend {

static constexpr NoteCause kGuessed = {
    "{} has its name by a guess at what its module is; --names can say otherwise",
    "{} tensors have their names by a guess at what their modules are; --names can say otherwise: "
    "{}"};

static constexpr NoteCause kPerhapsPadded = {
    "all rows of {} are trained; the export does not say whether one is padding (padding_idx of "
    "nn.Embedding), but --names can",
    "all rows of {} tables are trained; the export does not say whether one is padding "
    "(padding_idx of nn.Embedding), but --names can: {}"};

bool isFloating(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F64 || dtype == DType::F16 || dtype == DType::BF16;
}

void NamedTensor::rename(const std::string& to) {
  for (StatePiece& piece : pieces)
    if (piece.state == name)
      piece.state = to;
  name = to;
}

void NamedTensor::setDoubt(const NoteCause& cause, std::string shown) {
  doubt = &cause;
  about = std::move(shown);
}

void NamedTensor::settle() {
  structural = guessed = isPart = false;
  partOf.clear();
  doubt = nullptr;
}

void NamedTensor::turn(const Shape& shape, std::vector<int64_t> dims) {
  pieces = {{name, wholeOf(shape, std::move(dims))}};
}

const NamedTensor* NameTable::find(std::string_view initializer) const {
  for (const NamedTensor& tensor : tensors)
    if (tensor.initializer == initializer)
      return &tensor;
  return nullptr;
}

namespace {

/// Also where copies read it.
void renameState(NameTable& table, NamedTensor& tensor, const std::string& to) {
  for (NamedTensor& copy : table.tensors)
    for (StatePiece& piece : copy.pieces)
      if (copy.isCopy && piece.state == tensor.name)
        piece.state = to;
  tensor.rename(to);
}

/// The pieces of the names file in place of what the tensor was found to be.
Status applyPieces(const Graph& graph, const NameOverride& entry, NamedTensor& tensor) {
  const Shape& shape = graph.initializers.at(tensor.initializer).shape;
  tensor.pieces.clear();
  for (const StatePiece& given : entry.pieces) {
    if (graph.signature.known() && !graph.signature.byName(given.state))
      return Error::badInput("names file: '{}': the source has no '{}', which a piece is of",
                             printable(tensor.initializer), printable(given.state));
    Piece piece = given.piece;
    if (piece.from.empty())
      piece.from.assign(shape.size(), 0);
    tensor.pieces.push_back({given.state, writtenOut(piece, piece.extent)});
  }
  tensor.isCopy = false;
  tensor.settle();
  tensor.name = entry.pieces.front().state;
  tensor.aliases.clear();
  if (tensor.kind == TensorKind::Constant && !entry.kind)
    tensor.kind = TensorKind::Parameter;
  return {};
}

/// What the entry says otherwise than the export's signature, which lists the source's names.
Status checkAgainstSignature(const Graph& graph, const NameOverride& entry,
                             const NamedTensor& tensor) {
  if (!graph.signature.known())
    return {};
  const SourceTensor* source = graph.signature.byName(entry.name ? *entry.name : tensor.name);
  // What stands for a part of a parameter may be called anything.
  if (entry.name && !source && !tensor.isPart)
    return Error::badInput("names file: '{}': the source has no '{}': the export's signature does "
                           "not list it",
                           printable(tensor.initializer), printable(*entry.name));
  if (!entry.kind || !source || source->parameter == (*entry.kind == TensorKind::Parameter))
    return {};
  return Error::badInput(
      "names file: '{}': the export's signature says that '{}' is a {}, not a {}{}",
      printable(tensor.initializer), printable(source->name),
      source->parameter ? "parameter" : "buffer", name(*entry.kind),
      source->parameter ? "; model.frozen keeps a parameter from being trained" : "");
}

Status applyOverrides(const Graph& graph, const NameOverrides& overrides, NameTable& table) {
  for (const auto& [initializer, entry] : overrides) {
    auto it = std::find_if(table.tensors.begin(), table.tensors.end(),
                           [&](const NamedTensor& t) { return t.initializer == initializer; });
    if (it == table.tensors.end())
      return Error::badInput("names file: the model has no initializer '{}'; --check lists them",
                             printable(initializer));
    TITAN_TRY(checkAgainstSignature(graph, entry, *it));
    const Shape& shape = graph.initializers.at(initializer).shape;
    if (entry.layout) {
      std::vector<int64_t> sorted = *entry.layout;
      std::sort(sorted.begin(), sorted.end());
      bool permutes = sorted.size() == shape.size();
      for (size_t d = 0; permutes && d < sorted.size(); ++d)
        permutes = sorted[d] == static_cast<int64_t>(d);
      if (!permutes)
        return Error::badInput("names file: '{}': layout {} does not permute the dimensions of {}",
                               printable(initializer), toString(*entry.layout), toString(shape));
      it->pieces.clear();
      if (*entry.layout != sorted || it->isCopy)
        it->turn(shape, *entry.layout);
    }
    if (entry.paddingIndex) {
      int64_t rows = shape.empty() ? 0 : shape.front();
      if (*entry.paddingIndex < 0 || *entry.paddingIndex >= rows)
        return Error::badInput("names file: '{}': padding_idx = {} is no row of {}",
                               printable(initializer), *entry.paddingIndex, toString(shape));
      it->paddingIndex = entry.paddingIndex;
    }
    if (!entry.pieces.empty())
      TITAN_TRY(applyPieces(graph, entry, *it));
    if (entry.name) {
      if (!it->isCopy)
        renameState(table, *it, *entry.name);
      std::erase(it->aliases, it->name);
      // Under a name that the source has not, a part is one still.
      if (it->isPart && graph.signature.known() && !graph.signature.byName(*entry.name))
        it->about = fmt::format("{} (here {})", inQuotes(initializer), inQuotes(*entry.name));
      else if (it->structural || it->guessed)
        it->settle();
      it->structural = it->guessed = false;
    }
    if (entry.kind) {
      it->kind = *entry.kind;
      it->proof = Proof::Told;
      if (!it->structural)
        it->doubt = nullptr;
    }
    if (it->kind == TensorKind::Parameter && !isFloating(graph.initializers.at(initializer).dtype))
      return Error::badInput("names file: '{}' is {}: only floating tensors can be parameters",
                             printable(initializer),
                             titan::name(graph.initializers.at(initializer).dtype));
  }
  return {};
}

constexpr NoteCause kWrapped = {
    "wrapper segments are not part of a name: {}",
    "wrapper segments are not part of a name, as in those of {} tensors: {}"};

/// Wrappers of the training framework (torch.compile, DDP, FSDP) are not part of a canonical name.
void stripWrappers(NameTable& table) {
  std::set<std::string> names;
  for (const NamedTensor& tensor : table.tensors)
    names.insert(tensor.name);
  for (NamedTensor& tensor : table.tensors) {
    if (!tensor.fillsStates())
      continue;
    std::string stripped = stripWrapperSegments(tensor.name);
    if (stripped == tensor.name || !names.insert(stripped).second)
      continue;
    table.notes.add(kWrapped,
                    fmt::format("{} (here {})", inQuotes(tensor.name), inQuotes(stripped)));
    renameState(table, tensor, stripped);
  }
}

} // namespace

Result<NameTable> nameTensors(const Graph& graph, const NameOverrides& overrides) {
  NameTable table = namesOf(graph);
  TITAN_TRY(applyOverrides(graph, overrides, table));
  for (const NamedTensor& tensor : table.tensors)
    if (tensor.guessed && !tensor.doubt)
      table.notes.add(kGuessed, fmt::format("{} (here {})", inQuotes(tensor.initializer),
                                            inQuotes(tensor.name)));
  stripWrappers(table);
  for (const NamedTensor& tensor : table.tensors)
    if (tensor.doubt)
      table.notes.add(*tensor.doubt,
                      tensor.about.empty() ? inQuotes(tensor.initializer) : tensor.about);
  for (const NamedTensor& tensor : table.tensors)
    if (tensor.perhapsPadded && !tensor.paddingIndex)
      table.notes.add(kPerhapsPadded, inQuotes(tensor.name));
  TITAN_TRY(formStates(graph, table));
  table.account = TITAN_TRY(accountOf(graph, table));
  return table;
}

} // namespace titan::frontend
