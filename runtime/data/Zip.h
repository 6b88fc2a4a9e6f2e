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

/// Writes stored members with the date 1980-01-01, which makes the bytes a function of the
/// contents.
class ZipWriter {
public:
  /// Members are limited to 4 GiB each, and so is the archive.
  Status add(std::string_view name, std::string_view head, std::span<const char> body);
  /// The whole archive.
  Result<std::string> finish();

private:
  std::string archive_, directory_;
  uint64_t members_ = 0;
};

} // namespace titan
