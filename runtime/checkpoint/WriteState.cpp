#include "runtime/checkpoint/WriteState.h"

#include "runtime/checkpoint/Safetensors.h"
#include "runtime/checkpoint/StrictJson.h"

#include <algorithm>
#include <set>

namespace titan::checkpoint {
namespace {

/// In the order of their data: wide elements first, so that every tensor of a file is aligned to
/// its element. Readers that map the file need that.
void sortInFileOrder(std::vector<const TensorView*>& ordered) {
  std::sort(ordered.begin(), ordered.end(), [](const TensorView* a, const TensorView* b) {
    return std::pair(-byteSize(a->dtype), std::string_view(a->name)) <
           std::pair(-byteSize(b->dtype), std::string_view(b->name));
  });
}

Status writeFolder(Attempt& attempt, const std::string& folder, const std::string& fileName,
                   const std::vector<const TensorView*>& tensors) {
  std::vector<SafetensorsEntry> entries;
  std::set<std::string_view> names;
  for (const TensorView* tensor : tensors) {
    if (!names.insert(tensor->name).second)
      return Error::internal("state has two tensors named '{}'", tensor->name);
    SafetensorsEntry entry;
    entry.name = tensor->name;
    entry.dtype = tensor->dtype;
    entry.shape = tensor->shape;
    entries.push_back(std::move(entry));
  }
  const std::string header = formatSafetensorsHeader(entries, {{"format", "pt"}}, /*sharded=*/true);
  std::vector<std::string_view> pieces = {header};
  for (const TensorView* tensor : tensors)
    pieces.emplace_back(tensor->data, static_cast<size_t>(tensor->bytes()));
  TITAN_TRY(attempt.makeDirectory(folder));
  return attempt.writeDataFile(joinPath(folder, fileName), pieces);
}

std::string formatIndex(const std::vector<const TensorView*>& tensors,
                        const std::string& fileName) {
  int64_t total = 0;
  std::string map;
  for (const TensorView* tensor : tensors) {
    total += tensor->bytes();
    map += fmt::format("{}\n    {}: {}", tensor == tensors.front() ? "" : ",",
                       jsonString(tensor->name), jsonString(fileName));
  }
  return fmt::format(
      "{{\n  \"metadata\": {{ \"total_size\": {} }},\n  \"weight_map\": {{{}\n  }}\n}}\n", total,
      map);
}

} // namespace

std::string shardFileName(int shard, int file, int files) {
  return fmt::format("shard-{:05}-model-{:05}-of-{:05}.safetensors", shard, file, files);
}

Status writeState(Attempt& attempt, const std::vector<TensorView>& tensors) {
  const std::string fileName = shardFileName(1, 1, 1);
  auto folders = TITAN_TRY(byFolder(tensors));
  // Other readers look for the model's, even where it holds nothing; plain SGD has no slots, and so
  // no folder of them.
  folders[folderOfModel()];
  for (auto& [folder, ordered] : folders) {
    sortInFileOrder(ordered);
    TITAN_TRY(writeFolder(attempt, folder.name, fileName, ordered));
    if (folder != folderOfModel())
      continue;
    const std::string index = formatIndex(ordered, fileName);
    const std::string_view pieces[] = {index};
    TITAN_TRY(attempt.writeFile(joinPath(folder.name, indexFileName), pieces));
  }
  return {};
}

} // namespace titan::checkpoint
