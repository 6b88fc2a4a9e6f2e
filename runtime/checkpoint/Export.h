// The weights of a checkpoint as files that others read: one safetensors file, or a folder of
// several with a Hugging Face index.
//
//   F.safetensors                           or
//   DIR/model-00001-of-00002.safetensors    at most `shardBytes` of tensors each, but for one that
//   DIR/model-00002-of-00002.safetensors    is larger by itself
//   DIR/model.safetensors.index.json
#pragma once

#include "runtime/checkpoint/Load.h"

namespace titan::checkpoint {

/// What Hugging Face's tools take where nothing is said: "5GB".
inline constexpr int64_t commonShardBytes = 5'000'000'000;

struct ExportRequest {
  std::string checkpoint;
  std::string output;              ///< a file, or with shardBytes a folder; neither exists
  std::string profile = {};        ///< the averages of that one; empty: the weights themselves
  std::optional<DType> dtype = {}; ///< of floating-point tensors; nothing: as they are stored
  bool allNames = false;           ///< a tied set under each of its names, as PyTorch has it
  std::optional<int64_t> shardBytes = {}; ///< nothing: one file
};

struct ExportReport {
  int64_t tensors = 0;
  int64_t bytes = 0; ///< of all tensors
  int64_t files = 0; ///< that hold tensors
};

/// Checks the weights and writes them: under a name of their own first, and under `output` when all
/// is durable. A model's tensors that a profile does not average are taken from the model. On an
/// error nothing is left. Usage: `output` exists or has another ending. BadInput: no such profile,
/// one without an update yet, or a value that `dtype` has not.
Result<ExportReport> exportWeights(const ExportRequest& request, Env& env = posixEnv());

} // namespace titan::checkpoint
