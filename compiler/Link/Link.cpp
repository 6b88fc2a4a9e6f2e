#include "compiler/Link/Link.h"

#include "compiler/Link/ScratchDirectory.h"
#include "runtime/program/File.h"
#include "runtime/program/Payload.h"

#include "lld/Common/Driver.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <link.h>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

namespace titan::link {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view emptyArchive = "!<arch>\n";
/// The runtime with its static libraries.
constexpr const char* runtimeObject = "titan_runtime.o";

Status cannotWrite() {
  return Error::environment("the linked job cannot be written: {}", std::strerror(errno));
}

Status writeFile(const std::string& path, std::string_view bytes) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!file || !writeAll(file, bytes) || !file.close())
    return cannotWrite();
  return {};
}

bool isZero(std::string_view bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

/// Puts the payload behind the linked image (runtime/program/Payload.h). Pieces of zeros become
/// holes of the file.
Status attachPayload(const std::string& job, const JobData& data) {
  if (data.payloadBytes == 0)
    return {};
  Descriptor file(::open(job.c_str(), O_WRONLY | O_CLOEXEC));
  const off_t image = file ? ::lseek(file.get(), 0, SEEK_END) : -1;
  if (image < 0)
    return cannotWrite();
  const uint64_t begin = llvm::alignTo(static_cast<uint64_t>(image), payloadPage);
  uint64_t at = begin;
  TITAN_TRY(data.payload([&](std::string_view piece) -> Status {
    if (!isZero(piece) && !writeAllAt(file, piece, at))
      return cannotWrite();
    at += piece.size();
    return {};
  }));
  if (at - begin != data.payloadBytes)
    return Error::internal("a payload of {} bytes has {}", data.payloadBytes, at - begin);
  if (!writeAllAt(file, payloadEnd(data.payloadBytes), at) || !file.close())
    return cannotWrite();
  return {};
}

/// lld's command line. Order matters: start files, objects, C libraries, end files.
std::vector<std::string> linkerArguments(const std::string& directory, const std::string& kernels,
                                         const std::string& data, const std::string& output) {
  auto library = [&](const char* name) { return directory + "/" + name; };
  return {"ld.lld",
          "-pie",
          "--build-id=none",
          "--hash-style=gnu",
          "--gc-sections",
          "--strip-debug",
          "--eh-frame-hdr",
          "-z",
          "noexecstack",
          "-z",
          "relro",
          "-z",
          "now",
          "--threads=1",
          "-dynamic-linker",
          "/lib64/ld-linux-x86-64.so.2",
          "-o",
          output,
          library("Scrt1.o"),
          library("crti.o"),
          library("crtbeginS.o"),
          data,
          "--whole-archive",
          kernels,
          "--no-whole-archive",
          library(runtimeObject),
          library("libm.so.6"),
          "--start-group",
          library("libgcc.a"),
          library("libc.so.6"),
          library("libc_nonshared.a"),
          "--end-group",
          library("crtendS.o"),
          library("crtn.o")};
}

Status runLinker(const std::vector<std::string>& arguments) {
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments)
    pointers.push_back(argument.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  // lld writes through a mapping of its output: on a full disk that is SIGBUS, which its own crash
  // recovery turns into an exit code, if it happens on this thread (--threads=1).
  llvm::CrashRecoveryContext::Enable();
  lld::Result result = lld::lldMain(pointers, stream, stream, {{lld::Gnu, &lld::elf::link}});
  llvm::CrashRecoveryContext::Disable();
  if (result.retCode == 0)
    return {};
  if (result.retCode == 128 + SIGBUS)
    return Error::environment("the linked job cannot be written: {}", std::strerror(ENOSPC));
  std::string message = messages.substr(0, messages.find('\n'));
  for (std::string_view failure : {"failed to open", "failed to write", "cannot open output file"})
    if (message.find(failure) != std::string::npos)
      return Error::environment("the linked job cannot be written: {}",
                                message.substr(message.rfind(": ") + 2));
  return Error::internal("linking failed: {}", message);
}

/// The file that this code was loaded from: an executable, or the shared library.
fs::path ownFile() {
  std::error_code failure;
  Dl_info info;
  void* map = nullptr;
  if (dladdr1(reinterpret_cast<void*>(&ownFile), &info, &map, RTLD_DL_LINKMAP) != 0 && map)
    // The program itself has no name here.
    if (const char* name = static_cast<const link_map*>(map)->l_name; name && *name)
      return fs::canonical(name, failure);
  return fs::read_symlink("/proc/self/exe", failure);
}

} // namespace

Result<std::string> findLibraryDirectory() {
  std::string directory;
  if (const char* chosen = std::getenv("TITAN_LIBRARY_DIR")) {
    directory = chosen;
  } else {
    directory = (ownFile().parent_path().parent_path() / "lib" / "titan").string();
  }
  if (!fs::exists(directory + "/" + runtimeObject))
    return Error::environment(
        "{} does not hold Titan's runtime libraries: reinstall, or set TITAN_LIBRARY_DIR",
        directory);
  return directory;
}

Status linkJob(std::string_view kernels, const JobData& data, const std::string& output) {
  std::string directory = TITAN_TRY(findLibraryDirectory());
  ScratchDirectory scratch = TITAN_TRY(ScratchDirectory::createBeside(output));
  const std::string kernelObject = scratch.file("kernels.a"), dataObject = scratch.file("data.o"),
                    job = scratch.file("job");
  auto link = [&]() -> Status {
    TITAN_TRY(writeFile(kernelObject, kernels.empty() ? emptyArchive : kernels));
    TITAN_TRY(writeFile(dataObject, makeDataObject(data)));
    TITAN_TRY(runLinker(linkerArguments(directory, kernelObject, dataObject, job)));
    return attachPayload(job, data);
  };
  if (Status linked = link(); !linked.ok())
    return linked.takeError().withContext(output);
  return scratch.publish("job", output);
}

} // namespace titan::link
