// What torch.export lists of the module that it exported: every parameter and buffer by its name in
// the source, in module order, also those that its optimizer folded into other tensors.
//
// The graph's metadata `pkg.torch.export.ExportedProgram.graph_signature` has a line per input:
//   p_wte_weight: PARAMETER target='wte.weight'
//   b_inv_freq: BUFFER target='inv_freq' persistent=False
//   idx: USER_INPUT
#pragma once

#include "frontend/onnx/read/Protos.h"

namespace titan::frontend {

struct SourceTensor {
  std::string name;    ///< "wte.weight"
  std::string mangled; ///< what fx nodes call it, lower case, without its prefix: "wte_weight"
  bool parameter = true;
  bool persistent = true; ///< a buffer that state_dict() has
  bool written = false;   ///< a buffer that each forward writes, as the model was exported
};

/// In module order.
class Signature {
public:
  static Signature parse(const std::string& text);

  bool known() const { return !tensors_.empty(); }
  const std::vector<SourceTensor>& tensors() const { return tensors_; }
  const SourceTensor* byName(std::string_view name) const;
  const SourceTensor* byMangled(const std::string& mangled) const;
  /// The position in module order; past the end for names that are not listed.
  size_t position(std::string_view name) const;

private:
  std::vector<SourceTensor> tensors_;
  std::map<std::string, size_t, std::less<>> byName_;
  std::map<std::string, size_t> byMangled_;
};

} // namespace titan::frontend
