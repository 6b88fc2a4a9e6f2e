// Where the tensors of a model file lie in the tensors that a program trains: a state has the
// layout of the source framework, an initializer the one that an exporter gave it. One list of
// pieces serves both ways: it fills states from initializers, and makes initializers out of states.
#pragma once

#include "runtime/program/Placement.h"

#include <string>

namespace titan {

/// A box of a state that is a box of an initializer. Element x of the box is element at + x of the
/// state and element y of the initializer: y[dims[i]] = from[dims[i]] + x[i], and y[j] = from[j] in
/// the dimensions that `dims` skips. So a transposed tensor is one piece, and so is one with a
/// leading 1 that the state has not.
///
/// What is empty is left out: `at` and `from` of zeros, `extent` of the whole state, `dims` in
/// order. Where everything is left out, elements have the same place in both; an initializer of the
/// state's shape is then alike.
struct Piece {
  Shape at;                  ///< in the state
  Shape from;                ///< in the initializer
  Shape extent;              ///< in the state's dimensions
  std::vector<int64_t> dims; ///< dimension i of the state is dimension dims[i] of the initializer

  bool isInPlace() const { return at.empty() && from.empty() && extent.empty() && dims.empty(); }
  bool operator==(const Piece&) const = default;
};

/// A piece of a state, with the initializer that it lies in.
struct TensorSource {
  std::string initializer;
  Piece piece;
  bool operator==(const TensorSource&) const = default;
};

/// `piece` of a state of shape `state` with all its members.
Piece writtenOut(const Piece& piece, std::span<const int64_t> state);
/// The same piece with all left out that can be: equal pieces get equal forms.
Piece shortened(const Piece& piece, std::span<const int64_t> state);
/// The whole of an initializer of shape `initializer`, whose dimensions dims[0], dims[1], ... are
/// the state's; those that `dims` skips have extent 1. Written out.
Piece wholeOf(std::span<const int64_t> initializer, std::vector<int64_t> dims);

/// What the piece, written out, takes of the state and of the initializer.
Box boxInState(const Piece& piece);
Box boxInInitializer(const Piece& piece);
/// The element of the initializer that is element `index` of the state, which lies in the piece.
Shape elementOf(const Piece& piece, std::span<const int64_t> index);

/// Is the piece, written out, a box of a state of shape `state`, along different dimensions of an
/// initializer of as many dimensions as `from`? BadInput says what is wrong, in a clause that
/// follows the name of the piece: "at [4] ... leaves ...".
Status checkInState(const Piece& piece, std::span<const int64_t> state);
/// Does it lie in an initializer of that shape? After checkInState.
Status checkInInitializer(const Piece& piece, std::span<const int64_t> initializer);

/// Do the boxes, each of which lies in `shape`, cover every element once? BadInput, a clause:
/// "overlap at [0, 2]" or "leave 4 of 16 elements out".
Status checkCover(std::span<const Box> boxes, std::span<const int64_t> shape);

/// A dimension along which boxes fall into groups, one behind the other.
struct Separation {
  size_t dim = 0;
  std::vector<std::vector<size_t>> groups; ///< indices of boxes, in order
};
/// How to cut boxes, which cover a box once, into groups that cover one each. Nothing: no plane
/// passes between them all, as in a pinwheel.
std::optional<Separation> cutBetween(std::span<const Box> boxes);

/// The initializers that `sources` name, in the order in which they name them first.
std::vector<std::string> initializersOf(std::span<const TensorSource> sources);
/// Of one state or initializer: pairs of them are compared.
inline constexpr size_t mostPieces = 1024;
/// Do the sources cover a state of that shape once? `initializers` are the shapes of
/// initializersOf(); empty: not known, and not checked. BadInput, with the initializer's name.
Status checkSources(std::span<const TensorSource> sources, std::span<const int64_t> state,
                    std::span<const Shape> initializers);

} // namespace titan
