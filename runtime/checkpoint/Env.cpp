#include "runtime/checkpoint/Env.h"

#include <cerrno>
#include <cstring>

namespace titan::checkpoint {

Error fileError(std::string_view verb, std::string_view path, int errorNumber) {
  std::string message = fmt::format("cannot {} '{}': {}", verb, path, std::strerror(errorNumber));
  switch (errorNumber) {
  case ENOSPC:
    message += " (free some space, or choose another disk)";
    break;
  case EDQUOT:
    message += " (raise the quota, or choose another disk)";
    break;
  case EROFS:
  case EACCES:
  case EPERM:
    message += " (choose a directory that you may write)";
    break;
  case EMFILE:
    message += " (raise the limit of open files)";
    break;
  default:
    break;
  }
  const bool missing = errorNumber == ENOENT || errorNumber == ENOTDIR;
  return {missing && verb == "open" ? ErrorCode::BadInput : ErrorCode::Environment,
          std::move(message)};
}

std::string joinPath(std::string_view directory, std::string_view name) {
  if (directory.empty())
    return std::string(name);
  return fmt::format("{}{}{}", directory, directory.ends_with('/') ? "" : "/", name);
}

namespace {

std::string_view withoutTrailingSlashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/'))
    path.remove_suffix(1);
  return path;
}

} // namespace

std::string parentPath(std::string_view path) {
  path = withoutTrailingSlashes(path);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos)
    return ".";
  return slash == 0 ? "/" : std::string(withoutTrailingSlashes(path.substr(0, slash)));
}

std::string baseName(std::string_view path) {
  path = withoutTrailingSlashes(path);
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

Result<std::string> readWholeFile(Env& env, const std::string& path, int64_t limit) {
  auto file = TITAN_TRY(env.openFile(path));
  if (file->size() > limit)
    return Error::badInput("'{}' has {} bytes, at most {} are allowed", path, file->size(), limit);
  std::string text(static_cast<size_t>(file->size()), '\0');
  TITAN_TRY(file->read(0, text.data(), file->size()));
  return text;
}

Status removeTree(Env& env, const std::string& path) {
  for (const DirectoryEntry& entry : TITAN_TRY(env.readDirectory(path))) {
    const std::string child = joinPath(path, entry.name);
    if (entry.kind == FileKind::Directory)
      TITAN_TRY(removeTree(env, child));
    else
      TITAN_TRY(env.removeFile(child));
  }
  return env.removeDirectory(path);
}

Status makeDirectories(Env& env, const std::string& path) {
  const FileKind kind = TITAN_TRY(env.kindOf(path));
  if (kind == FileKind::Directory)
    return {};
  if (kind != FileKind::Missing)
    return Error::environment("'{}' is not a directory", path);
  const std::string parent = parentPath(path);
  if (TITAN_TRY(env.kindOf(parent)) == FileKind::Directory)
    TITAN_TRY(env.syncAncestor(parentPath(parent)));
  else
    TITAN_TRY(makeDirectories(env, parent));
  TITAN_TRY(env.makeDirectory(path));
  return env.syncDirectory(parent);
}

} // namespace titan::checkpoint
