#include "runtime/data/Digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string>

namespace titan {

namespace {
constexpr size_t blockBytes = 64 << 10, blocks = 1024;
} // namespace

struct DataDigest::State {
  XXH3_state_t hash;
};

DataDigest::DataDigest() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->hash); }
DataDigest::~DataDigest() = default;

void DataDigest::add(std::string_view arrayName, DType dtype, std::span<const int64_t> shape,
                     std::span<const char> bytes) {
  const std::string head =
      fmt::format("{} {} {} {}\n", arrayName, name(dtype), toString(shape), bytes.size());
  XXH3_64bits_update(&state_->hash, head.data(), head.size());
  if (bytes.size() <= blockBytes * blocks) {
    XXH3_64bits_update(&state_->hash, bytes.data(), bytes.size());
    return;
  }
  const size_t last = bytes.size() - blockBytes;
  for (size_t i = 0; i < blocks; ++i) {
    // last * i / (blocks - 1), without the overflow of the product
    const size_t offset = last / (blocks - 1) * i + last % (blocks - 1) * i / (blocks - 1);
    XXH3_64bits_update(&state_->hash, bytes.data() + offset, blockBytes);
  }
}

uint64_t DataDigest::value() const { return XXH3_64bits_digest(&state_->hash); }

} // namespace titan
