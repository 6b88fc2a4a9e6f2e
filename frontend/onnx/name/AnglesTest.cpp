// Tables of sines and cosines, and what only looks like one.
#include "frontend/onnx/name/Angles.h"
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/testing/ModelBuilder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace titan::frontend {
namespace {

using testing::ModelBuilder;
using Floats = std::vector<float>;

Tensor tensorOf(Shape shape, const Floats& values) {
  Tensor tensor;
  tensor.shape = std::move(shape);
  tensor.inlineBytes = std::make_shared<const std::string>(
      reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return tensor;
}

Floats table(int rows, int width, const std::function<double(int, int)>& value) {
  Floats values;
  for (int p = 0; p < rows; ++p)
    for (int j = 0; j < width; ++j)
      values.push_back(static_cast<float>(value(p, j)));
  return values;
}
double angle(int p, int j, int width) { return p * std::pow(10000.0, -double(j) / width); }

/// "Attention Is All You Need": sines and cosines in turn.
double inTurn(int p, int j) {
  double a = angle(p, j / 2 * 2, 8);
  return j % 2 ? std::cos(a) : std::sin(a);
}
/// Marian: all sines, then all cosines.
double inHalves(int p, int j) {
  double a = angle(p, j % 4 * 2, 8);
  return j < 4 ? std::sin(a) : std::cos(a);
}
/// Vision: both of the column of a grid of 3, then both of its row.
double ofTwo(int p, int j) {
  double a = angle(j < 4 ? p % 3 : p / 3, j % 2 * 4, 8);
  return j % 4 < 2 ? std::sin(a) : std::cos(a);
}
double cosines(int p, int j) { return std::cos(angle(p, j % 4 * 2, 8)); }
double sines(int p, int j) { return std::sin(angle(p, j % 4 * 2, 8)); }

TEST(Angles, OfOneTableArePairs) {
  for (auto layout : {inTurn, inHalves, ofTwo})
    for (Shape shape : {Shape{9, 8}, Shape{1, 9, 8}, Shape{9, 1, 8}, Shape{1, 9, 4, 2}})
      EXPECT_TRUE(isAngleTable(tensorOf(shape, table(9, 8, layout))));
  // A padding row of zeros, first or later.
  EXPECT_TRUE(isAngleTable(
      tensorOf({9, 8}, table(9, 8, [](int p, int j) { return p == 1 ? 0 : inTurn(p, j); }))));
}

TEST(Angles, OfTwoTablesAreCosinesAndSines) {
  Tensor cos = tensorOf({9, 8}, table(9, 8, cosines)), sin = tensorOf({9, 8}, table(9, 8, sines));
  EXPECT_TRUE(areCosinesAndSines(cos, sin));
  EXPECT_TRUE(areCosinesAndSines(sin, cos));
  EXPECT_FALSE(areCosinesAndSines(cos, cos));
  EXPECT_FALSE(isAngleTable(cos));
  EXPECT_FALSE(areCosinesAndSines(cos, tensorOf({9, 8}, table(9, 8, inTurn))));
}

TEST(Angles, AreNotWhatStartsWithZerosAndIsSmall) {
  auto learned = [](int p, int j) { return p == 0 ? 0 : 0.02 * std::sin(17.0 * p + 5.0 * j); };
  EXPECT_FALSE(isAngleTable(tensorOf({9, 8}, table(9, 8, learned))));
  auto oneWrong = [](int p, int j) { return p == 8 && j == 7 ? 0.5 : inTurn(p, j); };
  EXPECT_FALSE(isAngleTable(tensorOf({9, 8}, table(9, 8, oneWrong))));
  auto zerosAndOnes = [](int, int j) { return j % 2; };
  EXPECT_FALSE(isAngleTable(tensorOf({9, 8}, table(9, 8, zerosAndOnes))));
  auto notFromZero = [](int p, int j) { return inTurn(p + 1, j); };
  EXPECT_FALSE(isAngleTable(tensorOf({9, 8}, table(9, 8, notFromZero))));
}

TEST(Angles, OfATableThatIsNotFoldedAreProvedByItsFirstRows) {
  Tensor tall = tensorOf({140000, 8}, table(140000, 8, inTurn));
  EXPECT_TRUE(isAngleTable(tall));
}

/// A legacy export that adds rows of "pe" to a lookup of words.
NameTable added(const Floats& values, const std::string& index,
                const std::string& producer = "pytorch") {
  ModelBuilder model;
  model.model.set_producer_name(producer);
  model.input("ids", {-1, 9}, ::onnx::TensorProto::INT64).output("y");
  model.floats("words.weight", {9, 8}, table(9, 8, [](int p, int j) {
                 return p == 0 ? 0 : 0.02 * std::sin(17.0 * p + 5.0 * j);
               }));
  model.floats("pe", {9, 8}, values);
  model.integers("positions", {0, 1, 2, 3, 4, 5, 6, 7, 8});
  model.node("Gather", {"words.weight", "ids"}, {"w"});
  ModelBuilder::setInt(model.node("Cast", {"ids"}, {"shifted"}), "to", ::onnx::TensorProto::INT64);
  model.node("Gather", {"pe", index}, {"p"});
  model.node("Add", {"w", "p"}, {"y"});
  return nameTensors(parseGraph(model.bytes(), "m.onnx", "").take()).take();
}
std::string notesOf(const NameTable& names) {
  std::string text;
  for (const std::string& line : names.notes.lines())
    if (line.find("padding_idx") == std::string::npos) // nor do these exports say that
      text += line + "\n";
  return text;
}

TEST(Angles, AreConstantsWithANote) {
  NameTable names = added(table(9, 8, inTurn), "positions");
  EXPECT_EQ(names.find("pe")->kind, TensorKind::Constant);
  EXPECT_EQ(names.find("words.weight")->kind, TensorKind::Parameter);
  EXPECT_EQ(notesOf(names), "'pe' holds sines and cosines of positions, or their frequencies: it "
                            "is a constant and not trained, unless --names says kind = "
                            "\"parameter\"\n");
}

TEST(Angles, ThatAnInputLooksUpAreTrained) {
  for (const char* index : {"ids", "shifted"}) {
    NameTable names = added(table(9, 8, inTurn), index);
    EXPECT_EQ(names.find("pe")->kind, TensorKind::Parameter);
    EXPECT_NE(notesOf(names).find("it is trained, unless --names says kind = \"buffer\""),
              std::string::npos)
        << notesOf(names);
  }
}

TEST(Angles, ThatTheNamesFileSettlesNeedNoNote) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  model.input("x", {-1, 9, 8}).output("y");
  model.floats("pe", {9, 8}, table(9, 8, inTurn));
  model.node("Add", {"x", "pe"}, {"y"});
  Graph graph = parseGraph(model.bytes(), "m.onnx", "").take();
  EXPECT_EQ(nameTensors(graph)->notes.lines().size(), 1u);
  NameOverrides overrides = parseNamesFile("[pe]\nkind = \"parameter\"\n", "map.toml").take();
  NameTable names = nameTensors(graph, overrides).take();
  EXPECT_EQ(names.find("pe")->kind, TensorKind::Parameter);
  EXPECT_EQ(notesOf(names), "");
}

TEST(Angles, AConstantNodeOfAnotherProducerIsNoted) {
  ModelBuilder model;
  model.model.set_producer_name("other");
  model.input("x", {-1, 2}).output("y");
  ::onnx::NodeProto& node = model.node("Constant", {}, {"shift"});
  ::onnx::AttributeProto& value = *node.add_attribute();
  value.set_name("value");
  value.set_type(::onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(::onnx::TensorProto::FLOAT);
  value.mutable_t()->add_dims(2);
  for (float element : {0.5f, 0.25f})
    value.mutable_t()->add_float_data(element);
  model.node("Sub", {"x", "shift"}, {"y"});
  NameTable names = nameTensors(parseGraph(model.bytes(), "m.onnx", "").take()).take();
  EXPECT_EQ(names.find("shift")->kind, TensorKind::Constant);
  EXPECT_NE(notesOf(names).find("'shift' is of a Constant node"), std::string::npos);
}

/// torch.export says that it is a parameter, and not whether it is frozen.
TEST(Angles, AParameterThatLooksFrozenIsTrainedWithANote) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  std::vector<float> sines;
  for (int i = 0; i < 3; ++i)
    for (float angle : {static_cast<float>(i), static_cast<float>(i) / 10})
      sines.insert(sines.end(), {std::sin(angle), std::cos(angle)});
  model.input("x", {3, 4}).output("y").floats("table", {3, 4}, sines);
  model.node("Add", {"x", "table"}, {"y"});
  model.signature("p_table: PARAMETER target='table'\n");
  NameTable names = nameTensors(parseGraph(model.bytes(), "m.onnx", "").take()).take();
  EXPECT_EQ(names.find("table")->kind, TensorKind::Parameter);
  ASSERT_EQ(names.notes.lines().size(), 1u);
  EXPECT_NE(names.notes.lines()[0].find("no export says what is frozen"), std::string::npos);
  EXPECT_TRUE(requireExact(names.account).ok());
}

} // namespace
} // namespace titan::frontend
