// Own declarations beside the vendor's, where its header is.
#include "runtime/device/cuda/DriverApi.h"

#include <gtest/gtest.h>

#include <type_traits>

#ifdef TITAN_HAVE_CUDA_H
#include <cuda.h>
#endif

#ifdef TITAN_HAVE_CUDA_H
// In this scope the names in the list are ours.
namespace titan::cuda {
#define TITAN_CUDA_SIGNATURE(name, parameters) using Type_##name = CUresult parameters;
TITAN_CUDA_ENTRY_POINTS(TITAN_CUDA_SIGNATURE)
} // namespace titan::cuda
#endif

namespace {

#ifdef TITAN_HAVE_CUDA_H

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
template <typename... Ours, typename... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
struct AlikeFunctions<titan::cuda::CUresult(Ours...), ::CUresult(Theirs...)>
    : std::bool_constant<(alike<Ours, Theirs>() && ...)> {};

TEST(DriverApi, EntryPointsHaveTheVendorsSignatures) {
#define TITAN_CUDA_COMPARE(name, parameters)                                                       \
  EXPECT_TRUE((AlikeFunctions<titan::cuda::Type_##name, decltype(::name)>::value)) << #name;
  TITAN_CUDA_ENTRY_POINTS(TITAN_CUDA_COMPARE)
}

TEST(DriverApi, ConstantsHaveTheVendorsValues) {
#define TITAN_CUDA_COMPARE_VALUE(name, value)                                                      \
  EXPECT_EQ(static_cast<int>(titan::cuda::name), static_cast<int>(::name)) << #name;
  TITAN_CUDA_RESULTS(TITAN_CUDA_COMPARE_VALUE)
  TITAN_CUDA_DEVICE_ATTRIBUTES(TITAN_CUDA_COMPARE_VALUE)
  TITAN_CUDA_FUNCTION_ATTRIBUTES(TITAN_CUDA_COMPARE_VALUE)
  TITAN_CUDA_JIT_OPTIONS(TITAN_CUDA_COMPARE_VALUE)
  TITAN_CUDA_CAPTURE_MODES(TITAN_CUDA_COMPARE_VALUE)
  TITAN_CUDA_FLAGS(TITAN_CUDA_COMPARE_VALUE)
}

TEST(DriverApi, ComparisonSeesDifferences) {
  EXPECT_FALSE((alike<int, unsigned>()));
  EXPECT_FALSE((alike<int, long>()));
  EXPECT_FALSE((alike<const void*, void*>()));
  EXPECT_FALSE((alike<int*, void*>()));
  EXPECT_FALSE((alike<titan::cuda::CUstream, ::CUdeviceptr>()));
  EXPECT_TRUE((alike<titan::cuda::CUstream, ::CUstream>()));
  EXPECT_TRUE((alike<titan::cuda::CUdeviceptr, ::CUdeviceptr>()));
}

#else

TEST(DriverApi, EntryPointsHaveTheVendorsSignatures) {
  GTEST_SKIP() << "cuda.h was not found when this was built";
}

#endif

} // namespace
