#include "runtime/checkpoint/WriteState.h"

#include "runtime/checkpoint/StrictJson.h"
#include "runtime/program/Text.h"

#include <algorithm>
#include <map>
#include <set>

namespace titan::checkpoint {
namespace {

/// What this rank writes to each folder, in the order of the file.
Result<ByFolder<TensorView>> filesOf(const std::vector<TensorView>& tensors) {
  ByFolder<TensorView> folders = TITAN_TRY(byFolder(tensors));
  for (auto& [folder, ordered] : folders) {
    std::erase_if(ordered, [](const TensorView* tensor) { return !tensor->isWritten; });
    sortInFileOrder(ordered);
  }
  return folders;
}

Status checkNames(const FolderPlan& plan) {
  std::set<std::string_view> names;
  for (const TensorView* tensor : plan.tensors)
    if (!names.insert(tensor->name).second)
      return Error::internal("state has two tensors named '{}' in {}/", tensor->name,
                             plan.folder.name);
  return {};
}

std::string indexOf(const FolderPlan& plan) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const TensorView* tensor : plan.tensors)
    files.emplace_back(tensor->name, baseName(plan.file));
  return formatIndex(files, plan.dataBytes());
}

bool areWhole(const std::vector<const TensorView*>& tensors) {
  return std::ranges::none_of(tensors,
                              [](const TensorView* tensor) { return tensor->box.has_value(); });
}

} // namespace

std::string shardFileName(int64_t shard, int file, int files) {
  return fmt::format("shard-{:05}-model-{:05}-of-{:05}.safetensors", shard, file, files);
}

Result<std::vector<FolderPlan>> planFolders(const std::vector<TensorView>& tensors, int64_t rank) {
  const std::string fileName = shardFileName(rank + 1, 1, 1);
  ByFolder<TensorView> folders = TITAN_TRY(filesOf(tensors));
  // Other readers look for the model's, even where it holds nothing; plain SGD has no slots, and so
  // no folder of them.
  folders[folderOfModel()];
  std::vector<FolderPlan> plans;
  for (auto& [folder, ordered] : folders) {
    if (ordered.empty() && rank != 0)
      continue;
    FolderPlan plan;
    plan.folder = folder;
    plan.file = joinPath(folder.name, fileName);
    static_cast<TensorFile&>(plan) = planTensorFile(std::move(ordered), /*sharded=*/true);
    TITAN_TRY(checkNames(plan));
    const bool isModel = folder == folderOfModel() || !folder.profile.empty();
    if (isModel && rank == 0 && areWhole(plan.tensors))
      plan.index = indexOf(plan);
    plans.push_back(std::move(plan));
  }
  return plans;
}

SaveSize sizeOf(const std::vector<FolderPlan>& folders) {
  SaveSize size;
  for (const FolderPlan& plan : folders) {
    const int64_t file = static_cast<int64_t>(plan.header.size()) + plan.dataBytes();
    size.bytes +=
        file + chunkCount(file) * chunkDigestBytes + static_cast<int64_t>(plan.index.size());
    size.files += plan.index.empty() ? 2 : 3;
  }
  return size;
}

std::vector<TensorView> viewsOf(const std::vector<SavedState>& saved,
                                std::span<const MeshAxis> mesh,
                                std::span<const int64_t> coordinates) {
  std::vector<TensorView> views;
  for (const SavedState& state : saved)
    views.push_back(viewOf(state, mesh, coordinates));
  return views;
}

Result<SaveSize> sizeOfSave(const Program& program) {
  const std::vector<SavedState> saved = savedStates(program);
  SaveSize all;
  for (int64_t rank = 0; rank < rankCount(program.mesh); ++rank) {
    const std::vector<TensorView> views =
        viewsOf(saved, program.mesh, coordinatesOf(rank, program.mesh));
    const SaveSize mine = sizeOf(TITAN_TRY(planFolders(views, rank)));
    all.bytes += mine.bytes, all.files += mine.files;
  }
  return all;
}

Result<std::vector<const TensorView*>> inSaveOrder(const std::vector<TensorView>& tensors) {
  std::vector<const TensorView*> all;
  for (const auto& [folder, ordered] : TITAN_TRY(filesOf(tensors)))
    all.insert(all.end(), ordered.begin(), ordered.end());
  return all;
}

Status makeFolders(Attempt& attempt, const std::vector<FolderPlan>& folders) {
  for (const FolderPlan& plan : folders)
    TITAN_TRY(attempt.makeDirectory(plan.folder.name));
  return {};
}

Status writeFolders(Attempt& attempt, const std::vector<FolderPlan>& folders,
                    const std::function<std::span<const ByteSource>(const FolderPlan&)>& piecesOf,
                    const std::function<void(const TensorView&)>& onRead) {
  for (const FolderPlan& plan : folders) {
    TITAN_TRY(attempt.writeDataFile(plan.file, piecesOf(plan), [&](size_t piece) {
      if (onRead && piece > 0) // the first one is the header
        onRead(*plan.tensors[piece - 1]);
    }));
    if (plan.index.empty())
      continue;
    const std::string_view index[] = {plan.index};
    TITAN_TRY(attempt.writeFile(plan.indexFile(), index));
  }
  return attempt.syncDirectories();
}

Result<std::vector<FileRecord>> gatherFiles(Peers& peers, std::string_view name,
                                            Result<std::string> mine) {
  std::vector<FileRecord> all;
  for (const std::string& text : TITAN_TRY(peers.gather(name, std::move(mine))))
    std::ranges::move(TITAN_TRY(parseFiles(text)), std::back_inserter(all));
  return all;
}

Status checkRequest(const SaveRequest& request) {
  // Where a state is kept, and its name there.
  using Key = std::pair<std::optional<Folder>, std::string_view>;
  std::map<Key, const TableEntry*> rows;
  for (const TableEntry& row : request.program.table)
    if (!rows.try_emplace({TITAN_TRY(folderOf(row.kind, row.profile)), row.name}, &row).second)
      return Error::internal("the canonical table names {} '{}' twice", nameOf(row.kind), row.name);
  for (const TensorView& tensor : request.tensors) {
    const auto row = rows.find({TITAN_TRY(folderOf(tensor.kind, tensor.profile)), tensor.name});
    if (row == rows.end() || row->second->kind != tensor.kind ||
        row->second->dtype != tensor.dtype || row->second->shape != tensor.shape)
      return Error::internal("tensor '{}' {} {} is not what the canonical table says", tensor.name,
                             name(tensor.dtype), toString(tensor.shape));
    if (tensor.name == "__metadata__" || Json::parse(jsonString(tensor.name)) != tensor.name)
      return Error::badInput("'{}' cannot be the name of a tensor in a checkpoint: rename it with "
                             "--names",
                             tensor.name);
    rows.erase(row);
  }
  for (const auto& [name, value] : request.counters)
    if (const auto row = rows.find({std::nullopt, name});
        row == rows.end() || row->second->kind != StateKind::Counter)
      return Error::internal("counter '{}' is not in the canonical table", name);
    else
      rows.erase(row);
  if (!rows.empty())
    return Error::internal("state '{}' of the canonical table is not in the request",
                           rows.begin()->first.second);
  return {};
}

Manifest manifestOf(const SaveRequest& request) {
  Manifest manifest;
  manifest.step = request.step;
  manifest.counters = request.counters;
  manifest.data = request.data;
  manifest.program = request.program;
  manifest.init = request.init;
  return manifest;
}

} // namespace titan::checkpoint
