// A committed checkpoint's files, checked against its manifest.
#pragma once

#include "runtime/checkpoint/Folders.h"
#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/StoredTensors.h"

namespace titan::checkpoint {

using CheckpointTensors = std::map<Folder, StoredTensors>;

/// All tensors of the checkpoint at `path`: sizes, digests, headers and the canonical table were
/// checked. Of Reading::Header, no digest of the tensors' bytes.
Result<CheckpointTensors> openCheckpoint(const std::string& path, const Manifest& manifest,
                                         Env& env, Reading reading = Reading::All);
/// Those of one folder; none where the checkpoint has no such folder.
Result<StoredTensors> openFolder(const std::string& path, const Manifest& manifest,
                                 const Folder& folder, Env& env, Reading reading = Reading::All);
/// Parameters and buffers only.
Result<StoredTensors> openModel(const std::string& path, const Manifest& manifest, Env& env,
                                Reading reading = Reading::All);

} // namespace titan::checkpoint
