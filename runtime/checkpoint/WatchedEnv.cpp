#include "runtime/checkpoint/WatchedEnv.h"

namespace titan::checkpoint {

class WatchedEnv::Lock : public FileLock {
public:
  Lock(WatchedEnv& env, std::unique_ptr<FileLock> lock, std::string path)
      : env_(env), lock_(std::move(lock)), path_(std::move(path)) {}

  void rewrite(std::string_view self) override {
    (void)env_.perform("write", path_, [&] {
      lock_->rewrite(self);
      return Status();
    });
  }

private:
  WatchedEnv& env_;
  std::unique_ptr<FileLock> lock_;
  std::string path_;
};

std::optional<WatchedEnv::Running> WatchedEnv::running() const {
  const std::lock_guard lock(mutex_);
  std::optional<Running> running = running_;
  if (running)
    running->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  return running;
}

void WatchedEnv::note(std::optional<Running> running) {
  const std::lock_guard lock(mutex_);
  running_ = std::move(running);
  begun_ = std::chrono::steady_clock::now();
}

Status WatchedEnv::perform(const char* verb, const std::string& path, const Operation& operation) {
  note(Running{verb, path});
  Status status = operation();
  note(std::nullopt);
  return status;
}

Status WatchedEnv::append(WritableFile& file, const std::string& path, std::string_view bytes) {
  TITAN_TRY(EnvWrapper::append(file, path, bytes));
  written_ += static_cast<int64_t>(bytes.size());
  return {};
}

Result<LockAttempt> WatchedEnv::lockFile(const std::string& path, std::string_view self) {
  LockAttempt attempt = TITAN_TRY(EnvWrapper::lockFile(path, self));
  if (attempt.lock)
    attempt.lock = std::make_unique<Lock>(*this, std::move(attempt.lock), path);
  return attempt;
}

} // namespace titan::checkpoint
