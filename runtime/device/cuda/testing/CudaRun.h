// The linear program on the fake card, and what the fake writes down.
#pragma once

#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/testing/FakeCard.h"
#include "runtime/device/cuda/testing/LinearPtx.h"
#include "runtime/device/testing/LinearRun.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace titan::testing {

inline Result<std::unique_ptr<Device>>
makeCudaDevice(const Program& program, std::span<const KernelFunction>, ThreadPool&) {
  return std::unique_ptr<Device>(TITAN_TRY(CudaDevice::create(program, linearCudaPayload())));
}

struct CudaRun : LinearRun {
  CudaRun() : LinearRun(1, makeCudaDevice, linearCudaProgram()) {}
};

/// What the fake writes down while it lives.
class Record {
public:
  Record() : variable_("RECORD", path_) { std::filesystem::remove(path_); }
  ~Record() { std::filesystem::remove(path_); }

  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);)
      lines.push_back(line);
    return lines;
  }
  int64_t count(std::string_view begin) const {
    return std::ranges::count_if(lines(),
                                 [&](const auto& line) { return line.starts_with(begin); });
  }

private:
  std::string path_ = fmt::format("{}/fake-cuda-record-{}",
                                  std::filesystem::temp_directory_path().string(), getpid());
  FakeVariable variable_;
};

} // namespace titan::testing
