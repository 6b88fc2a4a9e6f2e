// A job made by hand, its data, and a call that does what the executable does: for the tests of the
// commands.
#pragma once

#include "runtime/data/NpzWriter.h"
#include "runtime/device/testing/LateDevice.h"
#include "runtime/device/testing/LinearProgram.h"
#include "runtime/job/JobImage.h"
#include "runtime/program/Random.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <unistd.h>

namespace titan::testing {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Outcome {
  int exitCode;
  std::string out, err;
};

class JobTest : public ::testing::Test {
protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    directory =
        fs::path(::testing::TempDir()) / fmt::format("titan-job-{}-{}", info->name(), getpid());
    fs::remove_all(directory);
    fs::create_directories(directory);
    writeData("train.npz", 50);
    writeData("eval.npz", 10);
    compile();
  }
  void TearDown() override {
    std::error_code error;
    fs::permissions(directory, fs::perms::owner_all, error);
    fs::remove_all(directory, error);
  }

  std::string path(const std::string& name) const { return (directory / name).string(); }

  void writeData(const std::string& name, int64_t samples, float poison = 0) {
    std::vector<float> x(samples * LinearShape::features), y(samples * LinearShape::outputs);
    for (int64_t i = 0; i < samples; ++i)
      for (int64_t j = 0; j < LinearShape::features; ++j) {
        float& value = x[i * LinearShape::features + j];
        value = normalDraw(5, 0, i * LinearShape::features + j);
        for (int64_t o = 0; o < LinearShape::outputs; ++o)
          y[i * LinearShape::outputs + o] += value * static_cast<float>(o - j) * 0.1f;
      }
    if (poison != 0)
      for (float& value : x)
        value = poison;
    auto bytes = [](std::vector<float>& v) {
      return std::span<const char>(reinterpret_cast<char*>(v.data()), v.size() * sizeof(float));
    };
    const NamedArray arrays[] = {
        {"x", DType::F32, {samples, LinearShape::features}, bytes(x)},
        {"targets", DType::F32, {samples, LinearShape::outputs}, bytes(y)}};
    ASSERT_TRUE(writeNpz(path(name), arrays).ok());
  }

  void compile(const std::string& extra = "") {
    program = linearProgram(fmt::format(R"(
[optimizer]
kind = "sgd"
lr = 0.05
[data]
train = "{}"
eval = "{}"
[train]
steps = 20
{})",
                                        path("train.npz"), path("eval.npz"), extra));
    programBytes = serialize(program);
    payload = linearPayload();
  }

  JobImage image() const {
    JobImage image{{{programBytes, kernels}}, payload, path("job")};
    if (runsLate())
      image.chooseDevice = [](const DeviceRequest& request) -> Result<ChosenDevice> {
        ChosenDevice chosen = TITAN_TRY(chooseDevice(request));
        chosen.device = std::make_unique<LateDevice>(std::move(chosen.device));
        return chosen;
      };
    return image;
  }
  /// TITAN_TEST_DEVICE=late: on a device without a window, that does nothing before it must.
  static bool runsLate() {
    const char* device = std::getenv("TITAN_TEST_DEVICE");
    return device && std::string_view(device) == "late";
  }

  Outcome run(std::vector<std::string> arguments) const { return run(arguments, image()); }
  Outcome run(const std::vector<std::string>& arguments, const JobImage& image) const {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int exitCode = runJob(arguments, image);
    std::string out = ::testing::internal::GetCapturedStdout();
    return {exitCode, out, ::testing::internal::GetCapturedStderr()};
  }

  /// The lines of steps and evaluations.
  std::vector<Json> metrics(const std::string& run) const {
    return linesWith(run, {"loss", "eval_loss"});
  }
  /// Those of committed saves.
  std::vector<Json> saves(const std::string& run) const {
    return linesWith(run, {"committed_after_step"});
  }
  /// Those that have one of `keys`.
  std::vector<Json> linesWith(const std::string& run, const std::vector<std::string>& keys) const {
    std::vector<Json> lines;
    std::ifstream file(path(run) + "/metrics.jsonl");
    for (std::string line; std::getline(file, line);)
      if (Json parsed = Json::parse(line);
          std::ranges::any_of(keys, [&](const std::string& key) { return parsed.contains(key); }))
        lines.push_back(std::move(parsed));
    return lines;
  }

  /// Returns once `run` has as many steps behind it. Reads no further: a run may write faster than
  /// a reader that wants the end of the file can read.
  void waitForSteps(const std::string& run, int steps) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (std::chrono::steady_clock::now() < deadline) {
      std::ifstream file(path(run) + "/metrics.jsonl");
      int lines = 0;
      for (std::string line; lines < steps && std::getline(file, line) && !file.eof();)
        ++lines;
      if (lines == steps)
        return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << run << " has not come to step " << steps;
  }

  std::string readFile(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// The bytes of all state in a checkpoint: model and optimizer shards.
  std::string stateOf(const std::string& run, int64_t step) const {
    std::string bytes;
    for (const char* folder : {"model", "optimizer"}) {
      const std::string relative = fmt::format("{}/checkpoints/step-{:08}/{}", run, step, folder);
      for (const auto& entry : fs::directory_iterator(path(relative)))
        if (entry.path().extension() == ".safetensors")
          bytes += readFile(fmt::format("{}/{}", relative, entry.path().filename().string()));
    }
    EXPECT_FALSE(bytes.empty());
    return bytes;
  }

  fs::path directory;
  Program program;
  std::string programBytes, payload;
  std::span<const KernelFunction> kernels = linearKernels();
};

} // namespace titan::testing
