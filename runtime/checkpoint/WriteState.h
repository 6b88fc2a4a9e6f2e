// State into an attempt: one safetensors file per folder, and the index of the model's.
#pragma once

#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/Commit.h"
#include "runtime/checkpoint/Folders.h"

namespace titan::checkpoint {

inline constexpr const char* indexFileName = "model.safetensors.index.json";

/// "shard-00001-model-00001-of-00001.safetensors": the names that HuggingFaceStorageWriter gives.
std::string shardFileName(int shard, int file, int files);

Status writeState(Attempt& attempt, const std::vector<TensorView>& tensors);

} // namespace titan::checkpoint
