#include "runtime/checkpoint/testing/LockedEnv.h"

namespace titan::checkpoint {

class LockedEnv::Writer : public WritableFile {
public:
  Writer(LockedEnv& env, std::unique_ptr<WritableFile> file, int64_t& bytes)
      : env_(env), file_(std::move(file)), bytes_(bytes) {}
  ~Writer() override {
    const std::lock_guard lock(env_.mutex_);
    file_.reset();
  }

  Status append(std::string_view bytes) override {
    const std::lock_guard lock(env_.mutex_);
    bytes_ += static_cast<int64_t>(bytes.size());
    return file_->append(bytes);
  }
  Status reserve(int64_t bytes) override {
    const std::lock_guard lock(env_.mutex_);
    return file_->reserve(bytes);
  }
  Status sync() override {
    const std::lock_guard lock(env_.mutex_);
    return file_->sync();
  }
  Status close() override {
    const std::lock_guard lock(env_.mutex_);
    return file_->close();
  }

private:
  LockedEnv& env_;
  std::unique_ptr<WritableFile> file_;
  int64_t& bytes_;
};

class LockedEnv::Reader : public ReadableFile {
public:
  Reader(LockedEnv& env, std::unique_ptr<ReadableFile> file) : env_(env), file_(std::move(file)) {}
  ~Reader() override {
    const std::lock_guard lock(env_.mutex_);
    file_.reset();
  }

  int64_t size() const override {
    const std::lock_guard lock(env_.mutex_);
    return file_->size();
  }
  Status read(int64_t offset, char* into, int64_t bytes) override {
    const std::lock_guard lock(env_.mutex_);
    env_.read_ += bytes;
    return file_->read(offset, into, bytes);
  }

private:
  LockedEnv& env_;
  std::unique_ptr<ReadableFile> file_;
};

Result<std::unique_ptr<WritableFile>> LockedEnv::createFile(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto file = TITAN_TRY(base_.createFile(path));
  return std::unique_ptr<WritableFile>(new Writer(*this, std::move(file), written_[path]));
}

Result<std::unique_ptr<ReadableFile>> LockedEnv::openFile(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return std::unique_ptr<ReadableFile>(new Reader(*this, TITAN_TRY(base_.openFile(path))));
}

void LockedEnv::dropCached(const std::string& path) {
  const std::lock_guard lock(mutex_);
  base_.dropCached(path);
}

Result<FileKind> LockedEnv::kindOf(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return base_.kindOf(path);
}

Result<std::vector<DirectoryEntry>> LockedEnv::readDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return base_.readDirectory(path);
}

Status LockedEnv::makeDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return base_.makeDirectory(path);
}

Status LockedEnv::syncDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return base_.syncDirectory(path);
}

Status LockedEnv::syncAncestor(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return base_.syncAncestor(path);
}

Status LockedEnv::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  return base_.rename(from, to);
}

Status LockedEnv::removeFile(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return base_.removeFile(path);
}

Status LockedEnv::removeDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return base_.removeDirectory(path);
}

Result<LockAttempt> LockedEnv::lockFile(const std::string& path, std::string_view self) {
  const std::lock_guard lock(mutex_);
  return base_.lockFile(path, self);
}

Result<std::unique_ptr<FileLock>> LockedEnv::tryLock(const std::string& path, LockKind kind) {
  const std::lock_guard lock(mutex_);
  return base_.tryLock(path, kind);
}

Result<Space> LockedEnv::space(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return base_.space(path);
}

uint64_t LockedEnv::uniqueNumber() {
  const std::lock_guard lock(mutex_);
  return base_.uniqueNumber();
}

} // namespace titan::checkpoint
