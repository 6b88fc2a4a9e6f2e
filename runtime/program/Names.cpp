#include "runtime/program/Names.h"

#include <algorithm>
#include <array>

namespace titan {

std::string stripWrapperSegments(std::string_view name) {
  static constexpr std::array<std::string_view, 4> wrappers = {
      "_orig_mod", "module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"};
  std::string canonical;
  for (size_t dot; (dot = name.find('.')) != std::string_view::npos; name.remove_prefix(dot + 1))
    if (std::ranges::find(wrappers, name.substr(0, dot)) == wrappers.end())
      canonical.append(name.substr(0, dot + 1));
  return canonical.append(name);
}

bool isProfileName(std::string_view text) {
  constexpr std::string_view allowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

} // namespace titan
