// Which block of a launch touched which bytes of global memory: two blocks run in any order, so
// what one writes no other may touch.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace titan::ptx {

/// Of one launch. Granules are as wide as the narrowest access, so they are exact.
class Owners {
public:
  explicit Owners(int granule) : granule_(granule) {}
  ~Owners();
  Owners(const Owners&) = delete;
  Owners& operator=(const Owners&) = delete;

  /// A conflict: another block wrote it, or read it before this block's write.
  struct Conflict {
    uint64_t address;
    uint32_t block; ///< of several readers `many`
    bool wrote;
  };
  static constexpr uint32_t many = ~uint32_t{0};

  /// Block `block` touches [address, address + size). False: a conflict, put into `conflict`.
  bool touch(uint64_t address, int64_t size, uint32_t block, bool writes, Conflict& conflict);

private:
  static constexpr uint64_t pageBytes = 4096;
  /// 0: nobody; else the block's number + 1, or `many`.
  struct Page {
    std::vector<uint32_t> writers, readers;
  };

  Page& page(uint64_t number);
  /// Pages of launches that are over: the next one need not get them from the system again.
  static std::vector<Page>& spare();

  int granule_;
  std::unordered_map<uint64_t, Page> pages_;
  uint64_t lastNumber_ = ~uint64_t{0};
  Page* last_ = nullptr;
};

} // namespace titan::ptx
