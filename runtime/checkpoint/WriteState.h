// State into an attempt: one safetensors file per folder, and the index of the model's. What a file
// holds besides the tensors' bytes is planned first, so that preflight can try it.
#pragma once

#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/Commit.h"
#include "runtime/checkpoint/Folders.h"
#include "runtime/checkpoint/TensorFile.h"

#include <functional>

namespace titan::checkpoint {

/// "shard-00001-model-00001-of-00001.safetensors": the names that HuggingFaceStorageWriter gives.
std::string shardFileName(int64_t shard, int file, int files);

/// What one rank writes to one folder of a save.
struct FolderPlan : TensorFile {
  Folder folder;
  std::string file; ///< "model/shard-..."
  /// Of a model, the folder of a profile among them, where every tensor is whole: the Hugging Face
  /// index.
  std::string index;
  std::vector<ByteSource> pieces; ///< of a SavePlan: the header, then each tensor
  std::string indexFile() const { return joinPath(folder.name, indexFileName); }
};

/// Of those that `rank` writes; only rank 0 has a file without a tensor. `tensors` must outlive the
/// plan. Internal: a tensor without a folder, or two of one name in one.
Result<std::vector<FolderPlan>> planFolders(const std::vector<TensorView>& tensors, int64_t rank);

/// What files take, without a manifest: lists of chunks and indexes among them.
struct SaveSize {
  int64_t bytes = 0, files = 0;
};
SaveSize sizeOf(const std::vector<FolderPlan>& folders);
/// Of a save of all ranks. Internal: as planFolders().
Result<SaveSize> sizeOfSave(const Program& program);

/// What the rank at `coordinates` has of each of `saved`, without its bytes.
std::vector<TensorView> viewsOf(const std::vector<SavedState>& saved,
                                std::span<const MeshAxis> mesh,
                                std::span<const int64_t> coordinates);

/// Those that this rank writes, in the order in which a save reads them. Internal: a tensor without
/// a folder.
Result<std::vector<const TensorView*>> inSaveOrder(const std::vector<TensorView>& tensors);

/// Rank 0 makes the folders of all: it has a part of every tensor.
Status makeFolders(Attempt& attempt, const std::vector<FolderPlan>& folders);
/// Durable when it returns, names included. `piecesOf` gives what a file consists of, the header
/// first; where the others are the tensors, `onRead` is called with each that is needed no more.
Status writeFolders(Attempt& attempt, const std::vector<FolderPlan>& folders,
                    const std::function<std::span<const ByteSource>(const FolderPlan&)>& piecesOf,
                    const std::function<void(const TensorView&)>& onRead = {});
/// The records of all ranks' files, in the order of ranks. `mine` is toJson() of this one's.
Result<std::vector<FileRecord>> gatherFiles(Peers& peers, std::string_view name,
                                            Result<std::string> mine);

/// What a save of `request` says about itself: everything but the files' records.
Manifest manifestOf(const SaveRequest& request);

/// The table is what a load checks the files against, so it must describe what is written. Internal
/// where it does not; BadInput: a name that a checkpoint cannot hold.
Status checkRequest(const SaveRequest& request);

} // namespace titan::checkpoint
