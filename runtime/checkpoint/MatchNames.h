// Which stored tensor goes into which state: canonical names first, then aliases of a tied set,
// then either without the segments that training frameworks wrap around module paths.
#pragma once

#include "runtime/checkpoint/Diff.h"
#include "runtime/checkpoint/Folders.h"
#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/StoredTensors.h"

namespace titan::checkpoint {

struct Match {
  const Destination* destination = nullptr;
  const StoredTensors::Tensor* tensor = nullptr;
};

/// Reads what is to be rounded once more, to nowhere. BadInput: a value that its new type has not,
/// with tensor and element.
Status checkRounding(const std::vector<Match>& matches);

/// Second pass: reads the tensors to their destinations, as the types that these have. Errors say
/// that the state is loaded in part.
Status readMatches(const std::vector<Match>& matches);

/// Which floating-point types of a file are taken for others.
enum class Conversions : uint8_t {
  None,
  Exact,    ///< to a type that has all values
  Rounding, ///< to any
};

struct MatchRequest {
  std::vector<const Destination*> destinations; ///< of one folder
  std::vector<std::string> fresh;
  std::map<std::string, std::string> renames;
  Folder folder;                         ///< for messages
  std::vector<std::string> ignored = {}; ///< globs of names in the file
  Conversions conversions = Conversions::None;
};

struct Matching {
  std::vector<Match> matches;
  std::vector<std::string> fresh;   ///< canonical names of destinations that get nothing
  std::vector<std::string> ignored; ///< names in the file
  std::vector<std::string> rounded; ///< canonical names
  std::vector<std::string> notes;
};

/// Differences go into `diff`, a match or not. BadInput: two tensors for one destination that are
/// not equal; a glob or a rename that matches nothing; an ignored tensor without which a
/// destination gets nothing.
Result<Matching> matchNames(const MatchRequest& request, const StoredTensors& stored, Diff& diff);

} // namespace titan::checkpoint
