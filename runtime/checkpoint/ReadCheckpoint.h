// A committed checkpoint's files, checked against its manifest.
#pragma once

#include "runtime/checkpoint/Folders.h"
#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/StoredTensors.h"

#include <set>

namespace titan::checkpoint {

using CheckpointTensors = std::map<Folder, StoredTensors>;

/// All tensors of the checkpoint at `path`: sizes, digests, headers and the canonical table were
/// checked. Of Reading::Header, no digest of the tensors' bytes.
Result<CheckpointTensors> openCheckpoint(const std::string& path, const Manifest& manifest,
                                         Env& env, Reading reading = Reading::All);
/// Those of one folder; none where the checkpoint has no such folder.
Result<StoredTensors> openFolder(const std::string& path, const Manifest& manifest,
                                 const Folder& folder, Env& env, Reading reading = Reading::All);
/// What does not fit between the manifest's table and the files' headers, and files that it does
/// not know; but for the digests of tensors, which are not read. Of folders in `leftOut` strangers
/// only.
std::vector<Status> checkStructure(const std::string& path, const Manifest& manifest,
                                   const std::set<std::string>& leftOut, Env& env);
/// Parameters and buffers only.
Result<StoredTensors> openModel(const std::string& path, const Manifest& manifest, Env& env,
                                Reading reading = Reading::All);

} // namespace titan::checkpoint
