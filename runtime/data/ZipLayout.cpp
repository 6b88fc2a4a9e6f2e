#include "runtime/data/Zip.h"

#include <algorithm>

namespace titan {

namespace {

// What does not fit 32 or 16 bits is this there, and stands in a Zip64 field.
constexpr uint64_t elsewhere32 = 0xffffffff, elsewhere16 = 0xffff;
constexpr uint16_t version = 20, version64 = 45; // 2.0: what every reader knows; 4.5: Zip64
constexpr uint16_t utf8Names = 1 << 11;          // general purpose flag 11
constexpr uint16_t firstDate = 1 << 5 | 1;       // 1980-01-01
constexpr uint64_t localBytes = 30;

void append(std::string& out, uint64_t value, int width) {
  for (int i = 0; i < width; ++i)
    out += static_cast<char>(value >> 8 * i);
}

/// The Zip64 field with `values`, or nothing.
std::string extra64(std::initializer_list<uint64_t> values) {
  std::string field;
  append(field, 1, 2);
  append(field, 8 * values.size(), 2);
  for (uint64_t value : values)
    append(field, value, 8);
  return field;
}

/// What a member's header and its directory entry have in common.
void appendCommon(std::string& out, std::string_view name, uint64_t size, uint32_t crc,
                  std::string_view extra) {
  const bool ascii = std::ranges::all_of(name, [](unsigned char c) { return c < 0x80; });
  append(out, extra.empty() ? version : version64, 2);
  append(out, ascii ? 0 : utf8Names, 2);
  append(out, 0, 2); // stored
  append(out, 0, 2); // time
  append(out, firstDate, 2);
  append(out, crc, 4);
  append(out, std::min(size, elsewhere32), 4);
  append(out, std::min(size, elsewhere32), 4);
  append(out, name.size(), 2);
  append(out, extra.size(), 2);
}

} // namespace

Status ZipLayout::add(std::string_view name, uint64_t size) {
  if (name.size() > 0xffff)
    return Error::badInput("a name of {} bytes does not fit a zip archive", name.size());
  members_.push_back({std::string(name), size, directoryAt_});
  directoryAt_ = contentsAt(members_.size() - 1) + size;
  return {};
}

uint64_t ZipLayout::contentsAt(size_t index) const {
  const Member& member = members_[index];
  const uint64_t extra = member.size >= elsewhere32 ? 4 + 2 * 8 : 0;
  return member.at + localBytes + member.name.size() + extra;
}

std::string ZipLayout::header(size_t index, uint32_t crc) const {
  const auto& [name, size, at] = members_[index];
  const std::string extra = size >= elsewhere32 ? extra64({size, size}) : "";
  std::string out;
  append(out, 0x04034b50, 4);
  appendCommon(out, name, size, crc, extra);
  return out + name + extra;
}

std::string ZipLayout::directory(std::span<const uint32_t> crcs) const {
  std::string out;
  for (size_t i = 0; i < members_.size(); ++i) {
    const auto& [name, size, at] = members_[i];
    const bool large = size >= elsewhere32, far = at >= elsewhere32;
    const std::string extra = large && far ? extra64({size, size, at})
                              : large      ? extra64({size, size})
                              : far        ? extra64({at})
                                           : "";
    append(out, 0x02014b50, 4);
    append(out, extra.empty() ? version : version64, 2);
    appendCommon(out, name, size, crcs[i], extra);
    append(out, 0, 2); // comment
    append(out, 0, 2); // disk
    append(out, 0, 2); // internal attributes
    append(out, 0, 4); // external attributes
    append(out, std::min(at, elsewhere32), 4);
    out += name;
    out += extra;
  }
  const uint64_t bytes = out.size(), members = members_.size();
  if (bytes >= elsewhere32 || directoryAt_ >= elsewhere32 || members >= elsewhere16) {
    append(out, 0x06064b50, 4);
    append(out, 44, 8); // of the record, from here on
    append(out, version64, 2);
    append(out, version64, 2);
    append(out, 0, 4); // disk
    append(out, 0, 4); // disk of the directory
    append(out, members, 8);
    append(out, members, 8);
    append(out, bytes, 8);
    append(out, directoryAt_, 8);
    append(out, 0x07064b50, 4);
    append(out, 0, 4); // disk of the record
    append(out, directoryAt_ + bytes, 8);
    append(out, 1, 4); // disks
  }
  append(out, 0x06054b50, 4);
  append(out, 0, 2); // disk
  append(out, 0, 2); // disk of the directory
  append(out, std::min(members, elsewhere16), 2);
  append(out, std::min(members, elsewhere16), 2);
  append(out, std::min(bytes, elsewhere32), 4);
  append(out, std::min(directoryAt_, elsewhere32), 4);
  append(out, 0, 2); // comment
  return out;
}

} // namespace titan
