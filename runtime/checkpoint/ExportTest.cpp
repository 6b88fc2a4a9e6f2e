#include "runtime/checkpoint/Export.h"

#include "runtime/checkpoint/StoredTensors.h"
#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/FaultEnv.h"
#include "runtime/checkpoint/testing/SampleState.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

namespace titan::checkpoint {
namespace {

constexpr const char* checkpointPath = "a/checkpoints/step-00000007";

/// A run "a" with the checkpoint of step 7.
class Export : public ::testing::Test {
protected:
  void SetUp() override { save(state_); }

  void save(const SampleState& state) {
    auto store = CheckpointStore::open("a", env_);
    ASSERT_TRUE(store->save(state.saveRequest(7), 0).ok());
  }

  ExportRequest request(const std::string& output) {
    return {.checkpoint = checkpointPath, .output = output};
  }

  void expectRefused(const ExportRequest& request, int exitCode, const std::string& message) {
    const std::string before = env_.digest();
    const auto report = exportWeights(request, env_);
    ASSERT_FALSE(report.ok()) << "expected: " << message;
    EXPECT_EQ(report.error().exitCode(), exitCode);
    EXPECT_EQ(report.error().message(), message);
    EXPECT_EQ(env_.digest(), before);
  }

  /// What the files hold, by name.
  std::map<std::string, std::string> read(const std::vector<std::string>& files) {
    StoredTensors stored;
    std::map<std::string, std::string> bytes;
    for (const std::string& file : files) {
      const auto added = stored.add(env_, file, nullptr);
      EXPECT_TRUE(added.ok()) << added.error().message();
    }
    for (const auto& [name, tensor] : stored.tensors()) {
      types_[name] = tensor.dtype;
      std::string& into = bytes[name];
      into.resize(static_cast<size_t>(elementCount(tensor.shape) * byteSize(tensor.dtype)));
      EXPECT_TRUE(tensor.readInto(std::span<char>(into)).ok());
    }
    return bytes;
  }

  std::map<std::string, std::string> model() {
    std::map<std::string, std::string> model;
    for (const TableEntry& row : state_.program.table)
      if (row.kind == StateKind::Param || row.kind == StateKind::Buffer)
        model[row.name] = state_.bytes(row.name);
    return model;
  }

  CrashEnv env_;
  SampleState state_ = withAverages(7);
  std::map<std::string, DType> types_;
};

TEST_F(Export, GivesTheWeights) {
  const auto report = exportWeights(request("w.safetensors"), env_);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->tensors, 5);
  EXPECT_EQ(report->files, 1);
  EXPECT_EQ(read({"w.safetensors"}), model());
  // What comes out goes in.
  SampleState loaded(77);
  EXPECT_TRUE(loadWeights("w.safetensors", loaded.initRequest(), env_).ok());
  EXPECT_EQ(loaded.bytes("fc1.weight"), state_.bytes("fc1.weight"));
}

TEST_F(Export, GivesEachNameOfATiedSet) {
  ExportRequest all = request("w.safetensors");
  all.allNames = true;
  ASSERT_TRUE(exportWeights(all, env_).ok());
  auto wanted = model();
  wanted["head.weight"] = wanted["embed.weight"];
  EXPECT_EQ(read({"w.safetensors"}), wanted);
}

TEST_F(Export, GivesTheAveragesAndWhatIsNotAveraged) {
  ExportRequest slow = request("w.safetensors");
  slow.profile = "slow";
  ASSERT_TRUE(exportWeights(slow, env_).ok());
  auto wanted = model();
  for (const TableEntry& row : state_.program.table)
    if (row.profile == "slow")
      wanted[row.name] = state_.bytes("slow/" + row.name);
  EXPECT_EQ(read({"w.safetensors"}), wanted);
}

TEST_F(Export, RefusesAveragesThatAreNotThere) {
  ExportRequest other = request("w.safetensors");
  other.profile = "other";
  expectRefused(other, 1,
                "checkpoint 'a/checkpoints/step-00000007' has no averages 'other': it has 'fast', "
                "'slow'");
  other.profile = "../model";
  expectRefused(other, 1,
                "checkpoint 'a/checkpoints/step-00000007' has no averages '../model': it has "
                "'fast', 'slow'");
  ASSERT_TRUE(removeTree(env_, "a").ok());
  save(SampleState(7));
  expectRefused(other, 1,
                "checkpoint 'a/checkpoints/step-00000007' has no averages '../model': it has none");
}

TEST_F(Export, RefusesAveragesWithoutAnUpdate) {
  ASSERT_TRUE(removeTree(env_, "a").ok());
  state_.bytes("optimizer.t").assign(8, '\0');
  save(state_);
  ExportRequest slow = request("w.safetensors");
  slow.profile = "slow";
  expectRefused(slow, 1,
                "checkpoint 'a/checkpoints/step-00000007' has no averages 'slow' yet: no update "
                "was made");
}

TEST_F(Export, RoundsFloatingPointTensors) {
  const float values[] = {1.0f, 0x1.01p0f, 0x1.03p0f};
  std::memcpy(state_.bytes("fc1.bias").data(), values, sizeof values);
  ASSERT_TRUE(removeTree(env_, "a").ok());
  save(state_);
  ExportRequest rounded = request("w.safetensors");
  rounded.dtype = DType::BF16;
  ASSERT_TRUE(exportWeights(rounded, env_).ok());
  const auto bytes = read({"w.safetensors"});
  EXPECT_EQ(bytes.at("fc1.bias"), std::string("\x80\x3f\x80\x3f\x82\x3f"));
  EXPECT_EQ(types_.at("norm.count"), DType::I64);
  EXPECT_EQ(types_.at("fc1.weight"), DType::BF16);
  EXPECT_EQ(bytes.at("norm.count"), state_.bytes("norm.count"));
  EXPECT_EQ(bytes.at("embed.weight"), state_.bytes("embed.weight"));
}

TEST_F(Export, RefusesAValueThatTheTypeHasNot) {
  const float values[] = {1.0f, 1e6f, 1.0f};
  std::memcpy(state_.bytes("fc1.bias").data(), values, sizeof values);
  state_.bytes("embed.weight").assign(30, '\0');
  ASSERT_TRUE(removeTree(env_, "a").ok());
  save(state_);
  ExportRequest rounded = request("w.safetensors");
  rounded.dtype = DType::F16;
  expectRefused(rounded, 1, "tensor 'fc1.bias': element 1 is 1e+06, which is too large for F16");
}

TEST_F(Export, CutsAFolderIntoFilesWithAnIndex) {
  ExportRequest folder = request("hf");
  folder.shardBytes = 42; // embed.weight has 30 bytes, fc1.bias 12, fc1.weight 48, norm.count 8
  const auto report = exportWeights(folder, env_);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->files, 3);
  std::vector<std::string> names;
  const auto entries = env_.readDirectory("hf");
  for (const DirectoryEntry& entry : *entries)
    names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                       "model-00003-of-00003.safetensors", "model.safetensors.index.json"}));
  EXPECT_EQ(read({"hf/model-00001-of-00003.safetensors"}).size(), 2u);
  EXPECT_EQ(read({"hf/model-00002-of-00003.safetensors"}).size(), 1u);
  EXPECT_EQ(read({"hf/model-00001-of-00003.safetensors", "hf/model-00002-of-00003.safetensors",
                  "hf/model-00003-of-00003.safetensors"}),
            model());
  EXPECT_EQ(readWholeFile(env_, "hf/model.safetensors.index.json", 1000).take(),
            R"({
  "metadata": { "total_size": 98 },
  "weight_map": {
    "embed.weight": "model-00001-of-00003.safetensors",
    "fc1.bias": "model-00001-of-00003.safetensors",
    "fc1.weight": "model-00002-of-00003.safetensors",
    "norm.count": "model-00003-of-00003.safetensors",
    "norm.empty": "model-00003-of-00003.safetensors"
  }
}
)");
  SampleState loaded(77);
  EXPECT_TRUE(loadWeights("hf", loaded.initRequest(), env_).ok());
}

