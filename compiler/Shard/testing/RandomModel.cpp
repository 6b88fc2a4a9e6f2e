#include "compiler/Shard/testing/RandomModel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace titan::shard::testing {

namespace {

class Mlp {
public:
  Mlp(Draws& draws, int64_t micro) : draws_(draws), micro_(micro) {}

  std::string run() {
    int64_t width = draws_.number(1, 12);
    const std::string input = rows(width);
    std::string hidden = "%x";
    const int64_t layers = draws_.number(1, 3);
    for (int64_t i = 0; i < layers; ++i) {
      const std::string path = fmt::format("layers.{}", i);
      const int64_t next = draws_.chance(25) ? width : draws_.number(1, 13);
      const Layer layer = makeLayer(path, width, next);
      hidden = apply(layer, hidden);
      if (width == next && draws_.chance(50))
        hidden = apply(layer, hidden);
      width = next;
      hidden = decorate(path, hidden, width);
    }
    const int64_t classes = draws_.number(2, 9);
    hidden = apply(makeLayer("head", width, classes), hidden);
    if (draws_.chance(15))
      parameter("unused.weight", {draws_.number(1, 9), draws_.number(1, 9)});
    return fmt::format("{}func.func @model({}%x: {} {{titan.input = \"x\"}}) -> ({} {{titan.output "
                       "= \"logits\"}}) {{\n{}return {} : {}\n}}\n",
                       states_, arguments_, input, rows(classes), body_, hidden, rows(classes));
  }

private:
  struct Layer {
    std::string path, weight, bias; ///< without a bias empty
    int64_t from = 0, to = 0;
    int64_t outer = 0; ///< of a weight [outer, to / outer, from]; 0: it is [to, from]
  };

  Draws& draws_;
  int64_t micro_;
  std::string states_, arguments_, body_;
  int values_ = 0, parameters_ = 0, streams_ = 0;

  std::string rows(int64_t width) const { return fmt::format("tensor<{}x{}xf32>", micro_, width); }

  std::string parameter(const std::string& name, const std::vector<int64_t>& shape) {
    return state(name, shape,
                 "kind = #titan<kind param>, trainable, init = #titan.init_rule<\"normal\", 0.0 : "
                 "f64, 0.5 : f64>");
  }

  std::string buffer(const std::string& name, int64_t width, double value) {
    return state(name, {width},
                 fmt::format("kind = #titan<kind buffer>, init = #titan.init_rule<\"constant\", "
                             "{:.1f} : f64, 0.0 : f64>",
                             value));
  }

  std::string state(const std::string& name, const std::vector<int64_t>& shape,
                    const std::string& attributes) {
    const std::string type = fmt::format("tensor<{}xf32>", fmt::join(shape, "x"));
    const std::string argument = fmt::format("%p{}", parameters_++);
    states_ += fmt::format("titan.state @\"{}\" : {} {{{}}}\n", name, type, attributes);
    arguments_ += fmt::format("{}: {} {{titan.state = @\"{}\"}}, ", argument, type, name);
    return argument;
  }

  template <typename... Args>
  std::string value(fmt::format_string<Args...> format, Args&&... args) {
    std::string name = fmt::format("%v{}", values_++);
    body_ += fmt::format("  {} = {}\n", name, fmt::format(format, std::forward<Args>(args)...));
    return name;
  }

  Layer makeLayer(const std::string& path, int64_t from, int64_t to) {
    Layer layer{path, "", "", from, to, 0};
    if (to % 3 == 0 && draws_.chance(50))
      layer.outer = 3;
    layer.weight = layer.outer ? parameter(path + ".weight", {layer.outer, to / layer.outer, from})
                               : parameter(path + ".weight", {to, from});
    if (draws_.chance(60))
      layer.bias = parameter(path + ".bias", {to});
    return layer;
  }

