#include "runtime/program/Text.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace titan {
namespace {

std::string textOf(const Collective& collective) {
  return fmt::format("{} : {}", toString(collective.kind), collective.label);
}

} // namespace

std::string_view nameOf(StateKind kind) {
  switch (kind) {
  case StateKind::Param:
    return "param";
  case StateKind::Buffer:
    return "buffer";
  case StateKind::Slot:
    return "slot";
  case StateKind::Ema:
    return "ema";
  case StateKind::Counter:
    return "counter";
  }
  return "";
}

std::string_view nameOf(Phase phase) {
  switch (phase) {
  case Phase::Forward:
    return "forward";
  case Phase::Backward:
    return "backward";
  case Phase::Update:
    return "update";
  }
  return "";
}

std::string_view nameOf(Image::Kind kind) {
  switch (kind) {
  case Image::Kind::Object:
    return "object";
  case Image::Kind::Cubin:
    return "cubin";
  case Image::Kind::Ptx:
    return "ptx";
  }
  return "";
}

std::string labelOf(const Program& program, const Command& command) {
  switch (command.kind) {
  case CommandKind::Kernel:
    return program.kernels[command.target].label;
  case CommandKind::Library:
    return program.libraryCalls[command.target].label;
  case CommandKind::Copy:
    return "copy";
  case CommandKind::Zero:
    return "zero";
  case CommandKind::Repeat:
  case CommandKind::EndRepeat:
    return "repeat";
  case CommandKind::CollectiveStart:
    return "start of " + textOf(program.collectives[command.target]);
  case CommandKind::CollectiveWait:
    return "wait for " + textOf(program.collectives[command.target]);
  }
  return {};
}

std::string readableBytes(int64_t bytes) {
  if (bytes < 1024)
    return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024)
      break;
    value /= 1024;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

std::string shellQuoted(std::string_view word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos)
    return std::string(word);
  std::string quoted = "'";
  for (const char c : word)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string digest128(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substitute = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitute, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

} // namespace titan
