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
  manifest.program.target = "cpu";
  manifest.program.libraries = {{"cpu.gemm", {"generated", ""}}, {"libc", {"glibc", "2.36"}}};
  manifest.program.mesh = {{"replicate", 2}, {"shard", 1}};
  manifest.program.table = {
      {"fc.weight",
       StateKind::Param,
       "",
       DType::BF16,
       {3, 4},
       true,
       {"tied.weight"},
       {{"onnx::MatMul_1", {.at = {}, .from = {}, .extent = {2, 4}, .dims = {1, 0}}},
        {"W", {.at = {2, 0}, .from = {1, 0, 0}, .extent = {1, 4}, .dims = {1, 2}}}}},
      {"fc.weight", StateKind::Ema, "slow", DType::F32, {3, 4}, false, {}, {}},
      {"count", StateKind::Buffer, "", DType::I64, {2}, false, {}, {}},
      {"count", StateKind::Ema, "slow", DType::I64, {2}, false, {}, {}, /*isCopy=*/true}};
  manifest.init = {"w.safetensors", {"head.weight"}, {{"a.*", "b.*"}}, {"old.bias"},
                   {"fc.weight"},   {"slow"},        {"fast"}};
  manifest.files = {
      {"model/x.safetensors", 12, std::string(32, 'a'), {}},
      {"model/y", 5, std::string(32, 'b'), {{"model/y.chunks", std::string(32, 'c')}}}};
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
  expectRefused("\"version\": 2", "\"version\": 3",
                "version 3 was written by another Titan, this one reads versions 1 to 2");
  expectRefused("\"version\": 2", "\"version\": 0", "version 0");
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

TEST(Manifest, RefusesListsOfChunksThatLieElsewhere) {
  for (const char* path : {"y.chunks", "optimizer/y.chunks", "../y.chunks", "model/a/y.chunks", ""})
    expectRefused("model/y.chunks", path, "does not lie beside it");
  expectRefused(std::string(32, 'c'), std::string(31, 'c'), "digest");
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
  current.libraries["cpu.gemm"] = {"onednn", "2.6.3"};
  const std::string may = ": the bits of the continued run may differ";
  EXPECT_EQ(
      describeDifferences(saved, current),
      (std::vector<std::string>{"optimizer.lr was 0.001, is 0.01", "CPU was '', is 'znver4'" + may,
                                "cpu.gemm was 'generated', is 'onednn 2.6.3'" + may}));
}

TEST(Manifest, DescribesAnotherVersionOfALibrary) {
  ProgramInfo saved = sample().program;
  saved.libraries["cpu.gemm"] = {"onednn", "2.6.3"};
  ProgramInfo current = saved;
  current.libraries["cpu.gemm"].version = "3.1.0";
  current.libraries["libc"].version = "2.39";
  const std::string may = ": the bits of the continued run may differ";
  EXPECT_EQ(describeDifferences(saved, current),
            (std::vector<std::string>{"cpu.gemm was 'onednn 2.6.3', is 'onednn 3.1.0'" + may,
                                      "libc was 'glibc 2.36', is 'glibc 2.39'" + may}));
}

TEST(Manifest, KeepsTheAlgorithmsOfALibrary) {
  Manifest manifest = sample();
  manifest.program.libraries["cuda.gemm"] = {
      "cublaslt", "13.1.0", "a card, sm_90", {{"one", "00ff"}, {"two", "generated"}}};
  const Result<Manifest> read = parseManifest(toJson(manifest));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->program.libraries, manifest.program.libraries);
}

TEST(Manifest, DescribesNoChoiceForAnotherDevice) {
  ProgramInfo saved = sample().program;
  const ProgramInfo current = saved;
  saved.libraries["cuda.gemm"] = {"cublas", "12.4"};
  EXPECT_TRUE(describeDifferences(saved, current).empty());
  EXPECT_TRUE(describeDifferences(current, saved).empty());
  saved.libraries["cpu.attention"] = {"onednn", "2.6.3"};
  EXPECT_EQ(describeDifferences(saved, current).size(), 1u);
}

