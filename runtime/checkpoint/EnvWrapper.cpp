#include "runtime/checkpoint/EnvWrapper.h"

namespace titan::checkpoint {

class EnvWrapper::Writer : public WritableFile {
public:
  Writer(EnvWrapper& env, std::unique_ptr<WritableFile> file, std::string path)
      : env_(env), file_(std::move(file)), path_(std::move(path)) {}

  Status append(std::string_view bytes) override { return env_.append(*file_, path_, bytes); }
  Status reserve(int64_t bytes) override {
    return env_.perform("reserve", path_, [&] { return file_->reserve(bytes); });
  }
  Status sync() override {
    return env_.perform("sync", path_, [&] { return file_->sync(); });
  }
  Status close() override {
    return env_.perform("close", path_, [&] { return file_->close(); });
  }

private:
  EnvWrapper& env_;
  std::unique_ptr<WritableFile> file_;
  std::string path_;
};

class EnvWrapper::Reader : public ReadableFile {
public:
  Reader(EnvWrapper& env, std::unique_ptr<ReadableFile> file, std::string path)
      : env_(env), file_(std::move(file)), path_(std::move(path)), size_(file_->size()) {}

  int64_t size() const override { return size_; }
  Status read(int64_t offset, char* into, int64_t bytes) override {
    return env_.read(*file_, path_, offset, into, bytes);
  }

private:
  EnvWrapper& env_;
  std::unique_ptr<ReadableFile> file_;
  std::string path_;
  int64_t size_; ///< asked while the file is opened: no operation of its own
};

Status EnvWrapper::append(WritableFile& file, const std::string& path, std::string_view bytes) {
  return perform("write", path, [&] { return file.append(bytes); });
}

Status EnvWrapper::read(ReadableFile& file, const std::string& path, int64_t offset, char* into,
                        int64_t bytes) {
  return perform("read", path, [&] { return file.read(offset, into, bytes); });
}

template <typename T>
Result<T> EnvWrapper::performFor(const char* verb, const std::string& path,
                                 const std::function<Result<T>()>& operation) {
  T value{};
  TITAN_TRY(perform(verb, path, [&]() -> Status {
    value = TITAN_TRY(operation());
    return {};
  }));
  return value;
}

Result<std::unique_ptr<WritableFile>> EnvWrapper::createFile(const std::string& path) {
  using File = std::unique_ptr<WritableFile>;
  return performFor<File>("create", path, [&]() -> Result<File> {
    return File(new Writer(*this, TITAN_TRY(base_.createFile(path)), path));
  });
}

Result<std::unique_ptr<ReadableFile>> EnvWrapper::openFile(const std::string& path) {
  using File = std::unique_ptr<ReadableFile>;
  return performFor<File>("open", path, [&]() -> Result<File> {
    return File(new Reader(*this, TITAN_TRY(base_.openFile(path)), path));
  });
}

void EnvWrapper::dropCached(const std::string& path) {
  (void)perform("let go", path, [&] {
    base_.dropCached(path);
    return Status();
  });
}

Result<FileKind> EnvWrapper::kindOf(const std::string& path) {
  return performFor<FileKind>("look at", path, [&] { return base_.kindOf(path); });
}

Result<std::vector<DirectoryEntry>> EnvWrapper::readDirectory(const std::string& path) {
  return performFor<std::vector<DirectoryEntry>>("list", path,
                                                 [&] { return base_.readDirectory(path); });
}

Status EnvWrapper::makeDirectory(const std::string& path) {
  return perform("make", path, [&] { return base_.makeDirectory(path); });
}

Status EnvWrapper::syncDirectory(const std::string& path) {
  return perform("sync", path, [&] { return base_.syncDirectory(path); });
}

Status EnvWrapper::syncAncestor(const std::string& path) {
  return perform("sync", path, [&] { return base_.syncAncestor(path); });
}

Status EnvWrapper::rename(const std::string& from, const std::string& to) {
  return perform("rename", from, [&] { return base_.rename(from, to); });
}

Status EnvWrapper::removeFile(const std::string& path) {
  return perform("remove", path, [&] { return base_.removeFile(path); });
}

Status EnvWrapper::removeDirectory(const std::string& path) {
  return perform("remove", path, [&] { return base_.removeDirectory(path); });
}

Result<LockAttempt> EnvWrapper::lockFile(const std::string& path, std::string_view self) {
  return performFor<LockAttempt>("lock", path, [&] { return base_.lockFile(path, self); });
}

Result<std::unique_ptr<FileLock>> EnvWrapper::tryLock(const std::string& path, LockKind kind) {
  return performFor<std::unique_ptr<FileLock>>("lock", path,
                                               [&] { return base_.tryLock(path, kind); });
}

Result<Space> EnvWrapper::space(const std::string& path) {
  return performFor<Space>("measure", path, [&] { return base_.space(path); });
}

} // namespace titan::checkpoint
