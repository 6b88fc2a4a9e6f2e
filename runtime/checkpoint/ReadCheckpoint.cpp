#include "runtime/checkpoint/ReadCheckpoint.h"

#include "runtime/checkpoint/WriteState.h"

#include <algorithm>

namespace titan::checkpoint {
namespace {

constexpr int64_t maxManifestBytes = 256 << 20;

Result<StoredTensors> openFiles(const std::string& path, const Manifest& manifest,
                                const std::string& folder, Env& env, Reading reading) {
  StoredTensors tensors(reading);
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

using Rows = std::vector<const TableEntry*>;

/// The folder holds what the table says, nothing else.
Status checkTable(const std::string& path, const Folder& folder, const Rows& rows,
                  const StoredTensors& stored) {
  for (const TableEntry* row : rows) {
    const auto found = stored.tensors().find(row->name);
    if (found == stored.tensors().end())
      return Error::badInput("'{}' is damaged: {}/ has no tensor '{}', the manifest lists it", path,
                             folder.name, row->name);
    const StoredTensors::Tensor& tensor = found->second;
    if (tensor.dtype != row->dtype || tensor.shape != row->shape)
      return Error::badInput("'{}' is damaged: tensor '{}' is {} {}, the manifest says {} {}", path,
                             folder.shown(row->name), name(tensor.dtype), toString(tensor.shape),
                             name(row->dtype), toString(row->shape));
  }
  if (rows.size() != stored.tensors().size())
    return Error::badInput("'{}' is damaged: {}/ holds {} tensors, the manifest lists {}", path,
                           folder.name, stored.tensors().size(), rows.size());
  return {};
}

Result<StoredTensors> openChecked(const std::string& path, const Manifest& manifest,
                                  const Folder& folder, const Rows& rows, Env& env,
                                  Reading reading) {
  StoredTensors tensors = TITAN_TRY(openFiles(path, manifest, folder.name, env, reading));
  TITAN_TRY(checkTable(path, folder, rows, tensors));
  return tensors;
}

bool liesInOne(const FileRecord& file, const ByFolder<TableEntry>& folders) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const auto& item) { return item.first.name == parentPath(file.path); });
}

/// The table's rows by folder. A file of tensors beside these folders would be read by nobody.
Result<ByFolder<TableEntry>> foldersOf(const std::string& path, const Manifest& manifest) {
  auto folders = TITAN_TRY(byFolder(manifest.program.table));
  folders[folderOfModel()];
  for (const FileRecord& file : manifest.files)
    if (file.path.ends_with(tensorSuffix) && !liesInOne(file, folders))
      return Error::badInput(
          "'{}' is damaged: the manifest lists file '{}', but no state that lies "
          "in its folder",
          path, file.path);
  return folders;
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

Result<std::string> readManifestText(const std::string& path, Env& env) {
  if (TITAN_TRY(env.kindOf(path)) != FileKind::Directory)
    return Error::badInput("'{}' is no checkpoint: there is no such directory", path);
  const std::string file = joinPath(path, Manifest::fileName);
  if (TITAN_TRY(env.kindOf(file)) == FileKind::Missing)
    return Error::badInput("'{}' is no checkpoint: it has no {}", path, Manifest::fileName);
  return readWholeFile(env, file, maxManifestBytes);
}

} // namespace

Result<std::unique_ptr<FileLock>> holdCheckpoint(const std::string& path, Env& env) {
  auto lock = TITAN_TRY(env.tryLock(joinPath(path, Manifest::fileName), LockKind::Shared));
  if (!lock)
    return Error::badInput(
        "'{}' is being deleted by the run that wrote it: load a newer checkpoint", path);
  return lock;
}

Result<std::string> identityOf(const std::string& path, Env& env) {
  const std::string file = joinPath(path, Manifest::fileName);
  if (TITAN_TRY(env.kindOf(path)) == FileKind::Directory &&
      TITAN_TRY(env.kindOf(file)) == FileKind::Missing)
    return std::string();
  return digestOf(TITAN_TRY(readManifestText(path, env)));
}

Result<Manifest> readManifest(const std::string& path, Env& env) {
  const std::string text = TITAN_TRY(readManifestText(path, env));
  const std::string file = joinPath(path, Manifest::fileName);
  auto version = manifestVersion(text);
  if (!version.ok())
    return version.takeError().withContext(fmt::format("'{}' is damaged", file));
  auto manifest = parseManifest(text);
  if (!manifest.ok())
    return manifest.takeError().withContext(
        fmt::format("'{}'{}", file, isKnownVersion(*version) ? " is damaged" : ""));
  return manifest;
}

Result<CheckpointTensors> openCheckpoint(const std::string& path, const Manifest& manifest,
                                         Env& env, Reading reading) {
  CheckpointTensors tensors;
  for (const auto& [folder, rows] : TITAN_TRY(foldersOf(path, manifest)))
    tensors[folder] = TITAN_TRY(openChecked(path, manifest, folder, rows, env, reading));
  return tensors;
}

Result<StoredTensors> openFolder(const std::string& path, const Manifest& manifest,
                                 const Folder& folder, Env& env, Reading reading) {
  auto folders = TITAN_TRY(foldersOf(path, manifest));
  return openChecked(path, manifest, folder, folders[folder], env, reading);
}

Result<StoredTensors> openModel(const std::string& path, const Manifest& manifest, Env& env,
                                Reading reading) {
  return openFolder(path, manifest, folderOfModel(), env, reading);
}

Result<Manifest> verify(const std::string& path, Env& env) {
  const auto hold = TITAN_TRY(holdCheckpoint(path, env));
  Manifest manifest = TITAN_TRY(readManifest(path, env));
  const auto folders = TITAN_TRY(foldersOf(path, manifest));
  for (const auto& [folder, rows] : folders) {
    TITAN_TRY(checkNoStrangers(path, manifest, folder.name, env));
    TITAN_TRY(openChecked(path, manifest, folder, rows, env, Reading::All));
  }
  // Files of no folder of ours.
  for (const FileRecord& file : manifest.files)
    if (!liesInOne(file, folders))
      TITAN_TRY(checkFile(env, joinPath(path, file.path), file));
  return manifest;
}

std::vector<Status> checkStructure(const std::string& path, const Manifest& manifest,
                                   const std::set<std::string>& leftOut, Env& env) {
  std::vector<Status> wrong;
  const auto note = [&](Status status) {
    if (!status.ok())
      wrong.push_back(std::move(status));
  };
  auto folders = foldersOf(path, manifest);
  if (!folders.ok()) {
    note(folders.takeError());
    return wrong;
  }
  for (const auto& [folder, rows] : *folders) {
    note(checkNoStrangers(path, manifest, folder.name, env));
    if (leftOut.contains(folder.name))
      continue;
    if (auto opened = openChecked(path, manifest, folder, rows, env, Reading::Header); !opened.ok())
      note(opened.takeError());
  }
  return wrong;
}

Result<std::optional<Error>> findDamage(const std::string& path, Env& env) {
  auto verified = verify(path, env);
  if (verified.ok())
    return std::optional<Error>();
  if (verified.error().code() != ErrorCode::BadInput)
    return verified.takeError();
  // A manifest whose digest is right and whose version is not known: nothing is wrong with it.
  if (auto text = readManifestText(path, env); text.ok())
    if (const auto version = manifestVersion(*text); version.ok() && !isKnownVersion(*version))
      return verified.takeError();
  return std::optional(verified.takeError());
}

} // namespace titan::checkpoint
