// Which look-ups have a note, since an index may be beyond what they look up.
#include "frontend/onnx/IndexRanges.h"

#include "frontend/onnx/testing/ImportFixture.h"

#include <functional>

namespace titan::frontend {
namespace {

using testing::ModelBuilder;
constexpr int kInt64 = ::onnx::TensorProto::INT64;

class IndexRangesTest : public testing::ImportFixture {
protected:
  /// Notes of rows of a table [12, 2] at the indices `i` [batch, 3] that `compute` makes of the
  /// inputs `a` and `b` [batch, 3].
  std::vector<std::string> notesOf(const std::function<void(ModelBuilder&)>& compute) {
    ModelBuilder model;
    model.model.set_producer_name("pytorch");
    model.input("a", {-1, 3}, kInt64).input("b", {-1, 3}, kInt64).output("y");
    model.integers("two", {2});
    model.integers("three", {3});
    model.integers("four", {4});
    model.integers("five", {5});
    model.integers("minus one", {-1});
    model.floats("table", {12, 2}, std::vector<float>(24, 0.5f));
    compute(model);
    model.node("Gather", {"table", "i"}, {"y"}, "lookup");
    Graph graph = parseGraph(model.bytes(), "m.onnx", "").take();
    auto module = importGraph(context_, graph, nameTensors(graph).take(), recipe_);
    if (!module.ok())
      return {module.error().message()};
    return notesOfModule(**module);
  }

  const std::vector<std::string> nothing_;
  const std::vector<std::string> noted_ = {
      "node 'lookup' looks up at indices that the model computes: one beyond what it looks up "
      "takes the nearest place, where the source may have an error"};
};

/// The job checks them.
TEST_F(IndexRangesTest, DataHasNoNote) {
  EXPECT_EQ(notesOf([](ModelBuilder& model) { model.node("Identity", {"a"}, {"i"}); }), nothing_);
  EXPECT_EQ(notesOf([](ModelBuilder& model) { model.node("Transpose", {"a"}, {"i"}); }), nothing_);
}

TEST_F(IndexRangesTest, SumsAndProductsOfDataHaveANote) {
  EXPECT_EQ(notesOf([](ModelBuilder& model) { model.node("Add", {"a", "two"}, {"i"}); }), noted_);
  EXPECT_EQ(notesOf([](ModelBuilder& model) {
              model.node("Mul", {"a", "four"}, {"rows"});
              model.node("Add", {"rows", "b"}, {"i"});
            }),
            noted_);
  EXPECT_EQ(notesOf([](ModelBuilder& model) { model.node("Max", {"a", "two"}, {"i"}); }), noted_);
}

/// 4 (a mod 3) + (b mod 4) is in [0, 12), and beyond with another factor.
TEST_F(IndexRangesTest, BoundedIndicesHaveNone) {
  const auto paired = [&](const char* factor, const char* modulus) {
    return notesOf([&](ModelBuilder& model) {
      model.node("Max", {"a", "two"}, {"positive a"});
      model.node("Max", {"b", "two"}, {"positive b"});
      model.node("Mod", {"positive a", "three"}, {"row"});
      model.node("Mod", {"positive b", modulus}, {"column"});
      model.node("Mul", {"row", factor}, {"rows"});
      model.node("Add", {"rows", "column"}, {"i"});
    });
  };
  EXPECT_EQ(paired("four", "four"), nothing_);
  EXPECT_EQ(paired("five", "four"), noted_);
  EXPECT_EQ(notesOf([](ModelBuilder& model) {
              model.node("Min", {"a", "four"}, {"least"});
              model.node("Max", {"least", "two"}, {"i"});
            }),
            nothing_);
  EXPECT_EQ(notesOf([](ModelBuilder& model) {
              model.node("Min", {"a", "four"}, {"least"});
              model.node("Max", {"least", "minus one"}, {"i"});
            }),
            noted_);
}

TEST_F(IndexRangesTest, PlacesOfMaximaAreWithinTheirDimension) {
  EXPECT_EQ(notesOf([](ModelBuilder& model) {
              ModelBuilder::setInt(model.node("ArgMax", {"a"}, {"i"}), "axis", 1);
            }),
            nothing_);
}

} // namespace
} // namespace titan::frontend