TEST(Manifest, DescribesAnotherMeshAndOtherKernels) {
  ProgramInfo saved = sample().program;
  saved.kernels = "aa";
  ProgramInfo current = saved;
  current.recipe = R"({"optimizer":{"lr":0.001},"mesh":{"axes":{"shard":2}}})";
  saved.recipe = R"({"optimizer":{"lr":0.001},"mesh":{"axes":{"shard":1}}})";
  current.mesh[1].ranks = 2;
  current.kernels = "bb";
  const std::string may = ": the bits of the continued run may differ";
  EXPECT_EQ(
      describeDifferences(saved, current),
      (std::vector<std::string>{"mesh was 'replicate 2, shard 1', is 'replicate 2, shard 2'" + may,
                                "the kernels' digest was 'aa', is 'bb'" + may}));
  // A checkpoint that does not know its kernels says nothing about them.
  current = saved;
  saved.kernels.clear();
  EXPECT_TRUE(describeDifferences(saved, current).empty());
}

constexpr const char* versionOne = R"({
  "format": "titan-checkpoint",
  "version": 1,
  "step": 100,
  "counters": { "samples": 6400, "step": 100 },
  "data": { "digest": "abcd", "length": 50000, "seed": -3 },
  "program": {
    "fingerprint": "f", "optimizer": "adamw", "model": "mlp.onnx",
    "recipe": { "optimizer": { "lr": 0.001 } },
    "target": "cpu", "cpu": "znver5", "compiler_version": "0.1.0",
    "libraries": { "gemm": "onednn" },
    "table": [
      { "name": "fc.weight", "shape": [3, 4], "dtype": "F32", "layout": "row-major",
        "kind": "param", "trainable": true, "aliases": [],
        "source_name": "onnx::MatMul_1", "source_layout": [1, 0] },
      { "name": "fc.bias", "shape": [3], "dtype": "F32", "layout": "row-major",
        "kind": "param", "trainable": true, "aliases": [],
        "source_name": "", "source_layout": [] },
      { "name": "fc.scale", "shape": [3, 4], "dtype": "F32", "layout": "row-major",
        "kind": "buffer", "trainable": false, "aliases": [],
        "source_name": "", "source_layout": [1, 0] }
    ]
  },
  "init": { "source": "", "fresh": [], "map": {} },
  "files": [ { "path": "model/x", "bytes": 12, "xxh3_128": "0123456789abcdef0123456789abcdef" } ]
})";

TEST(Manifest, OfVersion1IsRead) {
  const auto manifest = parseManifest(sealManifest(versionOne));
  ASSERT_TRUE(manifest.ok()) << manifest.error().message();
  const ProgramInfo& program = manifest->program;
  EXPECT_EQ(program.libraries, (Libraries{{"cpu.gemm", {"onednn", ""}}}));
  const Piece dims = {.at = {}, .from = {}, .extent = {}, .dims = {1, 0}};
  EXPECT_EQ(program.table[0].sources, (std::vector<TensorSource>{{"onnx::MatMul_1", dims}}));
  EXPECT_TRUE(program.table[1].sources.empty());
  EXPECT_EQ(program.table[2].sources, (std::vector<TensorSource>{{"fc.scale", dims}}));
  EXPECT_TRUE(program.mesh.empty() && program.kernels.empty());
  EXPECT_EQ(manifest->counters.at("samples"), 6400);
  // What it does not know differs from nothing.
  ProgramInfo current = program;
  current.libraries = {{"cpu.gemm", {"onednn", "2.6.3"}}, {"libc", {"glibc", "2.36"}}};
  current.mesh = Recipe().mesh.axes;
  EXPECT_TRUE(describeDifferences(program, current).empty());
  current.libraries["cpu.gemm"].library = "generated";
  EXPECT_EQ(describeDifferences(program, current).size(), 1u);
  // Written again, it is of the current version and says the same.
  EXPECT_EQ(*parseManifest(toJson(*manifest)), *manifest);
}

/// What was written before there were pieces: the whole, permuted or alike.
TEST(Manifest, SourcesWithoutPiecesAreRead) {
  std::string text = versionOne;
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
  };
  replace("\"version\": 1", "\"version\": 2, \"mesh\": []");
  replace("{ \"gemm\": \"onednn\" }", "{ \"cpu.gemm\": { \"library\": \"onednn\" } }");
  replace("\"source_name\": \"onnx::MatMul_1\", \"source_layout\": [1, 0]",
          "\"sources\": [{ \"initializer\": \"onnx::MatMul_1\", \"dims\": [1, 0] }]");
  replace("\"source_name\": \"\", \"source_layout\": []",
          "\"sources\": [{ \"initializer\": \"7\" }]");
  replace("\"source_name\": \"\", \"source_layout\": [1, 0]", "\"sources\": []");
  const auto manifest = parseManifest(sealManifest(text));
  ASSERT_TRUE(manifest.ok()) << manifest.error().message();
  const auto& table = manifest->program.table;
  const Piece dims = {.at = {}, .from = {}, .extent = {}, .dims = {1, 0}};
  EXPECT_EQ(table[0].sources, (std::vector<TensorSource>{{"onnx::MatMul_1", dims}}));
  EXPECT_EQ(table[1].sources, (std::vector<TensorSource>{{"7", {}}}));
  EXPECT_TRUE(table[2].sources.empty());
}

