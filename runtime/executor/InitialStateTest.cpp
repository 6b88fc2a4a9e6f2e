#include "runtime/executor/InitialState.h"

#include "runtime/program/Payload.h"
#include "runtime/program/Random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace titan {
namespace {

State makeState(Shape shape, Init init, DType dtype = DType::F32) {
  State state;
  state.name = "layer.weight", state.dtype = dtype, state.shape = std::move(shape),
  state.init = std::move(init);
  state.bytes = elementCount(state.shape) * byteSize(dtype);
  return state;
}

Init rule(Init::Kind kind, double a, double b = 0) {
  Init init;
  init.kind = kind, init.a = a, init.b = b;
  return init;
}

std::span<char> sinkOf(std::vector<float>& values) {
  return {reinterpret_cast<char*>(values.data()), values.size() * sizeof(float)};
}

std::vector<float> write(const State& state, uint64_t seed, int threads) {
  auto pool = ThreadPool::create(threads).take();
  std::vector<float> values(elementCount(state.shape));
  EXPECT_TRUE(writeInitialState(state, {.seed = seed}, *pool, sinkOf(values)).ok());
  return values;
}

TEST(InitialState, NormalHasItsMomentsAndItsKey) {
  State state = makeState({100, 1000}, rule(Init::Kind::Normal, 1, 0.02));
  std::vector<float> values = write(state, 3, 2);
  double sum = 0, squares = 0;
  for (float value : values)
    sum += value, squares += (value - 1.0) * (value - 1.0);
  EXPECT_NEAR(sum / values.size(), 1, 3e-4);
  EXPECT_NEAR(std::sqrt(squares / values.size()), 0.02, 2e-4);
  const uint64_t key = randomKey(3, XXH3_64bits("layer.weight", 12));
  EXPECT_EQ(values[12345], static_cast<float>(1 + 0.02 * normalDraw(key, 0, 12345)));
}

TEST(InitialState, DependsOnSeedAndNameAndNothingElse) {
  State state = makeState({9000}, rule(Init::Kind::Uniform, -1, 1));
  std::vector<float> values = write(state, 1, 1);
  EXPECT_EQ(values, write(state, 1, 3));
  EXPECT_NE(values, write(state, 2, 1));
  state.name = "other.weight";
  EXPECT_NE(values, write(state, 1, 1));
  for (float value : values)
    EXPECT_TRUE(value >= -1 && value <= 1);
}

TEST(InitialState, ConstantsInEveryDtype) {
  auto pool = ThreadPool::create(1).take();
  for (auto [dtype, bytes] :
       {std::pair{DType::F64, 8}, std::pair{DType::I64, 8}, std::pair{DType::I32, 4},
        std::pair{DType::BF16, 2}, std::pair{DType::U8, 1}}) {
    std::string buffer(8, '\x77');
    State state = makeState({}, rule(Init::Kind::Constant, 1), dtype);
    ASSERT_TRUE(writeInitialState(state, {}, *pool,
                                  std::span<char>(buffer).first(static_cast<size_t>(bytes)))
                    .ok());
    EXPECT_EQ(buffer[bytes == 8 ? 7 : bytes],
              bytes == 8 ? (dtype == DType::F64 ? '\x3f' : 0) : '\x77');
  }
  State half = makeState({}, rule(Init::Kind::Constant, 1), DType::F16);
  char buffer[2];
  EXPECT_EQ(writeInitialState(half, {}, *pool, std::span<char>(buffer)).error().code(),
            ErrorCode::Internal);
}

TEST(InitialState, PayloadIsCheckedAndPermuted) {
  auto pool = ThreadPool::create(1).take();
  std::vector<float> stored = {0, 1, 2, 3, 4, 5}; // [2, 3]
  std::string payload = "pad-";
  payload.append(reinterpret_cast<char*>(stored.data()), 24);
  Init init = rule(Init::Kind::Payload, 0);
  init.offset = 4, init.digest = XXH3_64bits(payload.data() + 4, 24), init.permutation = {1, 0};
  State state = makeState({3, 2}, init);
  std::vector<float> values(6);
  const std::span<char> out = sinkOf(values);
  ASSERT_TRUE(writeInitialState(state, {.payload = payload}, *pool, out).ok());
  EXPECT_EQ(values, (std::vector<float>{0, 3, 1, 4, 2, 5}));
  payload[10] ^= 1;
  EXPECT_EQ(writeInitialState(state, {.payload = payload}, *pool, out).error().code(),
            ErrorCode::BadInput);
  payload.resize(20);
  EXPECT_EQ(writeInitialState(state, {.payload = payload}, *pool, out).error().code(),
            ErrorCode::Internal);
}

TEST(InitialState, PermutesThreeDims) {
  auto pool = ThreadPool::create(1).take();
  std::vector<float> stored(24);
  for (int i = 0; i < 24; ++i)
    stored[i] = static_cast<float>(i); // [2, 3, 4]
  Init init = rule(Init::Kind::Payload, 0);
  init.digest = XXH3_64bits(stored.data(), 96), init.permutation = {2, 0, 1};
  State state = makeState({4, 2, 3}, init);
  std::vector<float> values(24);
  ASSERT_TRUE(writeInitialState(state, {.payload = {reinterpret_cast<char*>(stored.data()), 96}},
                                *pool, sinkOf(values))
                  .ok());
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 2; ++j)
      for (int k = 0; k < 3; ++k)
        EXPECT_EQ(values[(i * 2 + j) * 3 + k], stored[(j * 3 + k) * 4 + i]);
}

