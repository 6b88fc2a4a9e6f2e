// A tensor of a model file: its type, and where its bytes are. Bytes are read on demand: weights
// are never all in memory.
#pragma once

#include "frontend/Extents.h"
#include "frontend/onnx/read/Protos.h"
#include "runtime/program/DType.h"

#include <memory>
#include <optional>
#include <string>

namespace titan::frontend {

class DataFile;

/// The element type of an ONNX data type number, or nothing for strings, complex, float8 and 4-bit
/// types.
std::optional<DType> elementType(int64_t onnxDataType);
/// "FLOAT", "STRING", "FLOAT8E4M3FN", "type 99": for messages.
std::string onnxTypeName(int64_t onnxDataType);

/// A contiguous, little-endian, row-major run of bytes in a file beside the model (or the model
/// itself).
struct FileSpan {
  std::string path; ///< relative to the model's directory
  uint64_t offset = 0, bytes = 0;
  bool operator==(const FileSpan&) const = default;
};

struct Tensor {
  std::string name; ///< as in the file
  DType dtype = DType::F32;
  Shape shape;
  /// Where the bytes lie, when they lie in one piece in their final form; otherwise only
  /// `inlineBytes` has them.
  std::optional<FileSpan> span;
  std::shared_ptr<const std::string> inlineBytes; ///< null for external data
  std::shared_ptr<DataFile> file;                 ///< null unless external and present
  bool fromConstantNode = false;                  ///< the output of a Constant node
  std::string copyOf;    ///< the file's initializer, where the exporter merged several into it
  bool nameless = false; ///< is not called like this in any file: the name is still to be found
  bool assumed = false;  ///< the file has no data: the values follow from how the model uses them
  /// Zeros that an optimizer took out of the file (restoreRemovedBiases): no bytes are stored.
  bool restored = false;
  /// The file has no data, and whether the values are a mask or are trained nothing tells.
  bool perhapsMask = false;
  std::string missing; ///< why external data is absent; empty when it is there
  /// What the file stores, where `inlineBytes` are its first elements in each dimension.
  std::shared_ptr<const Tensor> stored;

  uint64_t byteCount() const;
  /// The bytes, little-endian, row-major. Errors: data that is missing or unreadable.
  Result<std::string> read() const;
  /// `count` of them from `from` on, which lie in it.
  Result<std::string> readPart(uint64_t from, uint64_t count) const;
  /// All of them, not copied where the model's file has them. Errors: as of read().
  Result<std::shared_ptr<const std::string>> bytes() const;
  /// XXH3-64 of the bytes, read in pieces.
  Result<uint64_t> digest() const;
};

/// Checks `proto`'s dimensions and data against each other and takes its bytes out of it. External
/// data is left to `ExternalData::attach`. `what` names the tensor in errors.
Result<Tensor> takeTensor(::onnx::TensorProto& proto, const std::string& what);

} // namespace titan::frontend
