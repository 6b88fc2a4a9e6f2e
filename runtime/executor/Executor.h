// The functions of a compiled program by name, on a device.
//
//   Executor executor(program, *device);
//   TITAN_TRY(executor.initialize({.payload = payload, .seed = 0}, pool));
//   TITAN_TRY(executor.access().write(*executor.access().binding("step", "x"), 0, batch));
//   TITAN_TRY(executor.run("step"));
#pragma once

#include "runtime/device/StateAccess.h"
#include "runtime/executor/InitialState.h"

#include <memory>

namespace titan {

class Executor {
public:
  /// `device` was made for `program`; both outlive the executor.
  Executor(const Program& program, Device& device)
      : program_(&program), access_(std::make_unique<StateAccess>(program, device)) {}

  /// Writes all constants and the initial value of every state.
  Status initialize(const InitialStateSources& sources, ThreadPool& pool);

  /// Runs a function from its first command to its last. Internal when the program has no such
  /// function; the errors of the device.
  Status run(std::string_view function);

  /// From now on, `observer` sees every command; null: nobody does.
  void setObserver(CommandObserver* observer) { observer_ = observer; }

  const Program& program() const { return *program_; }
  /// Stays where it is as long as the executor lives.
  StateAccess& access() const { return *access_; }

private:
  const Program* program_;
  std::unique_ptr<StateAccess> access_;
  CommandObserver* observer_ = nullptr;
};

} // namespace titan
