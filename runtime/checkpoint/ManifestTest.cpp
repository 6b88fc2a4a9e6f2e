#include "runtime/checkpoint/Manifest.h"

#include "runtime/checkpoint/StrictJson.h"

#include <gtest/gtest.h>

namespace titan::checkpoint {
namespace {

Manifest sample() {
  Manifest manifest;
  manifest.step = 100;
  manifest.counters = {{"step", 100}, {"samples", 6400}};
  manifest.data = {"abcd", 50000, -3};
  manifest.program.fingerprint = "f";
  manifest.program.optimizer = "adamw";
  manifest.program.recipe = R"({"optimizer":{"lr":0.001}})";
  manifest.program.libraries = {{"gemm", "generated"}};
  manifest.program.table = {{"fc.weight",
                             StateKind::Param,
                             "",
                             DType::BF16,
                             {3, 4},
                             true,
                             {"tied.weight"},
                             "onnx::MatMul_1",
                             {1, 0}}};
  manifest.init = {"w.safetensors", {"head.weight"}, {{"a.*", "b.*"}}};
  manifest.files = {{"model/x.safetensors", 12, std::string(32, 'a')}};
  return manifest;
}

/// The sample with one edit of its text, sealed anew.
Result<Manifest> parseEdited(const std::string& from, const std::string& to) {
  std::string text = toJson(sample());
  text = text.substr(0, text.rfind(",\n")) + "\n}";
  const size_t position = text.find(from);
  EXPECT_NE(position, std::string::npos) << from;
  return parseManifest(sealManifest(text.replace(position, from.size(), to)));
}

void expectRefused(const std::string& from, const std::string& to, const std::string& reason) {
  auto manifest = parseEdited(from, to);
  ASSERT_FALSE(manifest.ok()) << "expected: " << reason;
  EXPECT_EQ(manifest.error().code(), ErrorCode::BadInput);
  EXPECT_NE(manifest.error().message().find(reason), std::string::npos)
      << manifest.error().message();
}

TEST(Manifest, ReadsWhatItWrites) {
  auto manifest = parseManifest(toJson(sample()));
  ASSERT_TRUE(manifest.ok()) << manifest.error().message();
  EXPECT_EQ(*manifest, sample());
}

TEST(Manifest, NoticesEveryChangedByte) {
  const std::string text = toJson(sample());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1;
    EXPECT_FALSE(parseManifest(damaged).ok()) << "byte " << i;
    EXPECT_FALSE(parseManifest(text.substr(0, i)).ok()) << "cut at " << i;
  }
  EXPECT_FALSE(parseManifest(text + "\n").ok());
}

TEST(Manifest, SaysWhichDigestItExpectedAndFound) {
  std::string text = toJson(sample());
  text[text.find("6400")] = '7';
  auto manifest = parseManifest(text);
  ASSERT_FALSE(manifest.ok());
  EXPECT_TRUE(manifest.error().message().starts_with("expected digest "))
      << manifest.error().message();
  EXPECT_NE(manifest.error().message().find(", found "), std::string::npos);
}

TEST(Manifest, RefusesWhatItDoesNotKnow) {
  expectRefused("titan-checkpoint", "other", "'format'");
  expectRefused("\"version\": 1", "\"version\": 2", "version 2");
  expectRefused("\"step\": 100", "\"step\": -1", "'step'");
  expectRefused("\"step\": 100", "\"step\": 1e3", "'step'");
  expectRefused("\"step\": 100", "\"step\": 9223372036854775808", "too large");
  expectRefused("\"samples\": 6400", "\"samples\": -1", "counter 'samples'");
  expectRefused("\"samples\": 6400", "\"step\": 6400", "'step' twice");
  expectRefused("\"kind\": \"param\"", "\"kind\": \"weight\"", "'kind'");
  expectRefused("\"BF16\"", "\"BF17\"", "BF17");
  expectRefused("row-major", "col-major", "'layout'");
  expectRefused("\"trainable\": true", "\"trainable\": 1", "'trainable'");
  expectRefused("\"counters\"", "\"kounters\"", "'counters'");
}

TEST(Manifest, RefusesPathsThatLeaveTheCheckpoint) {
  for (const char* path :
       {"/etc/passwd", "../x", "model/../../x", "./x", "a//b", "", "a/", "..", "a\\u0000b"})
    expectRefused("model/x.safetensors", path, "leaves the checkpoint");
}

TEST(Manifest, RefusesImpossibleFiles) {
  expectRefused("\"bytes\": 12", "\"bytes\": -12", "'bytes'");
  expectRefused(std::string(32, 'a'), std::string(31, 'a'), "digest");
  expectRefused(std::string(32, 'a'), std::string(32, 'A'), "digest");
}

TEST(Manifest, DescribesWhatDiffersFromTheRunThatWroteIt) {
  const ProgramInfo saved = sample().program;
  EXPECT_TRUE(describeDifferences(saved, saved).empty());
  ProgramInfo current = saved;
  current.recipe = R"({"optimizer":{"lr":0.01}})";
  current.cpu = "znver4";
  current.libraries = {{"gemm", "onednn"}};
  EXPECT_EQ(describeDifferences(saved, current),
            (std::vector<std::string>{
                "optimizer.lr was 0.001, is 0.01",
                "CPU was '', is 'znver4': the bits of the continued run may differ",
                "gemm was 'generated', is 'onednn': the bits of the continued run may differ"}));
}

} // namespace
} // namespace titan::checkpoint
