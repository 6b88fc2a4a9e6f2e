// Where in the source model a node comes from, as exporters record it.
//
// torch.export ("dynamo") writes node metadata:
//   pkg.torch.onnx.name_scopes      ['', 'enc', 'enc.0', 'linear']: module paths, then the op
//   pkg.torch.onnx.class_hierarchy  ['m.Model', ..., '...linear.Linear', 'aten.linear.default']
//   pkg.torch.onnx.fx_node          %linear : ... (args = (%x, %p_enc_0_weight, %p_enc_0_bias), ...
//   pkg.torch.onnx.stack_trace      File "model.py", line 9, in forward ...; of a region that it
//                                   traces apart File "<eval_with_key>.42", line 5, in forward ...
//
// The TorchScript exporter ("legacy") writes scopes into node names: /enc/enc.0/MatMul_1, where a
// purely numeric path segment is written with the segment before it.
#pragma once

#include "frontend/onnx/read/Graph.h"

namespace titan::frontend {

/// What an fx node reads: a lifted input, `%p_enc_0_weight`, or another node's value, `%add_1`.
struct FxOperand {
  char kind = 'p';     ///< p: parameter, b: buffer, c: constant; v: a value
  std::string mangled; ///< "enc_0_weight", in lower case
  int position = 0;    ///< among the positional arguments; -1: a keyword argument
};

struct Scope {
  bool known = false;              ///< the exporter said where the node comes from
  std::string module;              ///< "enc.0"; empty: the root
  std::string moduleClass;         ///< "torch.nn.modules.linear.Linear", or empty
  std::string target;              ///< "aten.linear.default", or empty
  std::vector<FxOperand> operands; ///< those that are lifted
  std::vector<FxOperand> values;   ///< the others; of `mangled` as it is written
  bool readsFx() const { return !operands.empty() || !values.empty(); }
  ScopePlace place = ScopePlace::Told;
  std::optional<int64_t> paddingIndex; ///< of an nn.Embedding that has one
  bool scales = false;                 ///< the op multiplies an argument by a number, `alpha`
  std::string labelSmoothing;          ///< of a cross-entropy, as it is written: "0.1"; empty: none
  std::string scatterReduction;        ///< of a scatter_reduce, as it is written: "mean"
  std::string averageDivisor;          ///< of an average pool, as it is written: "5"; empty: none
  bool isBatchNorm = false;            ///< the fx node is a norm of the batch
  bool usesBatchStatistics = false;    ///< and normalises by the batch, as after train()
  bool isTraced = false;      ///< the exporter kept the lines of the source that computed the node
  bool isTracedApart = false; ///< which are those of a region: torch.no_grad(), torch.autocast
};

Scope scopeOf(const Node& node);
/// What the node's ops are called in remarks: the module path, else the node's own name.
std::string pathOf(const Node& node);
/// `name` as torch.export mangles it into a placeholder: all but letters and digits written as `_`.
std::string mangled(std::string_view name);
/// What fx nodes call the tensor `name`. The signature tells it where `mangled` does not: a leading
/// `self_` is left out, and of `W` and `w` the second is `w_1`.
std::string fxNameOf(const Graph& graph, std::string_view name);
/// Is `module` equal to `inner`, or a module around it?
bool encloses(std::string_view module, std::string_view inner);
/// Is one of the modules in the other, as likely where one uses a parameter of the other?
bool areRelated(std::string_view a, std::string_view b);
/// "enc.0" of "enc.0.weight"; empty for a name without a dot.
std::string_view moduleOf(std::string_view name);
/// "weight" of "enc.0.weight".
std::string_view leafOf(std::string_view name);

} // namespace titan::frontend
