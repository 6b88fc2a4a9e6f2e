// The tensors that a set of safetensors files holds. Files are staged whole in memory, so that
// nothing can fail any more once copying into the program's state begins; the pieces of a sharded
// tensor are put together.
#pragma once

#include "runtime/checkpoint/Env.h"
#include "runtime/checkpoint/Manifest.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace titan::checkpoint {

/// A file in memory.
class StagedFile {
public:
  /// With `expected`, size and digest must be its.
  static Result<StagedFile> read(Env& env, const std::string& path, const FileRecord* expected);

  const std::string& path() const { return path_; }
  std::string_view bytes() const { return {bytes_.get(), size_}; }

private:
  std::string path_;
  std::unique_ptr<char[]> bytes_;
  size_t size_ = 0;
};

/// Size and digest of the file are the record's; BadInput names what was expected and found. Uses
/// little memory.
Status checkFile(Env& env, const std::string& path, const FileRecord& expected);

class StoredTensors {
public:
  /// A box of the whole tensor: [offsets, offsets + shape).
  struct Piece {
    std::string_view bytes;
    Shape offsets, shape;
  };
  struct Tensor {
    std::string name;
    DType dtype = DType::F32;
    Shape shape; ///< of the whole
    std::vector<Piece> pieces;

    void copyTo(char* into) const;
    /// The same dtype, shape and bytes.
    bool sameAs(const Tensor& other) const;
  };

  /// Parses `file`; the names that it holds are returned.
  Result<std::vector<std::string>> add(StagedFile file);
  /// After the last file: the pieces of each tensor must cover it once.
  Status finish() const;

  const std::map<std::string, Tensor>& tensors() const { return tensors_; }

private:
  std::vector<StagedFile> files_;
  std::map<std::string, Tensor> tensors_;
};

} // namespace titan::checkpoint
