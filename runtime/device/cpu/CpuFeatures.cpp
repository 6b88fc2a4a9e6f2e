// The bits are those of CPUID as in Intel's SDM, volume 2A, and AMD's APM, volume 3, appendix D. A
// feature that uses vector registers also needs the system to save them (XCR0).
#include "runtime/device/cpu/CpuFeatures.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace titan {
namespace {

enum Register : uint8_t { EAX, EBX, ECX, EDX };
enum Saved : uint32_t { General = 0, Ymm = 0x06, Zmm = 0xe6, Tiles = 0x60000 }; ///< bits of XCR0

struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register reg;
  uint8_t bit;
  Saved saved = General;
};

constexpr Feature features[] = {
    {"64bit", 0x80000001, 0, EDX, 29},
    {"adx", 7, 0, EBX, 19},
    {"aes", 1, 0, ECX, 25},
    {"amx-bf16", 7, 0, EDX, 22, Tiles},
    {"amx-tile", 7, 0, EDX, 24, Tiles},
    {"avx", 1, 0, ECX, 28, Ymm},
    {"avx2", 7, 0, EBX, 5, Ymm},
    {"avx512bf16", 7, 1, EAX, 5, Zmm},
    {"avx512bitalg", 7, 0, ECX, 12, Zmm},
    {"avx512bw", 7, 0, EBX, 30, Zmm},
    {"avx512cd", 7, 0, EBX, 28, Zmm},
    {"avx512dq", 7, 0, EBX, 17, Zmm},
    {"avx512f", 7, 0, EBX, 16, Zmm},
    {"avx512fp16", 7, 0, EDX, 23, Zmm},
    {"avx512ifma", 7, 0, EBX, 21, Zmm},
    {"avx512vbmi", 7, 0, ECX, 1, Zmm},
    {"avx512vbmi2", 7, 0, ECX, 6, Zmm},
    {"avx512vl", 7, 0, EBX, 31, Zmm},
    {"avx512vnni", 7, 0, ECX, 11, Zmm},
    {"avx512vp2intersect", 7, 0, EDX, 8, Zmm},
    {"avx512vpopcntdq", 7, 0, ECX, 14, Zmm},
    {"avxifma", 7, 1, EAX, 23, Ymm},
    {"avxneconvert", 7, 1, EDX, 5, Ymm},
    {"avxvnni", 7, 1, EAX, 4, Ymm},
    {"avxvnniint16", 7, 1, EDX, 10, Ymm},
    {"avxvnniint8", 7, 1, EDX, 4, Ymm},
    {"bmi", 7, 0, EBX, 3},
    {"bmi2", 7, 0, EBX, 8},
    {"cldemote", 7, 0, ECX, 25},
    {"clflushopt", 7, 0, EBX, 23},
    {"clwb", 7, 0, EBX, 24},
    {"clzero", 0x80000008, 0, EBX, 0},
    {"cmov", 1, 0, EDX, 15},
    {"cmpccxadd", 7, 1, EAX, 7},
    {"crc32", 1, 0, ECX, 20},
    {"cx16", 1, 0, ECX, 13},
    {"cx8", 1, 0, EDX, 8},
    {"f16c", 1, 0, ECX, 29, Ymm},
    {"fma", 1, 0, ECX, 12, Ymm},
    {"fma4", 0x80000001, 0, ECX, 16, Ymm},
    {"fsgsbase", 7, 0, EBX, 0},
    {"fxsr", 1, 0, EDX, 24},
    {"gfni", 7, 0, ECX, 8},
    {"invpcid", 7, 0, EBX, 10},
    {"lwp", 0x80000001, 0, ECX, 15},
    {"lzcnt", 0x80000001, 0, ECX, 5},
    {"mmx", 1, 0, EDX, 23},
    {"movbe", 1, 0, ECX, 22},
    {"movdir64b", 7, 0, ECX, 28},
    {"movdiri", 7, 0, ECX, 27},
    {"mwaitx", 0x80000001, 0, ECX, 29},
    {"pclmul", 1, 0, ECX, 1},
    {"pku", 7, 0, ECX, 4},
    {"popcnt", 1, 0, ECX, 23},
    {"prefetchi", 7, 1, EDX, 14},
    {"prfchw", 0x80000001, 0, ECX, 8},
    {"ptwrite", 0x14, 0, EBX, 4},
    {"rdpid", 7, 0, ECX, 22},
    {"rdpru", 0x80000008, 0, EBX, 4},
    {"rdrnd", 1, 0, ECX, 30},
    {"rdseed", 7, 0, EBX, 18},
    {"rtm", 7, 0, EBX, 11},
    {"sahf", 0x80000001, 0, ECX, 0},
    {"serialize", 7, 0, EDX, 14},
    {"sgx", 7, 0, EBX, 2},
    {"sha", 7, 0, EBX, 29},
    {"sha512", 7, 1, EAX, 0, Ymm},
    {"shstk", 7, 0, ECX, 7},
    {"sm3", 7, 1, EAX, 1, Ymm},
    {"sm4", 7, 1, EAX, 2, Ymm},
    {"sse", 1, 0, EDX, 25},
    {"sse2", 1, 0, EDX, 26},
    {"sse3", 1, 0, ECX, 0},
    {"sse4.1", 1, 0, ECX, 19},
    {"sse4.2", 1, 0, ECX, 20},
    {"sse4a", 0x80000001, 0, ECX, 6},
    {"ssse3", 1, 0, ECX, 9},
    {"tbm", 0x80000001, 0, ECX, 21},
    {"tsxldtrk", 7, 0, EDX, 16},
    {"vaes", 7, 0, ECX, 9, Ymm},
    {"vpclmulqdq", 7, 0, ECX, 10, Ymm},
    {"waitpkg", 7, 0, ECX, 5},
    {"wbnoinvd", 0x80000008, 0, EBX, 9},
    {"x87", 1, 0, EDX, 0},
    {"xop", 0x80000001, 0, ECX, 11, Ymm},
    {"xsave", 1, 0, ECX, 26},
    {"xsavec", 0xd, 1, EAX, 1},
    {"xsaveopt", 0xd, 1, EAX, 0},
    {"xsaves", 0xd, 1, EAX, 3},
};

