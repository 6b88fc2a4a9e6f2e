// Own declarations beside a vendor's: do they mean the same to a caller?
#pragma once

#include <type_traits>

namespace titan::cuda::testing {

/// Do both stand in the same registers and mean the same? Handles are pointers to structs that
/// nobody sees into, whatever their names.
template <typename Ours, typename Theirs> constexpr bool alike() {
  if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using Own = std::remove_pointer_t<Ours>;
    using Their = std::remove_pointer_t<Theirs>;
    if (std::is_const_v<Own> != std::is_const_v<Their> ||
        std::is_void_v<Own> != std::is_void_v<Their>)
      return false;
    if constexpr (std::is_void_v<Own> || std::is_class_v<Own> || std::is_class_v<Their>)
      return std::is_class_v<Own> == std::is_class_v<Their>;
    else
      return alike<std::remove_const_t<Own>, std::remove_const_t<Their>>();
  } else if constexpr (std::is_enum_v<Ours> || std::is_enum_v<Theirs>) {
    return std::is_enum_v<Ours> && std::is_enum_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
  } else if constexpr (std::is_integral_v<Ours> && std::is_integral_v<Theirs>) {
    return sizeof(Ours) == sizeof(Theirs) && std::is_signed_v<Ours> == std::is_signed_v<Theirs>;
  } else {
    return std::is_same_v<Ours, Theirs>;
  }
}

template <typename Ours, typename Theirs> struct AlikeFunctions : std::false_type {};
template <typename OurResult, typename TheirResult, typename... Ours, typename... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
struct AlikeFunctions<OurResult(Ours...), TheirResult(Theirs...)>
    : std::bool_constant<alike<OurResult, TheirResult>() && (alike<Ours, Theirs>() && ...)> {};

} // namespace titan::cuda::testing
