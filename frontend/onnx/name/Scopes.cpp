#include "frontend/onnx/name/Scopes.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace titan::frontend {

/// The strings of a Python list as `repr` prints it: ['a', "b's"].
static std::vector<std::string> pythonStrings(const std::string& text) {
  std::vector<std::string> strings;
  for (size_t i = 0; i < text.size(); ++i) {
    char quote = text[i];
    if (quote != '\'' && quote != '"')
      continue;
    std::string value;
    for (++i; i < text.size() && text[i] != quote; ++i) {
      if (text[i] == '\\' && i + 1 < text.size())
        ++i;
      value += text[i];
    }
    strings.push_back(std::move(value));
  }
  return strings;
}

/// A module that is called twice appears as "fc@1" the second time.
static std::string withoutCallNumbers(const std::string& module) {
  std::string out;
  for (size_t i = 0; i < module.size(); ++i) {
    if (module[i] == '@') {
      while (i + 1 < module.size() && std::isdigit(static_cast<unsigned char>(module[i + 1])))
        ++i;
      continue;
    }
    out += module[i];
  }
  return out;
}

/// Sets the operands of an fx node as it prints itself.
static void readFxOperands(const std::string& text, Scope& scope) {
  size_t begin = text.find("args = (");
  if (begin == std::string::npos)
    return;
  int depth = 0, position = 0;
  for (size_t i = begin + 7; i < text.size(); ++i) {
    char c = text[i];
    if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (--depth == 0)
        position = -1; // what follows are keyword arguments
    } else if (c == ',' && depth == 1 && position >= 0) {
      ++position;
    } else if (c == '%') {
      size_t end = i + 1;
      while (end < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
        ++end;
      std::string token = text.substr(i + 1, end - i - 1);
      if (token.size() > 2 && token[1] == '_' &&
          (token[0] == 'p' || token[0] == 'b' || token[0] == 'c'))
        scope.operands.push_back({token[0], mangled(token.substr(2)), position});
      else
        scope.values.push_back({'v', token, position});
      i = end - 1;
    }
  }
}

/// The third argument of aten.embedding: `args = (%p_weight, %ids, 0)`.
static std::optional<int64_t> paddingIndexOf(const std::string& text) {
  size_t begin = text.find("args = (%");
  size_t table = begin == std::string::npos ? begin : text.find(", ", begin);
  size_t ids = table == std::string::npos ? table : text.find(", ", table + 2);
  int64_t index = -1;
  if (ids != std::string::npos)
    std::from_chars(text.data() + ids + 2, text.data() + text.size(), index);
  return index >= 0 ? std::optional(index) : std::nullopt;
}

/// What an fx node has for the argument `name`: by its position, `args = (%x, %y, None, 1)`, or by
/// its name, `kwargs = {name: 1}`. Empty: the default.
static std::string fxArgument(const std::string& text, size_t position, const std::string& name) {
  size_t begin = text.find("args = (");
  if (begin == std::string::npos)
    return "";
  begin += 8;
  size_t number = 0, end = begin;
  for (int depth = 0; end < text.size() && (depth > 0 || text[end] != ')'); ++end) {
    depth += text[end] == '(' || text[end] == '[';
    depth -= text[end] == ')' || text[end] == ']';
    if (text[end] != ',' || depth > 0)
      continue;
    if (number++ == position)
      return text.substr(begin, end - begin);
    begin = text.find_first_not_of(' ', end + 1);
  }
  if (number == position && begin < end)
    return text.substr(begin, end - begin);
  size_t keyword = text.find(name + ": ", end);
  if (keyword == std::string::npos)
    return "";
  keyword += name.size() + 2;
  return text.substr(keyword, text.find_first_of(",}", keyword) - keyword);
}

static bool isNumeric(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) || c == '.'; });
}

/// "/enc/enc.0/MatMul_1" to "enc.0".
static std::string legacyModule(const std::string& name) {
  std::vector<std::string> segments;
  for (size_t begin = name.front() == '/' ? 1 : 0; begin < name.size();) {
    size_t end = name.find('/', begin);
    if (end == std::string::npos)
      break; // the last segment is the op
    std::string segment = name.substr(begin, end - begin);
    begin = end + 1;
    // "enc", "enc.0": the second is a numbered child of the first, not "enc.enc.0".
    if (!segments.empty() && segment.size() > segments.back().size() + 1 &&
        segment.starts_with(segments.back() + ".") &&
        isNumeric(std::string_view(segment).substr(segments.back().size() + 1)))
      segments.back() = segment;
    else if (!segment.empty())
      segments.push_back(segment);
  }
  std::string module;
  for (const std::string& segment : segments)
    module += (module.empty() ? "" : ".") + segment;
  return module;
}

