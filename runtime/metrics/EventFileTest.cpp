#include "runtime/metrics/EventFile.h"

#include "runtime/metrics/Crc32c.h"

#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

namespace titan {
namespace {

uint64_t littleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    value |= uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
  return value;
}

/// The data of each frame, its two check sums verified as TensorFlow's RecordReader does.
std::vector<std::string> readFrames(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<std::string> frames;
  const auto masked = [](std::string_view data) {
    const uint32_t crc = crc32c(data);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
  };
  for (std::string_view rest = text; !rest.empty();) {
    if (rest.size() < 16) {
      ADD_FAILURE() << "a frame is cut";
      break;
    }
    const uint64_t length = littleEndian(rest.substr(0, 8));
    EXPECT_EQ(littleEndian(rest.substr(8, 4)), masked(rest.substr(0, 8)));
    const std::string_view data = rest.substr(12, length);
    EXPECT_EQ(littleEndian(rest.substr(12 + length, 4)), masked(data));
    frames.emplace_back(data);
    rest.remove_prefix(16 + length);
  }
  return frames;
}

/// The fields of a protobuf message: number -> values; a varint or fixed value as its bits, bytes
/// as they are.
struct Message {
  std::multimap<uint32_t, uint64_t> numbers;
  std::multimap<uint32_t, std::string> strings;

  explicit Message(std::string_view bytes) {
    while (!bytes.empty()) {
      const uint64_t tag = varint(bytes);
      const auto field = static_cast<uint32_t>(tag >> 3);
      switch (tag & 7) {
      case 0:
        numbers.emplace(field, varint(bytes));
        break;
      case 1:
        numbers.emplace(field, littleEndian(bytes.substr(0, 8)));
        bytes.remove_prefix(8);
        break;
      case 5:
        numbers.emplace(field, littleEndian(bytes.substr(0, 4)));
        bytes.remove_prefix(4);
        break;
      case 2: {
        const uint64_t length = varint(bytes);
        strings.emplace(field, bytes.substr(0, length));
        bytes.remove_prefix(length);
        break;
      }
      default:
        ADD_FAILURE() << "wire type " << (tag & 7);
        return;
      }
    }
  }

private:
  static uint64_t varint(std::string_view& bytes) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(0));
      bytes.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80)
        return value;
    }
  }
};

class EventFileTest : public testing::Test {
protected:
  void SetUp() override { std::filesystem::create_directories(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string directory_ = testing::TempDir() + "event_file_" + std::to_string(::getpid()) + "_" +
                           testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST(Crc32c, KnownAnswers) { // RFC 3720, B.4
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST_F(EventFileTest, ScalarsCanBeDecoded) {
  auto file = EventFile::create(directory_, 0);
  ASSERT_TRUE(file.ok()) << file.error().message();
  StepMetrics metrics;
  metrics.step = 300;
  metrics.loss = 1.5f;
  metrics.lr = 0.001f;
  metrics.gradNorm = 2.25f;
  metrics.samples = 64;
  metrics.seconds = 0.5;
  ASSERT_TRUE(file->write(metrics).ok());

  const auto frames = readFrames(file->path());
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(Message(frames[0]).strings.find(3)->second, "brain.Event:2");
  const Message event(frames[1]);
  EXPECT_EQ(event.numbers.find(2)->second, 300u);
  EXPECT_GT(std::bit_cast<double>(event.numbers.find(1)->second), 1.6e9);
  const Message summary(event.strings.find(5)->second);
  std::map<std::string, float> values;
  for (const auto& [field, bytes] : summary.strings) {
    const Message value(bytes);
    values[value.strings.find(1)->second] =
        std::bit_cast<float>(static_cast<uint32_t>(value.numbers.find(2)->second));
  }
  const std::map<std::string, float> expected = {{"train/loss", 1.5f},
                                                 {"train/lr", 0.001f},
                                                 {"train/grad_norm", 2.25f},
                                                 {"train/samples_per_second", 128.0f}};
  EXPECT_EQ(values, expected);
}

TEST_F(EventFileTest, LongTagsKeepTheirLength) {
  auto file = EventFile::create(directory_, 0);
  ASSERT_TRUE(file.ok());
  const std::string tag(300, 't');
  const EventScalar scalars[] = {{tag, 7.0f}, {"short", 8.0f}};
  ASSERT_TRUE(file->write(1, scalars).ok());
  const Message event(readFrames(file->path()).at(1));
  const Message summary(event.strings.find(5)->second);
  ASSERT_EQ(summary.strings.count(1), 2u);
  EXPECT_EQ(Message(summary.strings.find(1)->second).strings.find(1)->second, tag);
}

TEST_F(EventFileTest, ResumeStartsASession) {
  auto file = EventFile::create(directory_, 41);
  ASSERT_TRUE(file.ok());
  const Message event(readFrames(file->path()).at(1));
  EXPECT_EQ(event.numbers.find(2)->second, 42u);
  EXPECT_EQ(Message(event.strings.find(7)->second).numbers.find(1)->second, 1u);
}

TEST_F(EventFileTest, MissingDirectoryIsEnvironment) {
  auto file = EventFile::create(directory_ + "/missing", 0);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), ErrorCode::Environment);
}

} // namespace
} // namespace titan