TEST(Manifest, RefusesPiecesThatDoNotMakeUpTheTensor) {
  const std::string text = toJson(sample());
  const auto edited = [&](const char* key, int occurrence, const char* values) {
    // The members are written with a number a line: replaces the list of the n-th `key`.
    std::string body = text.substr(0, text.rfind(",\n")) + "\n}";
    size_t at = body.find("\"sources\": [");
    for (int i = 0; i < occurrence; ++i)
      at = body.find('"' + std::string(key) + "\": [", at + 1);
    const size_t begin = body.find('[', at), end = body.find(']', at);
    auto manifest = parseManifest(sealManifest(body.replace(begin, end + 1 - begin, values)));
    return manifest.ok() ? "" : manifest.error().message();
  };
  EXPECT_EQ(edited("at", 1, "[2, 0]"), "");
  EXPECT_NE(
      edited("at", 1, "[1, 0]").find("field 'sources' of 'fc.weight': they overlap at [1, 0]"),
      std::string::npos);
  EXPECT_NE(edited("extent", 1, "[1, 4]").find("they leave 4 of 12 elements out"),
            std::string::npos);
  EXPECT_NE(edited("at", 1, "[3, 0]")
                .find("a piece of 'W' at [3, 0] of extent [1, 4] leaves the "
                      "state [3, 4]"),
            std::string::npos);
  EXPECT_NE(edited("dims", 2, "[1, 3]").find("dims [1, 3], but needs different dimensions"),
            std::string::npos);
  EXPECT_NE(edited("from", 1, "[-1, 0, 0]").find("'from'"), std::string::npos);
}

TEST(Manifest, IgnoresMembersThatItDoesNotKnow) {
  for (const char* place : {"\"format\":", "\"digest\": \"abcd\"", "\"fingerprint\":", "\"shape\":",
                            "\"initializer\": \"onnx::MatMul_1\"", "\"ranks\": 2",
                            "\"source\":", "\"bytes\": 12", "\"library\": \"generated\""}) {
    const auto manifest = parseEdited(place, "\"later\": [{ \"a\": 1 }], " + std::string(place));
    ASSERT_TRUE(manifest.ok()) << place << ": " << manifest.error().message();
    EXPECT_EQ(*manifest, sample()) << place;
  }
}

TEST(Manifest, RefusesCopiesOfNothing) {
  expectRefused("\"copy\": true", "\"copy\": 1", "'copy'");
  expectRefused("\"kind\": \"buffer\"", "\"kind\": \"buffer\", \"copy\": true",
                "field 'copy' of 'count': a buffer is no copy");
  expectRefused("\"kind\": \"buffer\"", "\"kind\": \"slot\"",
                "field 'copy' of 'count': the model has no I64 [2] of that name");
}

TEST(Manifest, RefusesImpossibleRowsAndChoices) {
  expectRefused("\"profile\": \"slow\"", "\"profile\": \"../x\"",
                "'profile' of 'fc.weight' is '../x'");
  expectRefused("\"profile\": \"slow\"", "\"profile\": \"\"", "'profile'");
  expectRefused("\"profile\": \"slow\"", "\"profil\": \"slow\"", "no field 'profile'");
  expectRefused("\"kind\": \"ema\"", "\"kind\": \"param\"", "'table' names 'fc.weight' twice");
  expectRefused("\"kind\": \"ema\"", "\"kind\": \"buffer\"", "'table' names 'fc.weight' twice");
  expectRefused("\"kind\": \"ema\"", "\"kind\": \"average\"", "no kind of state");
  expectRefused("\"ranks\": 2", "\"ranks\": 0", "'ranks' of axis 'replicate' is 0");
  expectRefused("\"library\": \"generated\"", "\"library\": 3", "'library'");
  expectRefused("\"initializer\": \"onnx::MatMul_1\"", "\"initializer\": null", "'initializer'");
}

} // namespace
} // namespace titan::checkpoint
