#include "runtime/checkpoint/StoredTensors.h"

#include "runtime/checkpoint/Cover.h"

#include <algorithm>

namespace titan::checkpoint {
namespace {

bool isEmpty(const StoredTensors::Piece& piece) { return elementCount(piece.shape) == 0; }

/// Reads a piece, whose elements follow each other in its file, to their places in the whole.
class PiecePlacer {
public:
  PiecePlacer(const StoredTensors::Tensor& tensor, const StoredTensors::Piece& piece)
      : piece_(piece), reader_(*piece.file, piece.entry), strides_(tensor.shape.size()) {
    int64_t stride = byteSize(tensor.dtype);
    for (size_t dim = tensor.shape.size(); dim-- > 0; stride *= tensor.shape[dim])
      strides_[dim] = stride;
    for (size_t dim = tensor.shape.size(); dim-- > 1;)
      if (piece.shape[dim] != tensor.shape[dim]) {
        contiguousFrom_ = dim;
        break;
      }
  }

  Status place(const ByteSink& into) {
    if (strides_.empty())
      TITAN_TRY(reader_.read(into));
    else
      TITAN_TRY(placeBox(0, into, 0));
    return reader_.finish();
  }

private:
  /// Dimensions [dim, rank) of the piece; `at` is where the whole's begin.
  Status placeBox(size_t dim, const ByteSink& into, int64_t at) {
    at += piece_.offsets[dim] * strides_[dim];
    if (dim == contiguousFrom_)
      return reader_.read(into.part(at, piece_.shape[dim] * strides_[dim]));
    for (int64_t i = 0; i < piece_.shape[dim]; ++i)
      TITAN_TRY(placeBox(dim + 1, into, at + i * strides_[dim]));
    return {};
  }

  const StoredTensors::Piece& piece_;
  EntryReader reader_;
  Shape strides_;             ///< of the whole, in bytes
  size_t contiguousFrom_ = 0; ///< the piece has all of the dimensions after this one
};

/// With digests that are known of both.
bool splitAlike(const StoredTensors::Tensor& a, const StoredTensors::Tensor& b) {
  return std::equal(a.pieces.begin(), a.pieces.end(), b.pieces.begin(), b.pieces.end(),
                    [](const auto& x, const auto& y) {
                      return x.offsets == y.offsets && x.shape == y.shape &&
                             !x.file->digest(x.entry).empty() && !y.file->digest(y.entry).empty();
                    });
}

} // namespace

Status StoredTensors::Tensor::readInto(const ByteSink& into) const {
  for (const Piece& piece : pieces)
    if (!isEmpty(piece))
      TITAN_TRY(PiecePlacer(*this, piece).place(into));
  return {};
}

Result<bool> StoredTensors::Tensor::sameAs(const Tensor& other) const {
  if (dtype != other.dtype || shape != other.shape)
    return false;
  if (splitAlike(*this, other))
    return std::equal(pieces.begin(), pieces.end(), other.pieces.begin(),
                      [](const Piece& a, const Piece& b) {
                        return a.file->digest(a.entry) == b.file->digest(b.entry);
                      });
  const size_t bytes = static_cast<size_t>(elementCount(shape) * byteSize(dtype));
  std::string mine(bytes, '\0'), others(bytes, '\0');
  TITAN_TRY(readInto(std::span<char>(mine)));
  TITAN_TRY(other.readInto(std::span<char>(others)));
  return mine == others;
}

Result<std::vector<std::string>> StoredTensors::add(Env& env, const std::string& path,
                                                    const FileRecord* expected) {
  files_.push_back(
      std::make_unique<StoredFile>(TITAN_TRY(StoredFile::open(env, path, expected, reading_))));
  const StoredFile& file = *files_.back();
  std::vector<std::string> names;
  for (size_t i = 0; i < file.header().entries.size(); ++i) {
    const SafetensorsEntry& entry = file.header().entries[i];
    names.push_back(entry.name);
    auto [found, isNew] = tensors_.try_emplace(entry.name);
    Tensor& tensor = found->second;
    if (isNew) {
      tensor.name = entry.name;
      tensor.dtype = entry.dtype;
      tensor.shape.assign(entry.shape.size(), 0);
    } else if (entry.offsets.empty()) {
      return Error::badInput("'{}': tensor '{}' is in another file too", path, entry.name);
    } else if (tensor.dtype != entry.dtype || tensor.shape.size() != entry.shape.size()) {
      return Error::badInput("'{}': tensor '{}' is {} {}, another file has a piece of {} {}", path,
                             entry.name, name(entry.dtype), toString(entry.shape),
                             name(tensor.dtype), toString(tensor.shape));
    }
    Piece piece{&file, i, entry.offsets, entry.shape};
    if (piece.offsets.empty())
      piece.offsets.assign(entry.shape.size(), 0);
    for (size_t dim = 0; dim < entry.shape.size(); ++dim)
      tensor.shape[dim] = std::max(tensor.shape[dim], piece.offsets[dim] + entry.shape[dim]);
    tensor.pieces.push_back(std::move(piece));
  }
  return names;
}

Status StoredTensors::finish() const {
  for (const auto& [name, tensor] : tensors_) {
    std::vector<Box> boxes;
    for (const Piece& piece : tensor.pieces)
      boxes.push_back({piece.offsets, piece.shape});
    if (Status covered = checkCoverOnce(boxes, tensor.shape); !covered.ok())
      return covered.takeError().withContext(
          fmt::format("tensor '{}' {}", name, toString(tensor.shape)));
  }
  return {};
}

} // namespace titan::checkpoint
