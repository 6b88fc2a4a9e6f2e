// How a library computed the products, or the attention, of a run: enough to have the same bits
// again.
#pragma once

#include <map>
#include <string>

namespace titan {

struct LibraryChoices {
  /// What stands for an algorithm where the call is the job's own.
  static constexpr const char* generated = "generated";

  std::string library; ///< "cublaslt", "cudnn"; empty: none
  std::string version; ///< "13.1.0"
  std::string device;  ///< that it was chosen on: "NVIDIA H100 80GB HBM3, sm_90"
  /// By call, as the device names it: the library's own bytes in hexadecimal or its name of a plan,
  /// or `generated`.
  std::map<std::string, std::string> algorithms;

  bool operator==(const LibraryChoices&) const = default;
  /// Are they for that library on that device?
  bool fit(const LibraryChoices& here) const {
    return library == here.library && version == here.version && device == here.device;
  }
  /// What stands for the call, where they fit; else null.
  const std::string* find(const std::string& call, const LibraryChoices& here) const {
    const auto found = fit(here) ? algorithms.find(call) : algorithms.end();
    return found == algorithms.end() ? nullptr : &found->second;
  }
  /// "cudnn 9.19.0 on NVIDIA H200, sm_90"
  std::string text() const { return library + " " + version + " on " + device; }
};

} // namespace titan
