#include "runtime/checkpoint/Export.h"

#include "runtime/checkpoint/ReadCheckpoint.h"
#include "runtime/checkpoint/StoredSource.h"
#include "runtime/checkpoint/TensorFile.h"
#include "runtime/program/Element.h"
#include "runtime/program/Recipe.h"

#include <algorithm>
#include <set>

namespace titan::checkpoint {
namespace {

constexpr const char* updateCounter = "optimizer.t";

Status writeFile(Env& env, const std::string& path, std::span<const ByteSource> pieces) {
  const auto file = TITAN_TRY(env.createFile(path));
  for (const ByteSource& piece : pieces)
    TITAN_TRY(piece.forEachPiece(
        [&](std::span<const char> bytes) { return file->append({bytes.data(), bytes.size()}); }));
  TITAN_TRY(file->sync());
  return file->close();
}

Status writeTensorFile(Env& env, const std::string& path, const TensorFile& file) {
  std::vector<ByteSource> pieces = sourcesOf(file);
  pieces.insert(pieces.begin(), std::span<const char>(file.header));
  return writeFile(env, path, pieces);
}

/// A file or a directory, as far as that works.
void discard(Env& env, const std::string& path) {
  const auto kind = env.kindOf(path);
  if (!kind.ok() || *kind == FileKind::Missing)
    return;
  (void)(*kind == FileKind::Directory ? removeTree(env, path) : env.removeFile(path));
}

/// `output` appears when it is whole and durable, or not at all: `write` makes it, durable but for
/// its name, at the path that it is given.
Status publish(Env& env, const std::string& output,
               const std::function<Status(const std::string& path)>& write) {
  if (TITAN_TRY(env.kindOf(output)) != FileKind::Missing)
    return Error::usage("'{}' exists already: remove it, or give another -o", output);
  const std::string parent = parentPath(output);
  const std::string temporary =
      joinPath(parent, fmt::format(".{}.{:016x}.part", baseName(output), env.uniqueNumber()));
  if (Status written = write(temporary); !written.ok()) {
    discard(env, temporary);
    return written;
  }
  if (Status renamed = env.rename(temporary, output); !renamed.ok()) {
    discard(env, temporary);
    return renamed;
  }
  Status synced = env.syncAncestor(parent);
  if (!synced.ok())
    discard(env, output);
  return synced;
}

Status checkEnding(const ExportRequest& request) {
  if (request.shardBytes || request.output.ends_with(tensorSuffix))
    return {};
  return Error::usage("'{}' is no {} file, and weights are exported to nothing else",
                      request.output, tensorSuffix);
}

Status checkProfile(const std::string& path, const Manifest& manifest, const std::string& profile) {
  const std::set<std::string> profiles = profilesOf(manifest.program);
  if (!profiles.contains(profile))
    return Error::badInput("checkpoint '{}' has no averages '{}': it has {}", path, profile,
                           profiles.empty() ? "none"
                                            : fmt::format("'{}'", fmt::join(profiles, "', '")));
  const auto updates = manifest.counters.find(updateCounter);
  if (updates == manifest.counters.end())
    return {};
  EmaProfile what; // of a recipe that this build does not read, the interval is not known
  if (const Result<Recipe> recipe = parseRecipeJson(manifest.program.recipe);
      recipe.ok() && recipe->ema.profiles.contains(profile))
    what = recipe->ema.profiles.at(profile);
  if (const std::string why = what.whyNone(updates->second); !why.empty())
    return Error::badInput("checkpoint '{}' has no averages '{}' yet: {}", path, profile, why);
  return {};
}

/// A model as it is exported, by name.
class Weights {
public:
  static Result<Weights> open(const ExportRequest& request, const Manifest& manifest, Env& env) {
    Weights weights;
    if (!request.profile.empty()) {
      const auto folder = TITAN_TRY(folderOf(StateKind::Ema, request.profile));
      weights.add(TITAN_TRY(openFolder(request.checkpoint, manifest, *folder, env)));
    }
    weights.add(TITAN_TRY(openModel(request.checkpoint, manifest, env)));
    if (request.allNames)
      weights.addAliases(manifest.program.table);
    return weights;
  }

