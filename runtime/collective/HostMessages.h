// What ranks tell each other on the host, through their windows: messages of any length, in rounds.
#pragma once

#include "runtime/collective/Rendezvous.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace titan {

/// `all[r]` gets what rank r brings. Internal when a rank is somewhere else in the program.
Status exchangeMessages(Rendezvous& meeting, std::span<const int64_t> everyone,
                        std::string_view name, std::string_view mine,
                        std::vector<std::string>& all);

/// Everyone's `bytes` become those of `root`. Internal when a rank is somewhere else in the
/// program, or brings another number of bytes.
Status broadcastBytes(Rendezvous& meeting, std::span<const int64_t> everyone, std::string_view name,
                      int64_t root, std::span<char> bytes);

} // namespace titan
