#include "compiler/Schedule/testing/GptModel.h"

#include <fmt/format.h>

namespace titan::schedule::testing {

namespace {

/// Writes the function op by op; values are numbered.
class Writer {
public:
  explicit Writer(const GptShape& shape) : s(shape) {}

  std::string run() {
    rows_ = fmt::format("{}x{}", s.batch, s.positions);
    const std::string x = typed(s.width);
    const std::string table = fmt::format("tensor<{}x{}xf32>", s.vocabulary, s.width);
    const std::string ids = fmt::format("tensor<{}xi64>", rows_);

    std::string wte = parameter("transformer.wte.weight", {s.vocabulary, s.width});
    std::string wpe = parameter("transformer.wpe.weight", {s.positions, s.width});
    std::string token =
        value("titan.embedding {}, %ids {{path = [\"transformer.wte\"]}} : ({}, {}) -> {}", wte,
              table, ids, x);
    std::string position = value(
        "titan.broadcast {} [1, 2] {{path = [\"transformer.wpe\"]}} : tensor<{}x{}xf32> to {}", wpe,
        s.positions, s.width, x);
    std::string hidden = dropout(
        "transformer.drop", elementwise("add", "transformer", token, position, s.width), s.width);
    for (int64_t layer = 0; layer < s.layers; ++layer)
      hidden = block(fmt::format("transformer.h.{}", layer), hidden);
    hidden = norm("transformer.ln_f", hidden);
    std::string head = s.isTied ? wte : parameter("lm_head.weight", {s.vocabulary, s.width});
    std::string logits = value("titan.contract {}, {} batch [] x [] contracting [2] x [1] {{path = "
                               "[\"lm_head\"]}} : ({}, {}) -> {}",
                               hidden, head, x, table, typed(s.vocabulary));
    return fmt::format("module attributes {{titan.stage = \"import\", titan.model = \"gpt.onnx\", "
                       "titan.recipe = {{batch = {{micro = {} : i64, global = {} : i64}}, "
                       "optimizer = {{kind = \"adamw\"{}{}}}, schedule = {{steps = 10 : i64}}, "
                       "memory = {{{}}}, mesh = {{{}}}, data = {{train = [\"text.txt\"]}}}}}} {{\n"
                       "{}func.func @model({}%ids: {} {{titan.input = \"ids\"}}) -> ({} "
                       "{{titan.output = \"logits\"}}) {{\n{}return {} : {}\n}}\n}}\n",
                       s.batch, s.batch * s.microbatches, s.optimizer.empty() ? "" : ", ",
                       s.optimizer, s.memory, s.mesh, states_, arguments_, ids, typed(s.vocabulary),
                       body_, logits, typed(s.vocabulary));
  }

private:
  const GptShape& s;
  std::string states_, arguments_, body_, rows_;
  int values_ = 0, parameters_ = 0, streams_ = 0;

  std::string typed(int64_t width) const { return fmt::format("tensor<{}x{}xf32>", rows_, width); }
  std::string headType() const {
    return fmt::format("tensor<{}x{}x{}xf32>", rows_, s.heads, s.width / s.heads);
  }

  template <typename... Args>
  std::string value(fmt::format_string<Args...> format, Args&&... args) {
    return values(1, fmt::format(format, std::forward<Args>(args)...));
  }

  std::string values(int results, const std::string& op) {
    std::string name = fmt::format("%v{}", values_++);
    body_ += fmt::format("  {}{} = {}\n", name, results > 1 ? fmt::format(":{}", results) : "", op);
    return name;
  }

  std::string parameter(const std::string& name, std::initializer_list<int64_t> shape) {
    std::string type = fmt::format("tensor<{}xf32>", fmt::join(shape, "x"));
    states_ += fmt::format("titan.state @\"{}\" : {} {{kind = #titan<kind param>, trainable, init "
                           "= #titan.init_rule<\"normal\", 0.0 : f64, "
                           "0.1 : f64>}}\n",
                           name, type);
    std::string argument = fmt::format("%p{}", parameters_++);
    arguments_ += fmt::format("{}: {} {{titan.state = @\"{}\"}}, ", argument, type, name);
    return argument;
  }

  std::string elementwise(const char* op, const std::string& path, const std::string& a,
                          const std::string& b, int64_t width) {
    return value("titan.{} {}, {} {{path = [\"{}\"]}} : {}", op, a, b, path, typed(width));
  }

  std::string dropout(const std::string& path, const std::string& in, int64_t width) {
    if (s.dropout == 0)
      return in;
    return value("titan.dropout {} p {:e} stream {} {{path = [\"{}\"]}} : {} to {}", in, s.dropout,
                 ++streams_, path, typed(width), typed(width));
  }

