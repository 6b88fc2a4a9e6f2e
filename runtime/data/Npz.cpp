#include "runtime/data/Npz.h"

#include "runtime/data/Npy.h"
#include "runtime/data/Zip.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace titan {

namespace {

constexpr std::string_view extension = ".npy";

Result<Array> readMember(const ZipMember& member, const std::shared_ptr<const void>& storage) {
  const std::string name = member.name.substr(0, member.name.size() - extension.size());
  if (!member.deflated) {
    TITAN_TRY(checkCrc(member, member.stored));
    return parseNpy(member.stored, name, storage);
  }
  auto contents = TITAN_TRY(inflateMember(member));
  const std::span<const char> bytes = *contents;
  return parseNpy(bytes, name, std::move(contents));
}

Error cannotWrite(const std::string& path) {
  return Error::environment("cannot write '{}': {}", path, std::strerror(errno));
}

bool writeAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

} // namespace

Result<std::vector<Array>> parseNpz(std::span<const char> bytes,
                                    std::shared_ptr<const void> storage) {
  std::vector<Array> arrays;
  for (const ZipMember& member : TITAN_TRY(parseZip(bytes))) {
    if (!member.name.ends_with(extension))
      continue;
    Result<Array> array = readMember(member, storage);
    if (!array.ok())
      return array.takeError().withContext(fmt::format("array '{}'", member.name));
    arrays.push_back(array.take());
  }
  return arrays;
}

Result<std::string> encodeNpz(std::span<const NamedArray> arrays) {
  ZipWriter writer;
  for (const NamedArray& array : arrays)
    TITAN_TRY(writer.add(array.name + std::string(extension),
                         TITAN_TRY(formatNpyHeader(array.dtype, array.shape)), array.bytes));
  return writer.finish();
}

Status writeNpz(const std::string& path, std::span<const NamedArray> arrays) {
  const std::string bytes = TITAN_TRY(encodeNpz(arrays));
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0)
    return cannotWrite(path);
  const bool written = writeAll(descriptor, bytes);
  const int writeError = errno;
  const bool closed = ::close(descriptor) == 0;
  if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0)
    return {};
  if (!written)
    errno = writeError;
  const Error error = cannotWrite(path);
  ::unlink(temporary.c_str());
  return error;
}

} // namespace titan
