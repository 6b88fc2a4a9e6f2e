// The table of names while the rules fill it (Rules.h), and what they have in common: which names
// are taken, how a tensor gets one, what the source has that no tensor is.
#pragma once

#include "frontend/onnx/name/Facts.h"

namespace titan::frontend {

/// A tensor that is a part of an attention's projection, and what is read there.
struct Projection {
  StatePiece piece;
  Role role = Role::Weight;
};

class Naming {
public:
  explicit Naming(const Facts& facts);

  const Facts& facts;
  NameTable table;

  /// Has no tensor the name, and may the source have it?
  bool isFree(const std::string& name) const;
  bool isTaken(const std::string& name) const { return taken_.contains(name); }
  /// False: another tensor has it.
  bool reserve(const std::string& name) { return taken_.insert(name).second; }
  /// Calls `tensor` so. False: another one is.
  bool take(NamedTensor& tensor, const std::string& name, bool transposed);
  /// Calls it after its reader, with a note.
  void nameStructurally(NamedTensor& tensor);
  /// The same of what is trained in place of the parameters `of`, or of unknown ones.
  void namePart(NamedTensor& tensor, std::vector<std::string> of, const NoteCause& cause);

  /// Is it all of a parameter, under a name of the source?
  bool isWhole(const NamedTensor& tensor) const;
  /// The parameters of the source that no tensor of the file is or holds a part of.
  std::vector<const SourceTensor*> lostParameters() const;
  /// All names that tensors have: the file's own, and those that were found.
  const std::set<std::string>& taken() const { return taken_; }

  std::map<std::string, Projection> projections; ///< by initializer (findProjections)
  std::map<std::string, std::string> copies;     ///< by copy: what fills its state

private:
  std::set<std::string> taken_;
  std::set<std::string> accounted_; ///< parameters of which the file has a part, for certain
};

} // namespace titan::frontend
