// A safetensors file that is to be written: what it holds besides the tensors' bytes, and in which
// order these come.
#pragma once

#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/Safetensors.h"

namespace titan::checkpoint {

inline constexpr std::string_view tensorSuffix = ".safetensors";
inline constexpr const char* indexFileName = "model.safetensors.index.json";

struct TensorFile {
  std::string header;                     ///< its bytes before the data
  std::vector<SafetensorsEntry> entries;  ///< in the order of their data
  std::vector<const TensorView*> tensors; ///< likewise
  int64_t dataBytes() const { return entries.empty() ? 0 : entries.back().end; }
};
/// The tensors' bytes.
std::vector<ByteSource> sourcesOf(const TensorFile& file);

/// In the order of their data: wide elements first, so that every tensor of a file is aligned to
/// its element. Readers that map the file need that.
void sortInFileOrder(std::vector<const TensorView*>& tensors);

/// The file of `tensors`, which are in its order. With `sharded`, it says where boxes lie, as
/// PyTorch's reader of several files expects.
TensorFile planTensorFile(std::vector<const TensorView*> tensors, bool sharded);

/// The Hugging Face index: `files` gives each tensor's file, `bytes` are those of all tensors.
std::string formatIndex(const std::vector<std::pair<std::string, std::string>>& files,
                        int64_t bytes);

} // namespace titan::checkpoint
