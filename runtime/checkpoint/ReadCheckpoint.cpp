#include "runtime/checkpoint/ReadCheckpoint.h"

#include "runtime/checkpoint/WriteState.h"

#include <algorithm>

namespace titan::checkpoint {
namespace {

constexpr int64_t maxManifestBytes = 256 << 20;
constexpr std::string_view tensorSuffix = ".safetensors";

Result<StoredTensors> openFolder(const std::string& path, const Manifest& manifest,
                                 const std::string& folder, Env& env) {
  StoredTensors tensors;
  for (const FileRecord& file : manifest.files) {
    if (parentPath(file.path) != folder)
      continue;
    const std::string filePath = joinPath(path, file.path);
    if (file.path.ends_with(tensorSuffix))
      TITAN_TRY(tensors.add(env, filePath, &file));
    else
      TITAN_TRY(checkFile(env, filePath, file));
  }
  TITAN_TRY(tensors.finish());
  return tensors;
}

bool belongs(StateKind kind, const std::string& folder) {
  if (folder == modelFolder)
    return kind == StateKind::Param || kind == StateKind::Buffer;
  return kind == StateKind::Slot;
}

/// The folder holds what the table says, nothing else.
Status checkTable(const std::string& path, const Manifest& manifest, const std::string& folder,
                  const StoredTensors& stored) {
  size_t rows = 0;
  for (const TableEntry& row : manifest.program.table) {
    if (!belongs(row.kind, folder))
      continue;
    ++rows;
    const auto found = stored.tensors().find(row.name);
    if (found == stored.tensors().end())
      return Error::badInput("'{}' is damaged: {}/ has no tensor '{}', the manifest lists it", path,
                             folder, row.name);
    const StoredTensors::Tensor& tensor = found->second;
    if (tensor.dtype != row.dtype || tensor.shape != row.shape)
      return Error::badInput("'{}' is damaged: tensor '{}' is {} {}, the manifest says {} {}", path,
                             row.name, name(tensor.dtype), toString(tensor.shape), name(row.dtype),
                             toString(row.shape));
  }
  if (rows != stored.tensors().size())
    return Error::badInput("'{}' is damaged: {}/ holds {} tensors, the manifest lists {}", path,
                           folder, stored.tensors().size(), rows);
  return {};
}

Result<StoredTensors> openChecked(const std::string& path, const Manifest& manifest,
                                  const std::string& folder, Env& env) {
  StoredTensors tensors = TITAN_TRY(openFolder(path, manifest, folder, env));
  TITAN_TRY(checkTable(path, manifest, folder, tensors));
  return tensors;
}

/// Other readers take every file of a folder, so one that the manifest does not know is no harmless
/// guest.
Status checkNoStrangers(const std::string& path, const Manifest& manifest,
                        const std::string& folder, Env& env) {
  const std::string folderPath = joinPath(path, folder);
  if (TITAN_TRY(env.kindOf(folderPath)) != FileKind::Directory)
    return {};
  for (const DirectoryEntry& entry : TITAN_TRY(env.readDirectory(folderPath))) {
    const std::string relative = joinPath(folder, entry.name);
    if (entry.name.ends_with(tensorSuffix) &&
        std::none_of(manifest.files.begin(), manifest.files.end(),
                     [&](const FileRecord& file) { return file.path == relative; }))
      return Error::badInput("'{}' is not in the manifest", joinPath(path, relative));
  }
  return {};
}

} // namespace

Result<Manifest> readManifest(const std::string& path, Env& env) {
  if (TITAN_TRY(env.kindOf(path)) != FileKind::Directory)
    return Error::badInput("'{}' is no checkpoint: there is no such directory", path);
  const std::string file = joinPath(path, Manifest::fileName);
  if (TITAN_TRY(env.kindOf(file)) == FileKind::Missing)
    return Error::badInput("'{}' is no checkpoint: it has no {}", path, Manifest::fileName);
  const std::string text = TITAN_TRY(readWholeFile(env, file, maxManifestBytes));
  auto manifest = parseManifest(text);
  if (!manifest.ok())
    return manifest.takeError().withContext(fmt::format("'{}' is damaged", file));
  return manifest;
}

Result<CheckpointTensors> openCheckpoint(const std::string& path, const Manifest& manifest,
                                         Env& env) {
  CheckpointTensors tensors;
  tensors.model = TITAN_TRY(openChecked(path, manifest, modelFolder, env));
  tensors.optimizer = TITAN_TRY(openChecked(path, manifest, optimizerFolder, env));
  return tensors;
}

Result<StoredTensors> openModel(const std::string& path, const Manifest& manifest, Env& env) {
  return openChecked(path, manifest, modelFolder, env);
}

Result<Manifest> verify(const std::string& path, Env& env) {
  Manifest manifest = TITAN_TRY(readManifest(path, env));
  for (const char* folder : {modelFolder, optimizerFolder}) {
    TITAN_TRY(checkNoStrangers(path, manifest, folder, env));
    TITAN_TRY(openChecked(path, manifest, folder, env));
  }
  return manifest;
}

} // namespace titan::checkpoint
