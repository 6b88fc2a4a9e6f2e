#include "runtime/data/NpzWriter.h"

#include "runtime/data/Npy.h"

#include <zlib.h>

#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>

namespace titan {

NpzWriter::NpzWriter(std::string path)
    : path_(std::move(path)), temporary_(fmt::format("{}.{}.tmp", path_, ::getpid())) {}

NpzWriter::~NpzWriter() {
  if (file_)
    ::unlink(temporary_.c_str());
}

Error NpzWriter::cannotWrite() const {
  return Error::environment("cannot write '{}': {}", path_, std::strerror(errno));
}

Result<std::unique_ptr<NpzWriter>> NpzWriter::create(const std::string& path,
                                                     std::span<const ArrayHead> arrays) {
  std::unique_ptr<NpzWriter> writer(new NpzWriter(path));
  TITAN_TRY(writer->layOut(arrays));
  TITAN_TRY(writer->reserve());
  for (size_t i = 0; i < arrays.size(); ++i)
    TITAN_TRY(writer->append(i, TITAN_TRY(formatNpyHeader(arrays[i].dtype, arrays[i].shape))));
  return writer;
}

Status NpzWriter::layOut(std::span<const ArrayHead> arrays) {
  for (const ArrayHead& array : arrays) {
    const uint64_t head = TITAN_TRY(formatNpyHeader(array.dtype, array.shape)).size();
    const auto body = static_cast<uint64_t>(elementCount(array.shape) * byteSize(array.dtype));
    TITAN_TRY(layout_.add(array.name + ".npy", head + body));
    const uint64_t at = layout_.contentsAt(contents_.size());
    contents_.push_back({at, at + head + body, 0});
  }
  return {};
}

Status NpzWriter::reserve() {
  struct stat info;
  if (::stat(path_.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return cannotWrite();
  }
  file_.reset(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file_)
    return cannotWrite();
  const std::vector<uint32_t> crcs(layout_.members());
  const uint64_t bytes = layout_.directoryAt() + layout_.directory(crcs).size();
  const int failed =
      retryInterrupted([&] { return ::fallocate(file_.get(), 0, 0, static_cast<off_t>(bytes)); });
  // Some file systems cannot reserve; writing will tell.
  if (failed && errno != EOPNOTSUPP && errno != ENOSYS)
    return Error::environment("cannot write '{}', {} bytes: {}", path_, bytes,
                              std::strerror(errno));
  return {};
}

Status NpzWriter::append(size_t index, std::span<const char> bytes) {
  Contents& contents = contents_[index];
  if (bytes.size() > contents.end - contents.at)
    return Error::internal("array {} of '{}' gets {} bytes more than it has", index, path_,
                           bytes.size() - (contents.end - contents.at));
  if (!writeAllAt(file_, {bytes.data(), bytes.size()}, contents.at))
    return cannotWrite();
  contents.crc = static_cast<uint32_t>(
      crc32_z(contents.crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  contents.at += bytes.size();
  return {};
}

Status NpzWriter::finish() {
  std::vector<uint32_t> crcs;
  for (size_t i = 0; i < contents_.size(); ++i) {
    const auto& [at, end, crc] = contents_[i];
    if (at != end)
      return Error::internal("array {} of '{}' lacks {} bytes", i, path_, end - at);
    if (!writeAllAt(file_, layout_.header(i, crc), layout_.headerAt(i)))
      return cannotWrite();
    crcs.push_back(crc);
  }
  if (!writeAllAt(file_, layout_.directory(crcs), layout_.directoryAt()))
    return cannotWrite();
  if (!file_.close() || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const Error error = cannotWrite();
    ::unlink(temporary_.c_str());
    return error;
  }
  return {};
}

Status writeNpz(const std::string& path, std::span<const NamedArray> arrays) {
  std::vector<ArrayHead> heads;
  for (const NamedArray& array : arrays)
    heads.push_back({array.name, array.dtype, array.shape});
  const std::unique_ptr<NpzWriter> writer = TITAN_TRY(NpzWriter::create(path, heads));
  for (size_t i = 0; i < arrays.size(); ++i)
    TITAN_TRY(writer->append(i, arrays[i].bytes));
  return writer->finish();
}

} // namespace titan
