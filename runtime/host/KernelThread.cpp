#include "runtime/host/KernelThread.h"

#include <csignal>
#include <cstring>
#include <memory>
#include <utility>

namespace titan {
namespace {

/// Blocks every signal for the calling thread, and so for the threads that it starts; but for
/// SIGBUS, which belongs to who reads a mapped file.
class SignalsBlocked {
public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  const sigset_t& before() const { return before_; }

private:
  sigset_t before_;
};

void* runBody(void* body) {
  std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(body));
  (*owned)();
  return nullptr;
}

} // namespace

Result<KernelThread> KernelThread::start(std::function<void()> body) {
  const SignalsBlocked blocked;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kernelStackBytes);
  auto owned = std::make_unique<std::function<void()>>(std::move(body));
  KernelThread thread;
  const int code = pthread_create(&thread.thread_, &attributes, runBody, owned.get());
  pthread_attr_destroy(&attributes);
  if (code != 0)
    return Error::environment("a thread with {} MiB of stack cannot be started: {}",
                              kernelStackBytes >> 20, std::strerror(code));
  owned.release(); // runBody's now
  thread.started_ = true;
  return thread;
}

KernelThread::KernelThread(KernelThread&& other) noexcept
    : started_(std::exchange(other.started_, false)), thread_(other.thread_) {}

KernelThread& KernelThread::operator=(KernelThread&& other) noexcept {
  join();
  started_ = std::exchange(other.started_, false);
  thread_ = other.thread_;
  return *this;
}

void KernelThread::join() {
  if (std::exchange(started_, false))
    pthread_join(thread_, nullptr);
}

Status runWithKernelStack(std::function<void()> body) {
  const SignalsBlocked blocked;
  KernelThread thread = TITAN_TRY(KernelThread::start([&] {
    pthread_sigmask(SIG_SETMASK, &blocked.before(), nullptr);
    body();
  }));
  thread.join();
  return {};
}

} // namespace titan
