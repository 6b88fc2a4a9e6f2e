// Reading of .npz files; NpzWriter.cpp writes them.
#include "runtime/data/Array.h"
#include "runtime/data/Npy.h"
#include "runtime/data/Zip.h"

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

} // namespace titan
