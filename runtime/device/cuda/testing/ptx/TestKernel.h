// Kernels of tests: PTX texts around a body, and arrays in device memory.
#pragma once

#include "runtime/device/cuda/testing/ptx/Ptx.h"

#include <gtest/gtest.h>

#include <cstring>

namespace titan::ptx {

/// `.version` to the end of an entry `k` with `parameters` addresses p0, p1, ... in %rd0, %rd1, ...
/// The thread's number is in %r0. `head` stands before the entry.
inline std::string kernelText(int parameters, const std::string& body,
                              const std::string& head = "") {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n" + head + "\n.visible .entry k(";
  for (int i = 0; i < parameters; ++i)
    text += fmt::format("{}.param .u64 p{}", i ? ", " : "", i);
  text += ")\n{\n.reg .pred %p<8>; .reg .b16 %rs<16>; .reg .b32 %r<32>; .reg .b64 %rd<32>;\n";
  for (int i = 0; i < parameters; ++i)
    text += fmt::format("ld.param.b64 %rd{}, [p{}];\n", i, i);
  return text + "mov.u32 %r0, %tid.x;\n" + body + "\nret;\n}\n";
}

/// The line of the first line of a body in kernelText, without a head.
inline uint32_t bodyLine(int parameters) { return 9 + parameters; }

inline std::shared_ptr<const Module> parsed(const std::string& text) {
  Result<std::shared_ptr<const Module>> module = parse(text);
  if (module.ok())
    return *module;
  ADD_FAILURE() << module.error().message() << "\n" << text;
  return nullptr;
}

/// What the parser says; empty where it takes the text.
inline std::string parseError(const std::string& text) {
  Result<std::shared_ptr<const Module>> module = parse(text);
  return module.ok() ? "" : module.error().message();
}

/// Device memory with `values`.
template <typename T> uint64_t put(Memory& memory, const std::vector<T>& values) {
  auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
  uint64_t address = memory.allocate(bytes).take();
  std::memcpy(memory.bytes(address, bytes).data(), values.data(), bytes);
  memory.markWritten(address, bytes);
  return address;
}

/// What was written there.
template <typename T> std::vector<T> get(Memory& memory, uint64_t address, int64_t count) {
  auto bytes = count * static_cast<int64_t>(sizeof(T));
  std::vector<T> values(count);
  EXPECT_EQ(memory.firstUnwritten(address, bytes), std::nullopt);
  std::memcpy(values.data(), memory.bytes(address, bytes).data(), bytes);
  return values;
}

/// The three orders, and a second seed.
inline std::vector<Launch> orders(Launch launch) {
  std::vector<Launch> all(4, launch);
  all[1].order = Order::Descending;
  all[2].order = all[3].order = Order::Random;
  all[2].seed = 1;
  all[3].seed = 2;
  return all;
}

inline Counters runFine(const std::string& text, const Launch& launch, Memory& memory) {
  std::shared_ptr<const Module> module = parsed(text);
  if (!module)
    return {};
  Result<Counters> counters = run(*module, launch, memory);
  EXPECT_TRUE(counters.ok()) << counters.error().message() << "\n" << text;
  return counters.ok() ? *counters : Counters{};
}

/// What the interpreter says of a launch; empty where nothing was wrong.
inline std::string runError(const std::string& text, const Launch& launch, Memory& memory) {
  std::shared_ptr<const Module> module = parsed(text);
  if (!module)
    return "not parsed";
  Result<Counters> counters = run(*module, launch, memory);
  return counters.ok() ? "" : counters.error().message();
}

} // namespace titan::ptx
