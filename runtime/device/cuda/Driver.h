// The CUDA driver, loaded at run time: a job starts without it, and says what is missing when a
// card is asked for.
//
//   Driver driver = TITAN_TRY(Driver::load());
//   size_t free = 0, total = 0;
//   TITAN_TRY(driver.need(driver.cuMemGetInfo_v2(&free, &total), "the card's memory"));
#pragma once

#include "runtime/device/cuda/DriverApi.h"
#include "runtime/program/Error.h"

#include <string>

namespace titan::cuda {

/// What an entry point returned.
struct [[nodiscard]] Answer {
  CUresult result;
  const char* entry; ///< its name

  bool ok() const { return result == CUDA_SUCCESS; }
};

/// A function of the library that answers with its name.
template <typename Function> class Entry;
template <typename... Parameters> class Entry<CUresult(Parameters...)> {
public:
  explicit Entry(const char* name) : name_(name) {}

  Answer operator()(Parameters... arguments) const { return {function_(arguments...), name_}; }
  const char* name() const { return name_; }
  /// False where `library` has no such function.
  bool lookUp(void* library);

private:
  CUresult (*function_)(Parameters...) = nullptr;
  const char* name_;
};

class Driver {
public:
  /// The oldest version that a job runs on: it assembles PTX 8.0.
  static constexpr int oldestVersion = 12000;

  /// Loads and initializes libcuda.so.1. Environment, with what was looked for and what there is,
  /// when it is missing, older than CUDA 12.0, lacks an entry point or finds no card.
  static Result<Driver> load();

  /// Of the CUDA that it serves, as cuDriverGetVersion has it: 13000.
  int version() const { return version_; }

  /// "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (out of memory)"
  std::string text(Answer answer) const;
  /// The error of an answer that is none of success, with what was done: "allocating 7 bytes".
  /// Internal: a kernel read or wrote where it must not, or a call has bad arguments. RunFailed:
  /// the card or its memory failed, or a launch took too long. Else Environment.
  Error error(Answer answer, const std::string& what) const;
  Status need(Answer answer, const std::string& what) const {
    return answer.ok() ? Status() : Status(error(answer, what));
  }

#define TITAN_CUDA_ENTRY(name, parameters) Entry<CUresult parameters> name{#name};
  TITAN_CUDA_ENTRY_POINTS(TITAN_CUDA_ENTRY)
#undef TITAN_CUDA_ENTRY

private:
  Driver() = default;
  Status checkVersion() const;
  Status lookUpAll(void* library);
  Status initialize();

  int version_ = 0;
};

/// "13.0" for 13000.
std::string versionText(int version);

/// The variable that hides cards, where it is set: " (CUDA_VISIBLE_DEVICES is '1')".
std::string visibleDevices();

} // namespace titan::cuda
