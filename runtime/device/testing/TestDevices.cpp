#include "runtime/device/testing/TestDevices.h"

#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/testing/LateDevice.h"

namespace titan::testing {

Result<std::unique_ptr<Device>>
makeCpuDevice(const Program& program, std::span<const KernelFunction> kernels, ThreadPool& pool) {
  return std::unique_ptr<Device>(TITAN_TRY(CpuDevice::create(program, kernels, pool)));
}

Result<std::unique_ptr<Device>>
makeLateDevice(const Program& program, std::span<const KernelFunction> kernels, ThreadPool& pool) {
  return std::unique_ptr<Device>(
      std::make_unique<LateDevice>(TITAN_TRY(makeCpuDevice(program, kernels, pool))));
}

} // namespace titan::testing
