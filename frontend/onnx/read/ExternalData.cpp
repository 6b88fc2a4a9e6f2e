#include "frontend/onnx/read/ExternalData.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace titan::frontend {

Result<std::string> DataFile::read(uint64_t offset, uint64_t bytes) const {
  std::string out;
  // Before memory is taken for them.
  TITAN_TRY(checkRange(offset, bytes));
  out.resize(bytes);
  TITAN_TRY(readInto(offset, out));
  return out;
}

Status DataFile::checkRange(uint64_t offset, uint64_t bytes) const {
  if (offset > size_ || bytes > size_ - offset)
    return Error::badInput("{}: {} bytes at {} are outside of its {} bytes", path_, bytes, offset,
                           size_);
  return {};
}

Status DataFile::readInto(uint64_t offset, std::span<char> out) const {
  TITAN_TRY(checkRange(offset, out.size()));
  for (uint64_t done = 0; done < out.size();) {
    ssize_t got = retryInterrupted([&] {
      return ::pread(descriptor_.get(), out.data() + done, out.size() - done,
                     static_cast<off_t>(offset + done));
    });
    if (got < 0)
      return Error::environment("{}: {}", path_, std::strerror(errno));
    if (got == 0)
      return Error::badInput("{}: became shorter than {} bytes while it was read", path_, size_);
    done += static_cast<uint64_t>(got);
  }
  return {};
}

Result<std::shared_ptr<DataFile>> ExternalData::open(const std::string& location) {
  if (auto it = open_.find(location); it != open_.end())
    return it->second;
  std::string shown = printable(location);
  if (location.empty() || location.find('\0') != std::string::npos)
    return Error::badInput("external data location '{}' is not a path", shown);
  if (location.front() == '/' || location.find('\\') != std::string::npos ||
      (location.size() > 1 && location[1] == ':'))
    return Error::badInput("external data location '{}' is not relative: it must lie below the "
                           "model's directory",
                           shown);

  const std::string& base = directory_.empty() ? std::string(".") : directory_;
  Descriptor directory(::open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory)
    return Error::badInput("cannot open the model's directory '{}': {}", base,
                           std::strerror(errno));

  // Component by component, never through a link: what is checked is what is opened.
  size_t begin = 0;
  Descriptor file;
  while (begin <= location.size()) {
    size_t end = std::min(location.find('/', begin), location.size());
    std::string part = location.substr(begin, end - begin);
    bool last = end == location.size();
    begin = end + 1;
    if (part == "..")
      return Error::badInput("external data location '{}' leaves the model's directory", shown);
    if (part.empty() || part == ".") {
      if (last)
        return Error::badInput("external data location '{}' is not a file", shown);
      continue;
    }
    // O_NONBLOCK: a FIFO must not block us before fstat tells what it is.
    int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK : O_DIRECTORY);
    int opened = ::openat(directory.get(), part.c_str(), flags);
    if (opened < 0 && errno == ENOENT) {
      open_[location] = nullptr;
      return std::shared_ptr<DataFile>();
    }
    if (opened < 0 && (errno == ELOOP || errno == ENOTDIR))
      return Error::badInput("external data location '{}': '{}' is a symbolic link or not a "
                             "directory; put a copy of the file beside the model",
                             shown, printable(part));
    if (opened < 0)
      return Error::badInput("external data file '{}': {}", shown, std::strerror(errno));
    if (last)
      file.reset(opened);
    else
      directory.reset(opened);
  }

  struct stat status;
  if (::fstat(file.get(), &status) != 0)
    return Error::environment("external data file '{}': {}", shown, std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    return Error::badInput("external data location '{}' is not a regular file", shown);
  if (status.st_nlink != 1)
    return Error::badInput("external data file '{}' has {} hard links; put a copy of it beside the "
                           "model",
                           shown, status.st_nlink);
  auto opened =
      std::make_shared<DataFile>(std::move(file), static_cast<uint64_t>(status.st_size), location);
  open_[location] = opened;
  return opened;
}

static Result<uint64_t> number(const std::string& text, const char* key, const std::string& what) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return Error::badInput("{}: external data {} '{}' is not a whole number", what, key,
                           printable(text));
  return value;
}

Status ExternalData::attach(const ::onnx::TensorProto& proto, Tensor& tensor,
                            const std::string& what) {
  std::string location;
  std::optional<uint64_t> offset, length;
  // Keys are looked up by name only: an unknown key never becomes anything.
  for (const ::onnx::StringStringEntryProto& entry : proto.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset")
      offset = TITAN_TRY(number(entry.value(), "offset", what));
    else if (entry.key() == "length")
      length = TITAN_TRY(number(entry.value(), "length", what));
  }
  uint64_t needed = tensor.byteCount();
  if (length && *length != needed)
    return Error::badInput("{}: external data of {} bytes, but {} of {} needs {}", what, *length,
                           toString(tensor.shape), titan::name(tensor.dtype), needed);
  Result<std::shared_ptr<DataFile>> file = open(location);
  if (!file.ok())
    return file.takeError().withContext(what);
  tensor.file = *file;
  tensor.span = FileSpan{location, offset.value_or(0), needed};
  if (!tensor.file) {
    tensor.missing = fmt::format("external data file '{}' is not there", printable(location));
    return {};
  }
  uint64_t size = tensor.file->size();
  if (tensor.span->offset > size || needed > size - tensor.span->offset)
    return Error::badInput("{}: external data of {} bytes at offset {} is outside of '{}', which "
                           "has {} bytes",
                           what, needed, tensor.span->offset, printable(location), size);
  return {};
}

} // namespace titan::frontend
