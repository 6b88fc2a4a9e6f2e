// Which reads of one tensor are calls of one layer, in graphs whose nodes say nothing of where they
// come from. Each layer has a matrix of its own, beside its bias, before or after its norm: a layer
// that is called twice has one.
#pragma once

#include "frontend/onnx/name/RecurrentReads.h"

namespace titan::frontend {

/// A product with a matrix, `distance` nodes away from what is looked at.
struct NearProduct {
  std::string matrix; ///< an initializer; empty: none was found
  size_t node = 0;
  int distance = 0;

  /// A layer that reads the same product twice is not called twice.
  bool isAnotherCallOf(const NearProduct& other) const {
    return !matrix.empty() && matrix == other.matrix && node != other.node &&
           distance == other.distance;
  }
  bool contradicts(const NearProduct& other) const {
    return !matrix.empty() && !other.matrix.empty() && !isAnotherCallOf(other) &&
           node != other.node;
  }
};

/// What is around a read: its recurrent layer, the product that it is added to, or the nearest
/// ones.
struct ReadPlace {
  const Node* node;
  size_t index;
  std::optional<RecurrentPart> part;
  NearProduct beside, after, before;
};

/// Of the graph as it is when this is made: what nodes read may change afterwards.
class LayerCalls {
public:
  explicit LayerCalls(const Graph& graph);

  /// In graph order.
  const std::vector<Read>& readsOf(const std::string& tensor) const {
    return dataflow_.readsOf(tensor);
  }
  ReadPlace placeOf(const Read& read) const;
  /// Are two reads of one tensor by one layer, in one call or in two? The matrix that a bias is
  /// beside tells. A norm may belong to the layer before it or after it: where they disagree
  /// nothing is known.
  bool areOfOneLayer(const ReadPlace& a, const ReadPlace& b) const;

  /// The product that `read` adds a bias to.
  NearProduct productBeside(const Read& read) const;
  /// What the recurrent layer that `read` leads to calls the tensor, after its recurrent matrix;
  /// empty: there is none, or it does not tell.
  std::string nameInRecurrence(const Read& read) const;

private:
  std::string matrixOf(const Node& node, size_t k) const;
  NearProduct productOf(size_t index) const;
  NearProduct nearest(size_t start, bool after) const;
  bool areOfOneLayer(const RecurrentPart& a, const RecurrentPart& b) const;

  const Graph& graph_;
  const Dataflow dataflow_;
  const RecurrentReads recurrent_;
};

} // namespace titan::frontend
