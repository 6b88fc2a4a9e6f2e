#include "frontend/onnx/name/Namer.h"

#include "frontend/onnx/name/Rules.h"
#include "runtime/program/Names.h"

#include <algorithm>

namespace titan::frontend {

namespace {

/// Sets role and fan-in from the first use that has one.
void describeUse(const Facts& facts, NamedTensor& tensor) {
  for (const Use& use : facts.usesOf(tensor).uses) {
    if (tensor.role == Role::Other)
      tensor.role = use.role;
    if (tensor.fanIn == 0)
      tensor.fanIn = use.fanIn;
  }
}

/// PyTorch writes what it folds as initializers; its Constant nodes are constants of the program.
bool isOfProgram(const Facts& facts, NamedTensor& tensor) {
  if (!facts.file(tensor).fromConstantNode || !facts.graph.fromPyTorch())
    return false;
  tensor.proof = Proof::Number;
  return true;
}

/// Kind, name and layout of a tensor that the exporter renamed: by the op that reads it, then by
/// what metadata says, then by the scopes and biases around it. What is left, and was not computed,
/// is told by what it does. False: nothing tells what it is.
bool recover(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  return isOfProgram(facts, tensor) || fromRecurrence(naming, tensor) ||
         fromProjection(naming, tensor) || fromNormOfGroups(naming, tensor) ||
         fromLegacyFold(naming, tensor) || fromMetadata(naming, tensor) ||
         fromScope(naming, tensor) || fromBiasBeside(naming, tensor) ||
         (!isFolded(facts, tensor) && fromRole(naming, tensor));
}

/// Names each tensor by itself. Returns those that are still unknown, by position.
std::vector<size_t> nameEach(Naming& naming) {
  std::vector<size_t> unknown;
  for (const std::string& name : naming.facts.graph.initializerOrder) {
    NamedTensor tensor;
    tensor.initializer = tensor.name = name;
    describeUse(naming.facts, tensor);
    if (!naming.facts.isMadeUp(name))
      classify(naming, tensor);
    else if (!recover(naming, tensor))
      unknown.push_back(naming.table.tensors.size());
    naming.table.tensors.push_back(std::move(tensor));
  }
  return unknown;
}

/// nn.Embedding(padding_idx=p) trains no row p. The metadata of a look-up says so; without it the
/// row looks like any other.
bool isPerhapsPadded(const Facts& facts, const NamedTensor& table) {
  return facts.graph.fromPyTorch() && table.kind == TensorKind::Parameter &&
         facts.usesOf(table).indexedByInput &&
         std::ranges::any_of(facts.usesOf(table).uses, [&](const Use& use) {
           return use.role == Role::Embedding && facts.scopeOf(use).target.empty();
         });
}

/// Why constants are constants, and which tables may have a row that look-ups do not train.
void settleKinds(Naming& naming) {
  for (NamedTensor& tensor : naming.table.tensors)
    if (tensor.kind == TensorKind::Constant && tensor.proof == Proof::None)
      tensor.proof = proofOf(naming.facts, tensor);
    else
      tensor.perhapsPadded = isPerhapsPadded(naming.facts, tensor);
}

/// The parameters and buffers that the exporter names, in its signature or else in metadata.
void listSource(Naming& naming) {
  const Facts& facts = naming.facts;
  std::vector<ListedTensor>& listed = naming.table.listed;
  for (const SourceTensor& source : facts.signature().tensors())
    listed.push_back({stripWrapperSegments(source.name), source.parameter, source.persistent,
                      facts.fxKinds().contains(source.mangled)});
  if (facts.signature().known())
    return;
  std::map<std::string, std::string> known; // by mangled name
  for (const std::string& name : naming.taken())
    known.emplace(mangled(name), name);
  for (const auto& [name, kind] : facts.fxKinds()) {
    if (kind != 'p' && kind != 'b')
      continue;
    auto it = known.find(name);
    std::string shown = it == known.end() ? facts.demangled(name, "") : it->second;
    listed.push_back({stripWrapperSegments(shown), kind == 'p', true, true});
  }
}

} // namespace

NameTable namesOf(const Graph& graph) {
  const Facts facts(graph);
  Naming naming(facts);

  // Tensors one by one, each by what is known of it alone. Projections are first: their matrices
  // would pass for layers of their own.
  findProjections(naming);
  const std::vector<size_t> unknown = nameEach(naming);

  // What has a name may be a second reading of another tensor. Only what is left is trained, and
  // may be tied.
  readEqualTensors(naming);
  for (NamedTensor& tensor : naming.table.tensors)
    if (tensor.fillsStates())
      tie(naming, tensor);

  // Only now is it known which parameters of the source no tensor of the file is: what exporters
  // computed may stand for them.
  nameFolded(naming, unknown);

  // What has its name may stand for others as well.
  doubtMergedLayers(naming);
  doubtShared(naming);
  doubtLayersBesideGaps(naming);
  doubtDetached(naming);

  // Names are final.
  settleCopies(naming);
  settleKinds(naming);
  listSource(naming);
  return std::move(naming.table);
}

} // namespace titan::frontend
