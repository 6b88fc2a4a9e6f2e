#include "runtime/collective/mpi/Library.h"

#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

// The bytes of a shim, as symbols before and behind them.
#define TITAN_CARRY(name, path)                                                                    \
  asm(".pushsection .rodata." name ", \"a\"\n"                                                     \
      ".globl " name "_begin\n.hidden " name "_begin\n" name "_begin:\n"                           \
      ".incbin \"" path "\"\n"                                                                     \
      ".globl " name "_end\n.hidden " name "_end\n" name "_end:\n"                                 \
      ".popsection\n")

#ifdef TITAN_OPENMPI_SHIM
TITAN_CARRY("titan_openmpi_shim", TITAN_OPENMPI_SHIM);
extern "C" const char titan_openmpi_shim_begin[], titan_openmpi_shim_end[];
#endif
#ifdef TITAN_MPICH_SHIM
TITAN_CARRY("titan_mpich_shim", TITAN_MPICH_SHIM);
extern "C" const char titan_mpich_shim_begin[], titan_mpich_shim_end[];
#endif

namespace titan {
namespace {

/// Empty where it was not built.
std::span<const char> shimOf(MpiKind kind) {
  switch (kind) {
  case MpiKind::OpenMpi:
#ifdef TITAN_OPENMPI_SHIM
    return {titan_openmpi_shim_begin, titan_openmpi_shim_end};
#endif
    break;
  case MpiKind::Mpich:
#ifdef TITAN_MPICH_SHIM
    return {titan_mpich_shim_begin, titan_mpich_shim_end};
#endif
    break;
  }
  return {};
}

const char* packageOf(MpiKind kind) {
  return kind == MpiKind::OpenMpi ? "libopenmpi-dev" : "libmpich-dev";
}

} // namespace

const char* nameOf(MpiKind kind) { return kind == MpiKind::OpenMpi ? "Open MPI" : "MPICH"; }

std::optional<MpiKind> mpiOfName(std::string_view name) {
  if (name == "openmpi")
    return MpiKind::OpenMpi;
  if (name == "mpich")
    return MpiKind::Mpich;
  return std::nullopt;
}

bool isCarried(MpiKind kind) { return !shimOf(kind).empty(); }

Result<const titan_mpi_shim*> loadMpi(MpiKind kind) {
  const std::span<const char> bytes = shimOf(kind);
  if (bytes.empty())
    return Error::environment("this job cannot use {}: the titan-compile that made it was built "
                              "without its headers ({})",
                              nameOf(kind), packageOf(kind));
  return loadShim(nameOf(kind), bytes);
}

Result<const titan_mpi_shim*> loadShim(std::string_view mpi, std::span<const char> bytes) {
  const int file = memfd_create("titan-mpi", MFD_CLOEXEC);
  if (file < 0 || write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    const int code = errno;
    close(file);
    return Error::environment("{} cannot be loaded: {}", mpi, std::strerror(code));
  }
  // MPI's plugins look for its symbols among all of the process. The file stays open: its name must
  // not be that of another library later.
  void* library = dlopen(fmt::format("/proc/self/fd/{}", file).c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* table = library ? dlsym(library, "titan_mpi_shim_1") : nullptr;
  if (!table) {
    const std::string why = dlerror();
    close(file);
    return Error::environment("{} cannot be loaded: {}: install its libraries, or start the job "
                              "with titan-run",
                              mpi, why);
  }
  return reinterpret_cast<const titan_mpi_shim* (*)()>(table)();
}

} // namespace titan
