// The functions of a compiled program by name, on a device.
//
//   Executor executor(program, *device);
//   TITAN_TRY(executor.prepare(payload));
//   TITAN_TRY(writeFirstWeights(executor.access(), {.payload = payload, .seed = 0}, pool, peers));
//   TITAN_TRY(executor.access().write(*executor.access().binding("step", "x"), 0, batch));
//   TITAN_TRY(executor.run("step"));
#pragma once

#include "runtime/device/StateAccess.h"

#include <memory>
#include <string_view>

namespace titan {

class Executor {
public:
  /// `device` was made for `program`, as that rank's; both outlive the executor.
  Executor(const Program& program, Device& device, int64_t rank = 0)
      : program_(&program), access_(std::make_unique<StateAccess>(program, device, rank)) {}

  /// Writes all constants, which lie in the job's payload, and zeros to the states that are padded.
  Status prepare(std::string_view payload);

  /// Runs a function from its first command to its last. Internal when the program has no such
  /// function; the errors of the device.
  Status run(std::string_view function);
  /// StateAccess::begin of a function by name; StateAccess::finish ends it.
  Status begin(std::string_view function);

  /// From now on, `observer` sees every command; null: nobody does.
  void setObserver(CommandObserver* observer) { observer_ = observer; }

  const Program& program() const { return *program_; }
  /// Stays where it is as long as the executor lives.
  StateAccess& access() const { return *access_; }

private:
  Result<uint32_t> indexOf(std::string_view function) const;

  const Program* program_;
  std::unique_ptr<StateAccess> access_;
  CommandObserver* observer_ = nullptr;
};

} // namespace titan
