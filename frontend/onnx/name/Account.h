// The account of an import. Every tensor of floats of the file has one line, and so has every
// parameter and buffer that the exporter names: what is trained under which name, what stands for a
// tensor of the source without being it, and what is not trained.
#pragma once

#include "runtime/program/DType.h"
#include "runtime/program/Error.h"

#include <array>
#include <string>
#include <vector>

namespace titan::frontend {

struct Graph;
struct NameTable;

enum class TensorKind { Parameter, Buffer, Constant };
std::string_view name(TensorKind kind);

/// What proves that a tensor of floats is none that is trained.
enum class Proof {
  None,       ///< nothing does: a note says so
  NoGradient, ///< no gradient reaches it
  Source,     ///< the exporter: a buffer that state_dict() has not, a lifted constant
  Number,     ///< the exporter: a number that is written in the program
  Angles,     ///< its values: frequencies, sines and cosines of positions
  Mask,       ///< its values: zeros and ones, or what is added to forbid
  Told,       ///< the names file
};
/// In words, for `--check`.
std::string_view name(Proof proof);

enum class Standing {
  Exact,    ///< a parameter or buffer with the source's name and shape, all of it
  Guessed,  ///< the same by what its module most likely calls it
  Alias,    ///< another name of an exact one
  Part,     ///< trained in place of parameters of the source: a part of one, or computed of some
  MadeUp,   ///< trained under a name made up from the graph's structure
  Absent,   ///< the source has it, and nothing in the file is it: it is not trained
  Constant, ///< floats that are not trained
};
inline constexpr size_t kStandings = 7;
std::string_view name(Standing standing);

struct AccountLine {
  Standing standing = Standing::Exact;
  /// Canonical; of a constant the file's.
  std::string name;
  TensorKind kind = TensorKind::Parameter;
  /// Of an alias the exact one, of a part the parameters that it stands for.
  std::vector<std::string> of;
  /// What holds it in the file, with those that are read as it a second time; of an alias or what
  /// is absent none.
  std::vector<std::string> initializers;
  DType dtype = DType::F32; ///< where there are initializers
  Shape shape;              ///< of the state, or of the constant
  Proof proof = Proof::None;
  bool noted = false;    ///< a note is about it
  bool doubtful = false; ///< and says that its name, kind or ties are not certain

  /// Is it what the source has, or certainly a constant?
  bool isExact() const;
};

struct Account {
  std::vector<AccountLine> lines;
  /// The source may have had parameters that no line is about: the exporter's optimizer removed
  /// them, and a conversion dropped the metadata that listed them. A note says so.
  bool mayLackParameters = false;

  std::array<size_t, kStandings> counts() const;
  /// "40 exact, 2 aliases, 1 absent": what there is none of is left out.
  std::string summary() const;
};

/// Refuses what is not exact, a line each, and what cannot list all parameters (--strict-names).
Status requireExact(const Account& account);

/// The account of `names`, whose states are formed. Adds notes of what is absent or cannot be known
/// to be, and of constants without a proof. Errors: a name that two tensors claim.
Result<Account> accountOf(const Graph& graph, NameTable& names);

} // namespace titan::frontend
