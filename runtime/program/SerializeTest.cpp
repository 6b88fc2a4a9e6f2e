#include "runtime/program/testing/ExampleProgram.h"

#include <gtest/gtest.h>

#include <random>

namespace titan {
namespace {

using testing::exampleProgram;

TEST(Serialize, RoundTrip) {
  const Program program = exampleProgram();
  const auto read = deserialize(serialize(program));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, program);
  EXPECT_EQ(serialize(*read), serialize(program));
  EXPECT_EQ(fingerprint(program).size(), 32u);
}

TEST(Serialize, FingerprintSeesEveryField) {
  const Program program = exampleProgram();
  Program other = program;
  other.functions[0].commands[2].operands[0].address.terms[0].stride += 4;
  EXPECT_NE(fingerprint(other), fingerprint(program));
}

TEST(Serialize, EveryTruncationIsRefused) {
  const std::string bytes = serialize(exampleProgram());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto read = deserialize(std::string_view(bytes).substr(0, length));
    ASSERT_FALSE(read.ok()) << length;
    EXPECT_EQ(read.error().code(), ErrorCode::BadInput);
  }
}

TEST(Serialize, TrailingBytesAreRefused) {
  const auto read = deserialize(serialize(exampleProgram()) + '\0');
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message(), "damaged program: 1 bytes follow its end");
}

TEST(Serialize, AnotherVersionIsRefused) {
  std::string bytes = serialize(exampleProgram());
  bytes[8] = 77;
  const auto read = deserialize(bytes);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message(), "the program has format version 77, this build reads version "
                                    "8: compile the model again");
}

TEST(Serialize, ErrorsNameTheField) {
  const std::string bytes = serialize(exampleProgram());
  const auto read = deserialize(std::string_view(bytes).substr(0, bytes.size() - 49));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message(),
            "damaged program: functions[0].modelFlops: needs 8 bytes, 7 are left");
}

TEST(Serialize, RandomDamageNeverCrashes) {
  const std::string bytes = serialize(exampleProgram());
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    // What is read has one form: either refused, or the very bytes it was read from.
    if (const auto read = deserialize(damaged); read.ok())
      ASSERT_EQ(serialize(*read), damaged);
  }
}

TEST(Serialize, HugeCountsTakeNoMemory) {
  std::string bytes = serialize(exampleProgram());
  for (size_t i = 12; i < 20; ++i) // the length of the first string
    bytes[i] = '\x7f';
  EXPECT_FALSE(deserialize(bytes).ok());
}

TEST(Dump, ShowsCommandsWithTheirLoops) {
  const std::string text = dump(exampleProgram());
  EXPECT_NE(text.find("function step model flops 401408\n"), std::string::npos);
  EXPECT_NE(text.find("repeat 4"), std::string::npos);
  EXPECT_NE(text.find("staging at 950272, 4096 bytes\n"), std::string::npos);
  EXPECT_NE(text.find("collective #0 all_reduce by rank over replicate, shard : F32 [1, 100], "
                      "I64 [1, 1] : fc, count\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("update   start collective #0 (950272 : 400, 950720 : 8, out 960000 : 400, "
                      "out 960448 : 8)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("update   wait for collective #0 (950272"), std::string::npos);
  EXPECT_NE(text.find("library #0 (600000 + 50176*i0 : 200704, 0 : 401408, out 900000 : 32768, "
                      "401408 : 512) units 2"),
            std::string::npos)
      << text;
}

TEST(Program, Find) {
  const Program program = exampleProgram();
  EXPECT_EQ(program.findFunction("step"), &program.functions[0]);
  EXPECT_EQ(program.findFunction("eval"), nullptr);
  EXPECT_EQ(program.findState("fc.weight"), &program.states[0]);
  EXPECT_EQ(program.findState("tied.weight"), nullptr);
}

} // namespace
} // namespace titan
