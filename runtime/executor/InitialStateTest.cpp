#include "runtime/executor/InitialState.h"

#include "runtime/device/StateAccess.h"
#include "runtime/device/testing/NullDevice.h"
#include "runtime/program/Payload.h"
#include "runtime/program/Random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

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

/// Starts from one stored tensor.
Init storedAt(Init::Kind kind, int64_t offset, uint64_t digest, Shape shape,
              const std::string& path = "") {
  Init init = rule(kind, 0);
  const int64_t bytes = elementCount(shape) * 4;
  init.stored = {{path, offset, bytes, digest, std::move(shape)}};
  return init;
}

/// The whole initializer, permuted.
std::vector<TensorSource> permuted(std::vector<int64_t> dims) {
  return {{"w", {.at = {}, .from = {}, .extent = {}, .dims = std::move(dims)}}};
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
  State state = makeState(
      {3, 2}, storedAt(Init::Kind::Payload, 4, XXH3_64bits(payload.data() + 4, 24), {2, 3}));
  state.sources = permuted({1, 0});
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
  State state = makeState(
      {4, 2, 3}, storedAt(Init::Kind::Payload, 0, XXH3_64bits(stored.data(), 96), {2, 3, 4}));
  state.sources = permuted({2, 0, 1});
  std::vector<float> values(24);
  ASSERT_TRUE(writeInitialState(state, {.payload = {reinterpret_cast<char*>(stored.data()), 96}},
                                *pool, sinkOf(values))
                  .ok());
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 2; ++j)
      for (int k = 0; k < 3; ++k)
        EXPECT_EQ(values[(i * 2 + j) * 3 + k], stored[(j * 3 + k) * 4 + i]);
}

TEST(InitialState, PiecesOfSeveralTensors) {
  auto pool = ThreadPool::create(1).take();
  std::vector<float> stored(24 + 6);
  std::iota(stored.begin(), stored.end(), 0.0f); // [2, 4, 3], then [3, 2]
  const std::string_view payload(reinterpret_cast<char*>(stored.data()), stored.size() * 4);
  Init init = storedAt(Init::Kind::Payload, 0, XXH3_64bits(payload.data(), 96), {2, 4, 3});
  init.stored.push_back({"", 96, 24, XXH3_64bits(payload.data() + 96, 24), {3, 2}});
  State state = makeState({6, 3}, init);
  // Rows 2 to 3 and 0 to 1 of the second matrix, then the other tensor transposed.
  state.sources = {{"w", {.at = {}, .from = {1, 2, 0}, .extent = {2, 3}, .dims = {1, 2}}},
                   {"w", {.at = {2, 0}, .from = {1, 0, 0}, .extent = {2, 3}, .dims = {1, 2}}},
                   {"v", {.at = {4, 0}, .from = {}, .extent = {2, 3}, .dims = {1, 0}}}};
  ASSERT_TRUE(checkSources(state.sources, state.shape, std::vector<Shape>{{2, 4, 3}, {3, 2}}).ok());
  std::vector<float> values(18);
  ASSERT_TRUE(writeInitialState(state, {.payload = payload}, *pool, sinkOf(values)).ok());
  EXPECT_EQ(values, (std::vector<float>{18, 19, 20, 21, 22, 23, 12, 13, 14, 15, 16, 17, 24, 26, 28,
                                        25, 27, 29}));
  state.init.stored[1].digest ^= 1;
  EXPECT_EQ(writeInitialState(state, {.payload = payload}, *pool, sinkOf(values)).error().code(),
            ErrorCode::BadInput);
  // The first rows of a tensor, in their place: the digest is that of all of it.
  State first = makeState(
      {2, 2}, storedAt(Init::Kind::Payload, 96, XXH3_64bits(payload.data() + 96, 24), {3, 2}));
  first.sources = {{"v", {}}};
  values.resize(4);
  ASSERT_TRUE(writeInitialState(first, {.payload = payload}, *pool, sinkOf(values)).ok());
  EXPECT_EQ(values, (std::vector<float>{24, 25, 26, 27}));
}

TEST(InitialState, PiecesAreCutAsStagingMemoryIs) {
  // 3 MiB and more: a device without a window takes them in parts that end within a row.
  auto pool = ThreadPool::create(1).take();
  constexpr int64_t rows = 1203, columns = 701, cut = 400;
  std::vector<float> stored(rows * columns);
  std::iota(stored.begin(), stored.end(), 0.0f);
  const std::string_view payload(reinterpret_cast<char*>(stored.data()), stored.size() * 4);
  State state = makeState({rows, columns},
                          storedAt(Init::Kind::Payload, 0,
                                   XXH3_64bits(payload.data(), payload.size()), {columns, rows}));
  state.sources = {
      {"w", {.at = {}, .from = {}, .extent = {cut, columns}, .dims = {1, 0}}},
      {"w", {.at = {cut, 0}, .from = {0, cut}, .extent = {rows - cut, columns}, .dims = {1, 0}}}};
  testing::NullDevice device(state.bytes);
  Program program;
  StateAccess access(program, device);
  const Place place{0, state.bytes, state.dtype, state.shape};
  ASSERT_TRUE(writeInitialState(state, {.payload = payload}, *pool, access.sink(place)).ok());
  std::vector<float> values(stored.size());
  ASSERT_TRUE(access.read(place, 0, sinkOf(values)).ok());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      ASSERT_EQ(values[row * columns + column], stored[column * rows + row]);
}

TEST(InitialState, KnowsWhatItCannotDo) {
  auto pool = ThreadPool::create(1).take();
  std::vector<float> values(3);
  const State stored = makeState({2}, storedAt(Init::Kind::Payload, 0, 0, {2}));
  EXPECT_EQ(writeInitialState(stored, {}, *pool, sinkOf(values)).error().message(),
            "state 'layer.weight' of F32 [2] has 8 bytes, not 12");
  EXPECT_EQ(drawInitialState(stored, Part::whole({2}), 0, *pool, sinkOf(values)).error().message(),
            "no rule draws state 'layer.weight'");
}

TEST(InitialState, ExternalFilesAreFoundAndChecked) {
  auto pool = ThreadPool::create(1).take();
  const std::string directory = ::testing::TempDir() + "titan-weights";
  std::filesystem::create_directories(directory);
  std::vector<float> stored = {1, 2};
  std::ofstream(directory + "/w.bin", std::ios::binary)
      << "1234" << std::string((char*)stored.data(), 8);
  State state = makeState(
      {2}, storedAt(Init::Kind::External, 4, XXH3_64bits(stored.data(), 8), {2}, "w.bin"));
  std::vector<float> values(2);
  const std::span<char> out = sinkOf(values);
  ASSERT_TRUE(writeInitialState(state, {.weightsDirectory = directory}, *pool, out).ok());
  EXPECT_EQ(values, stored);
  state.init.stored[0].offset = 3;
  EXPECT_NE(writeInitialState(state, {.weightsDirectory = directory}, *pool, out)
                .error()
                .message()
                .find("changed"),
            std::string::npos);
  state.init.stored[0].offset = 8;
  EXPECT_NE(writeInitialState(state, {.weightsDirectory = directory}, *pool, out)
                .error()
                .message()
                .find("too short"),
            std::string::npos);
  state.init.stored[0].path = "none.bin";
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
  const Init init =
      storedAt(Init::Kind::Payload, 0, XXH3_64bits(payload.data(), payload.size()), {bytes / 4});
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
  const Init init = storedAt(Init::Kind::Payload, offset, XXH3_64bits(stored, bytes), {2});
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
