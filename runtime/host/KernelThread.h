// Threads on whose stack kernels fit, whatever the stack limit of the process.
#pragma once

#include "runtime/program/Error.h"

#include <cstddef>
#include <functional>

#include <pthread.h>

namespace titan {

/// Stack of a thread that runs kernels, in bytes. A product's packed panels and its sums between
/// two panels take about 4 MiB, a fused kernel at most 1 MiB, attention grows with the width of a
/// head. It is address space: pages that nobody touches take no memory.
constexpr std::size_t kernelStackBytes = std::size_t{16} << 20;

/// A thread with that stack, which no signal of the process interrupts. Joined when destroyed.
class KernelThread {
public:
  KernelThread() = default;
  /// Environment, with the system's reason, when it cannot be started.
  static Result<KernelThread> start(std::function<void()> body);
  KernelThread(KernelThread&& other) noexcept;
  KernelThread& operator=(KernelThread&& other) noexcept;
  ~KernelThread() { join(); }
  void join();

private:
  bool started_ = false;
  pthread_t thread_{};
};

/// Runs body() on a thread with that stack and waits for it. Signals are for that thread meanwhile:
/// they end its waits as they would the caller's. Errors of KernelThread::start.
Status runWithKernelStack(std::function<void()> body);

} // namespace titan