TEST_F(Export, RefusesWhatExistsOrHasAnotherEnding) {
  ASSERT_TRUE(exportWeights(request("w.safetensors"), env_).ok());
  expectRefused(request("w.safetensors"), 2,
                "'w.safetensors' exists already: remove it, or give another -o");
  ExportRequest folder = request("a");
  folder.shardBytes = 100;
  expectRefused(folder, 2, "'a' exists already: remove it, or give another -o");
  expectRefused(request("w.onnx"), 2,
                "'w.onnx' is no .safetensors file, and weights are exported to nothing else");
}

TEST_F(Export, LeavesNothingWhereAnyOperationFails) {
  for (const bool inFolder : {false, true})
    for (const int reason : {EIO, ENOSPC}) {
      ExportRequest wanted = request(inFolder ? "hf" : "w.safetensors");
      if (inFolder)
        wanted.shardBytes = 42;
      bool finished = false;
      for (int64_t operation = 0; !finished; ++operation) {
        const auto disk = env_.clone();
        const std::string before = disk->digest();
        FaultEnv env(*disk);
        env.failAt(operation, reason, /*forGood=*/false);
        const auto report = exportWeights(wanted, env);
        finished = env.failed().empty();
        SCOPED_TRACE(fmt::format("operation {}: {}", operation, env.failed()));
        EXPECT_EQ(report.ok(), finished);
        if (!report.ok()) {
          EXPECT_EQ(report.error().exitCode(), 3);
          EXPECT_NE(report.error().message().find(std::strerror(reason)), std::string::npos)
              << report.error().message();
          EXPECT_EQ(disk->digest(), before);
        }
        if (HasFailure())
          return;
      }
    }
}

// The power fails after it was reported: it is there.
TEST_F(Export, IsDurable) {
  ExportRequest folder = request("hf");
  folder.shardBytes = 42;
  ASSERT_TRUE(exportWeights(request("w.safetensors"), env_).ok());
  ASSERT_TRUE(exportWeights(folder, env_).ok());
  const auto restarted = env_.crashed(CrashEnv::Loss::Everything);
  for (const char* path : {"w.safetensors", "hf"}) {
    SampleState loaded(77);
    EXPECT_TRUE(loadWeights(path, loaded.initRequest(), *restarted).ok()) << path;
  }
}

} // namespace
} // namespace titan::checkpoint