/// XCR0, the register sets that the system saves; 0 where it cannot be read.
uint64_t savedRegisters() {
  constexpr uint32_t osxsave = 1u << 27;
  uint32_t r[4] = {};
  if (!__get_cpuid(1, &r[EAX], &r[EBX], &r[ECX], &r[EDX]) || !(r[ECX] & osxsave))
    return 0;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

bool has(const Feature& feature) {
  uint32_t r[4] = {};
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &r[EAX], &r[EBX], &r[ECX], &r[EDX]))
    return false;
  static const uint64_t saved = savedRegisters();
  return (r[feature.reg] >> feature.bit & 1) && (saved & feature.saved) == feature.saved;
}

} // namespace

bool hasCpuFeature(std::string_view name) {
  auto it = std::ranges::find(features, name, &Feature::name);
  return it != std::end(features) && has(*it);
}

std::vector<std::string> cpuFeatures() {
  std::vector<std::string> names;
  for (const Feature& feature : features)
    if (has(feature))
      names.emplace_back(feature.name);
  return names;
}

std::string cpuModelName() {
  constexpr uint32_t brandLeaf = 0x80000002; // and the two after it: 48 characters
  char brand[49] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    uint32_t r[4] = {};
    if (!__get_cpuid(brandLeaf + i, &r[EAX], &r[EBX], &r[ECX], &r[EDX]))
      return "unknown";
    std::memcpy(brand + 16 * i, r, 16);
  }
  std::string name = brand;
  name.erase(name.find_last_not_of(' ') + 1);
  name.erase(0, name.find_first_not_of(' '));
  return name;
}

Status checkCpuFeatures(std::span<const std::string> required, std::string_view target) {
  std::string missing;
  for (const std::string& feature : required)
    if (!hasCpuFeature(feature))
      missing += (missing.empty() ? "" : ", ") + feature;
  if (missing.empty())
    return {};
  return Error::environment(
      "this CPU ({}) lacks {}, which the job was compiled for (--arch {}): compile it again "
      "with --arch=native on this machine or --arch=x86-64-v3",
      cpuModelName(), missing, target);
}

int requestTileRegisters() {
  // Of Linux 5.16 (asm/prctl.h), which older headers lack.
  constexpr int requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0 ? 0 : errno;
}

Status enableCpuFeatures(std::span<const std::string> required, std::string_view target) {
  TITAN_TRY(checkCpuFeatures(required, target));
  if (std::ranges::find(required, "amx-tile") == required.end())
    return {};
  const int reason = requestTileRegisters();
  if (reason == 0)
    return {};
  // What the kernel saves on a signal no longer fits the stack that a thread set aside for it.
  const char* hint = reason == ENOSPC ? ", as a thread's signal stack is too small" : "";
  const bool wide = std::ranges::all_of(
      std::array{"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}, hasCpuFeature);
  return Error::environment("the system does not let this process use amx-tile ({}{}), which the "
                            "job was compiled for (--arch {}): compile it again with --arch={}",
                            std::strerror(reason), hint, target, wide ? "x86-64-v4" : "x86-64-v3");
}

} // namespace titan
