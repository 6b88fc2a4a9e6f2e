#include "compiler/Codegen/cuda/Assembler.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <cstdlib>
#include <dlfcn.h>

namespace titan::codegen::cuda {
namespace {

constexpr const char* jitLibrary = "libnvJitLink.so";
constexpr int oldestMajor = 12; ///< of CUDA, whose assembler reads PTX 8.0
constexpr int newestMajor = 14; ///< libnvJitLink.so.13
constexpr const char* toolkit = "/usr/local/cuda";

Error refused(std::string_view assembler, const std::string& arch, const std::string& why) {
  return Error::internal("{} does not assemble for {}: {}", assembler, arch, why);
}

/// The cards of `arch` are later than this release.
Error notKnown(const std::string& assembler, const std::string& arch) {
  return Error::environment("{} does not know {}: install a later CUDA toolkit, or leave it out of "
                            "--arch",
                            assembler, arch);
}

//===----------------------------------------------------------------------===//
// nvJitLink (its header, nvJitLink.h of the toolkit, declares the same)
//===----------------------------------------------------------------------===//

using Handle = void*;
constexpr int jitSuccess = 0, jitUnknownArch = 16, jitInputPtx = 2;

/// The entry points: one list for members and names.
#define TITAN_JIT_FUNCTIONS(X)                                                                     \
  X(Create, int, (Handle*, uint32_t, const char**))                                                \
  X(Destroy, int, (Handle*))                                                                       \
  X(AddData, int, (Handle, int, const void*, size_t, const char*))                                 \
  X(Complete, int, (Handle))                                                                       \
  X(GetLinkedCubinSize, int, (Handle, size_t*))                                                    \
  X(GetLinkedCubin, int, (Handle, void*))                                                          \
  X(GetErrorLogSize, int, (Handle, size_t*))                                                       \
  X(GetErrorLog, int, (Handle, char*))                                                             \
  X(GetInfoLogSize, int, (Handle, size_t*))                                                        \
  X(GetInfoLog, int, (Handle, char*))                                                              \
  X(Version, int, (unsigned*, unsigned*))

struct JitFunctions {
#define TITAN_JIT_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  TITAN_JIT_FUNCTIONS(TITAN_JIT_MEMBER)
#undef TITAN_JIT_MEMBER

