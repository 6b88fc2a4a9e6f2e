#include "frontend/onnx/name/Account.h"

#include "frontend/onnx/name/Exporter.h"
#include "frontend/onnx/name/Names.h"

#include <algorithm>
#include <set>

namespace titan::frontend {

static constexpr NoteCause kUnproved = {
    "{} is a constant and not trained, and nothing proves that the source does not train it; "
    "--names can say kind = \"parameter\"",
    "{} tensors are constants and not trained, and nothing proves that the source does not train "
    "them; --names can say kind = \"parameter\": {}"};
constexpr const char* kUnlisted =
    "a conversion to another opset dropped the metadata of torch.export: a parameter that the "
    "exporter's optimizer removed cannot be listed, and is not trained; export with "
    "torch.onnx.export(..., dynamo=True, optimize=False, opset_version=23) to keep it";
static constexpr NoteCause kFoldedAway = {
    "parameter {} of the source is not in the file and is not trained: the exporter folded it "
    "away; export with optimize=False to keep it",
    "{} parameters of the source are not in the file and are not trained: the exporter folded them "
    "away; export with optimize=False to keep them: {}"};
static constexpr NoteCause kUnused = {
    "parameter {} of the source is not in the file and is not trained under this name: the model "
    "does not use it, or uses it under another name that it is tied to, or the exporter left out "
    "what it does",
    "{} parameters of the source are not in the file and are not trained under these names: the "
    "model does not use them, or uses them under other names that they are tied to, or the "
    "exporter left out what they do: {}"};
static constexpr NoteCause kFoldedOrUnused = {
    "parameter {} of the source is not in the file and is not trained under its name: the exporter "
    "folded it into another tensor, or the model does not use it, or uses it under another name "
    "that it is tied to; export with optimize=False to keep it",
    "{} parameters of the source are not in the file and are not trained under their names: the "
    "exporter folded them into other tensors, or the model does not use them, or uses them under "
    "other names that they are tied to; export with optimize=False to keep them: {}"};
static constexpr NoteCause kLostBuffer = {
    "buffer {} of the source is not in the file: the exporter folded it away or the model does not "
    "use it; checkpoints do not have it",
    "{} buffers of the source are not in the file: the exporter folded them away or the model does "
    "not use them; checkpoints do not have them: {}"};

static constexpr NoteCause kWritten = {
    "buffer {} is written by each forward of the source in training, which the file leaves out: it "
    "stays what it is",
    "{} buffers are written by each forward of the source in training, which the file leaves out: "
    "they stay what they are: {}"};

std::string_view name(TensorKind kind) {
  return kind == TensorKind::Parameter ? "parameter"
         : kind == TensorKind::Buffer  ? "buffer"
                                       : "constant";
}

std::string_view name(Standing standing) {
  switch (standing) {
  case Standing::Exact:
    return "exact";
  case Standing::Guessed:
    return "guessed";
  case Standing::Alias:
    return "alias";
  case Standing::Part:
    return "part";
  case Standing::MadeUp:
    return "made up";
  case Standing::Absent:
    return "absent";
  case Standing::Constant:
    return "constant";
  }
  return "";
}

std::string_view name(Proof proof) {
  switch (proof) {
  case Proof::None:
    return "nothing proves it";
  case Proof::NoGradient:
    return "no gradient reaches it";
  case Proof::Source:
    return "the source says so";
  case Proof::Number:
    return "a number of the program";
  case Proof::Angles:
    return "sines and cosines of positions";
  case Proof::Mask:
    return "a mask";
  case Proof::Told:
    return "the names file says so";
  }
  return "";
}

bool AccountLine::isExact() const {
  if (standing == Standing::Constant)
    return proof != Proof::None && !doubtful;
  return (standing == Standing::Exact || standing == Standing::Alias) && !doubtful;
}

std::array<size_t, kStandings> Account::counts() const {
  std::array<size_t, kStandings> counts{};
  for (const AccountLine& line : lines)
    ++counts[static_cast<size_t>(line.standing)];
  return counts;
}

std::string Account::summary() const {
  const std::array<size_t, kStandings> counts = this->counts();
  std::string text;
  for (size_t i = 0; i < kStandings; ++i) {
    auto standing = static_cast<Standing>(i);
    if (counts[i] == 0)
      continue;
    // "2 aliases": what can be counted has a plural.
    std::string_view plural = counts[i] == 1                   ? ""
                              : standing == Standing::Alias    ? "es"
                              : standing == Standing::Part     ? "s"
                              : standing == Standing::Constant ? "s"
                                                               : "";
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", counts[i], name(standing), plural);
  }
  return text.empty() ? "nothing" : text;
}

static std::string whyNotExact(const AccountLine& line) {
  const std::string shown = inQuotes(line.name);
  switch (line.standing) {
  case Standing::Guessed:
    return shown + " has its name by a guess";
  case Standing::Part:
    return shown + " is a part of a parameter, or was computed from some";
  case Standing::MadeUp:
    return shown + " has a name that was made up";
  case Standing::Absent:
    return fmt::format("{} {} is not in the file", name(line.kind), shown);
  case Standing::Constant:
    return shown + " is a constant, and nothing proves that the source does not train it";
  case Standing::Exact:
  case Standing::Alias:
    break;
  }
  return shown + " is trained, and may be a buffer";
}

Status requireExact(const Account& account) {
  std::vector<std::string> open;
  for (const AccountLine& line : account.lines)
    // A buffer that state_dict() has not is missed by nobody.
    if (!line.isExact() && (line.standing != Standing::Absent || line.noted))
      open.push_back(whyNotExact(line));
  if (open.empty() && account.mayLackParameters)
    return Error::badInput("--strict-names: {}", kUnlisted);
  if (open.empty())
    return {};
  constexpr size_t kMostListed = 50;
  std::string list;
  for (size_t i = 0; i < std::min(open.size(), kMostListed); ++i)
    list += "\n  " + open[i];
  if (open.size() > kMostListed)
    list += fmt::format("\n  and {} more", open.size() - kMostListed);
  return Error::badInput("--strict-names: {} of {} tensors are not exactly the source's; see the "
                         "notes of --check:{}",
                         open.size(), account.lines.size(), list);
}

namespace {

class Accountant {
public:
  Accountant(const Graph& graph, NameTable& names) : graph_(graph), names_(names) {}

