// What PyTorch's TorchScript exporter made where it folds constants. A result of which no operand
// is a parameter or buffer stays a Constant node there, and all others become initializers, called
// after their reader ("onnx::Mul_27"). So such an initializer was computed from a parameter or a
// buffer; from which one, and how, is not in the file. It is trained, under a name that says so.
#include "frontend/onnx/name/Rules.h"
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

static void nameLegacyFold(Naming& naming, NamedTensor& tensor) {
  const Facts& facts = naming.facts;
  const Tensor& file = facts.file(tensor);
  const TensorUses& uses = facts.usesOf(tensor);
  if (!isFloating(file.dtype) || !uses.differentiable || uses.uses.empty() ||
      (!uses.indexedByInput && classifyAngles(naming, tensor)))
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
  if (turned != uses.uses.end() && fromScope(naming, tensor)) {
    if (!tensor.guessed)
      tensor.setDoubt(kMatrix, fmt::format("{} (here {})", shown, inQuotes(tensor.name)));
    tensor.guessed = true;
    return;
  }
  tensor.kind = tensor.role == Role::Statistic ? TensorKind::Buffer : TensorKind::Parameter;
  naming.nameStructurally(tensor);
  if (turned != uses.uses.end() && facts.scopeOf(*turned).place == ScopePlace::Unknown)
    return; // a layer's, which is in a container that is not shown
  tensor.isPart = true;
  tensor.setDoubt(kFolded, fmt::format("{} (here {})", shown, inQuotes(tensor.name)));
}

bool fromLegacyFold(Naming& naming, NamedTensor& tensor) {
  if (!naming.facts.isLegacyFold(tensor))
    return false;
  nameLegacyFold(naming, tensor);
  return true;
}

} // namespace titan::frontend
