#include "runtime/program/Names.h"

#include <algorithm>
#include <array>

namespace titan {

std::string stripWrapperSegments(std::string_view name, ModuleWraps wraps) {
  static constexpr std::array<std::string_view, 3> wrappers = {"_orig_mod", "_fsdp_wrapped_module",
                                                               "_checkpoint_wrapped_module"};
  std::string canonical;
  for (size_t dot; (dot = name.find('.')) != std::string_view::npos; name.remove_prefix(dot + 1)) {
    const std::string_view segment = name.substr(0, dot);
    const bool mayBeModule = canonical.empty() || wraps == ModuleWraps::Anywhere;
    if (!(segment == "module" && mayBeModule) &&
        std::ranges::find(wrappers, segment) == wrappers.end())
      canonical.append(name.substr(0, dot + 1));
  }
  return canonical.append(name);
}

bool isProfileName(std::string_view text) {
  constexpr std::string_view allowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

} // namespace titan
