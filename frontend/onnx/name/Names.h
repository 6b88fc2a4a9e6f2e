// Which tensors of the file are parameters, buffers and constants, and what they are called in the
// source framework. A checkpoint holds every tensor under its canonical name in the
// source's layout, whatever the exporter made of it.
#pragma once

#include "frontend/onnx/name/Account.h"
#include "frontend/onnx/name/Uses.h"
#include "runtime/program/Piece.h"

namespace titan::frontend {

bool isFloating(DType dtype);

/// A box of a state that is a box of a tensor of the file.
struct StatePiece {
  std::string state; ///< its canonical name
  Piece piece;       ///< written out
};

struct NamedTensor {
  std::string initializer; ///< in the file
  TensorKind kind = TensorKind::Constant;
  std::string name; ///< of its state, the first of several; for constants the file's
  /// What it is made of; empty: the state `name`, which is alike.
  std::vector<StatePiece> pieces;
  /// Other tensors fill the states that it is made of: a tied weight that the exporter stored
  /// twice. Its pieces are a second reading.
  bool isCopy = false;
  std::vector<std::string> aliases; ///< the other names of a tied tensor
  bool structural = false; ///< nothing tells the source's name: made up from the graph's structure
  bool guessed = false;    ///< the name is what the source most likely has; nothing proves it
  /// Trained in place of parameters of the source: a part of one, or what was computed of some. It
  /// is `structural` too.
  bool isPart = false;
  std::vector<std::string> partOf; ///< of a part: those parameters, as far as they are known
  Proof proof = Proof::None;       ///< of a constant
  Role role = Role::Other;         ///< of the first use that has one
  int64_t fanIn = 0;               ///< of a Weight; 0: unknown
  /// The row that look-ups of this table do not train, if the names file says so.
  std::optional<int64_t> paddingIndex;
  bool perhapsPadded = false; ///< the export does not say whether there is such a row
  /// Why its name or its kind is not certain, and how it is shown in that note (empty: as the file
  /// calls it); the names file may settle it.
  const NoteCause* doubt = nullptr;
  std::string about;

  /// Fills parameters or buffers.
  bool fillsStates() const { return kind != TensorKind::Constant && !isCopy; }
  /// Calls its one state otherwise.
  void rename(const std::string& to);
  void setDoubt(const NoteCause& cause, std::string shown = {});
  /// The names file says what it is: nothing is made up, guessed or doubtful any more.
  void settle();
  /// Makes it the whole of the state `name`, whose dimension i is its dimension dims[i]; those that
  /// `dims` skips are 1.
  void turn(const Shape& shape, std::vector<int64_t> dims);
};

/// A parameter or buffer, and what the file has of it.
struct NamedState {
  std::string name;
  Shape shape;
  size_t tensor = 0;                 ///< in NameTable::tensors: the first one that fills it
  std::vector<TensorSource> sources; ///< written out; cover the state once
};

/// An entry of the names file, by initializer:
///   ["onnx::MatMul_215"]
///   name = "fc1.weight"
///   kind = "parameter"   # buffer | constant | causal_mask, of a tensor without data
///   layout = [1, 0]
///   padding_idx = 0      # of a table: the row that look-ups do not train
/// or, of a tensor that is several states, or a part of one:
///   pieces = [{ state = "rnn.weight_ih_l0", at = [0, 0], from = [0, 0, 0], extent = [4, 3],
///               dims = [1, 2] }]   # without at, from, dims: zeros, and dimensions in order
struct NameOverride {
  std::optional<std::string> name;
  std::optional<TensorKind> kind;
  bool causalMask = false; ///< and `kind` is Constant
  std::optional<std::vector<int64_t>> layout;
  std::optional<int64_t> paddingIndex;
  std::vector<StatePiece> pieces; ///< what is left out is empty, but not the extent
};
using NameOverrides = std::map<std::string, NameOverride>;

Result<NameOverrides> parseNamesFile(std::string_view toml, const std::string& source);
Result<NameOverrides> readNamesFile(const std::string& path);

/// A parameter or buffer that the exporter names, in the graph's signature or a node's metadata.
struct ListedTensor {
  std::string name;
  bool isParameter = true;
  bool isPersistent = true; ///< a buffer that state_dict() has
  bool isRead = false;      ///< a node's metadata has it
};

struct NameTable {
  std::vector<NamedTensor> tensors; ///< in the file's order
  std::vector<NamedState> states;   ///< in the order of the first tensors that fill them
  std::vector<ListedTensor> listed; ///< in module order
  Account account;
  Notes notes;
  const NamedTensor* find(std::string_view initializer) const;
};

/// Sets `states`: the tensors' pieces, put together. Errors: pieces that leave their tensor, that
/// overlap, or that leave a part of a tensor or of a state out; two tensors of one name.
Status formStates(const Graph& graph, NameTable& names);

/// Kinds and names of all tensors of `graph`, the states that they fill, and the account of it.
Result<NameTable> nameTensors(const Graph& graph, const NameOverrides& overrides = {});

} // namespace titan::frontend
