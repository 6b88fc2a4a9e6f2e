// Turns a function of one lane's values into a LaneFunction for a warp. Loops over 32 lanes without
// branches: the compiler makes vectors of them.
#pragma once

#include "runtime/device/cuda/testing/ptx/Opcodes.h"

#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

namespace titan::ptx {

/// Registers' bytes are read with the type of the instruction, whoever wrote them: this library is
/// compiled without type-based alias analysis.
template <typename T> T* column(char* file, uint32_t at) { return reinterpret_cast<T*>(file + at); }

/// A source of type T; bool is a predicate.
template <typename T> struct Source {
  const T* values;
  Source(char* file, uint32_t at) : values(column<T>(file, at)) {}
  T operator[](int lane) const { return values[lane]; }
};
template <> struct Source<bool> {
  Mask bits;
  Source(char* file, uint32_t at) : bits(*column<Mask>(file, at)) {}
  bool operator[](int lane) const { return bits >> lane & 1; }
};

inline void keepBits(char* file, uint32_t at, Mask bits, Mask mask) {
  Mask& old = *column<Mask>(file, at);
  old = (old & ~mask) | (bits & mask);
}

/// Writes the lanes of `mask`.
template <typename T> void keep(char* file, uint32_t at, const T* result, Mask mask) {
  if constexpr (std::is_same_v<T, bool>) {
    Mask bits = 0;
    for (int lane = 0; lane < warpSize; ++lane)
      bits |= Mask{result[lane]} << lane;
    keepBits(file, at, bits, mask);
  } else {
    T* old = column<T>(file, at);
    if (mask == ~Mask{0})
      std::memcpy(old, result, sizeof(T) * warpSize);
    else
      for (int lane = 0; lane < warpSize; ++lane)
        old[lane] = mask >> lane & 1 ? result[lane] : old[lane];
  }
}

template <typename T> constexpr Width widthOf() {
  return std::is_same_v<T, bool> ? Width::Predicate : static_cast<Width>(sizeof(T));
}

/// The LaneFunction of `function`, and the widths of its operands.
template <auto function> struct LanesOf;

template <typename R, typename... S, R (*function)(S...)> struct LanesOf<function> {
  static constexpr int sources = sizeof...(S);
  static constexpr std::array<Width, Opcode::maxWidths> widths{widthOf<R>(), widthOf<S>()...};

  static void run(char* file, const uint32_t* at, Mask mask) {
    int next = 1;
    // Braces: the sources are made from left to right.
    runOn(file, at[0], mask, std::tuple<Source<S>...>{Source<S>(file, at[next++])...},
          std::index_sequence_for<S...>());
  }

private:
  template <size_t... i>
  static void runOn(char* file, uint32_t at, Mask mask, std::tuple<Source<S>...> values,
                    std::index_sequence<i...>) {
    alignas(64) R result[warpSize];
    for (int lane = 0; lane < warpSize; ++lane)
      result[lane] = function(std::get<i>(values)[lane]...);
    keep(file, at, result, mask);
  }
};

/// Adds `function` (a lambda without captures, made a pointer by +) under `name`.
template <auto function>
void add(OpcodeTable& table, std::string name, Class counter, Kind kind = Kind::Lanes) {
  using Made = LanesOf<function>;
  table.insert_or_assign(std::move(name), Opcode{.kind = kind,
                                                 .counter = counter,
                                                 .lanes = &Made::run,
                                                 .results = 1,
                                                 .sources = Made::sources,
                                                 .widths = Made::widths});
}

} // namespace titan::ptx
