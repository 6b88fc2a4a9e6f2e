#include "runtime/checkpoint/StoredTensors.h"

#include "runtime/checkpoint/Digest.h"
#include "runtime/checkpoint/Safetensors.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace titan::checkpoint {
namespace {

constexpr int64_t chunkBytes = 4 << 20;

Status compare(const std::string& path, int64_t bytes, const FileRecord& expected) {
  if (bytes != expected.bytes)
    return Error::badInput("'{}' is damaged: expected {} bytes, found {}", path, expected.bytes,
                           bytes);
  return {};
}

Status compare(const std::string& path, const Digest& digest, const FileRecord& expected) {
  if (const std::string found = digest.hex(); found != expected.digest)
    return Error::badInput("'{}' is damaged: expected digest {}, found {}", path, expected.digest,
                           found);
  return {};
}

/// Elements of the box, or nothing on overflow.
std::optional<int64_t> volume(const Shape& shape) {
  int64_t elements = 1;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(elements, extent, &elements))
      return std::nullopt;
  return elements;
}

bool overlap(const StoredTensors::Piece& a, const StoredTensors::Piece& b) {
  for (size_t i = 0; i < a.shape.size(); ++i)
    if (a.offsets[i] + a.shape[i] <= b.offsets[i] || b.offsets[i] + b.shape[i] <= a.offsets[i])
      return false;
  return true;
}

/// Copies dimensions [dim, rank) of a piece: rows of the last dimension are contiguous on both
/// sides.
const char* copyBox(const StoredTensors::Piece& piece, const Shape& whole, size_t dim,
                    int64_t elementBytes, const char* from, char* into) {
  int64_t stride = elementBytes;
  for (size_t i = dim + 1; i < whole.size(); ++i)
    stride *= whole[i];
  into += piece.offsets[dim] * stride;
  if (dim + 1 == whole.size()) {
    const int64_t bytes = piece.shape[dim] * elementBytes;
    std::memcpy(into, from, static_cast<size_t>(bytes));
    return from + bytes;
  }
  for (int64_t i = 0; i < piece.shape[dim]; ++i)
    from = copyBox(piece, whole, dim + 1, elementBytes, from, into + i * stride);
  return from;
}

} // namespace

Result<StagedFile> StagedFile::read(Env& env, const std::string& path, const FileRecord* expected) {
  auto file = TITAN_TRY(env.openFile(path));
  if (expected)
    TITAN_TRY(compare(path, file->size(), *expected));
  StagedFile staged;
  staged.path_ = path;
  staged.size_ = static_cast<size_t>(file->size());
  staged.bytes_.reset(new (std::nothrow) char[staged.size_]);
  if (!staged.bytes_)
    return Error::environment("'{}' has {} bytes, which do not fit into memory", path,
                              file->size());
  Digest digest;
  for (int64_t offset = 0; offset < file->size(); offset += chunkBytes) {
    const int64_t bytes = std::min(chunkBytes, file->size() - offset);
    char* into = staged.bytes_.get() + offset;
    TITAN_TRY(file->read(offset, into, bytes));
    if (expected)
      digest.update({into, static_cast<size_t>(bytes)});
  }
  if (expected)
    TITAN_TRY(compare(path, digest, *expected));
  return staged;
}

Status checkFile(Env& env, const std::string& path, const FileRecord& expected) {
  auto file = TITAN_TRY(env.openFile(path));
  TITAN_TRY(compare(path, file->size(), expected));
  Digest digest;
  std::string chunk(static_cast<size_t>(std::min(chunkBytes, file->size())), '\0');
  for (int64_t offset = 0; offset < file->size(); offset += chunkBytes) {
    const int64_t bytes = std::min(chunkBytes, file->size() - offset);
    TITAN_TRY(file->read(offset, chunk.data(), bytes));
    digest.update({chunk.data(), static_cast<size_t>(bytes)});
  }
  return compare(path, digest, expected);
}

void StoredTensors::Tensor::copyTo(char* into) const {
  for (const Piece& piece : pieces) {
    if (piece.shape.empty())
      std::memcpy(into, piece.bytes.data(), piece.bytes.size());
    else if (!piece.bytes.empty())
      copyBox(piece, shape, 0, byteSize(dtype), piece.bytes.data(), into);
  }
}

bool StoredTensors::Tensor::sameAs(const Tensor& other) const {
  if (dtype != other.dtype || shape != other.shape)
    return false;
  const size_t bytes = static_cast<size_t>(elementCount(shape) * byteSize(dtype));
  std::string mine(bytes, '\0'), others(bytes, '\0');
  copyTo(mine.data());
  other.copyTo(others.data());
  return mine == others;
}

Result<std::vector<std::string>> StoredTensors::add(StagedFile staged) {
  const std::string& path = staged.path();
  auto header = parseSafetensorsHeader(staged.bytes(), static_cast<int64_t>(staged.bytes().size()));
  if (!header.ok())
    return header.takeError().withContext(fmt::format("'{}'", path));
  std::vector<std::string> names;
  for (SafetensorsEntry& entry : header->entries) {
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
    if (entry.offsets.empty())
      entry.offsets.assign(entry.shape.size(), 0);
    for (size_t i = 0; i < entry.shape.size(); ++i)
      tensor.shape[i] = std::max(tensor.shape[i], entry.offsets[i] + entry.shape[i]);
    tensor.pieces.push_back(
        {staged.bytes().substr(static_cast<size_t>(header->dataStart + entry.begin),
                               static_cast<size_t>(entry.end - entry.begin)),
         std::move(entry.offsets), std::move(entry.shape)});
  }
  files_.push_back(std::move(staged));
  return names;
}

Status StoredTensors::finish() const {
  for (const auto& [name, tensor] : tensors_) {
    int64_t covered = 0;
    for (const Piece& piece : tensor.pieces)
      covered += *volume(piece.shape); // the header was checked: it fits into the file
    if (volume(tensor.shape) != covered)
      return Error::badInput("tensor '{}' {}: the pieces in the files hold {} elements", name,
                             toString(tensor.shape), covered);
    for (size_t i = 0; i < tensor.pieces.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (!tensor.pieces[i].bytes.empty() && !tensor.pieces[j].bytes.empty() &&
            overlap(tensor.pieces[i], tensor.pieces[j]))
          return Error::badInput("tensor '{}': the pieces at {} and {} overlap", name,
                                 toString(tensor.pieces[j].offsets),
                                 toString(tensor.pieces[i].offsets));
  }
  return {};
}

} // namespace titan::checkpoint
