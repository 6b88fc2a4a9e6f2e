// Which tensors of the file are parameters, buffers and constants, and what they are called in the
// source framework. A checkpoint holds every tensor under its canonical name in the
// source's layout, whatever the exporter made of it.
#pragma once

#include "frontend/onnx/Uses.h"

namespace titan::frontend {

enum class TensorKind { Parameter, Buffer, Constant };
std::string_view name(TensorKind kind);

struct NamedTensor {
  std::string initializer; ///< in the file
  TensorKind kind = TensorKind::Constant;
  std::string name; ///< canonical; for constants the file's
  /// Dimension i of the source's tensor is dimension layout[i] of the file's; empty: the same.
  std::vector<int64_t> layout;
  size_t dropped = 0; ///< leading dimensions of 1 that the file's tensor has and the source's not
  std::vector<std::string> aliases; ///< the other names of a tied tensor
  bool structural = false; ///< nothing tells the source's name: made up from the graph's structure
  bool guessed = false;    ///< the name is what the source most likely has; nothing proves it
  Role role = Role::Other; ///< of the first use that has one
  int64_t fanIn = 0;       ///< of a Weight; 0: unknown
  /// The row that look-ups of this table do not train, if the names file says so.
  std::optional<int64_t> paddingIndex;
  /// What is to be said of a kind that only values or uses tell; the names file may settle it.
  const NoteCause* doubt = nullptr;
  /// The initializer whose parameter this one is as well (a tied weight that the exporter stored
  /// twice); `layout` then is from that parameter to this tensor.
  std::string sameAs;

  /// A parameter or buffer of its own.
  bool isState() const { return kind != TensorKind::Constant && sameAs.empty(); }

  /// The file's shape in the source's layout.
  Shape sourceShape(const Shape& fileShape) const;
};

/// An entry of the names file, by initializer:
///   ["onnx::MatMul_215"]
///   name = "fc1.weight"
///   kind = "parameter"   # buffer | constant | causal_mask, of a tensor without data
///   layout = [1, 0]
///   padding_idx = 0      # of a table: the row that look-ups do not train
struct NameOverride {
  std::optional<std::string> name;
  std::optional<TensorKind> kind;
  bool causalMask = false; ///< and `kind` is Constant
  std::optional<std::vector<int64_t>> layout;
  std::optional<int64_t> paddingIndex;
};
using NameOverrides = std::map<std::string, NameOverride>;

Result<NameOverrides> parseNamesFile(std::string_view toml, const std::string& source);
Result<NameOverrides> readNamesFile(const std::string& path);

struct NameTable {
  std::vector<NamedTensor> tensors; ///< in the file's order
  Notes notes;
  const NamedTensor* find(std::string_view initializer) const;
};

Result<NameTable> nameTensors(const Graph& graph, const NameOverrides& overrides = {});

} // namespace titan::frontend
