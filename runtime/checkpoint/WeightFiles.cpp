#include "runtime/checkpoint/WeightFiles.h"

#include "runtime/checkpoint/Pickle.h"
#include "runtime/checkpoint/ReadCheckpoint.h"
#include "runtime/checkpoint/StrictJson.h"
#include "runtime/checkpoint/TensorFile.h"

#include <set>

namespace titan::checkpoint {
namespace {

constexpr int64_t maxIndexBytes = 64 << 20;

/// A Hugging Face index names, for each tensor, the file beside it that holds it.
Status openIndexed(const std::string& path, StoredTensors& tensors, Env& env) {
  const std::string text = TITAN_TRY(readWholeFile(env, path, maxIndexBytes));
  const Json json = TITAN_TRY(parseJsonObject(text, fmt::format("'{}'", path)));
  const auto weightMap = TITAN_TRY(stringMapField(json, "weight_map"));
  std::map<std::string, std::set<std::string>> namesOf;
  for (const auto& [name, file] : weightMap) {
    if (file.find('/') != std::string::npos || !file.ends_with(tensorSuffix))
      return Error::badInput("'{}': weight_map names file '{}', which is no .safetensors file "
                             "beside the index",
                             path, file);
    namesOf[file].insert(name);
  }
  for (auto& [file, names] : namesOf) {
    const std::string filePath = joinPath(parentPath(path), file);
    const auto found = TITAN_TRY(tensors.add(env, filePath, nullptr));
    for (const std::string& name : found)
      if (names.erase(name) == 0)
        return Error::badInput("'{}' holds tensor '{}', which the index does not map to it",
                               filePath, name);
    if (!names.empty())
      return Error::badInput("'{}' does not hold tensor '{}', which the index maps to it", filePath,
                             *names.begin());
  }
  return {};
}

Status openDirectory(const std::string& path, StoredTensors& tensors, Env& env) {
  const std::string index = joinPath(path, indexFileName);
  if (TITAN_TRY(env.kindOf(index)) == FileKind::File)
    return openIndexed(index, tensors, env);
  size_t files = 0;
  for (const DirectoryEntry& entry : TITAN_TRY(env.readDirectory(path))) {
    if (!entry.name.ends_with(tensorSuffix))
      continue;
    TITAN_TRY(tensors.add(env, joinPath(path, entry.name), nullptr));
    ++files;
  }
  if (files > 0)
    return {};
  TITAN_TRY(refusePickles(path, env));
  return Error::badInput("'{}' holds no {}, no {} and no .safetensors file", path,
                         Manifest::fileName, indexFileName);
}

} // namespace

Result<StoredTensors> openWeights(const std::string& path, Env& env, Reading reading) {
  StoredTensors tensors(reading);
  switch (TITAN_TRY(env.kindOf(path))) {
  case FileKind::Missing:
    return Error::badInput("no such file or directory: '{}'", path);
  case FileKind::Directory:
    if (TITAN_TRY(env.kindOf(joinPath(path, Manifest::fileName))) != FileKind::Missing)
      return openModel(path, TITAN_TRY(readManifest(path, env)), env, reading);
    TITAN_TRY(openDirectory(path, tensors, env));
    break;
  default:
    if (path.ends_with(".json")) {
      TITAN_TRY(openIndexed(path, tensors, env));
      break;
    }
    TITAN_TRY(refusePickle(path, env));
    TITAN_TRY(tensors.add(env, path, nullptr));
  }
  if (Status finished = tensors.finish(); !finished.ok())
    return finished.takeError().withContext(fmt::format("'{}'", path));
  return tensors;
}

Result<FoundWeights> findWeights(const std::string& path, const InitRequest& request,
                                 std::string_view advice, Env& env, Reading reading) {
  FoundWeights found{TITAN_TRY(openWeights(path, env, reading)), {}};
  auto destinations = TITAN_TRY(
      byFolder(request.destinations, [](const Destination& destination) -> const TableEntry& {
        return destination.entry;
      }));
  const MatchRequest wanted{std::move(destinations[folderOfModel()]),
                            request.fresh,
                            request.renames,
                            folderOfModel(),
                            request.ignored,
                            request.cast ? Conversions::Rounding : Conversions::Exact};
  Diff diff;
  found.matching = TITAN_TRY(matchNames(wanted, found.stored, diff));
  if (!diff.empty())
    return diff.error(fmt::format("'{}'", path), advice);
  if (reading == Reading::All)
    TITAN_TRY(checkRounding(found.matching.matches));
  return found;
}

} // namespace titan::checkpoint
