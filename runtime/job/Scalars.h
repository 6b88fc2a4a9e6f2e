// The scalars of a run: hyperparameters that go in, metrics and counters that come out.
#pragma once

#include "runtime/device/StateAccess.h"
#include "runtime/program/Recipe.h"

#include <string_view>
#include <vector>

namespace titan {

/// The control bindings of one function and their values for this run.
class Controls {
public:
  /// Internal when a control of the program is no recipe key this runtime knows. "valid_rows" and
  /// "stop" are left to their users.
  static Result<Controls> create(StateAccess& access, std::string_view function,
                                 const Recipe& recipe, int64_t seed);
  void write() const;

private:
  struct Control {
    Scalar scalar;
    ScalarValue value;
  };
  std::vector<Control> controls_;
};

/// A scalar metric of a function, or a handle on nothing. The errors of the device.
Result<Scalar> metric(StateAccess& access, std::string_view function, std::string_view name);
/// A counter of the state, or a handle on nothing.
Result<Scalar> counter(StateAccess& access, std::string_view name);

} // namespace titan
