#include "runtime/checkpoint/TensorFile.h"

#include "runtime/checkpoint/StrictJson.h"

#include <algorithm>

namespace titan::checkpoint {

std::vector<ByteSource> sourcesOf(const TensorFile& file) {
  std::vector<ByteSource> sources;
  for (const TensorView* tensor : file.tensors)
    sources.push_back(tensor->source);
  return sources;
}

void sortInFileOrder(std::vector<const TensorView*>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorView* a, const TensorView* b) {
    return std::pair(-byteSize(a->dtype), std::string_view(a->name)) <
           std::pair(-byteSize(b->dtype), std::string_view(b->name));
  });
}

TensorFile planTensorFile(std::vector<const TensorView*> tensors, bool sharded) {
  TensorFile file;
  for (const TensorView* tensor : tensors) {
    SafetensorsEntry entry;
    entry.name = tensor->name;
    entry.dtype = tensor->dtype;
    entry.shape = tensor->extent();
    if (tensor->box)
      entry.offsets = tensor->box->at;
    file.entries.push_back(std::move(entry));
  }
  file.header = formatSafetensorsHeader(file.entries, {{"format", "pt"}}, sharded);
  file.tensors = std::move(tensors);
  return file;
}

std::string formatIndex(const std::vector<std::pair<std::string, std::string>>& files,
                        int64_t bytes) {
  std::string map;
  for (const auto& [tensor, file] : files)
    map +=
        fmt::format("{}\n    {}: {}", map.empty() ? "" : ",", jsonString(tensor), jsonString(file));
  return fmt::format(
      "{{\n  \"metadata\": {{ \"total_size\": {} }},\n  \"weight_map\": {{{}\n  }}\n}}\n", bytes,
      map);
}

} // namespace titan::checkpoint