  /// False: the library lacks one.
  bool load(void* library) {
    bool complete = true;
#define TITAN_JIT_LOAD(name, result, arguments)                                                    \
  name = reinterpret_cast<decltype(name)>(dlsym(library, "nvJitLink" #name));                      \
  complete &= name != nullptr;
    TITAN_JIT_FUNCTIONS(TITAN_JIT_LOAD)
#undef TITAN_JIT_LOAD
    return complete;
  }
};

class NvJitLink : public Assembler {
public:
  /// Null: no such library, or none of this interface. It stays loaded.
  static std::unique_ptr<Assembler> open(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return nullptr;
    auto assembler = std::make_unique<NvJitLink>();
    if (!assembler->jit_.load(library)) {
      dlclose(library);
      return nullptr;
    }
    return assembler;
  }

  std::string name() const override {
    unsigned major = 0, minor = 0;
    jit_.Version(&major, &minor);
    return fmt::format("nvJitLink {}.{}", major, minor);
  }

  Result<Cubin> assemble(std::string_view ptx, const std::string& arch) const override {
    const std::string option = "-arch=" + arch;
    std::array<const char*, 3> options = {option.c_str(), "-O3", "-verbose"};
    Handle handle = nullptr;
    int status = jit_.Create(&handle, options.size(), options.data());
    if (status == jitUnknownArch)
      return notKnown(name(), arch);
    if (status != jitSuccess)
      return refused("nvJitLink", arch, fmt::format("status {}", status));
    llvm::scope_exit destroy([&] { jit_.Destroy(&handle); });
    Cubin cubin;
    size_t size = 0;
    status = jit_.AddData(handle, jitInputPtx, ptx.data(), ptx.size(), "kernels.ptx");
    if (status == jitSuccess)
      status = jit_.Complete(handle);
    if (status == jitSuccess)
      status = jit_.GetLinkedCubinSize(handle, &size);
    cubin.bytes.resize(size);
    if (status == jitSuccess)
      status = jit_.GetLinkedCubin(handle, cubin.bytes.data());
    if (status != jitSuccess)
      return refused("nvJitLink", arch,
                     fmt::format("status {}: {}", status,
                                 text(handle, jit_.GetErrorLogSize, jit_.GetErrorLog)));
    cubin.log = text(handle, jit_.GetInfoLogSize, jit_.GetInfoLog);
    cubin.entries = parseUsage(cubin.log);
    return cubin;
  }

private:
  static std::string text(Handle handle, int (*size)(Handle, size_t*), int (*get)(Handle, char*)) {
    size_t bytes = 0;
    if (size(handle, &bytes) != jitSuccess || bytes == 0)
      return "";
    std::string text(bytes, '\0');
    if (get(handle, text.data()) != jitSuccess)
      return "";
    return text.substr(0, text.find('\0'));
  }

  JitFunctions jit_;
};

//===----------------------------------------------------------------------===//
// ptxas
//===----------------------------------------------------------------------===//

/// A file that goes with its owner.
class TemporaryFile {
public:
  explicit TemporaryFile(llvm::StringRef suffix) {
    if (llvm::sys::fs::createTemporaryFile("titan", suffix, path_))
      path_.clear();
  }
  ~TemporaryFile() {
    if (!path_.empty())
      llvm::sys::fs::remove(path_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  bool ok() const { return !path_.empty(); }
  llvm::StringRef path() const { return path_; }
  std::string read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path_);
    return buffer ? (*buffer)->getBuffer().str() : "";
  }

private:
  llvm::SmallString<128> path_;
};

class Ptxas : public Assembler {
public:
  /// Null: it does not run, or is too old.
  static std::unique_ptr<Assembler> open(const std::string& program) {
    std::string release = releaseOf(program);
    int major = 0;
    if (llvm::StringRef(release).split('.').first.getAsInteger(10, major) || major < oldestMajor)
      return nullptr;
    return std::unique_ptr<Assembler>(new Ptxas(program, std::move(release)));
  }

  std::string name() const override { return "ptxas " + release_; }

  Result<Cubin> assemble(std::string_view ptx, const std::string& arch) const override {
    TemporaryFile source("ptx"), target("cubin"), log("log");
    std::error_code failed;
    {
      llvm::raw_fd_ostream stream(source.path(), failed);
      stream.write(ptx.data(), ptx.size());
      stream.close();
      if (stream.has_error()) {
        failed = stream.error();
        stream.clear_error();
      }
    }
    if (!source.ok() || !target.ok() || !log.ok() || failed)
      return refused(program_, arch, "no temporary files: " + failed.message());
    const std::string option = "-arch=" + arch;
    std::array<std::optional<llvm::StringRef>, 3> streams = {"", log.path(), log.path()};
    std::string message;
    const int status = llvm::sys::ExecuteAndWait(
        program_, {program_, "-v", "-O3", option, source.path(), "-o", target.path()}, std::nullopt,
        streams, 0, 0, &message);
    std::string said = log.read();
    if (status != 0 && llvm::StringRef(said).contains("is not defined for option 'gpu-name'"))
      return notKnown(name(), arch);
    if (status != 0)
      return refused(program_, arch, message + said);
    Cubin cubin{target.read(), std::move(said), {}};
    cubin.entries = parseUsage(cubin.log);
    return cubin;
  }

private:
  Ptxas(std::string program, std::string release)
      : program_(std::move(program)), release_(std::move(release)) {}

  /// "13.0" where it says "Cuda compilation tools, release 13.0, V13.0.88"
  static std::string releaseOf(const std::string& program) {
    TemporaryFile output("log");
    std::array<std::optional<llvm::StringRef>, 3> streams = {"", output.path(), ""};
    llvm::sys::ExecuteAndWait(program, {program, "--version"}, std::nullopt, streams);
    const std::string text = output.read();
    llvm::StringRef release = llvm::StringRef(text).split("release ").second;
    return release.take_until([](char c) { return c == ','; }).str();
  }

  std::string program_, release_;
};

} // namespace

std::unique_ptr<Assembler> Assembler::find() {
  std::unique_ptr<Assembler> assembler = findNvJitLink();
  return assembler ? std::move(assembler) : findPtxas();
}

std::unique_ptr<Assembler> Assembler::findNvJitLink() {
  std::vector<std::string> folders;
  if (const char* named = std::getenv("TITAN_CUDA_LIBRARIES"))
    for (llvm::StringRef folder : llvm::split(llvm::StringRef(named), ':'))
      if (!folder.empty())
        folders.push_back(folder.str() + "/");
  folders.push_back(""); // the loader's own search
  folders.push_back(std::string(toolkit) + "/lib64/");
  for (const std::string& folder : folders)
    for (int major = newestMajor; major >= oldestMajor; --major)
      if (auto library = NvJitLink::open(fmt::format("{}{}.{}", folder, jitLibrary, major)))
        return library;
  return nullptr;
}

std::unique_ptr<Assembler> Assembler::findPtxas() {
  const std::string folder = std::string(toolkit) + "/bin";
  for (const llvm::ErrorOr<std::string>& program :
       {llvm::sys::findProgramByName("ptxas"), llvm::sys::findProgramByName("ptxas", {folder})})
    if (std::unique_ptr<Assembler> assembler = program ? Ptxas::open(*program) : nullptr)
      return assembler;
  return nullptr;
}

std::string Assembler::whatIsMissing() {
  return fmt::format("no nvJitLink ({}.{} in TITAN_CUDA_LIBRARIES, the loader's folders or "
                     "{}/lib64) and no ptxas of CUDA {}.0 or later (on PATH or in {}/bin)",
                     jitLibrary, newestMajor - 1, toolkit, oldestMajor, toolkit);
}

std::vector<EntryUsage> parseUsage(std::string_view log) {
  std::vector<EntryUsage> entries;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(log.data(), log.size()).split(lines, '\n');
  auto numberBefore = [](llvm::StringRef line, llvm::StringRef words) -> int64_t {
    const size_t at = line.find(words);
    int64_t number = 0;
    if (at != llvm::StringRef::npos)
      line.take_front(at).rtrim().rsplit(' ').second.getAsInteger(10, number);
    return number;
  };
  for (llvm::StringRef line : lines) {
    if (line.contains("Compiling entry function '")) {
      llvm::StringRef name = line.split("Compiling entry function '").second.split('\'').first;
      entries.push_back({name.str()});
    }
    if (entries.empty())
      continue;
    EntryUsage& entry = entries.back();
    entry.stackBytes += numberBefore(line, "bytes stack frame");
    entry.spillBytes +=
        numberBefore(line, "bytes spill stores") + numberBefore(line, "bytes spill loads");
    if (line.contains("Used "))
      entry.registers = numberBefore(line, "registers");
  }
  return entries;
}

} // namespace titan::codegen::cuda
