// Containment of external data. Each case is a way in which other readers of ONNX files were led
// out of the model's directory or into reading what is not there.
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/read/Graph.h"
#include "frontend/onnx/testing/ModelBuilder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

namespace titan::frontend {
namespace {

namespace fs = std::filesystem;
using testing::ModelBuilder;

class ExternalDataTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "titan-external-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    fs::create_directory(root_ / "model");
    fs::create_directory(root_ / "model" / "sub");
    write(root_ / "secret", std::string(64, 's'));
    write(root_ / "model" / "data", std::string(64, 'd'));
    write(root_ / "model" / "sub" / "data", std::string(64, 'e'));
  }
  void TearDown() override { fs::remove_all(root_); }

  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  /// Reads a model whose tensor "w" of four floats lies at `location`.
  Result<Graph> read(const std::string& location, const std::string& offset = "",
                     const std::string& length = "", const std::vector<int64_t>& shape = {4}) {
    ModelBuilder model;
    model.input("x", {-1, 4}).output("y").node("Add", {"x", "w"}, {"y"});
    model.external("w", shape, location, offset, length);
    fs::path path = root_ / "model" / "m.onnx";
    write(path, model.bytes());
    return readGraph(path.string());
  }
  void expectRefused(const std::string& text, const std::string& location,
                     const std::string& offset = "", const std::string& length = "",
                     const std::vector<int64_t>& shape = {4}) {
    Result<Graph> graph = read(location, offset, length, shape);
    ASSERT_FALSE(graph.ok()) << location;
    EXPECT_EQ(graph.error().code(), ErrorCode::BadInput);
    EXPECT_NE(graph.error().message().find(text), std::string::npos) << graph.error().message();
    EXPECT_NE(graph.error().message().find("initializer 'w'"), std::string::npos)
        << graph.error().message();
  }

  fs::path root_;
};

TEST_F(ExternalDataTest, ReadsWhatBelongsToTheModel) {
  for (const char* location : {"data", "./data"}) {
    Graph graph = read(location, "16", "16").take();
    EXPECT_EQ(graph.initializers.at("w").read().take(), std::string(16, 'd'));
  }
  Graph graph = read("sub/data").take();
  EXPECT_EQ(graph.initializers.at("w").read().take(), std::string(16, 'e'));
}

TEST_F(ExternalDataTest, RefusesPathsThatLeaveTheDirectory) {
  expectRefused("leaves the model's directory", "../secret");
  expectRefused("leaves the model's directory", "sub/../../secret");
  expectRefused("leaves the model's directory", "sub/..");
  expectRefused("is not relative", (root_ / "secret").string());
  expectRefused("is not relative", "..\\secret");
  expectRefused("is not relative", "C:secret");
  expectRefused("is not a path", "");
  expectRefused("is not a path", std::string("data\0../secret", 14));
  expectRefused("is not a file", "sub/");
  expectRefused("is not a regular file", "sub");
}

TEST_F(ExternalDataTest, RefusesLinks) {
  fs::create_symlink(root_ / "secret", root_ / "model" / "link");
  expectRefused("symbolic link", "link");
  fs::create_directory_symlink(root_, root_ / "model" / "up");
  expectRefused("symbolic link", "up/secret");
  fs::create_symlink("data", root_ / "model" / "inside");
  expectRefused("symbolic link", "inside");
  fs::create_hard_link(root_ / "secret", root_ / "model" / "hard");
  expectRefused("2 hard links", "hard");
}

TEST_F(ExternalDataTest, RefusesDevicesAndPipesWithoutBlocking) {
  ASSERT_EQ(::mkfifo((root_ / "model" / "pipe").c_str(), 0600), 0);
  expectRefused("is not a regular file", "pipe");
}

TEST_F(ExternalDataTest, RefusesRangesOutsideOfTheFile) {
  expectRefused("outside of 'data', which has 64 bytes", "data", "49");
  expectRefused("outside of 'data'", "data", "18446744073709551615");
  expectRefused("is not a whole number", "data", "-1");
  expectRefused("is not a whole number", "data", "99999999999999999999999");
  expectRefused("external data of 20 bytes, but [4] of F32 needs 16", "data", "0", "20");
  // A length of a terabyte is refused before anything is allocated.
  expectRefused("outside of 'data'", "data", "", "", {int64_t(1) << 38});
}

TEST_F(ExternalDataTest, AbsentFilesAreReportedWhenTheyAreNeeded) {
  Graph graph = read("nowhere").take();
  const Tensor& tensor = graph.initializers.at("w");
  EXPECT_EQ(tensor.missing, "external data file 'nowhere' is not there");
  EXPECT_FALSE(tensor.read().ok());
}

TEST_F(ExternalDataTest, AFileThatShrinksIsAnError) {
  Graph graph = read("data").take();
  write(root_ / "model" / "data", "short");
  Result<std::string> bytes = graph.initializers.at("w").read();
  ASSERT_FALSE(bytes.ok());
  EXPECT_NE(bytes.error().message().find("became shorter"), std::string::npos);
}

TEST_F(ExternalDataTest, WeightsDirectoryReplacesTheModels) {
  fs::create_directory(root_ / "weights");
  write(root_ / "weights" / "data", std::string(64, 'w'));
  ASSERT_TRUE(read("data").ok());
  GraphOptions options{(root_ / "weights").string()};
  Graph graph = readGraph((root_ / "model" / "m.onnx").string(), options).take();
  EXPECT_EQ(graph.initializers.at("w").read().take(), std::string(16, 'w'));
}

TEST_F(ExternalDataTest, UnknownKeysAreIgnored) {
  ModelBuilder model;
  model.input("x", {-1, 4}).output("y").node("Add", {"x", "w"}, {"y"});
  auto* entry = model.external("w", {4}, "data").add_external_data();
  entry->set_key("__class__");
  entry->set_value("anything");
  write(root_ / "model" / "m.onnx", model.bytes());
  EXPECT_TRUE(readGraph((root_ / "model" / "m.onnx").string()).ok());
}

} // namespace
} // namespace titan::frontend
