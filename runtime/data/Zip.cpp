// Reading of zip archives; ZipLayout.cpp lays them out.
#include "runtime/data/Zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace titan {

namespace {

constexpr uint32_t endSignature = 0x06054b50, end64Signature = 0x06064b50,
                   locatorSignature = 0x07064b50, centralSignature = 0x02014b50,
                   localSignature = 0x04034b50;
constexpr size_t endBytes = 22, end64Bytes = 56, locatorBytes = 20, centralBytes = 46,
                 localBytes = 30;
constexpr uint32_t absent32 = 0xffffffff;
constexpr uint16_t absent16 = 0xffff;
/// No deflate stream expands more than this (zlib's technical details).
constexpr uint64_t maxExpansion = 1032;

/// Little-endian integers of a record that is known to be inside the archive.
class Record {
public:
  explicit Record(const char* bytes) : bytes_(bytes) {}
  uint64_t read(size_t at, size_t width) const {
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i)
      value |= uint64_t{static_cast<unsigned char>(bytes_[at + i])} << 8 * i;
    return value;
  }
  uint16_t u16(size_t at) const { return static_cast<uint16_t>(read(at, 2)); }
  uint32_t u32(size_t at) const { return static_cast<uint32_t>(read(at, 4)); }
  uint64_t u64(size_t at) const { return read(at, 8); }

private:
  const char* bytes_;
};

struct Directory {
  uint64_t offset = 0, bytes = 0, members = 0;
};

class ZipReader {
public:
  explicit ZipReader(std::span<const char> archive) : archive_(archive) {}

  Result<std::vector<ZipMember>> read() {
    const Directory directory = TITAN_TRY(findDirectory());
    if (!inside(directory.offset, directory.bytes) ||
        directory.members > directory.bytes / centralBytes)
      return Error::badInput("the zip directory ({} members, {} bytes at {}) leaves the file of {} "
                             "bytes",
                             directory.members, directory.bytes, directory.offset, archive_.size());
    std::vector<ZipMember> members;
    uint64_t at = directory.offset;
    const uint64_t end = at + directory.bytes;
    for (uint64_t i = 0; i < directory.members; ++i)
      members.push_back(TITAN_TRY(readMember(at, end)));
    TITAN_TRY(checkDistinct(members));
    return members;
  }

private:
  bool inside(uint64_t offset, uint64_t bytes) const {
    return bytes <= archive_.size() && offset <= archive_.size() - bytes;
  }
  Record record(uint64_t offset) const { return Record(archive_.data() + offset); }

  Result<Directory> findDirectory() const {
    const Error missing = Error::badInput("not a zip archive, or its end is cut off");
    if (archive_.size() < endBytes)
      return missing;
    // A comment of up to 64 KiB may follow the end record.
    const size_t last = archive_.size() - endBytes;
    for (size_t back = 0; back <= std::min<size_t>(last, absent16); ++back) {
      const Record end = record(last - back);
      if (end.u32(0) == endSignature && end.u16(20) == back)
        return readEnd(last - back);
    }
    return missing;
  }

  Result<Directory> readEnd(uint64_t at) const {
    const Record end = record(at);
    const Directory directory{end.u32(16), end.u32(12), end.u16(10)};
    if (directory.offset != absent32 && directory.bytes != absent32 &&
        directory.members != absent16)
      return directory;
    if (at < locatorBytes || record(at - locatorBytes).u32(0) != locatorSignature)
      return directory; // the largest values that need no Zip64
    const uint64_t at64 = record(at - locatorBytes).u64(8);
    if (!inside(at64, end64Bytes) || record(at64).u32(0) != end64Signature)
      return Error::badInput("the Zip64 end record is damaged");
    return Directory{record(at64).u64(48), record(at64).u64(40), record(at64).u64(32)};
  }

  /// The member whose directory entry is at `at`, which moves past it.
  Result<ZipMember> readMember(uint64_t& at, uint64_t end) const {
    if (end - at < centralBytes || record(at).u32(0) != centralSignature)
      return Error::badInput("the zip directory is damaged at {}", at);
    const Record entry = record(at);
    const size_t nameBytes = entry.u16(28), extraBytes = entry.u16(30),
                 commentBytes = entry.u16(32);
    if (end - at - centralBytes < nameBytes + extraBytes + commentBytes)
      return Error::badInput("the zip directory is cut at {}", at);
    ZipMember member;
    member.name.assign(archive_.data() + at + centralBytes, nameBytes);
    member.crc = entry.u32(16);
    member.size = entry.u32(24);
    uint64_t compressed = entry.u32(20), local = entry.u32(42);
    TITAN_TRY(readZip64(archive_.subspan(at + centralBytes + nameBytes, extraBytes), member.size,
                        compressed, local));
    at += centralBytes + nameBytes + extraBytes + commentBytes;

    const uint16_t method = entry.u16(10);
    if (entry.u16(8) & 1)
      return Error::badInput("member '{}' is encrypted", member.name);
    if (method != 0 && method != Z_DEFLATED)
      return Error::badInput("member '{}' is compressed by method {}; only deflate is supported",
                             member.name, method);
    member.deflated = method == Z_DEFLATED;
    if (!member.deflated && compressed != member.size)
      return Error::badInput("member '{}' is stored, but its sizes {} and {} differ", member.name,
                             compressed, member.size);
    if (!inside(local, localBytes) || record(local).u32(0) != localSignature)
      return Error::badInput("member '{}' has no header at {}", member.name, local);
    // Name and extra field are repeated here, the latter not always alike.
    const uint64_t start = local + localBytes + record(local).u16(26) + record(local).u16(28);
    if (!inside(start, compressed))
      return Error::badInput("member '{}', {} bytes at {}, leaves the file of {} bytes",
                             member.name, compressed, start, archive_.size());
    member.stored = archive_.subspan(start, compressed);
    return member;
  }

