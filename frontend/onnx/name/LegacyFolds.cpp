// What PyTorch's TorchScript exporter made where it folds constants. A result of which no operand
// is a parameter or buffer stays a Constant node there, and all others become initializers, called
// after their reader ("onnx::Mul_27"). So such an initializer was computed from a parameter or a
// buffer; from which one, and how, is not in the file. It is trained, under a name that says so.
#include "frontend/onnx/name/Namer.h"
#include "frontend/onnx/name/Values.h"

#include <algorithm>

namespace titan::frontend {

static constexpr NoteCause kFolded = {
    "{} is what the exporter computed from parameters or buffers, and is trained in their place; "
    "export with do_constant_folding=False to keep them",
    "{} tensors are what the exporter computed from parameters or buffers, and are trained in "
    "their place; export with do_constant_folding=False to keep them: {}"};
static constexpr NoteCause kMatrix = {
    "{} was folded by the exporter and is taken for the weight of the layer that multiplies by it; "
    "where a layer computes its weight, as with weight_norm, it is trained in place of what that "
    "is "
    "computed from; export with do_constant_folding=False to be sure",
    "{} tensors were folded by the exporter and are taken for the weights of the layers that "
    "multiply by them; where a layer computes its weight, as with weight_norm, it is trained in "
    "place of what that is computed from; export with do_constant_folding=False to be sure: {}"};
static constexpr NoteCause kPerhapsBuffer = {
    "{} is trained, and may be a buffer, which this exporter does not tell: --names can say "
    "kind = \"buffer\"",
    "{} tensors are trained, and may be buffers, which this exporter does not tell: --names can "
    "say "
    "kind = \"buffer\": {}"};

/// The TorchScript exporter says nothing of parameters: neither a signature nor metadata of nodes.
bool Namer::isLegacy() const {
  return graph_.fromPyTorch() && !signature().known() && fxKinds_.empty();
}

bool Namer::isLegacyFold(const NamedTensor& tensor) const {
  const std::string& name = tensor.initializer;
  bool numbered =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
  return isLegacy() && !fileTensor(tensor).fromConstantNode &&
         (numbered || name.starts_with("onnx::")); // "215" before PyTorch 1.12
}

/// Does `module` itself do what nn.Linear does, a product and perhaps a sum, and nothing else?
bool Namer::isLayer(const std::string& module) const {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const std::string& op = graph_.nodes[i].opType;
    if (scopes_[i].module == module && op != "MatMul" && op != "Gemm" && op != "Add" &&
        op != "Cast")
      return false;
  }
  return true;
}

void Namer::nameLegacyFold(NamedTensor& tensor) {
  const Tensor& file = fileTensor(tensor);
  const TensorUses& uses = usesOf(tensor);
  if (!isFloating(file.dtype) || !uses.differentiable || uses.uses.empty() ||
      (!uses.indexedByInput && classifyAngles(tensor)))
    return;
  if (tensor.role != Role::Weight && isPattern(file)) {
    tensor.proof = Proof::Mask;
    return;
  }
  const std::string shown = inQuotes(tensor.initializer);
  // The transposition of its parameter is the likeliest matrix that a layer reads. What is not
  // transposed was computed: the exporter reads the parameter itself there.
  auto turned = std::find_if(uses.uses.begin(), uses.uses.end(), [&](const Use& use) {
    return file.shape.size() == 2 && use.role == Role::Weight && use.transposed;
  });
  if (turned != uses.uses.end() && fromScope(tensor)) {
    if (!tensor.guessed)
      tensor.setDoubt(kMatrix, fmt::format("{} (here {})", shown, inQuotes(tensor.name)));
    tensor.guessed = true;
    return;
  }
  tensor.kind = tensor.role == Role::Statistic ? TensorKind::Buffer : TensorKind::Parameter;
  nameStructurally(tensor);
  if (turned != uses.uses.end() && scopes_[turned->node].place == ScopePlace::Unknown)
    return; // a layer's, which is in a container that is not shown
  tensor.isPart = true;
  tensor.setDoubt(kFolded, fmt::format("{} (here {})", shown, inQuotes(tensor.name)));
}

/// The kind of a tensor that has kept its name and takes part in floating arithmetic. state_dict()
/// lists parameters and buffers alike, and so does the TorchScript exporter; what torch.nn's layers
/// call weight and bias are parameters.
void Namer::classifyLegacy(NamedTensor& tensor) {
  const Tensor& file = fileTensor(tensor);
  tensor.kind = TensorKind::Parameter;
  if (!isLegacy())
    return;
  std::string_view leaf = leafOf(tensor.initializer);
  bool weight = leaf.starts_with("weight") || leaf.ends_with("weight");
  bool bias = leaf.starts_with("bias") || leaf.ends_with("bias");
  if (weight || (bias && file.shape.size() <= 1) ||
      tensor.initializer.find("parametrizations.") != std::string::npos)
    return;
  if (tensor.role == Role::Other && isPattern(file))
    tensor.kind = TensorKind::Buffer;
  else
    tensor.doubt = &kPerhapsBuffer;
}

} // namespace titan::frontend
