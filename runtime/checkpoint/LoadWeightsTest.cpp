#include "runtime/checkpoint/Safetensors.h"
#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/SampleState.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

namespace titan::checkpoint {
namespace {

struct Piece {
  std::string name;
  Shape shape, offsets;
  std::string bytes;
  DType dtype = DType::U8;
};

std::string bytesOf(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string bytesOfHalves(const std::vector<uint16_t>& halves) {
  return {reinterpret_cast<const char*>(halves.data()), halves.size() * sizeof(uint16_t)};
}

/// State of parameters, U8 where nothing is said, and files for it.
class LoadWeights : public testing::Test {
protected:
  LoadWeights() { state_.program.table.clear(); }

  void want(const std::string& name, Shape shape, std::vector<std::string> aliases = {},
            DType dtype = DType::U8) {
    state_.add(name, StateKind::Param, dtype, std::move(shape), std::move(aliases));
  }

  void writeFile(const std::string& path, const std::string& bytes) {
    auto file = env_.createFile(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->append(bytes).ok());
  }

  void write(const std::string& path, const std::vector<Piece>& pieces) {
    std::vector<SafetensorsEntry> entries;
    std::string data;
    bool sharded = false;
    for (const Piece& piece : pieces) {
      SafetensorsEntry entry;
      entry.name = piece.name;
      entry.dtype = piece.dtype;
      entry.shape = piece.shape;
      entry.offsets = piece.offsets;
      sharded |= !piece.offsets.empty();
      entries.push_back(std::move(entry));
      data += piece.bytes;
    }
    writeFile(path, formatSafetensorsHeader(entries, {}, sharded) + data);
  }

  Result<InitReport> run(const std::string& path) {
    request_.destinations = state_.destinations();
    return loadWeights(path, request_, env_);
  }

  void expectRefused(const std::string& path, const std::string& reason) {
    const SampleState before = state_;
    auto report = run(path);
    ASSERT_FALSE(report.ok()) << "expected: " << reason;
    EXPECT_EQ(report.error().code(), ErrorCode::BadInput);
    EXPECT_NE(report.error().message().find(reason), std::string::npos) << report.error().message();
    EXPECT_TRUE(state_ == before);
  }

  CrashEnv env_;
  SampleState state_;
  InitRequest request_;
};

TEST_F(LoadWeights, OfOneFile) {
  want("a", {2});
  want("b", {});
  write("w.safetensors", {{"a", {2}, {}, "xy"}, {"b", {}, {}, "z"}});
  auto report = run("w.safetensors");
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(state_.bytes("a"), "xy");
  EXPECT_EQ(state_.bytes("b"), "z");
  EXPECT_EQ(report->init.source, "w.safetensors");
}

TEST_F(LoadWeights, OfACheckpointTakesTheModelOnly) {
  SampleState saved(5), state(77);
  auto store = CheckpointStore::open("run", env_);
  ASSERT_TRUE(store->save(saved.saveRequest(1), 2).ok());
  auto report = loadWeights("run/checkpoints/step-00000001", state.initRequest(), env_);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(state.bytes("fc1.weight"), saved.bytes("fc1.weight"));
  EXPECT_EQ(state.bytes("norm.count"), saved.bytes("norm.count"));
  EXPECT_EQ(state.bytes("fc1.weight.exp_avg"), SampleState(77).bytes("fc1.weight.exp_avg"));
  EXPECT_EQ(state.bytes("step"), SampleState(77).bytes("step"));
  // The model's folder alone is what Hugging Face has, too.
  SampleState again(77);
  EXPECT_TRUE(loadWeights("run/checkpoints/step-00000001/model", again.initRequest(), env_).ok());
  EXPECT_TRUE(again == state);
}

TEST_F(LoadWeights, OfAHuggingFaceIndex) {
  want("a", {1});
  want("b", {1});
  write("1.safetensors", {{"a", {1}, {}, "x"}});
  write("2.safetensors", {{"b", {1}, {}, "y"}});
  writeFile(
      "model.safetensors.index.json",
      R"({"metadata":{"total_size":2},"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  for (const char* path : {"model.safetensors.index.json", "."}) {
    state_.refill(1);
    auto report = run(path);
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_EQ(state_.bytes("a") + state_.bytes("b"), "xy");
  }
}

TEST_F(LoadWeights, RefusesAnIndexThatDoesNotFitItsFiles) {
  want("a", {1});
  write("1.safetensors", {{"a", {1}, {}, "x"}});
  writeFile("1.json", R"({"weight_map":{"a":"../1.safetensors"}})");
  writeFile("2.json", R"({"weight_map":{"a":"1.safetensors","b":"1.safetensors"}})");
  writeFile("3.json", R"({"weight_map":{}, "weight_map":{}})");
  writeFile("4.json", R"({"weight_map":{"b":"1.safetensors"}})");
  writeFile("5.json", R"({"weight_map":{"a":"2.safetensors"}})");
  expectRefused("1.json", "'../1.safetensors'");
  expectRefused("2.json", "does not hold tensor 'b'");
  expectRefused("3.json", "twice");
  expectRefused("4.json", "holds tensor 'a', which the index does not map to it");
  expectRefused("5.json", "2.safetensors");
}

TEST_F(LoadWeights, PutsPiecesTogether) {
  std::string whole(4 * 5 * 3, '\0');
  std::iota(whole.begin(), whole.end(), '\0');
  want("t", {4, 5, 3});
  const auto box = [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    std::string bytes;
    for (int64_t i = i0; i < i1; ++i)
      bytes +=
          whole.substr(static_cast<size_t>((i * 5 + j0) * 3), static_cast<size_t>((j1 - j0) * 3));
    return Piece{"t", {i1 - i0, j1 - j0, 3}, {i0, j0, 0}, bytes};
  };
  ASSERT_TRUE(env_.makeDirectory("d").ok());
  write("d/1.safetensors", {box(0, 4, 0, 2)});
  write("d/2.safetensors", {box(0, 3, 2, 5)});
  expectRefused("d", "hold 51 elements");
  write("d/3.safetensors", {box(3, 4, 2, 5)});
  auto report = run("d");
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(state_.bytes("t"), whole);
  write("d/4.safetensors", {box(0, 1, 0, 1)});
  expectRefused("d", "63 elements");
}

TEST_F(LoadWeights, RefusesPiecesThatOverlapButAddUp) {
  want("t", {4});
  ASSERT_TRUE(env_.makeDirectory("d").ok());
  write("d/1.safetensors", {{"t", {2}, {0}, "ab"}});
  write("d/2.safetensors", {{"t", {1}, {1}, "c"}});
  write("d/3.safetensors", {{"t", {1}, {3}, "d"}});
  expectRefused("d", "overlap");
}

TEST_F(LoadWeights, RefusesATensorThatIsInTwoFilesWhole) {
  want("t", {1});
  ASSERT_TRUE(env_.makeDirectory("d").ok());
  write("d/1.safetensors", {{"t", {1}, {}, "a"}});
  write("d/2.safetensors", {{"t", {1}, {}, "a"}});
  expectRefused("d", "in another file too");
}

TEST_F(LoadWeights, StripsWrapperSegmentsWithANote) {
  want("fc1.weight", {1});
  want("fc2.weight", {1});
  want("fc3.weight", {1});
  write("w.safetensors", {{"_orig_mod.module.fc1.weight", {1}, {}, "x"},
                          {"module.fc2._checkpoint_wrapped_module.weight", {1}, {}, "y"},
                          {"fc3.module.weight", {1}, {}, "z"}});
  auto report = run("w.safetensors");
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(state_.bytes("fc1.weight") + state_.bytes("fc2.weight") + state_.bytes("fc3.weight"),
            "xyz");
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_NE(report->notes[0].find("3 name(s)"), std::string::npos) << report->notes[0];
}

TEST_F(LoadWeights, TakesATiedSetUnderAnyOrAllOfItsNamesIfTheyAgree) {
  want("embed", {1}, {"head"});
  write("alias.safetensors", {{"head", {1}, {}, "x"}});
  EXPECT_TRUE(run("alias.safetensors").ok());
  EXPECT_EQ(state_.bytes("embed"), "x");
  write("both.safetensors", {{"embed", {1}, {}, "y"}, {"head", {1}, {}, "y"}});
  EXPECT_TRUE(run("both.safetensors").ok());
  EXPECT_EQ(state_.bytes("embed"), "y");
  write("differ.safetensors", {{"embed", {1}, {}, "y"}, {"head", {1}, {}, "z"}});
  expectRefused("differ.safetensors", "'embed' and 'head' both hold 'embed'");
}

TEST_F(LoadWeights, LeavesWhatIsFresh) {
  want("body.weight", {1});
  want("head.weight", {2});
  want("head.bias", {1});
  write("w.safetensors", {{"body.weight", {1}, {}, "x"}, {"head.weight", {1}, {}, "y"}});
  expectRefused("w.safetensors", "1 missing, 1 of another shape");
  request_.fresh = {"head.*"};
  auto report = run("w.safetensors");
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(state_.bytes("body.weight"), "x");
  EXPECT_EQ(state_.bytes("head.weight"), std::string(2, '\0'));
  EXPECT_EQ(report->init.fresh, (std::vector<std::string>{"head.weight", "head.bias"}));
  request_.fresh = {"haed.*"};
  expectRefused("w.safetensors", "--fresh 'haed.*' matches no");
}

TEST_F(LoadWeights, Renames) {
  want("layers.0.w", {1});
  want("layers.1.w", {1});
  want("out", {1});
  write(
      "w.safetensors",
      {{"old.0.weight", {1}, {}, "a"}, {"old.1.weight", {1}, {}, "b"}, {"lm_head", {1}, {}, "c"}});
  request_.renames = {{"old.*.weight", "layers.*.w"}, {"lm_head", "out"}};
  auto report = run("w.safetensors");
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(state_.bytes("layers.0.w") + state_.bytes("layers.1.w") + state_.bytes("out"), "abc");
  EXPECT_EQ(report->init.renames, request_.renames);
  request_.renames["gone"] = "out";
  expectRefused("w.safetensors", "--map 'gone=out' matches no tensor of the file");
}

TEST_F(LoadWeights, RefusesWhatIsNotThere) {
  want("a", {1});
  expectRefused("w.safetensors", "no such file");
  ASSERT_TRUE(env_.makeDirectory("d").ok());
  expectRefused("d", "holds no manifest.json");
  writeFile("text.safetensors", "hello");
  expectRefused("text.safetensors", "'text.safetensors': 5 bytes are too few");
}

TEST_F(LoadWeights, TakesTypesThatHaveFewerValues) {
  want("a", {2}, {}, DType::F32);
  want("b", {2}, {}, DType::F64);
  write("w.safetensors", {{"a", {2}, {}, bytesOfHalves({0x3f81, 0xc000}), DType::BF16},
                          {"b", {2}, {}, bytesOfHalves({0x3c01, 0x7c00}), DType::F16}});
  auto report = run("w.safetensors");
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(state_.bytes("a"), bytesOf({0x1.02p0f, -2.0f}));
  double b[2];
  std::memcpy(b, state_.bytes("b").data(), sizeof b);
  EXPECT_EQ(b[0], 0x1.004p0);
  EXPECT_TRUE(std::isinf(b[1]));
  EXPECT_EQ(report->notes,
            (std::vector<std::string>{"1 tensor(s) of F16 became F64: no value changed: 'b'",
                                      "1 tensor(s) of BF16 became F32: no value changed: 'a'"}));
  EXPECT_TRUE(report->init.rounded.empty());
}

TEST_F(LoadWeights, RoundsWhereThatIsAskedFor) {
  want("a", {2}, {}, DType::BF16);
  write("w.safetensors", {{"a", {2}, {}, bytesOf({1.0f, 0x1.03p0f}), DType::F32}});
  expectRefused("w.safetensors", "! a is F32 [2], the program wants BF16 [2]: --cast rounds it");
  request_.cast = true;
  auto report = run("w.safetensors");
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(state_.bytes("a"), bytesOfHalves({0x3f80, 0x3f82}));
  EXPECT_EQ(report->init.rounded, std::vector<std::string>{"a"});
  EXPECT_EQ(report->notes,
            std::vector<std::string>{"1 tensor(s) of F32 were rounded to BF16: --cast: 'a'"});
  write("large.safetensors", {{"a", {2}, {}, bytesOf({1.0f, 3.4e38f}), DType::F32}});
  const SampleState before = state_;
  EXPECT_EQ(run("large.safetensors").error().message(),
            "tensor 'a': element 1 is 3.4e+38, which is too large for BF16");
  EXPECT_TRUE(state_ == before) << "written in spite of the error";
  // No rounding makes floats of integers.
  write("i.safetensors", {{"a", {2}, {}, std::string(8, '1'), DType::I32}});
  expectRefused("i.safetensors", "a is I32 [2], the program wants BF16 [2]\n");
}

TEST_F(LoadWeights, LeavesOutWhatAGlobNames) {
  want("a", {1});
  write("w.safetensors", {{"a", {1}, {}, "x"},
                          {"old.0", {1}, {}, "y"},
                          {"old.1", {1}, {}, "z"},
                          {"mask", {1}, {}, "m"}});
  expectRefused("w.safetensors", "3 unexpected");
  request_.ignored = {"old.*", "mask"};
  auto report = run("w.safetensors");
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(state_.bytes("a"), "x");
  EXPECT_EQ(report->init.ignored, (std::vector<std::string>{"mask", "old.0", "old.1"}));
  EXPECT_EQ(report->notes,
            std::vector<std::string>{
                "3 tensor(s) of the file were ignored: --ignore: 'mask', 'old.0', 'old.1'"});
  request_.ignored = {"old.*", "mask", "odl.*"};
  expectRefused("w.safetensors", "--ignore 'odl.*' matches no tensor of the file");
  request_.ignored = {"*"};
  expectRefused("w.safetensors",
                "--ignore leaves 'a' out, which this program needs as 'a': use a narrower glob");
}

TEST_F(LoadWeights, LeavesOutOneOfTwoThatDiffer) {
  want("embed", {1}, {"head"});
  write("w.safetensors", {{"embed", {1}, {}, "y"}, {"head", {1}, {}, "z"}});
  request_.ignored = {"head"};
  EXPECT_TRUE(run("w.safetensors").ok());
  EXPECT_EQ(state_.bytes("embed"), "y");
}

TEST_F(LoadWeights, RefusesPicklesWithWhatConvertsThem) {
  want("a", {1});
  const std::string line = "is a pickle, which may run code when it is read: convert it with "
                           "python3 -c \"import torch, safetensors.torch as s; ";
  writeFile("m.pt", "anything");
  writeFile("archive", std::string("PK\x03\x04\0\0\x08\x08", 8) + "archive/data.pkl");
  writeFile("bare", "\x80\x02\x8a\nl\xfc\x9c\x46\xf9");
  for (const char* path : {"m.pt", "archive", "bare"})
    expectRefused(path, fmt::format("'{}' {}", path, line));
  expectRefused("m.pt", "torch.load('m.pt', map_location='cpu', weights_only=True).items()}");
  for (const char* directory : {"hf", "dcp"})
    ASSERT_TRUE(env_.makeDirectory(directory).ok());
  writeFile("hf/pytorch_model.bin", "anything");
  expectRefused("hf", "'hf/pytorch_model.bin' is a pickle");
  writeFile("dcp/__0_0.distcp", "anything");
  for (const char* path : {"dcp", "dcp/__0_0.distcp"}) {
    expectRefused(path, "'dcp' holds a distributed checkpoint of pickles");
    expectRefused(path, "f.dcp_to_torch_save('dcp', 'model.pt'); s.save_file(");
  }
  // A safetensors file beside them is taken.
  write("hf/model.safetensors", {{"a", {1}, {}, "x"}});
  EXPECT_TRUE(run("hf").ok());
}

} // namespace
} // namespace titan::checkpoint
