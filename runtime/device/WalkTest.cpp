#include "runtime/device/Walk.h"

#include <gtest/gtest.h>

#include <string>

namespace titan {
namespace {

struct Prepared {
  CommandKind kind;
  int64_t units;
  RepeatLink link;
};

/// `r2 c e` is a repeat of two with one command.
Function functionOf(std::string_view text) {
  Function function;
  for (size_t i = 0; i < text.size(); ++i) {
    Command command;
    if (text[i] == 'r') {
      command.kind = CommandKind::Repeat;
      command.launch.units = text[++i] - '0';
    } else if (text[i] == 'e') {
      command.kind = CommandKind::EndRepeat;
    } else if (text[i] == ' ') {
      continue;
    }
    function.commands.push_back(command);
  }
  return function;
}

struct Writer {
  std::string text;
  uint32_t endsAt = 1000;

  void enter(uint32_t index) { text += fmt::format("({} ", index); }
  void leave(uint32_t index) { text += fmt::format("{}) ", index); }
  bool command(uint32_t index, const RepeatCounters& counters) {
    text += fmt::format("{}[{}{}{}] ", index, counters[0], counters[1], counters[2]);
    return index != endsAt;
  }
};

std::string walkOf(std::string_view text, uint32_t endsAt = 1000) {
  const Function function = functionOf(text);
  const std::vector<RepeatLink> links = linkRepeats(function);
  std::vector<Prepared> commands;
  for (size_t i = 0; i < links.size(); ++i)
    commands.push_back({function.commands[i].kind, function.commands[i].launch.units, links[i]});
  Writer writer;
  writer.endsAt = endsAt;
  const bool done = walkCommands(std::span<const Prepared>(commands), writer);
  return writer.text + (done ? "done" : "ended");
}

TEST(Walk, FollowsNestedRepeats) {
  EXPECT_EQ(walkOf("c r2 c r3 c e e c"),
            "0[000] (1 2[000] (3 4[000] 4[010] 4[020] 5) 2[100] (3 4[100] 4[110] 4[120] 5) 6) "
            "7[000] done");
  EXPECT_EQ(walkOf("r1 r1 r2 c e e e"), "(0 (1 (2 3[000] 3[001] 4) 5) 6) done");
  EXPECT_EQ(walkOf("r2 c e r2 c e"), "(0 1[000] 1[100] 2) (3 4[000] 4[100] 5) done");
  EXPECT_EQ(walkOf(""), "done");
}

TEST(Walk, EndsWhereTheVisitorSaysSo) {
  EXPECT_EQ(walkOf("c r2 c e c", 2), "0[000] (1 2[000] ended");
}

} // namespace
} // namespace titan