  /// Takes the fields that did not fit 32 bits from the Zip64 extra field (id 1), which holds just
  /// those, in order.
  static Status readZip64(std::span<const char> extra, uint64_t& size, uint64_t& compressed,
                          uint64_t& local) {
    while (extra.size() >= 4) {
      const Record header(extra.data());
      const size_t bytes = header.u16(2);
      if (bytes > extra.size() - 4)
        break;
      if (header.u16(0) == 1) {
        size_t at = 4;
        for (uint64_t* field : {&size, &compressed, &local}) {
          if (*field != absent32)
            continue;
          if (at + 8 > 4 + bytes)
            return Error::badInput("a Zip64 field is cut");
          *field = header.u64(at);
          at += 8;
        }
      }
      extra = extra.subspan(4 + bytes);
    }
    return {};
  }

  /// Members that share bytes are how a small archive is made to inflate without bound.
  static Status checkDistinct(const std::vector<ZipMember>& members) {
    std::vector<const ZipMember*> order;
    for (const ZipMember& member : members)
      order.push_back(&member);
    std::ranges::sort(order, {}, [](const ZipMember* member) { return member->stored.data(); });
    for (size_t i = 1; i < order.size(); ++i)
      if (order[i - 1]->stored.data() + order[i - 1]->stored.size() > order[i]->stored.data())
        return Error::badInput("members '{}' and '{}' share bytes", order[i - 1]->name,
                               order[i]->name);
    std::ranges::sort(order, {},
                      [](const ZipMember* member) { return std::string_view(member->name); });
    for (size_t i = 1; i < order.size(); ++i)
      if (order[i - 1]->name == order[i]->name)
        return Error::badInput("two members are named '{}'", order[i]->name);
    return {};
  }

  std::span<const char> archive_;
};

/// zlib's inflate state.
struct Inflater {
  z_stream stream = {};
  bool ready = inflateInit2(&stream, -MAX_WBITS) == Z_OK; // raw deflate: no zlib header
  ~Inflater() { inflateEnd(&stream); }
};

} // namespace

Result<std::vector<ZipMember>> parseZip(std::span<const char> archive) {
  return ZipReader(archive).read();
}

Status checkCrc(const ZipMember& member, std::span<const char> contents) {
  const auto crc = static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(contents.data()), contents.size()));
  if (crc != member.crc)
    return Error::badInput("member '{}' is damaged: its CRC is {:08x}, the directory says {:08x}",
                           member.name, crc, member.crc);
  return {};
}

Result<std::shared_ptr<const std::vector<char>>> inflateMember(const ZipMember& member) {
  if (member.size / maxExpansion > member.stored.size())
    return Error::badInput("member '{}' cannot hold {} bytes in {} deflated ones", member.name,
                           member.size, member.stored.size());
  auto contents = std::make_shared<std::vector<char>>(member.size);
  Inflater inflater;
  if (!inflater.ready)
    return Error::environment("zlib cannot start: out of memory");
  z_stream& stream = inflater.stream;
  const char* input = member.stored.data();
  char* output = contents->data();
  uint64_t inputLeft = member.stored.size(), outputLeft = member.size;
  int status = Z_OK;
  // zlib counts in 32 bits, members need not.
  constexpr uint64_t most = std::numeric_limits<uInt>::max();
  while (status == Z_OK) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input));
    stream.avail_in = static_cast<uInt>(std::min(inputLeft, most));
    stream.next_out = reinterpret_cast<Bytef*>(output);
    stream.avail_out = static_cast<uInt>(std::min(outputLeft, most));
    const uInt inputGiven = stream.avail_in, outputGiven = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    input += inputGiven - stream.avail_in;
    output += outputGiven - stream.avail_out;
    inputLeft -= inputGiven - stream.avail_in;
    outputLeft -= outputGiven - stream.avail_out;
  }
  if (status != Z_STREAM_END || outputLeft != 0)
    return Error::badInput("member '{}' is damaged: {} of {} bytes could be inflated", member.name,
                           member.size - outputLeft, member.size);
  TITAN_TRY(checkCrc(member, *contents));
  return std::shared_ptr<const std::vector<char>>(std::move(contents));
}

} // namespace titan
