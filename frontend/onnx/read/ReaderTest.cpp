#include "frontend/onnx/read/Reader.h"
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/read/Graph.h"
#include "frontend/onnx/testing/ModelBuilder.h"

#include <gtest/gtest.h>

namespace titan::frontend {
namespace {

using testing::ModelBuilder;

/// The error of reading `bytes`, or "" when they are read.
std::string errorOf(const std::string& bytes) {
  Result<Graph> graph = parseGraph(bytes, "m.onnx", "");
  if (graph.ok())
    return "";
  EXPECT_EQ(graph.error().code(), ErrorCode::BadInput);
  return graph.error().message();
}

ModelBuilder identity() {
  ModelBuilder model;
  model.input("x", {-1, 4}).output("y");
  return model;
}

#define EXPECT_REFUSED(bytes, text)                                                                \
  EXPECT_NE(errorOf(bytes).find(text), std::string::npos) << errorOf(bytes)

TEST(Reader, RefusesWhatIsNoModel) {
  EXPECT_REFUSED("", "is empty");
  EXPECT_REFUSED("not a model at all", "not an ONNX model");
  EXPECT_REFUSED(std::string(1000, '\xff'), "not an ONNX model");
  EXPECT_REFUSED(::onnx::ModelProto().SerializeAsString() + std::string("\x08\x08", 2),
                 "has no graph");
}

TEST(Reader, RefusesEveryTruncation) {
  ModelBuilder model = identity();
  model.floats("w", {4}, {1, 2, 3, 4});
  model.node("Add", {"x", "w"}, {"y"});
  std::string bytes = model.bytes();
  ASSERT_EQ(errorOf(bytes), "");
  // A prefix that happens to end between fields of the model parses: then the graph or the opset is
  // missing.
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(errorOf(bytes.substr(0, size)), "") << size;
}

TEST(Reader, RefusesOpsetsOutsideOfItsRange) {
  for (int64_t opset : {6, 27, 1000}) {
    ModelBuilder model(opset);
    model.input("x", {1}).output("y").node("Relu", {"x"}, {"y"});
    EXPECT_REFUSED(model.bytes(), "opset " + std::to_string(opset));
  }
}

TEST(Reader, RefusesBrokenGraphs) {
  ModelBuilder cycle = identity();
  cycle.node("Add", {"x", "b"}, {"a"}, "first");
  cycle.node("Relu", {"a"}, {"b"}, "second");
  cycle.node("Relu", {"b"}, {"y"});
  EXPECT_REFUSED(cycle.bytes(), "cycle");

  ModelBuilder twice = identity();
  twice.node("Relu", {"x"}, {"y"}, "first");
  twice.node("Relu", {"x"}, {"y"}, "second");
  EXPECT_REFUSED(twice.bytes(), "node 'second' (Relu): 'y' is produced more than once");

  ModelBuilder dangling = identity();
  dangling.node("Add", {"x", "nowhere"}, {"y"}, "n");
  EXPECT_REFUSED(dangling.bytes(), "nothing produces its input 'nowhere'");

  ModelBuilder missing = identity();
  EXPECT_REFUSED(missing.bytes(), "nothing produces output 'y'");

  ModelBuilder repeated = identity();
  repeated.floats("w", {1}, {1});
  repeated.floats("w", {1}, {2});
  repeated.node("Add", {"x", "w"}, {"y"});
  EXPECT_REFUSED(repeated.bytes(), "'w' is produced more than once");
}

TEST(Reader, SortsNodesAndDropsDeadOnes) {
  ModelBuilder model = identity();
  model.node("Relu", {"a"}, {"y"}, "last");
  model.node("Tanh", {"x"}, {"unused"}, "dead");
  model.node("Neg", {"x"}, {"a"}, "first");
  Graph graph = parseGraph(model.bytes(), "m.onnx", "").take();
  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.nodes[0].name, "first");
  EXPECT_EQ(graph.nodes[1].name, "last");
}

TEST(Reader, LimitsSubgraphDepth) {
  ModelBuilder model = identity();
  ::onnx::GraphProto inner;
  for (int depth = 0; depth < 18; ++depth) {
    ::onnx::GraphProto outer;
    auto* node = outer.add_node();
    node->set_op_type("If");
    auto* attribute = node->add_attribute();
    attribute->set_name("then_branch");
    *attribute->mutable_g() = inner;
    inner = outer;
  }
  *model.node("If", {"x"}, {"y"}).add_attribute()->mutable_g() = inner;
  EXPECT_REFUSED(model.bytes(), "nested deeper than 16");
}

TEST(Reader, AnIfHasOneCondition) {
  ModelBuilder model = identity();
  model.node("If", {}, {"y"}, "choice");
  EXPECT_REFUSED(model.bytes(), "node 'choice' (If): has 0 inputs, not a condition alone");
}

TEST(Reader, ChecksTensorsAgainstTheirShape) {
  auto refused = [](auto change, const char* text) {
    ModelBuilder model = identity();
    ::onnx::TensorProto& tensor = model.floats("w", {2}, {1, 2});
    change(tensor);
    model.node("Add", {"x", "w"}, {"y"});
    EXPECT_REFUSED(model.bytes(), text);
  };
  using T = ::onnx::TensorProto;
  refused([](T& t) { t.set_raw_data("abc"); }, "initializer 'w': 3 bytes of data");
  refused([](T& t) { t.clear_raw_data(); }, "0 bytes of data, but 2 elements of F32 need 8");
  refused([](T& t) { t.add_float_data(1); }, "both raw_data and a typed data field");
  refused([](T& t) { t.add_dims(-1); }, "negative extent -1");
  refused([](T& t) { t.set_data_type(T::STRING); }, "element type STRING is not supported");
  refused([](T& t) { t.set_data_type(99); }, "element type type 99 is not supported");
  // Products that would overflow 64 bits are refused before anything is allocated.
  refused(
      [](T& t) {
        for (int i = 0; i < 5; ++i)
          t.add_dims(int64_t(1) << 40);
      },
      "more than");
  refused(
      [](T& t) {
        for (int i = 0; i < 64; ++i)
          t.add_dims(1);
      },
      "rank 65 is above 32");
}

TEST(Reader, DecodesTypedData) {
  ModelBuilder model = identity();
  ::onnx::TensorProto& half = model.floats("h", {2}, {});
  half.clear_raw_data();
  half.set_data_type(::onnx::TensorProto::FLOAT16);
  half.add_int32_data(0x3c00);
  half.add_int32_data(0xc000);
  model.node("Sum", {"x", "h"}, {"y"});
  Graph graph = parseGraph(model.bytes(), "m.onnx", "").take();
  EXPECT_EQ(graph.initializers.at("h").read().take(), std::string("\x00\x3c\x00\xc0", 4));
}

TEST(Reader, FindsWhereTensorsLie) {
  ModelBuilder model = identity();
  model.floats("raw", {4}, {1, 2, 3, 4});
  ::onnx::TensorProto& packed = model.floats("packed", {2}, {});
  packed.clear_raw_data();
  packed.add_float_data(5);
  packed.add_float_data(6);
  auto* value = model.node("Constant", {}, {"c"}).add_attribute();
  value->set_name("value");
  value->mutable_t()->set_data_type(::onnx::TensorProto::FLOAT);
  value->mutable_t()->add_dims(1);
  value->mutable_t()->set_raw_data("\x01\x02\x03\x04");
  model.node("Sum", {"x", "raw", "packed", "c"}, {"y"});
  std::string bytes = model.bytes();
  Graph graph = parseGraph(bytes, "dir/m.onnx", "dir").take();
  for (const char* name : {"raw", "packed", "c"}) {
    const Tensor& tensor = graph.initializers.at(name);
    ASSERT_TRUE(tensor.span) << name;
    EXPECT_EQ(tensor.span->path, "m.onnx");
    EXPECT_EQ(bytes.substr(tensor.span->offset, tensor.span->bytes), tensor.read().take()) << name;
  }
}

TEST(Reader, RefusesRecursiveAndExplodingFunctions) {
  ModelBuilder model = identity();
  auto function = [&](const std::string& name, const std::vector<std::string>& calls) {
    auto* proto = model.model.add_functions();
    proto->set_name(name);
    proto->set_domain("f");
    proto->add_opset_import()->set_version(17);
    proto->add_input("a");
    proto->add_output("b");
    std::string value = "a";
    for (size_t i = 0; i < calls.size(); ++i) {
      auto* node = proto->add_node();
      node->set_op_type(calls[i]);
      node->set_domain(calls[i] == "Relu" ? "" : "f");
      node->add_input(value);
      value = i + 1 == calls.size() ? "b" : "v" + std::to_string(i);
      node->add_output(value);
    }
  };
  ModelBuilder recursive = model;
  model.node("F", {"x"}, {"y"}).set_domain("f");
  function("F", {"F"});
  EXPECT_REFUSED(model.bytes(), "calls itself");

  // Ten levels of ten calls each: ten billion nodes from a few hundred bytes.
  model.model.clear_functions();
  function("F0", std::vector<std::string>(10, "Relu"));
  for (int level = 1; level < 10; ++level)
    function("F" + std::to_string(level),
             std::vector<std::string>(10, "F" + std::to_string(level - 1)));
  function("F", {"F9"});
  EXPECT_REFUSED(model.bytes(), "more than 1000000");
}

TEST(Reader, EscapesNamesInMessages) {
  ModelBuilder model = identity();
  model.node("Add", {"x", "evil\n\x1b[31m"}, {"y"}, "n");
  EXPECT_REFUSED(model.bytes(), "'evil\\x0a\\x1b[31m'");
}

} // namespace
} // namespace titan::frontend
