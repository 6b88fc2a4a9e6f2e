#include "runtime/data/Zip.h"

#include <zlib.h>

#include <algorithm>

namespace titan {

namespace {

constexpr uint64_t limit = 0xffffffff;
constexpr uint16_t version = 20;           // 2.0: directories and deflate; what every reader knows
constexpr uint16_t utf8Names = 1 << 11;    // general purpose flag 11
constexpr uint16_t firstDate = 1 << 5 | 1; // 1980-01-01

void append(std::string& out, uint64_t value, int width) {
  for (int i = 0; i < width; ++i)
    out += static_cast<char>(value >> 8 * i);
}

} // namespace

Status ZipWriter::add(std::string_view name, std::string_view head, std::span<const char> body) {
  const uint64_t size = head.size() + body.size();
  if (size > limit || archive_.size() + size + 2 * name.size() + 100 > limit ||
      members_ == 0xfffe || name.size() > 0xffff)
    return Error::badInput("'{}' with {} bytes takes the archive beyond 4 GiB: write fewer samples",
                           name, size);
  uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(head.data()), head.size());
  crc = crc32_z(crc, reinterpret_cast<const Bytef*>(body.data()), body.size());
  const bool ascii = std::ranges::all_of(name, [](unsigned char c) { return c < 0x80; });

  // What the local header and the directory entry have in common.
  std::string common;
  append(common, version, 2);
  append(common, ascii ? 0 : utf8Names, 2);
  append(common, 0, 2); // stored
  append(common, 0, 2); // time
  append(common, firstDate, 2);
  append(common, crc, 4);
  append(common, size, 4);
  append(common, size, 4);
  append(common, name.size(), 2);
  append(common, 0, 2); // extra field

  append(directory_, 0x02014b50, 4);
  append(directory_, version, 2);
  directory_ += common;
  append(directory_, 0, 2); // comment
  append(directory_, 0, 2); // disk
  append(directory_, 0, 2); // internal attributes
  append(directory_, 0, 4); // external attributes
  append(directory_, archive_.size(), 4);
  directory_ += name;

  append(archive_, 0x04034b50, 4);
  archive_ += common;
  archive_ += name;
  archive_ += head;
  archive_.append(body.data(), body.size());
  ++members_;
  return {};
}

Result<std::string> ZipWriter::finish() {
  const uint64_t offset = archive_.size();
  if (offset + directory_.size() > limit)
    return Error::badInput("the archive is larger than 4 GiB: write fewer samples");
  archive_ += directory_;
  append(archive_, 0x06054b50, 4);
  append(archive_, 0, 2); // disk
  append(archive_, 0, 2); // disk of the directory
  append(archive_, members_, 2);
  append(archive_, members_, 2);
  append(archive_, directory_.size(), 4);
  append(archive_, offset, 4);
  append(archive_, 0, 2); // comment
  return std::move(archive_);
}

} // namespace titan
