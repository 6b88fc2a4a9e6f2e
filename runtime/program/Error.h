// One result type for everything that runs without MLIR. No exceptions cross a public boundary.
//
//   Result<File> open(Path p) { ... return Error::badInput("no such file '{}'", p); }
//   File f = TITAN_TRY(open(p));          // returns the error from the enclosing function
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace titan {

/// What a caller (in the end a script) can react to; the values are the process's exit codes.
enum class ErrorCode : int {
  BadInput = 1,    ///< model, recipe, data or checkpoint is wrong
  Usage = 2,       ///< command line
  Environment = 3, ///< device, library, space, locked directory
  Internal = 4,    ///< our bug
  RunFailed = 5,   ///< non-finite limit, lost rank, failed save
};

/// A code and one line: lower case, no period, with the name and the numbers, and what to do.
class [[nodiscard]] Error {
public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  template <typename... Args>
  static Error badInput(fmt::format_string<Args...> format, Args&&... args) {
    return {ErrorCode::BadInput, fmt::format(format, std::forward<Args>(args)...)};
  }
  template <typename... Args>
  static Error usage(fmt::format_string<Args...> format, Args&&... args) {
    return {ErrorCode::Usage, fmt::format(format, std::forward<Args>(args)...)};
  }
  template <typename... Args>
  static Error environment(fmt::format_string<Args...> format, Args&&... args) {
    return {ErrorCode::Environment, fmt::format(format, std::forward<Args>(args)...)};
  }
  template <typename... Args>
  static Error internal(fmt::format_string<Args...> format, Args&&... args) {
    return {ErrorCode::Internal, fmt::format(format, std::forward<Args>(args)...)};
  }
  template <typename... Args>
  static Error runFailed(fmt::format_string<Args...> format, Args&&... args) {
    return {ErrorCode::RunFailed, fmt::format(format, std::forward<Args>(args)...)};
  }

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  int exitCode() const { return static_cast<int>(code_); }
  /// The same error, read one level further out: "recipe.toml: batch.micro = 0 ...".
  Error withContext(const std::string& context) && { return {code_, context + ": " + message_}; }

private:
  ErrorCode code_;
  std::string message_;
};

/// Either a value or an Error. Test with `ok()` before taking either.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Error& error() const { return std::get<1>(state_); }
  Error takeError() { return std::get<1>(std::move(state_)); }
  T take() { return std::get<0>(std::move(state_)); }

private:
  std::variant<T, Error> state_;
};

/// Success, or an Error.
template <> class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }
  Error takeError() { return std::move(*error_); }
  void take() {}

private:
  std::optional<Error> error_;
};

using Status = Result<void>;

} // namespace titan

/// The value of `expression` (a Result), or a return of its error from the enclosing function.
#define TITAN_TRY(expression)                                                                      \
  __extension__({                                                                                  \
    auto titanResult = (expression);                                                               \
    if (!titanResult.ok())                                                                         \
      return titanResult.takeError();                                                              \
    titanResult.take();                                                                            \
  })
