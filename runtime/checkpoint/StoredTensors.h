// The tensors that a set of safetensors files holds; the pieces of a sharded tensor are put
// together. Opening checks all files; their bytes are read a second time, straight into the
// program's state.
#pragma once

#include "runtime/checkpoint/StoredFile.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace titan::checkpoint {

class StoredTensors {
public:
  /// A box of the whole tensor: [offsets, offsets + shape).
  struct Piece {
    const StoredFile* file = nullptr;
    size_t entry = 0; ///< of the file's header
    Shape offsets, shape;
  };
  struct Tensor {
    std::string name;
    DType dtype = DType::F32;
    Shape shape; ///< of the whole
    std::vector<Piece> pieces;

    /// Reads elementCount(shape) * byteSize(dtype) bytes. On an error some of them were written;
    /// BadInput: a file changed since it was added.
    Status readInto(const ByteSink& into) const;
    /// The same dtype, shape and bytes. Only tensors that were split in different ways are read
    /// for that.
    Result<bool> sameAs(const Tensor& other) const;
  };

  explicit StoredTensors(Reading reading = Reading::All) : reading_(reading) {}
  /// Opens and checks the file (StoredFile::open); the names that it holds are returned.
  Result<std::vector<std::string>> add(Env& env, const std::string& path,
                                       const FileRecord* expected);
  /// After the last file: the pieces of each tensor must cover it once.
  Status finish() const;

  /// Forgets a tensor, which its file goes on to hold.
  void leaveOut(const std::string& name) { tensors_.erase(name); }

  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  const std::vector<std::unique_ptr<StoredFile>>& files() const { return files_; }

private:
  Reading reading_;
  std::vector<std::unique_ptr<StoredFile>> files_; ///< where they are: pieces point to them
  std::map<std::string, Tensor> tensors_;
};

} // namespace titan::checkpoint
