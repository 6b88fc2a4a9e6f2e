// Patterns over canonical names.
#include "runtime/program/Recipe.h"

namespace titan {

namespace {

/// Matches the class that starts at glob[at] == '[' against `c` and moves `at` past it. A '['
/// without its ']' is a plain character.
bool matchesClass(std::string_view glob, size_t& at, char c) {
  size_t i = at + 1;
  const bool negated = i < glob.size() && (glob[i] == '!' || glob[i] == '^');
  i += negated;
  // A ']' that comes first stands for itself.
  const size_t end = glob.find(']', i + 1);
  if (end == std::string_view::npos) {
    ++at;
    return c == '[';
  }
  bool found = false;
  while (i < end) {
    const bool range = i + 2 < end && glob[i + 1] == '-';
    found |= range ? glob[i] <= c && c <= glob[i + 2] : glob[i] == c;
    i += range ? 3 : 1;
  }
  at = end + 1;
  return found != negated;
}

} // namespace

bool matchesGlob(std::string_view glob, std::string_view name) {
  size_t g = 0, n = 0;
  size_t star = std::string_view::npos,
         starName = 0; // the last '*' and where its match ends so far
  while (n < name.size()) {
    size_t next = g;
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      starName = n;
      continue;
    }
    bool matched = false;
    if (g < glob.size() && glob[g] == '[') {
      matched = matchesClass(glob, next, name[n]);
    } else if (g < glob.size()) {
      matched = glob[g] == '?' || glob[g] == name[n];
      next = g + 1;
    }
    if (matched) {
      g = next;
      ++n;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      n = ++starName;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*')
    ++g;
  return g == glob.size();
}

} // namespace titan