TEST(InitialState, ExternalFilesAreFoundAndChecked) {
  auto pool = ThreadPool::create(1).take();
  const std::string directory = ::testing::TempDir() + "titan-weights";
  std::filesystem::create_directories(directory);
  std::vector<float> stored = {1, 2};
  std::ofstream(directory + "/w.bin", std::ios::binary)
      << "1234" << std::string((char*)stored.data(), 8);
  Init init = rule(Init::Kind::External, 0);
  init.path = "w.bin", init.offset = 4, init.digest = XXH3_64bits(stored.data(), 8);
  State state = makeState({2}, init);
  std::vector<float> values(2);
  const std::span<char> out = sinkOf(values);
  ASSERT_TRUE(writeInitialState(state, {.weightsDirectory = directory}, *pool, out).ok());
  EXPECT_EQ(values, stored);
  state.init.offset = 3;
  EXPECT_NE(writeInitialState(state, {.weightsDirectory = directory}, *pool, out)
                .error()
                .message()
                .find("changed"),
            std::string::npos);
  state.init.offset = 8;
  EXPECT_NE(writeInitialState(state, {.weightsDirectory = directory}, *pool, out)
                .error()
                .message()
                .find("too short"),
            std::string::npos);
  state.init.path = "none.bin";
  EXPECT_EQ(writeInitialState(state, {.weightsDirectory = directory}, *pool, out).error().code(),
            ErrorCode::BadInput);
}

/// Resident bytes of this process that belong to the file at `path`.
int64_t residentOf(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  int64_t bytes = 0;
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ') && line.find(':') > line.find(' '))
      inside = line.ends_with(path);
    if (inside && line.starts_with("Rss:"))
      bytes += std::stoll(line.substr(4)) * 1024;
  }
  return bytes;
}

TEST(InitialState, APayloadDoesNotStayInMemory) {
  auto pool = ThreadPool::create(1).take();
  const std::string path = ::testing::TempDir() + "titan-payload.bin";
  constexpr int64_t bytes = 32 << 20;
  {
    std::string stored(bytes, '\1');
    std::ofstream(path, std::ios::binary) << stored;
  }
  sync(); // only clean pages can be dropped
  const int file = open(path.c_str(), O_RDONLY);
  void* mapping = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  close(file);
  std::string_view payload(static_cast<const char*>(mapping), bytes);
  Init init = rule(Init::Kind::Payload, 0);
  init.digest = XXH3_64bits(payload.data(), payload.size());
  EXPECT_EQ(residentOf(path), bytes);
  State state = makeState({bytes / 4}, init);
  std::vector<float> values(bytes / 4);
  const std::span<char> out = sinkOf(values);
  ASSERT_TRUE(writeInitialState(state, {.payload = payload}, *pool, out).ok());
  EXPECT_EQ(std::memcmp(out.data(), payload.data(), 1 << 20), 0);
  EXPECT_LE(residentOf(path), 2 << 20);
  munmap(mapping, bytes);
  std::filesystem::remove(path);
}

TEST(InitialState, PayloadBeyondFourGigabytes) {
  auto pool = ThreadPool::create(1).take();
  const std::string path = ::testing::TempDir() + "titan-large-payload.bin";
  const float stored[] = {1, 2};
  constexpr int64_t offset = int64_t{5} << 30, bytes = sizeof stored;
  {
    std::ofstream file(path, std::ios::binary); // of one hole
    file.seekp(offset).write(reinterpret_cast<const char*>(stored), bytes);
    file << payloadEnd(offset + bytes);
  }
  const size_t size = std::filesystem::file_size(path);
  const int file = open(path.c_str(), O_RDONLY);
  void* mapping = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  close(file);
  const std::string_view whole(static_cast<const char*>(mapping), size);
  const auto payload = findPayload(whole, offset + bytes);
  ASSERT_TRUE(payload.ok()) << payload.error().message();
  Init init = rule(Init::Kind::Payload, 0);
  init.offset = offset;
  init.digest = XXH3_64bits(stored, bytes);
  float values[2] = {};
  ASSERT_TRUE(writeInitialState(makeState({2}, init), {.payload = *payload}, *pool,
                                std::span(reinterpret_cast<char*>(values), sizeof values))
                  .ok());
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 2);
  for (const auto& [file, bytes] : {std::pair(whole, offset + bytes - 1),
                                    {whole.substr(0, size - 1), offset + bytes},
                                    {whole.substr(offset), offset + bytes},
                                    {std::string_view(), int64_t{1}}}) {
    const auto missing = findPayload(file, static_cast<uint64_t>(bytes));
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.error().code(), ErrorCode::BadInput);
  }
  munmap(mapping, size);
  std::filesystem::remove(path);
}

} // namespace
} // namespace titan
