// Looks over the executor's shoulder: the profiler, the recorder and the poisoner are observers,
// and a run without one pays nothing for them.
#pragma once

#include "runtime/program/Program.h"

namespace titan {

class CommandObserver {
public:
  virtual ~CommandObserver() = default;
  /// Called on the thread that runs the function. `command` is an index in Function::commands. A
  /// Repeat is seen once before its first iteration, its EndRepeat once after the last; commands
  /// inside are seen in every iteration.
  virtual void beforeFunction(const Function& function) {}
  virtual void before(const Function& function, uint32_t command) {}
  /// A device that can measure its commands does so for those who want it: the seconds that one
  /// took on the device come before its after().
  virtual bool wantsSeconds() const { return false; }
  virtual void took(const Function& function, uint32_t command, double seconds) {}
  virtual void after(const Function& function, uint32_t command) {}
  virtual void afterFunction(const Function& function) {}
};

} // namespace titan