  std::string linear(const std::string& path, const std::string& in, int64_t from, int64_t to) {
    std::string weight = parameter(path + ".weight", {to, from}),
                bias = parameter(path + ".bias", {to});
    std::string product = value("titan.contract {}, {} batch [] x [] contracting [2] x [1] {{path "
                                "= [\"{}\"]}} : ({}, tensor<{}x{}xf32>) -> {}",
                                in, weight, path, typed(from), to, from, typed(to));
    std::string row = value("titan.broadcast {} [2] {{path = [\"{}\"]}} : tensor<{}xf32> to {}",
                            bias, path, to, typed(to));
    return elementwise("add", path, product, row, to);
  }

  std::string norm(const std::string& path, const std::string& in) {
    std::string scale = parameter(path + ".weight", {s.width}),
                bias = parameter(path + ".bias", {s.width});
    return values(3, fmt::format("titan.layer_norm {} scale {} bias {} over [2] epsilon 1.0e-5 "
                                 "{{path = [\"{}\"]}} : "
                                 "({}, tensor<{}xf32>, tensor<{}xf32>) -> ({}, "
                                 "tensor<{}xf32>, tensor<{}xf32>)",
                                 in, scale, bias, path, typed(s.width), s.width, s.width,
                                 typed(s.width), rows_, rows_)) +
           "#0";
  }

  std::string heads(const std::string& path, const std::string& qkv, int64_t part) {
    std::string piece =
        value("titan.slice {} offsets [0, 0, {}] strides [1, 1, 1] {{path = [\"{}\"]}} : {} to {}",
              qkv, part * s.width, path, typed(3 * s.width), typed(s.width));
    return value("titan.reshape {} {{path = [\"{}\"]}} : {} to {}", piece, path, typed(s.width),
                 headType());
  }

  std::string attention(const std::string& path, const std::string& in) {
    std::string qkv = linear(path + ".c_attn", in, s.width, 3 * s.width);
    std::string q = heads(path, qkv, 0), k = heads(path, qkv, 1), v = heads(path, qkv, 2);
    std::string out = s.isDecomposed ? products(path, q, k, v) : fused(path, q, k, v);
    std::string joined = value("titan.reshape {} {{path = [\"{}\"]}} : {} to {}", out, path,
                               headType(), typed(s.width));
    return dropout(path + ".resid_dropout", linear(path + ".c_proj", joined, s.width, s.width),
                   s.width);
  }

  std::string products(const std::string& path, const std::string& q, const std::string& k,
                       const std::string& v) {
    std::string scores =
        fmt::format("tensor<{}x{}x{}x{}xf32>", s.batch, s.heads, s.positions, s.positions);
    std::string score = value("titan.contract {}, {} batch [0, 2] x [0, 2] contracting [3] x [3] "
                              "{{path = [\"{}\"]}} : ({}, {}) -> {}",
                              q, k, path, headType(), headType(), scores);
    std::string weights =
        value("titan.softmax {} dim 3 {{path = [\"{}\"]}} : {}", score, path, scores);
    std::string mixedType =
        fmt::format("tensor<{}x{}x{}x{}xf32>", s.batch, s.heads, s.positions, s.width / s.heads);
    std::string mixed = value("titan.contract {}, {} batch [0, 1] x [0, 2] contracting [3] x [1] "
                              "{{path = [\"{}\"]}} : ({}, {}) -> {}",
                              weights, v, path, scores, headType(), mixedType);
    return value("titan.transpose {} [0, 2, 1, 3] {{path = [\"{}\"]}} : {} to {}", mixed, path,
                 mixedType, headType());
  }

  std::string fused(const std::string& path, const std::string& q, const std::string& k,
                    const std::string& v) {
    std::string random =
        s.dropout == 0 ? ""
                       : fmt::format("p = {:e} : f64, stream = {} : i64, ", s.dropout, ++streams_);
    std::string out = values(
        2, fmt::format("titan.attention {}, {}, {} scale {:e} causal {{{}path = [\"{}\"]}} : "
                       "({}, {}, {}) -> ({}, tensor<{}x{}x{}xf32>)",
                       q, k, v, 1.0 / 4, random, path, headType(), headType(), headType(),
                       headType(), s.batch, s.heads, s.positions));
    return out + "#0";
  }

  std::string block(const std::string& path, std::string in) {
    std::string attended = attention(path + ".attn", norm(path + ".ln_1", in));
    in = elementwise("add", path, in, attended, s.width);
    std::string wide = linear(path + ".mlp.c_fc", norm(path + ".ln_2", in), s.width, 4 * s.width);
    std::string active = value("titan.gelu tanh {} {{path = [\"{}.mlp.act\"]}} : {}", wide, path,
                               typed(4 * s.width));
    std::string narrow = dropout(
        path + ".mlp.dropout", linear(path + ".mlp.c_proj", active, 4 * s.width, s.width), s.width);
    return elementwise("add", path, in, narrow, s.width);
  }
};

} // namespace

std::string gptModel(const GptShape& shape) { return Writer(shape).run(); }

} // namespace titan::schedule::testing
