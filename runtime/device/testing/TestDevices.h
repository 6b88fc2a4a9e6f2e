// Devices for tests that name no kind of device.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/host/ThreadPool.h"
#include "runtime/program/Program.h"

#include <memory>

namespace titan::testing {

/// The CPU's, with generated products.
Result<std::unique_ptr<Device>>
makeCpuDevice(const Program& program, std::span<const KernelFunction> kernels, ThreadPool& pool);
/// The same without a window, and late.
Result<std::unique_ptr<Device>>
makeLateDevice(const Program& program, std::span<const KernelFunction> kernels, ThreadPool& pool);

} // namespace titan::testing
