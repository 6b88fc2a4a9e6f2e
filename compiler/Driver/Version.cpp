#include "compiler/Driver/Version.h"

#include "llvm/Config/llvm-config.h"

#include <cstring>
#include <link.h>
#include <string_view>

namespace titan {
namespace {

/// Adds the build ids in the notes of a loaded object, as bytes.
int addBuildId(dl_phdr_info* object, size_t, void* ids) {
  // The kernel's own object changes with the kernel.
  if (std::string_view(object->dlpi_name).starts_with("linux-vdso"))
    return 0;
  const auto padded = [](uint32_t bytes) { return (size_t{bytes} + 3) / 4 * 4; };
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE || segment.p_align > 4)
      continue;
    const char* at = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    const char* end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* id = at + sizeof note + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID)
        static_cast<std::string*>(ids)->append(id, note.n_descsz);
      at = id + padded(note.n_descsz);
    }
  }
  return 0;
}

} // namespace

std::string compilerVersion() { return TITAN_VERSION " (LLVM " LLVM_VERSION_STRING ")"; }

std::string buildIdentity() {
  std::string identity = compilerVersion() + "\n";
  dl_iterate_phdr(addBuildId, &identity);
  return identity;
}

} // namespace titan
