#include "runtime/checkpoint/Safetensors.h"

#include <gtest/gtest.h>

namespace titan::checkpoint {
namespace {

/// A file of header `json`, padded, and `dataBytes` of data.
std::string file(std::string json, size_t dataBytes) {
  json.append((8 - json.size() % 8) % 8, ' ');
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes.push_back(static_cast<char>(json.size() >> (8 * i)));
  return bytes + json + std::string(dataBytes, 'x');
}

Result<SafetensorsHeader> parse(const std::string& bytes) {
  return parseSafetensorsHeader(bytes, static_cast<int64_t>(bytes.size()));
}

void expectRefused(const std::string& bytes, const std::string& reason) {
  auto header = parse(bytes);
  ASSERT_FALSE(header.ok()) << "expected: " << reason;
  EXPECT_EQ(header.error().code(), ErrorCode::BadInput);
  EXPECT_NE(header.error().message().find(reason), std::string::npos) << header.error().message();
}

TEST(Safetensors, ReadsWhatItWrites) {
  std::vector<SafetensorsEntry> entries(3);
  entries[0].name = "a \"quoted\" name";
  entries[0].shape = {2, 3};
  entries[1].name = "empty";
  entries[1].shape = {0, 7};
  entries[2].name = "scalar";
  entries[2].dtype = DType::BF16;
  std::string bytes = formatSafetensorsHeader(entries, {{"format", "pt"}}, true);
  EXPECT_EQ(bytes.size() % 8, 0u);
  bytes.append(26, '\0');
  auto header = parse(bytes);
  ASSERT_TRUE(header.ok()) << header.error().message();
  ASSERT_EQ(header->entries.size(), 3u);
  for (SafetensorsEntry& entry : entries)
    entry.offsets.assign(entry.shape.size(), 0);
  EXPECT_EQ(header->entries, entries);
  EXPECT_EQ(header->metadata.at("format"), "pt");
  EXPECT_EQ(header->metadata.at("DCP_VERSION"), "1.0");
}

TEST(Safetensors, ReadsAnEmptyFile) {
  auto header = parse(file("{}", 0));
  ASSERT_TRUE(header.ok());
  EXPECT_TRUE(header->entries.empty());
}

TEST(Safetensors, RefusesAnImpossibleHeaderLength) {
  expectRefused("", "too few");
  expectRefused("1234567", "too few");
  expectRefused(std::string("\x02\0\0\0\0\0\0\0", 8), "the file has 8 bytes");
  expectRefused(std::string(8, '\xff'), "at most 100000000");
  std::string oversized("\x01\xe1\xf5\x05\0\0\0\0{}", 10); // 100,000,001
  expectRefused(oversized, "at most 100000000");
}

TEST(Safetensors, RefusesAHeaderThatIsNoStrictJson) {
  expectRefused(file(" {}", 0), "start with '{'");
  expectRefused(file("[]", 0), "start with '{'");
  expectRefused(file("{", 0), "not valid JSON");
  expectRefused(file("{} {}", 0), "not valid JSON");
  expectRefused(file("{\"a\":\xff}", 0), "not valid JSON");
  expectRefused(file(R"({"a":)" + std::string(100, '[') + std::string(100, ']') + "}", 0),
                "deeper");
  expectRefused(file(R"({"a":)" + std::string(1 << 20, '['), 0), "deeper");
  const std::string tensor = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  expectRefused(file("{" + tensor + "," + tensor + "}", 1), "'a' twice");
  expectRefused(file(R"({"__metadata__":{"k":"v","k":"w"}})", 0), "'k' twice");
  expectRefused(file(R"({"__metadata__":{"k":1}})", 0), "'k' is not a string");
  expectRefused(file(R"({"__metadata__":"v"})", 0), "__metadata__ is not an object");
}

TEST(Safetensors, RefusesAWrongTensor) {
  const auto tensor = [](const std::string& fields, size_t bytes) {
    return file(R"({"a":{)" + fields + "}}", bytes);
  };
  expectRefused(file(R"({"a":1})", 0), "tensor 'a'");
  expectRefused(tensor(R"("shape":[1],"data_offsets":[0,1])", 1), "'dtype'");
  expectRefused(tensor(R"("dtype":"U8","data_offsets":[0,1])", 1), "'shape'");
  expectRefused(tensor(R"("dtype":"U8","shape":[1])", 1), "'data_offsets'");
  expectRefused(tensor(R"("dtype":"U9","shape":[1],"data_offsets":[0,1])", 1), "tensor 'a'");
  expectRefused(tensor(R"("dtype":"U8","shape":[1],"data_offsets":[0,1],"x":0)", 1), "'x'");
  expectRefused(tensor(R"("dtype":"U8","shape":[-1],"data_offsets":[0,1])", 1), "-1");
  expectRefused(tensor(R"("dtype":"U8","shape":[1.0],"data_offsets":[0,1])", 1), "1.0");
  expectRefused(tensor(R"("dtype":"U8","shape":["1"],"data_offsets":[0,1])", 1), "string");
  expectRefused(tensor(R"("dtype":"U8","shape":[1],"data_offsets":[1,0])", 1), "[begin, end]");
  expectRefused(tensor(R"("dtype":"U8","shape":[1],"data_offsets":[0,1,2])", 1), "[begin, end]");
  expectRefused(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,3])", 3), "takes 4 bytes");
  expectRefused(tensor(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0])", 0),
                "overflows");
  expectRefused(tensor(R"("dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,0])", 0),
                "no size");
}

TEST(Safetensors, RefusesHolesOverlapsAndSlack) {
  const auto two = [](int64_t begin, int64_t end, size_t bytes) {
    return file(fmt::format(R"({{"a":{{"dtype":"U8","shape":[2],"data_offsets":[0,2]}},)"
                            R"("b":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}}}})",
                            end - begin, begin, end),
                bytes);
  };
  EXPECT_TRUE(parse(two(2, 4, 4)).ok());
  expectRefused(two(3, 5, 5), "tensor 'b' begins at byte 3");
  expectRefused(two(1, 3, 3), "tensor 'b' begins at byte 1");
  expectRefused(two(2, 4, 3), "the file holds 3");
  expectRefused(two(2, 4, 5), "the file holds 5");
  expectRefused(file(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3),
                "begins at byte 1");
}

TEST(Safetensors, RefusesWrongShardingInfo) {
  const auto sharded = [](const std::string& info) {
    return file(R"({"__metadata__":{"DCP_SHARDING_INFO":")" + info +
                    R"("},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                2);
  };
  auto header = parse(sharded(R"({\"a\":{\"saved_offsets\":[4]}})"));
  ASSERT_TRUE(header.ok()) << header.error().message();
  EXPECT_EQ(header->entries[0].offsets, Shape{4});
  expectRefused(sharded("nonsense"), "not valid JSON");
  expectRefused(sharded("{}"), "'a'");
  expectRefused(sharded(R"({\"a\":{}})"), "saved_offsets");
  expectRefused(sharded(R"({\"a\":{\"saved_offsets\":[4,4]}})"), "do not fit");
  expectRefused(sharded(R"({\"a\":{\"saved_offsets\":[9223372036854775807]}})"), "overflow");
}

} // namespace
} // namespace titan::checkpoint
