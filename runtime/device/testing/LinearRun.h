// The linear program on a device, with data that a fixed linear map made: for tests of devices and
// of what looks over their shoulder.
#pragma once

#include "runtime/device/StateAccess.h"
#include "runtime/device/testing/LinearProgram.h"
#include "runtime/device/testing/TestDevices.h"
#include "runtime/program/Random.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

namespace titan::testing {

struct LinearRun {
  using Maker = std::function<Result<std::unique_ptr<Device>>(
      const Program&, std::span<const KernelFunction>, ThreadPool&)>;

  Program program;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Device> device;
  std::optional<StateAccess> access;
  CommandObserver* observer = nullptr;

  explicit LinearRun(int threads = 1, const Maker& make = makeCpuDevice,
                     Program table = linearProgram())
      : program(std::move(table)), pool(ThreadPool::create(threads).take()),
        device(make(program, linearKernels(), *pool).take()) {
    access.emplace(program, *device);
    for (const State& state : program.states)
      EXPECT_TRUE(access->fill(placeOf(state), 0).ok());
    const std::string payload = linearPayload();
    EXPECT_TRUE(
        access->write(*access->state(StateKind::Param, {}, "linear.weight"), 0, payload).ok());
  }

  Status run(std::string_view function) {
    for (uint32_t i = 0; i < program.functions.size(); ++i)
      if (program.functions[i].name == function)
        return access->run(i, observer);
    return Error::internal("no function '{}'", function);
  }

  Scalar scalar(const char* function, const char* name) {
    return access->scalar(*access->binding(function, name)).take();
  }
  int64_t counter(const char* name) {
    return access->scalar(*access->state(StateKind::Counter, {}, name)).take().count();
  }

  template <typename T> static std::span<const char> bytesOf(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  }

  /// The batch of a step; `spoiled` takes the place of its first value.
  void fill(int64_t step, std::optional<float> spoiled = {}) {
    std::vector<float> x(LinearShape::batch * LinearShape::features);
    std::vector<float> y(LinearShape::batch * LinearShape::outputs);
    for (int64_t row = 0; row < LinearShape::batch; ++row)
      for (int64_t j = 0; j < LinearShape::features; ++j) {
        float& value = x[row * LinearShape::features + j];
        value = normalDraw(7, step, row * LinearShape::features + j);
        for (int64_t o = 0; o < LinearShape::outputs; ++o) {
          float& target = y[row * LinearShape::outputs + o];
          target = (j ? target : 0.5f) + value * static_cast<float>(o + 1) * (j % 2 ? 0.3f : -0.2f);
        }
      }
    x[0] = spoiled.value_or(x[0]);
    EXPECT_TRUE(access->write(*access->binding("step", "x"), 0, bytesOf(x)).ok());
    EXPECT_TRUE(access->write(*access->binding("step", "targets"), 0, bytesOf(y)).ok());
    scalar("step", "optimizer.lr").write(0.05);
  }

  std::vector<float> train(int64_t steps) {
    std::vector<float> losses;
    const Scalar loss = scalar("step", "loss");
    for (int64_t step = 0; step < steps; ++step) {
      fill(step);
      EXPECT_TRUE(run("step").ok());
      losses.push_back(static_cast<float>(loss.read()));
    }
    return losses;
  }

  std::string bytesOfState(const State& state) {
    std::string bytes(static_cast<size_t>(state.bytes), '\0');
    EXPECT_TRUE(access->read(placeOf(state), 0, bytes).ok());
    return bytes;
  }
  std::string stateBytes() {
    std::string bytes;
    for (const State& state : program.states)
      bytes += bytesOfState(state);
    return bytes;
  }
};

} // namespace titan::testing
