#include "runtime/device/cuda/testing/ptx/Owners.h"

#include <algorithm>

namespace titan::ptx {

std::vector<Owners::Page>& Owners::spare() {
  static thread_local std::vector<Page> pages;
  return pages;
}

Owners::~Owners() {
  for (auto& [number, page] : pages_)
    spare().push_back(std::move(page));
}

Owners::Page& Owners::page(uint64_t number) {
  if (number == lastNumber_)
    return *last_;
  Page& found = pages_[number];
  if (found.writers.empty()) {
    if (!spare().empty()) {
      found = std::move(spare().back());
      spare().pop_back();
    }
    found.writers.assign(pageBytes / granule_, 0);
    found.readers.assign(pageBytes / granule_, 0);
  }
  lastNumber_ = number;
  last_ = &found;
  return found;
}

bool Owners::touch(uint64_t address, int64_t size, uint32_t block, bool writes,
                   Conflict& conflict) {
  const uint32_t self = block + 1;
  uint64_t end = address + size;
  while (address < end) {
    Page& held = page(address / pageBytes);
    uint64_t stop = std::min(end, (address / pageBytes + 1) * pageBytes);
    uint32_t first = address % pageBytes / granule_;
    uint32_t count = static_cast<uint32_t>((stop - address) / granule_);
    uint32_t* writers = held.writers.data() + first;
    uint32_t* readers = held.readers.data() + first;
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < count; ++i)
      wrong |= (writers[i] != 0) & (writers[i] != self);
    if (writes)
      for (uint32_t i = 0; i < count; ++i) {
        wrong |= (readers[i] != 0) & (readers[i] != self);
        writers[i] = wrong ? writers[i] : self;
      }
    else
      for (uint32_t i = 0; i < count; ++i)
        readers[i] = readers[i] == 0 || readers[i] == self ? self : many;
    if (wrong) {
      for (uint32_t i = 0; i < count; ++i)
        for (bool wrote : {true, false}) {
          uint32_t other = wrote ? writers[i] : readers[i];
          if (other != 0 && other != self && (wrote || writes)) {
            conflict = {address + uint64_t(i) * granule_, other == many ? many : other - 1, wrote};
            return false;
          }
        }
    }
    address = stop;
  }
  return true;
}

} // namespace titan::ptx
