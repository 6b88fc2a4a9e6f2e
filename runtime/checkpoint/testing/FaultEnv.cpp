#include "runtime/checkpoint/testing/FaultEnv.h"

namespace titan::checkpoint {
namespace {

class FaultWritableFile : public WritableFile {
public:
  FaultWritableFile(FaultEnv& env, std::string path, std::unique_ptr<WritableFile> base)
      : env_(env), path_(std::move(path)), base_(std::move(base)) {}

  /// One that fails has written a part, as on a disk that fills up.
  Status append(std::string_view bytes) override {
    if (Status entered = env_.enter("write", path_); !entered.ok()) {
      (void)base_->append(bytes.substr(0, bytes.size() / 2));
      return entered;
    }
    return base_->append(bytes);
  }
  Status reserve(int64_t bytes) override {
    TITAN_TRY(env_.enter("reserve", path_));
    return base_->reserve(bytes);
  }
  Status sync() override {
    TITAN_TRY(env_.enter("sync", path_));
    return base_->sync();
  }
  Status close() override {
    TITAN_TRY(env_.enter("close", path_));
    return base_->close();
  }

private:
  FaultEnv& env_;
  std::string path_;
  std::unique_ptr<WritableFile> base_;
};

class FaultReadableFile : public ReadableFile {
public:
  FaultReadableFile(FaultEnv& env, std::string path, std::unique_ptr<ReadableFile> base)
      : env_(env), path_(std::move(path)), base_(std::move(base)) {}

  int64_t size() const override { return base_->size(); }
  Status read(int64_t offset, char* into, int64_t bytes) override {
    TITAN_TRY(env_.enter("read", path_));
    return base_->read(offset, into, bytes);
  }

private:
  FaultEnv& env_;
  std::string path_;
  std::unique_ptr<ReadableFile> base_;
};

} // namespace

void FaultEnv::failAt(int64_t operation, int errorNumber, bool forGood) {
  history_.clear();
  failAt_ = operation;
  errorNumber_ = errorNumber;
  forGood_ = forGood;
  failed_.clear();
}

Status FaultEnv::enter(std::string_view verb, const std::string& path) {
  const int64_t operation = operations();
  history_.push_back(fmt::format("{} '{}'", verb, path));
  if (happen_)
    happen_(operation);
  if (failAt_ == never || operation < failAt_ || (operation > failAt_ && !forGood_))
    return {};
  if (failed_.empty())
    failed_ = history_.back();
  return fileError(verb, path, errorNumber_);
}

Result<std::unique_ptr<WritableFile>> FaultEnv::createFile(const std::string& path) {
  TITAN_TRY(enter("create", path));
  auto file = TITAN_TRY(base_.createFile(path));
  return std::unique_ptr<WritableFile>(new FaultWritableFile(*this, path, std::move(file)));
}

Result<std::unique_ptr<ReadableFile>> FaultEnv::openFile(const std::string& path) {
  TITAN_TRY(enter("open", path));
  auto file = TITAN_TRY(base_.openFile(path));
  return std::unique_ptr<ReadableFile>(new FaultReadableFile(*this, path, std::move(file)));
}

// It has no error.
void FaultEnv::dropCached(const std::string& path) { base_.dropCached(path); }

Result<FileKind> FaultEnv::kindOf(const std::string& path) {
  TITAN_TRY(enter("look at", path));
  return base_.kindOf(path);
}

Result<std::vector<DirectoryEntry>> FaultEnv::readDirectory(const std::string& path) {
  TITAN_TRY(enter("read directory", path));
  return base_.readDirectory(path);
}

Status FaultEnv::makeDirectory(const std::string& path) {
  TITAN_TRY(enter("make directory", path));
  return base_.makeDirectory(path);
}

Status FaultEnv::syncDirectory(const std::string& path) {
  TITAN_TRY(enter("sync directory", path));
  return base_.syncDirectory(path);
}

Status FaultEnv::syncAncestor(const std::string& path) {
  TITAN_TRY(enter("sync directory", path));
  return base_.syncAncestor(path);
}

Status FaultEnv::rename(const std::string& from, const std::string& to) {
  TITAN_TRY(enter("rename", from));
  return base_.rename(from, to);
}

Status FaultEnv::removeFile(const std::string& path) {
  TITAN_TRY(enter("remove", path));
  return base_.removeFile(path);
}

Status FaultEnv::removeDirectory(const std::string& path) {
  TITAN_TRY(enter("remove directory", path));
  return base_.removeDirectory(path);
}

Result<LockAttempt> FaultEnv::lockFile(const std::string& path, std::string_view self) {
  TITAN_TRY(enter("lock", path));
  return base_.lockFile(path, self);
}

Result<std::unique_ptr<FileLock>> FaultEnv::tryLock(const std::string& path, LockKind kind) {
  TITAN_TRY(enter("lock", path));
  return base_.tryLock(path, kind);
}

Result<Space> FaultEnv::space(const std::string& path) {
  TITAN_TRY(enter("ask for the free space of", path));
  return base_.space(path);
}

} // namespace titan::checkpoint
