// The account closes, whatever the exporter folded, tied, merged and left out.
#include "frontend/onnx/name/Account.h"
#include "frontend/onnx/ReadGraph.h"
#include "frontend/onnx/name/Names.h"
#include "frontend/onnx/testing/ModelBuilder.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace titan::frontend {
namespace {

using testing::ModelBuilder;

/// A chain of layers as exporters write them, and what became of each one's parameter.
struct RandomModel {
  ModelBuilder model;
  std::vector<std::string> source; ///< names that the signature lists, if there is one
};

RandomModel randomModel(uint32_t seed, bool signature) {
  std::mt19937 draw(seed);
  auto oneOf = [&](std::initializer_list<const char*> list) {
    return *(list.begin() + draw() % list.size());
  };
  RandomModel random;
  ModelBuilder& model = random.model;
  model.model.set_producer_name("pytorch");
  std::string lines, value = "x";
  model.input("x", {2, 3});
  const size_t layers = 1 + draw() % 6;
  std::vector<std::string> kept;
  for (size_t i = 0; i < layers; ++i) {
    std::string module = std::string(oneOf({"enc.", "h.0.", "", "a.b."})) + "m" + std::to_string(i);
    std::string name = module + "." + oneOf({"weight", "w", "scale"});
    std::string what =
        oneOf({"kept", "folded", "tied", "anonymous", "scalar", "absent", "constant"});
    std::string result = "y" + std::to_string(i), tensor = name;
    std::vector<float> numbers(9);
    for (float& number : numbers)
      number = draw() % 3 == 0 ? 1.0f : static_cast<float>(draw() % 100) / 7;
    if (what == "folded" || what == "anonymous")
      tensor = std::string(oneOf({"val_", "onnx::MatMul_", "exp_"})) + std::to_string(i);
    if (what == "tied" && !kept.empty()) {
      tensor = kept[draw() % kept.size()];
    } else if (what == "scalar") {
      tensor = "val_" + std::to_string(100 + i);
      model.floats(tensor, {}, {numbers[0]});
    } else if (what == "constant") {
      tensor = "Constant_" + std::to_string(i);
      model.floats(tensor, {3, 3}, numbers);
    } else if (what != "absent") {
      model.floats(tensor, {3, 3}, numbers);
      if (tensor == name)
        kept.push_back(name);
    }
    if (what != "scalar" && what != "constant" && draw() % 5 != 0) {
      std::string flat = mangled(name);
      lines += "p_" + flat + ": PARAMETER target='" + name + "'\n";
      random.source.push_back(name);
    }
    const char* op = what == "scalar" ? "Mul" : oneOf({"MatMul", "Add", "Mul"});
    if (what == "absent")
      model.node("Relu", {value}, {result}, "n" + std::to_string(i));
    else
      model.node(op, {value, tensor}, {result},
                 (draw() % 4 == 0 ? "n" + std::to_string(i) : "/" + module + "/" + op));
    value = result;
  }
  model.output("out").node("Identity", {value}, {"out"}, "last");
  if (signature)
    model.signature(lines);
  else
    random.source.clear();
  return random;
}

TEST(Account, Closes) {
  std::set<Standing> seen;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    RandomModel random = randomModel(seed, seed % 2 == 0);
    Result<Graph> graph = parseGraph(random.model.bytes(), "m.onnx", "");
    ASSERT_TRUE(graph.ok()) << graph.error().message();
    Result<NameTable> names = nameTensors(*graph);
    ASSERT_TRUE(names.ok()) << "seed " << seed << ": " << names.error().message();
    std::map<std::string, int> tensors, claims;
    std::set<std::string> parts;
    std::string notes;
    for (const std::string& note : names->notes.lines())
      notes += note + "\n";
    for (const AccountLine& line : names->account.lines) {
      seen.insert(line.standing);
      for (const std::string& initializer : line.initializers)
        ++tensors[initializer];
      ++claims[line.name];
      if (line.standing == Standing::Part)
        parts.insert(line.of.begin(), line.of.end());
      // What is not exact is said, by its name.
      if (!line.isExact())
        EXPECT_NE(notes.find(inQuotes(line.name)), std::string::npos)
            << "seed " << seed << ": " << line.name << " has no note";
    }
    for (const auto& [name, tensor] : graph->initializers)
      if (isFloating(tensor.dtype))
        EXPECT_EQ(tensors[name], 1) << "seed " << seed << ": tensor " << name;
    // What a part stands for is in the file or not.
    for (const std::string& name : random.source)
      EXPECT_EQ(std::max(claims[name], parts.contains(name) ? 1 : 0), 1)
          << "seed " << seed << ": name " << name;
    size_t counted = 0;
    for (size_t count : names->account.counts())
      counted += count;
    EXPECT_EQ(counted, names->account.lines.size());
  }
  for (Standing standing :
       {Standing::Exact, Standing::Alias, Standing::MadeUp, Standing::Absent, Standing::Constant})
    EXPECT_TRUE(seen.contains(standing)) << name(standing);
}

TEST(Account, CountsInWords) {
  Account account;
  EXPECT_EQ(account.summary(), "nothing");
  for (Standing standing : {Standing::Exact, Standing::Exact, Standing::Alias, Standing::Alias,
                            Standing::Part, Standing::Absent, Standing::Constant})
    account.lines.emplace_back().standing = standing;
  EXPECT_EQ(account.summary(), "2 exact, 2 aliases, 1 part, 1 absent, 1 constant");
}

TEST(Account, StrictNamesListWhatIsNotExact) {
  RandomModel random;
  random.model.model.set_producer_name("pytorch");
  random.model.input("x", {2, 3}).output("y").floats("val_0", {3}, {1, 2, 3});
  random.model.node("Mul", {"x", "val_0"}, {"y"}, "node_mul");
  random.model.signature("p_w: PARAMETER target='w'\n");
  NameTable names = nameTensors(parseGraph(random.model.bytes(), "m.onnx", "").take()).take();
  Status strict = requireExact(names.account);
  ASSERT_FALSE(strict.ok());
  EXPECT_NE(strict.error().message().find("not exactly the source's"), std::string::npos);
  EXPECT_NE(strict.error().message().find("\n  "), std::string::npos);
}

// torch.export's optimizer multiplies the norm behind a convolution into its weight, which keeps
// its name.
TEST(Account, AWeightWithANormInItIsNotTheSources) {
  ModelBuilder model;
  model.model.set_producer_name("pytorch");
  model.input("x", {-1, 2, 5}).output("y").floats("c.weight", {3, 2, 2}, std::vector<float>(12, 1));
  ModelBuilder::setSource(
      model.node("Conv", {"x", "c.weight"}, {"y"}), "n",
      "_native_batch_norm_legit_no_training.default",
      "%conv, %p_n_weight, %p_n_bias, %b_n_running_mean, %b_n_running_var, 0.1, 1e-05");
  model.signature("p_c_weight: PARAMETER target='c.weight'\n"
                  "p_n_weight: PARAMETER target='n.weight'\n"
                  "p_n_bias: PARAMETER target='n.bias'\n");
  Graph graph = parseGraph(model.bytes(), "m.onnx", "").take();
  const Account account = nameTensors(graph).take().account;
  for (const AccountLine& line : account.lines)
    EXPECT_NE(line.standing, Standing::Exact) << line.name;
  EXPECT_EQ(std::ranges::count(account.lines, "c.weight", &AccountLine::name), 1);
}

} // namespace
} // namespace titan::frontend