/// What the fx node is of a norm of the batch: one exporter writes one form of BatchNormalization
/// for both.
static void readBatchNorm(std::string_view text, Scope& scope) {
  constexpr std::string_view begin = "[target=";
  const size_t at = text.find(begin), end = at == text.npos ? at : text.find(']', at);
  if (end == text.npos)
    return;
  const std::string_view target = text.substr(at + begin.size(), end - at - begin.size());
  scope.isBatchNorm = target.find("batch_norm") != target.npos;
  scope.usesBatchStatistics = scope.isBatchNorm && target.find("no_training") == target.npos &&
                              text.find(", True, ", end) != text.npos;
}

Scope scopeOf(const Node& node) {
  Scope scope;
  if (auto fx = node.metadata.find("pkg.torch.onnx.fx_node"); fx != node.metadata.end())
    readBatchNorm(fx->second, scope);
  else if (node.opType == "BatchNormalization" && // all that a conversion to another opset leaves
           node.name.starts_with("node__native_batch_norm_legit_functional"))
    scope.isBatchNorm = scope.usesBatchStatistics = true;
  if (auto trace = node.metadata.find("pkg.torch.onnx.stack_trace"); trace != node.metadata.end()) {
    scope.isTraced = !trace->second.empty();
    scope.isTracedApart = trace->second.starts_with("File \"<eval_with_key>.");
  }
  if (auto it = node.metadata.find("pkg.torch.onnx.name_scopes"); it != node.metadata.end()) {
    std::vector<std::string> names = pythonStrings(it->second);
    scope.known = true;
    if (names.size() >= 2 && !names[names.size() - 2].starts_with("_empty_nn_module_stack"))
      scope.module = withoutCallNumbers(names[names.size() - 2]);
    if (auto classes = node.metadata.find("pkg.torch.onnx.class_hierarchy");
        classes != node.metadata.end()) {
      std::vector<std::string> hierarchy = pythonStrings(classes->second);
      if (hierarchy.size() >= 2)
        scope.moduleClass = hierarchy[hierarchy.size() - 2];
      if (!hierarchy.empty())
        scope.target = hierarchy.back();
    }
    if (auto fx = node.metadata.find("pkg.torch.onnx.fx_node"); fx != node.metadata.end()) {
      readFxOperands(fx->second, scope);
      scope.scales = fx->second.find("kwargs = {alpha: ") != std::string::npos;
      if (scope.target.starts_with("aten.embedding."))
        scope.paddingIndex = paddingIndexOf(fx->second);
      if (fx->second.find("target=torch.ops.aten.cross_entropy_loss.") != std::string::npos)
        scope.labelSmoothing = fxArgument(fx->second, 5, "label_smoothing");
      if (scope.target.starts_with("aten.scatter_reduce."))
        scope.scatterReduction = fxArgument(fx->second, 4, "reduce");
      if (scope.target.starts_with("aten.avg_pool"))
        scope.averageDivisor = fxArgument(fx->second, 6, "divisor_override");
    }
  } else if (node.name.find('/') != std::string::npos) {
    scope.known = true;
    scope.module = node.module.value_or(legacyModule(node.name));
    scope.place = node.place;
  }
  return scope;
}

std::string pathOf(const Node& node) {
  Scope scope = scopeOf(node);
  if (!scope.module.empty())
    return printable(scope.module);
  // An op of the root module: its own name.
  std::string_view name = node.name;
  if (name.starts_with("node_"))
    name.remove_prefix(5); // torch.export's
  if (name.empty() && !node.outputs.empty())
    name = node.outputs.front();
  return printable(name.substr(name.rfind('/') + 1));
}

std::string mangled(std::string_view name) {
  std::string out;
  for (unsigned char c : name)
    if ((c & 0xC0) != 0x80) // no further byte of a character
      out += std::isalnum(c) ? static_cast<char>(std::tolower(c)) : '_';
  return out;
}

std::string fxNameOf(const Graph& graph, std::string_view name) {
  const SourceTensor* source = graph.signature.byName(name);
  return source ? source->mangled : mangled(name);
}

bool encloses(std::string_view module, std::string_view inner) {
  return module.empty() || inner == module ||
         (inner.size() > module.size() && inner.starts_with(module) && inner[module.size()] == '.');
}

bool areRelated(std::string_view a, std::string_view b) { return encloses(a, b) || encloses(b, a); }

std::string_view moduleOf(std::string_view name) {
  size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

std::string_view leafOf(std::string_view name) { return name.substr(name.rfind('.') + 1); }

} // namespace titan::frontend