  std::vector<TensorView> views(std::optional<DType> dtype) const {
    std::vector<TensorView> views;
    for (const auto& [name, tensor] : byName_) {
      const DType type = dtype && isFloat(tensor->dtype) ? *dtype : tensor->dtype;
      views.push_back(
          {name, StateKind::Param, "", type, tensor->shape, sourceOf(*tensor, type), {}});
    }
    return views;
  }

private:
  /// What is there already stays.
  void add(StoredTensors stored) {
    // Tensors point to their files, not to the object that holds both.
    stored_.push_back(std::make_unique<StoredTensors>(std::move(stored)));
    for (const auto& [name, tensor] : stored_.back()->tensors())
      byName_.try_emplace(name, &tensor);
  }

  void addAliases(const std::vector<TableEntry>& table) {
    for (const TableEntry& row : table)
      if (const auto found = byName_.find(row.name);
          found != byName_.end() && folderOf(row.kind, row.profile).take() == folderOfModel())
        for (const std::string& alias : row.aliases)
          byName_.try_emplace(alias, found->second);
  }

  std::vector<std::unique_ptr<StoredTensors>> stored_;
  std::map<std::string, const StoredTensors::Tensor*> byName_;
};

/// In the order of names, as many a file as fit.
std::vector<std::vector<const TensorView*>> cutIntoFiles(const std::vector<TensorView>& views,
                                                         std::optional<int64_t> shardBytes) {
  std::vector<std::vector<const TensorView*>> files(1);
  int64_t bytes = 0;
  for (const TensorView& view : views) {
    if (shardBytes && !files.back().empty() && bytes + view.bytes() > *shardBytes) {
      files.emplace_back();
      bytes = 0;
    }
    files.back().push_back(&view);
    bytes += view.bytes();
  }
  for (auto& file : files)
    sortInFileOrder(file);
  return files;
}

/// A new directory with the files and their index, durable.
Status writeShards(Env& env, const std::string& directory, const std::vector<TensorFile>& files,
                   int64_t bytes) {
  TITAN_TRY(env.makeDirectory(directory));
  std::vector<std::pair<std::string, std::string>> fileOf;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string name =
        fmt::format("model-{:05}-of-{:05}{}", i + 1, files.size(), tensorSuffix);
    for (const TensorView* tensor : files[i].tensors)
      fileOf.emplace_back(tensor->name, name);
    TITAN_TRY(writeTensorFile(env, joinPath(directory, name), files[i]));
  }
  std::ranges::sort(fileOf);
  const std::string index = formatIndex(fileOf, bytes);
  const ByteSource pieces[] = {std::span<const char>(index)};
  TITAN_TRY(writeFile(env, joinPath(directory, indexFileName), pieces));
  return env.syncDirectory(directory);
}

} // namespace

Result<ExportReport> exportWeights(const ExportRequest& request, Env& env) {
  TITAN_TRY(checkEnding(request));
  const auto hold = TITAN_TRY(holdCheckpoint(request.checkpoint, env));
  const Manifest manifest = TITAN_TRY(readManifest(request.checkpoint, env));
  if (!request.profile.empty())
    TITAN_TRY(checkProfile(request.checkpoint, manifest, request.profile));
  ExportReport report;
  TITAN_TRY(publish(env, request.output, [&](const std::string& path) -> Status {
    const Weights weights = TITAN_TRY(Weights::open(request, manifest, env));
    const std::vector<TensorView> views = weights.views(request.dtype);
    std::vector<TensorFile> files;
    for (auto& tensors : cutIntoFiles(views, request.shardBytes)) {
      files.push_back(planTensorFile(std::move(tensors), /*sharded=*/false));
      report.bytes += files.back().dataBytes();
    }
    report.tensors = static_cast<int64_t>(views.size());
    report.files = static_cast<int64_t>(files.size());
    return request.shardBytes ? writeShards(env, path, files, report.bytes)
                              : writeTensorFile(env, path, files.front());
  }));
  return report;
}

} // namespace titan::checkpoint
