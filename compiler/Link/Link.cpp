#include "compiler/Link/Link.h"

#include "lld/Common/Driver.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

namespace titan::link {

namespace {

namespace fs = std::filesystem;

/// A directory of its own in the system's temporary directory, removed at the end.
class ScratchDirectory {
public:
  static Result<ScratchDirectory> create() {
    std::error_code failure;
    std::string path = (fs::temp_directory_path(failure) / "titan-link-XXXXXX").string();
    if (failure || !mkdtemp(path.data()))
      return Error::environment("no temporary directory: {}", std::strerror(errno));
    return ScratchDirectory(path);
  }
  ScratchDirectory(ScratchDirectory&& other) : path_(std::exchange(other.path_, {})) {}
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;
    if (!path_.empty())
      fs::remove_all(path_, ignored);
  }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Status writeParts(const std::string& path, std::initializer_list<std::string_view> before,
                  std::span<const std::string_view> middle = {},
                  std::initializer_list<std::string_view> after = {}) {
  std::ofstream file(path, std::ios::binary);
  auto write = [&](std::string_view part) {
    file.write(part.data(), static_cast<std::streamsize>(part.size()));
  };
  for (std::string_view part : before)
    write(part);
  for (std::string_view part : middle)
    write(part);
  for (std::string_view part : after)
    write(part);
  file.close();
  if (!file)
    return Error::environment("{}: {}", path, std::strerror(errno));
  return {};
}

/// lld's command line. Order matters: start files, objects, archives from the highest layer down,
/// C++ and C libraries, end files.
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
          kernels,
          data,
          "--whole-archive",
          library("libtitan_job_entry.a"),
          "--no-whole-archive",
          "--start-group",
          library("libtitan_job.a"),
          library("libtitan_executor.a"),
          library("libtitan_device_cpu.a"),
          library("libtitan_checkpoint.a"),
          library("libtitan_data.a"),
          library("libtitan_metrics.a"),
          library("libtitan_program.a"),
          library("libz.a"),
          "--end-group",
          library("libstdc++.a"),
          library("libm.so.6"),
          "--start-group",
          library("libgcc.a"),
          library("libgcc_eh.a"),
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

/// Removes `unfinished` and what a failed link left beside it: lld's own temporary is `unfinished`
/// and a suffix.
void removeUnfinished(const fs::path& unfinished) {
  std::error_code ignored;
  const fs::path folder = unfinished.has_parent_path() ? unfinished.parent_path() : ".";
  std::vector<fs::path> left;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with(unfinished.filename().string()))
      left.push_back(entry.path());
  for (const fs::path& path : left)
    fs::remove(path, ignored);
}

} // namespace

Result<std::string> findLibraryDirectory() {
  std::string directory;
  if (const char* chosen = std::getenv("TITAN_LIBRARY_DIR")) {
    directory = chosen;
  } else {
    std::error_code failure;
    fs::path self = fs::read_symlink("/proc/self/exe", failure);
    directory = (self.parent_path().parent_path() / "lib" / "titan").string();
  }
  if (!fs::exists(directory + "/libtitan_job.a"))
    return Error::environment(
        "{} does not hold Titan's runtime libraries: reinstall, or set TITAN_LIBRARY_DIR",
        directory);
  return directory;
}

Status linkJob(const std::string& kernels, const JobData& data, const std::string& output) {
  std::string directory = TITAN_TRY(findLibraryDirectory());
  ScratchDirectory scratch = TITAN_TRY(ScratchDirectory::create());
  DataObject object = makeDataObject(data);
  TITAN_TRY(writeParts(scratch.file("kernels.o"), {kernels}));
  TITAN_TRY(writeParts(scratch.file("data.o"), {object.head}, data.payload, {object.tail}));

  // Beside the output, so that the final rename is atomic; an old job that runs keeps its file.
  std::string unfinished = output + ".unfinished-" + std::to_string(getpid());
  if (std::ofstream probe(unfinished); !probe)
    return Error::environment("{} cannot be written: {}", output, std::strerror(errno));
  std::error_code failure;
  Status linked = runLinker(
      linkerArguments(directory, scratch.file("kernels.o"), scratch.file("data.o"), unfinished));
  if (!linked.ok()) {
    removeUnfinished(unfinished);
    return linked.takeError().withContext(output);
  }
  fs::rename(unfinished, output, failure);
  if (failure) {
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    return Error::environment("{} cannot be written: {}", output, failure.message());
  }
  return {};
}

} // namespace titan::link
