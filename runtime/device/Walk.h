// The order in which a function's commands run: every walk of the table follows repeats, and the
// values that depend on them, by this header.
#pragma once

#include "runtime/program/Program.h"

#include <algorithm>
#include <span>
#include <vector>

namespace titan {

/// How a command takes part in repeats.
struct RepeatLink {
  uint32_t partner = 0; ///< Repeat: its EndRepeat; EndRepeat: its Repeat
  uint32_t depth = 0;   ///< of Repeat and EndRepeat, 0 is the outermost
};

/// One a command of `function`, whose repeats are balanced (verify()).
inline std::vector<RepeatLink> linkRepeats(const Function& function) {
  std::vector<RepeatLink> links(function.commands.size());
  std::vector<uint32_t> open;
  for (uint32_t i = 0; i < links.size(); ++i)
    if (function.commands[i].kind == CommandKind::Repeat) {
      links[i].depth = static_cast<uint32_t>(open.size());
      open.push_back(i);
    } else if (function.commands[i].kind == CommandKind::EndRepeat) {
      links[i].partner = open.back();
      links[open.back()].partner = i;
      open.pop_back();
      links[i].depth = static_cast<uint32_t>(open.size());
    }
  return links;
}

/// The first command that may change a state (verify()); the number of commands where none may.
inline uint32_t firstUpdateOf(const Function& function) {
  return static_cast<uint32_t>(
      std::ranges::find(function.commands, Phase::Update, &Command::phase) -
      function.commands.begin());
}

/// Goes through `commands`, which have `kind`, `units` (of a Repeat: how often) and `link`:
///
///   visitor.command(i, counters)  each execution of a command; false ends the walk
///   visitor.enter(i)              a Repeat, before its first iteration
///   visitor.leave(i)              an EndRepeat, after the last one
///
/// False when the visitor ended it.
template <typename Prepared, typename Visitor>
bool walkCommands(std::span<const Prepared> commands, Visitor&& visitor) {
  RepeatCounters counters{};
  for (uint32_t i = 0; i < commands.size(); ++i) {
    const Prepared& command = commands[i];
    switch (command.kind) {
    case CommandKind::Repeat:
      visitor.enter(i);
      counters[command.link.depth] = 0;
      break;
    case CommandKind::EndRepeat:
      if (++counters[command.link.depth] < commands[command.link.partner].units) {
        i = command.link.partner;
        break;
      }
      counters[command.link.depth] = 0;
      visitor.leave(i);
      break;
    default:
      if (!visitor.command(i, counters))
        return false;
    }
  }
  return true;
}

} // namespace titan