  std::string product(const Layer& layer, const std::string& in) {
    if (!layer.outer)
      return value(
          "titan.contract {}, {} batch [] x [] contracting [1] x [1] {{path = [\"{}\"]}} : "
          "({}, tensor<{}x{}xf32>) -> {}",
          in, layer.weight, layer.path, rows(layer.from), layer.to, layer.from, rows(layer.to));
    const int64_t inner = layer.to / layer.outer;
    const std::string type = fmt::format("tensor<{}x{}x{}xf32>", micro_, layer.outer, inner);
    const std::string blocks = value(
        "titan.contract {}, {} batch [] x [] contracting [1] x [2] {{path = [\"{}\"]}} : ({}, "
        "tensor<{}x{}x{}xf32>) -> {}",
        in, layer.weight, layer.path, rows(layer.from), layer.outer, inner, layer.from, type);
    return value("titan.reshape {} {{path = [\"{}\"]}} : {} to {}", blocks, layer.path, type,
                 rows(layer.to));
  }

  std::string apply(const Layer& layer, const std::string& in) {
    const std::string out = product(layer, in);
    return layer.bias.empty() ? out : withVector("add", layer.path, out, layer.bias, layer.to);
  }

  /// `in` and, in each row, `vector`.
  std::string withVector(const char* op, const std::string& path, const std::string& in,
                         const std::string& vector, int64_t width) {
    const std::string wide =
        value("titan.broadcast {} [1] {{path = [\"{}\"]}} : tensor<{}xf32> to {}", vector, path,
              width, rows(width));
    return value("titan.{} {}, {} {{path = [\"{}\"]}} : {}", op, in, wide, path, rows(width));
  }

  std::string batchNorm(const std::string& path, const std::string& in, int64_t width) {
    const std::string scale = parameter(path + ".weight", {width}),
                      bias = parameter(path + ".bias", {width}),
                      mean = buffer(path + ".running_mean", width, 0),
                      variance = buffer(path + ".running_var", width, 1);
    const std::string vector = fmt::format("tensor<{}xf32>", width);
    const std::string out =
        value("titan.batch_norm {0} scale {1} bias {2} running {3}, {4} dim 1 epsilon 0.1 momentum "
              "0.25 unbiased {{path = [\"{5}\"]}} : ({6}, {7}, {7}, {7}, {7}) -> ({6}, {7}, {7})",
              in, scale, bias, mean, variance, path, rows(width), vector);
    return firstOfThree(out, "batch_norm");
  }

  /// The first result of the op of three that was built last.
  std::string firstOfThree(const std::string& name, const std::string& op) {
    body_.insert(body_.rfind(" = titan." + op), ":3");
    return name + "#0";
  }

  /// What may stand behind a layer.
  std::string decorate(const std::string& path, std::string hidden, int64_t width) {
    if (width > 2 && draws_.chance(30)) {
      const std::string scale = parameter(path + ".norm.weight", {width}),
                        bias = parameter(path + ".norm.bias", {width});
      hidden =
          value("titan.layer_norm {} scale {} bias {} over [1] epsilon 1.0e-5 {{path = [\"{}"
                ".norm\"]}} : ({}, tensor<{}xf32>, tensor<{}xf32>) -> ({}, tensor<{}xf32>, "
                "tensor<{}xf32>)",
                hidden, scale, bias, path, rows(width), width, width, rows(width), micro_, micro_);
      hidden = firstOfThree(hidden, "layer_norm");
    }
    if (micro_ > 1 && draws_.chance(30))
      hidden = batchNorm(path + ".bn", hidden, width);
    if (draws_.chance(40))
      hidden = value("titan.{} {} {{path = [\"{}.act\"]}} : {}",
                     draws_.chance(50) ? "tanh" : "silu", hidden, path, rows(width));
    if (draws_.chance(30))
      hidden = withVector("mul", path, hidden, parameter(path + ".scale", {width}), width);
    if (draws_.chance(20))
      hidden = value("titan.dropout {} p 0.25 stream {} {{path = [\"{}.drop\"]}} : {} to {}",
                     hidden, ++streams_, path, rows(width), rows(width));
    return hidden;
  }
};

} // namespace

std::string randomMlp(Draws& draws, int64_t micro) { return Mlp(draws, micro).run(); }

} // namespace titan::shard::testing
