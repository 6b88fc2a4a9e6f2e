// Scalars in the arena: hyperparameters that go in, metrics that come out.
#pragma once

#include "runtime/executor/Executor.h"
#include "runtime/program/Recipe.h"

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace titan {

using ScalarValue = std::variant<int64_t, double>;

/// Writes `value` at `address` in `dtype` (F64, F32, I64, I32, Bool); false for other dtypes.
bool writeScalar(DType dtype, char* address, ScalarValue value);
/// Reads F64, F32, BF16, I64, I32 or Bool; NaN for other dtypes.
double readScalar(DType dtype, const char* address);

/// The control bindings of one function and their values for this run.
class Controls {
public:
  /// Internal when a control of the program is no recipe key this runtime knows. "valid_rows" is
  /// left to its user.
  static Result<Controls> create(const Executor& executor, std::string_view function,
                                 const Recipe& recipe, int64_t seed);
  void write() const;

private:
  struct Control {
    DType dtype;
    char* address;
    ScalarValue value;
  };
  std::vector<Control> controls_;
};

/// A scalar metric or counter, or nothing, which reads as its default.
class ScalarReader {
public:
  ScalarReader() = default;
  static ScalarReader metric(const Executor& executor, std::string_view function,
                             std::string_view name);
  static ScalarReader counter(const Executor& executor, std::string_view name);

  bool exists() const { return address_ != nullptr; }
  double read(double absent = 0) const { return address_ ? readScalar(dtype_, address_) : absent; }
  int64_t count() const { return static_cast<int64_t>(read()); }

private:
  ScalarReader(DType dtype, const char* address) : dtype_(dtype), address_(address) {}

  DType dtype_ = DType::F32;
  const char* address_ = nullptr;
};

} // namespace titan
