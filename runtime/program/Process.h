// What every executable does first, and how it speaks to its user.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace titan {

/// Makes ordinary errors of what the caller's shell can leave behind. What is closed of stdin,
/// stdout and stderr is opened on /dev/null: else the next file gets the number, and messages go
/// into it. A write beyond the limit on a file's size (ulimit -f) fails with EFBIG instead of
/// ending the process.
void prepareProcess();

/// This process got something done that takes part in work without waits, as a piece of a file or a
/// batch: it does not stand still. Any thread may call it.
void noteProgress();
/// How often it did.
uint64_t progressSoFar();

/// Writes to stderr. What cannot be written there is lost: no run ends for want of its messages.
template <typename... Arguments>
void tell(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

} // namespace titan
