// The part of the zip format (PKWARE's APPNOTE 6.3) that .npz files use: stored and deflated
// members, Zip64.
#pragma once

#include "runtime/program/Error.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace titan {

struct ZipMember {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  uint64_t size = 0;            ///< of the contents
  std::span<const char> stored; ///< the bytes in the archive: the contents, or their deflated form
};

/// The members of an archive in the order of its directory. No two share bytes or a name.
Result<std::vector<ZipMember>> parseZip(std::span<const char> archive);
/// Inflates a deflated member; checks size and CRC. Memory is taken only where the deflated size
/// makes `size` possible.
Result<std::shared_ptr<const std::vector<char>>> inflateMember(const ZipMember& member);
/// Fails when the CRC-32 of `contents` is not the directory's.
Status checkCrc(const ZipMember& member, std::span<const char> contents);

/// Where the members of an archive to be written lie: known from their names and sizes alone, so
/// that contents go to the file as they come, in any order, and headers, which hold their CRCs,
/// last. Members are stored and dated 1980-01-01, so that the bytes are a function of the contents.
/// Zip64 only where 32 bits do not do.
class ZipLayout {
public:
  /// Appends a member of `size` bytes. BadInput: a name longer than 65535 bytes.
  Status add(std::string_view name, uint64_t size);
  size_t members() const { return members_.size(); }

  uint64_t headerAt(size_t member) const { return members_[member].at; }
  std::string header(size_t member, uint32_t crc) const;
  /// Behind the header.
  uint64_t contentsAt(size_t member) const;
  /// Behind the last member's contents.
  uint64_t directoryAt() const { return directoryAt_; }
  /// The end of the archive; `crcs` by member.
  std::string directory(std::span<const uint32_t> crcs) const;

private:
  struct Member {
    std::string name;
    uint64_t size;
    uint64_t at; ///< of its header
  };
  std::vector<Member> members_;
  uint64_t directoryAt_ = 0;
};

} // namespace titan