  Result<Account> run() {
    for (size_t i = 0; i < names_.tensors.size(); ++i)
      for (const std::string& state : statesOf(names_.tensors[i]))
        fillers_[state].push_back(i);
    for (const NamedState& state : names_.states)
      TITAN_TRY(addState(state));
    for (const NamedTensor& tensor : names_.tensors)
      if (tensor.kind == TensorKind::Constant)
        TITAN_TRY(addConstant(tensor));
    for (const ListedTensor& listed : names_.listed)
      if (!claimed_.contains(listed.name) && !stoodFor_.contains(listed.name))
        addAbsent(listed);
    if (isConverted(graph_)) {
      account_.mayLackParameters = true;
      names_.notes.add(kUnlisted);
    }
    return std::move(account_);
  }

private:
  Status addState(const NamedState& state) {
    const NamedTensor& first = names_.tensors[state.tensor];
    AccountLine line;
    line.name = state.name;
    line.kind = first.kind;
    line.shape = state.shape;
    line.initializers = initializersOf(state.sources);
    line.dtype = graph_.initializers.at(line.initializers.front()).dtype;
    std::vector<std::string> aliases;
    for (size_t i : fillers_[state.name]) {
      const NamedTensor& tensor = names_.tensors[i];
      if (tensor.isCopy)
        line.initializers.push_back(tensor.initializer);
      // The most doubtful of the tensors that it is put together from.
      line.standing = std::max(line.standing, standingOf(tensor));
      line.doubtful |= tensor.doubt || tensor.guessed;
      line.noted |= tensor.perhapsPadded && !tensor.paddingIndex;
      if (tensor.isPart)
        line.of = tensor.partOf;
      aliases.insert(aliases.end(), tensor.aliases.begin(), tensor.aliases.end());
    }
    line.noted |= line.doubtful;
    stoodFor_.insert(line.of.begin(), line.of.end());
    openFolds_ |=
        (line.standing == Standing::Part || line.standing == Standing::MadeUp) && line.of.empty();
    TITAN_TRY(claimName(state.name, state.name));
    account_.lines.push_back(std::move(line));
    for (const std::string& alias : aliases) {
      TITAN_TRY(claimName(alias, state.name));
      AccountLine other;
      other.standing = Standing::Alias;
      other.name = alias;
      other.kind = first.kind;
      other.of = {state.name};
      other.dtype = account_.lines.back().dtype;
      other.shape = state.shape;
      account_.lines.push_back(std::move(other));
    }
    return {};
  }

