#include "runtime/checkpoint/WatchedEnv.h"

namespace titan::checkpoint {

/// An operation goes on for as long as this lives.
class WatchedEnv::Watch {
public:
  Watch(WatchedEnv& env, const char* verb, const std::string& path) : env_(env) {
    const std::lock_guard lock(env_.mutex_);
    env_.operation_ = {verb, path};
    env_.begun_ = std::chrono::steady_clock::now();
  }
  ~Watch() {
    const std::lock_guard lock(env_.mutex_);
    env_.operation_.reset();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

private:
  WatchedEnv& env_;
};

class WatchedEnv::Writer : public WritableFile {
public:
  Writer(WatchedEnv& env, std::unique_ptr<WritableFile> file, std::string path)
      : env_(env), file_(std::move(file)), path_(std::move(path)) {}

  Status append(std::string_view bytes) override {
    const Watch watch(env_, "write", path_);
    TITAN_TRY(file_->append(bytes));
    env_.written_ += static_cast<int64_t>(bytes.size());
    return {};
  }
  Status reserve(int64_t bytes) override {
    const Watch watch(env_, "reserve", path_);
    return file_->reserve(bytes);
  }
  Status sync() override {
    const Watch watch(env_, "sync", path_);
    return file_->sync();
  }
  Status close() override {
    const Watch watch(env_, "close", path_);
    return file_->close();
  }

private:
  WatchedEnv& env_;
  std::unique_ptr<WritableFile> file_;
  std::string path_;
};

class WatchedEnv::Lock : public FileLock {
public:
  Lock(WatchedEnv& env, std::unique_ptr<FileLock> lock, std::string path)
      : env_(env), lock_(std::move(lock)), path_(std::move(path)) {}

  void rewrite(std::string_view self) override {
    const Watch watch(env_, "write", path_);
    lock_->rewrite(self);
  }

private:
  WatchedEnv& env_;
  std::unique_ptr<FileLock> lock_;
  std::string path_;
};

class WatchedEnv::Reader : public ReadableFile {
public:
  Reader(WatchedEnv& env, std::unique_ptr<ReadableFile> file, std::string path)
      : env_(env), file_(std::move(file)), path_(std::move(path)) {}

  int64_t size() const override { return file_->size(); }
  Status read(int64_t offset, char* into, int64_t bytes) override {
    const Watch watch(env_, "read", path_);
    return file_->read(offset, into, bytes);
  }

private:
  WatchedEnv& env_;
  std::unique_ptr<ReadableFile> file_;
  std::string path_;
};

std::optional<WatchedEnv::Operation> WatchedEnv::running() const {
  const std::lock_guard lock(mutex_);
  std::optional<Operation> operation = operation_;
  if (operation)
    operation->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  return operation;
}

Result<std::unique_ptr<WritableFile>> WatchedEnv::createFile(const std::string& path) {
  const Watch watch(*this, "create", path);
  return std::unique_ptr<WritableFile>(new Writer(*this, TITAN_TRY(base_.createFile(path)), path));
}

Result<std::unique_ptr<ReadableFile>> WatchedEnv::openFile(const std::string& path) {
  const Watch watch(*this, "open", path);
  return std::unique_ptr<ReadableFile>(new Reader(*this, TITAN_TRY(base_.openFile(path)), path));
}

void WatchedEnv::dropCached(const std::string& path) {
  const Watch watch(*this, "let go", path);
  base_.dropCached(path);
}

Result<FileKind> WatchedEnv::kindOf(const std::string& path) {
  const Watch watch(*this, "look at", path);
  return base_.kindOf(path);
}

Result<std::vector<DirectoryEntry>> WatchedEnv::readDirectory(const std::string& path) {
  const Watch watch(*this, "list", path);
  return base_.readDirectory(path);
}

Status WatchedEnv::makeDirectory(const std::string& path) {
  const Watch watch(*this, "make", path);
  return base_.makeDirectory(path);
}

Status WatchedEnv::syncDirectory(const std::string& path) {
  const Watch watch(*this, "sync", path);
  return base_.syncDirectory(path);
}

Status WatchedEnv::syncAncestor(const std::string& path) {
  const Watch watch(*this, "sync", path);
  return base_.syncAncestor(path);
}

Status WatchedEnv::rename(const std::string& from, const std::string& to) {
  const Watch watch(*this, "rename", from);
  return base_.rename(from, to);
}

Status WatchedEnv::removeFile(const std::string& path) {
  const Watch watch(*this, "remove", path);
  return base_.removeFile(path);
}

Status WatchedEnv::removeDirectory(const std::string& path) {
  const Watch watch(*this, "remove", path);
  return base_.removeDirectory(path);
}

Result<LockAttempt> WatchedEnv::lockFile(const std::string& path, std::string_view self) {
  const Watch watch(*this, "lock", path);
  LockAttempt attempt = TITAN_TRY(base_.lockFile(path, self));
  if (attempt.lock)
    attempt.lock = std::make_unique<Lock>(*this, std::move(attempt.lock), path);
  return attempt;
}

Result<std::unique_ptr<FileLock>> WatchedEnv::tryLock(const std::string& path, LockKind kind) {
  const Watch watch(*this, "lock", path);
  return base_.tryLock(path, kind);
}

Result<Space> WatchedEnv::space(const std::string& path) {
  const Watch watch(*this, "measure", path);
  return base_.space(path);
}

} // namespace titan::checkpoint