  static std::set<std::string> statesOf(const NamedTensor& tensor) {
    std::set<std::string> states;
    if (tensor.kind == TensorKind::Constant)
      return states;
    if (tensor.pieces.empty())
      states.insert(tensor.name);
    for (const StatePiece& piece : tensor.pieces)
      states.insert(piece.state);
    return states;
  }

  static Standing standingOf(const NamedTensor& tensor) {
    return tensor.isPart       ? Standing::Part
           : tensor.structural ? Standing::MadeUp
           : tensor.guessed    ? Standing::Guessed
                               : Standing::Exact;
  }

  Status addConstant(const NamedTensor& tensor) {
    const Tensor& file = graph_.initializers.at(tensor.initializer);
    // The source's name for it, where it is not what state_dict() calls a buffer.
    claimed_.insert(tensor.name);
    if (!isFloating(file.dtype))
      return {};
    AccountLine line;
    line.standing = Standing::Constant;
    line.name = tensor.name;
    line.kind = TensorKind::Constant;
    line.initializers = {tensor.initializer};
    line.dtype = file.dtype;
    line.shape = file.shape;
    line.proof = tensor.proof;
    line.noted = line.doubtful = tensor.doubt || tensor.proof == Proof::None;
    if (!tensor.doubt && tensor.proof == Proof::None)
      names_.notes.add(kUnproved, inQuotes(tensor.initializer));
    // What only values prove may have been computed from anything.
    openFolds_ |= line.noted || tensor.proof == Proof::Mask || tensor.proof == Proof::Angles;
    account_.lines.push_back(std::move(line));
    return {};
  }

  void addAbsent(const ListedTensor& listed) {
    AccountLine line;
    line.standing = Standing::Absent;
    line.name = listed.name;
    line.kind = listed.isParameter ? TensorKind::Parameter : TensorKind::Buffer;
    // A buffer that state_dict() has not is missed by nobody.
    line.noted = listed.isParameter || listed.isPersistent;
    if (line.noted)
      names_.notes.add(!listed.isParameter ? kLostBuffer
                       : listed.isRead     ? kFoldedAway
                       : openFolds_        ? kFoldedOrUnused
                                           : kUnused,
                       inQuotes(listed.name));
    account_.lines.push_back(std::move(line));
  }

  Status claimName(const std::string& name, const std::string& state) {
    if (claimed_.insert(name).second)
      return {};
    return Error::badInput("'{}' is the name of one tensor and another name of '{}': rename one "
                           "with --names",
                           printable(name), printable(state));
  }

  const Graph& graph_;
  NameTable& names_;
  Account account_;
  std::map<std::string, std::vector<size_t>> fillers_; ///< tensors by state
  std::set<std::string> claimed_;                      ///< names that have a line
  std::set<std::string> stoodFor_;                     ///< names that parts stand for
  bool openFolds_ = false; ///< something may be the fold of a parameter that nobody knows
};

} // namespace

/// Files have no outputs for what a forward writes. What a norm of the batch writes is what it is.
static void noteWrittenBuffers(const Graph& graph, NameTable& names) {
  std::set<std::string> moved;
  for (const Node& node : graph.nodes)
    if (node.domain.empty() && node.opType == "BatchNormalization")
      for (size_t k = 3; k < node.inputs.size(); ++k)
        if (const NamedTensor* statistic = names.find(node.inputs[k]))
          moved.insert(statistic->name);
  for (const SourceTensor& source : graph.signature.tensors())
    if (source.written && !moved.contains(source.name))
      names.notes.add(kWritten, inQuotes(source.name));
}

Result<Account> accountOf(const Graph& graph, NameTable& names) {
  noteWrittenBuffers(graph, names);
  return Accountant(graph, names).run();
}

} // namespace titan::frontend
