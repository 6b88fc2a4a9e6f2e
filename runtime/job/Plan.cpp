#include "runtime/job/Plan.h"

#include "runtime/checkpoint/WriteState.h"
#include "runtime/job/Communication.h"
#include "runtime/program/HostStates.h"
#include "runtime/program/Recipe.h"
#include "runtime/program/Strategy.h"
#include "runtime/program/Text.h"

#include <algorithm>
#include <bit>
#include <set>

namespace titan {

using Json = nlohmann::ordered_json;

namespace {

const char* nameOf(Binding::Role role) {
  switch (role) {
  case Binding::Role::Input:
    return "inputs";
  case Binding::Role::Control:
    return "controls";
  case Binding::Role::Metric:
    return "metrics";
  case Binding::Role::Output:
    return "outputs";
  }
  return "";
}

Json stateMemory(const Program& program) {
  Json json = {{"total", program.stateBytes}};
  for (StateKind kind :
       {StateKind::Param, StateKind::Buffer, StateKind::Slot, StateKind::Ema, StateKind::Counter}) {
    int64_t bytes = 0;
    for (const State& state : program.states)
      bytes += state.kind == kind ? state.bytes : 0;
    json[std::string(nameOf(kind))] = bytes;
  }
  return json;
}

Json bindingMemory(const Program& program) {
  // Outputs lie among the temporaries.
  Json json = {{"total", program.bindingBytes}};
  for (auto role : {Binding::Role::Input, Binding::Role::Control, Binding::Role::Metric}) {
    int64_t bytes = 0;
    for (const Function& function : program.functions)
      for (const Binding& binding : function.bindings)
        bytes += binding.role == role ? binding.bytes : 0;
    json[nameOf(role)] = bytes;
  }
  return json;
}

/// Bytes of the sums of all gradients that one level of a tree holds: of parts where ranks sum with
/// each microbatch and the strategy cuts the sums, along dimension 0.
int64_t gradientBytes(const Program& program, const MeshRecipe& recipe) {
  int64_t bytes = 0;
  for (const State& state : program.states) {
    if (state.kind != StateKind::Param || !state.trainable)
      continue;
    Shape shape = state.shape;
    for (const auto& [axis, ranks] : program.mesh) {
      const StrategyRow* row = findStrategyRow(recipe.strategy, axis);
      if (row && row->gradients == Share::Part && recipe.sync.isImmediate(axis) &&
          elementCount(shape) >= ranks && !shape.empty())
        shape[0] = (shape[0] + ranks - 1) / ranks;
    }
    bytes += elementCount(shape) * static_cast<int64_t>(sizeof(float));
  }
  return bytes;
}

/// What mesh.reduce = "tree" costs: a sum of each gradient for each level of a rank's microbatches.
Json treeMemory(const Program& program, const Recipe& recipe) {
  const int64_t levels = std::bit_width(static_cast<uint64_t>(recipe.localMicrobatches())) - 1,
                bytes = gradientBytes(program, recipe.mesh);
  return {{"levels", levels}, {"gradients", bytes}, {"total", levels * bytes}};
}

/// What the library calls of a program share.
int64_t workspaceBytes(const Program& program) {
  int64_t bytes = 0;
  for (const LibraryCall& call : program.libraryCalls)
    bytes = std::max(bytes, call.workspace);
  return bytes;
}

/// What saves beside the steps copy of the state (checkpoint::Snapshot), at most.
int64_t copyForSaves(const Program& program, const Recipe& recipe) {
  const StagingRecipe& staging = recipe.checkpoint.staging;
  if (recipe.checkpoint.every == 0 || !recipe.checkpoint.async || rankCount(program.mesh) > 1 ||
      staging.amount == "none")
    return 0;
  return staging.amount.empty() ? std::min(staging.bytes, program.stateBytes) : program.stateBytes;
}

/// Do tiles decide the bits of its products?
bool hasTiles(const Program& program) { return program.target.kind == "cpu"; }

Json memoryPlan(const Program& program, const Recipe& recipe, int threads, bool library) {
  int64_t constants = 0;
  for (const Constant& constant : program.constants)
    constants += constant.bytes;
  Json live = Json::object();
  for (const Function& function : program.functions)
    live[function.name] = function.maxLiveBytes;
  const std::optional<DeviceMemory> device = deviceMemory(program);
  const OutsideBytes outside = outsideBytes(program, threads, library);
  Json memory = {{"arena", program.arenaBytes},
                 {"state", stateMemory(program)},
                 {"bindings", bindingMemory(program)},
                 {"constants", constants},
                 {"temporaries", program.temporaryBytes}};
  if (recipe.mesh.isTree())
    memory["tree_sums"] = treeMemory(program, recipe);
  if (program.stagingBytes > 0)
    memory["staging"] = program.stagingBytes;
  if (const int64_t workspace = workspaceBytes(program); workspace > 0)
    memory["workspace"] = workspace;
  if (device)
    memory["staging"] = device->staging;
  memory["max_live"] = live;
  memory["high_water"] = program.arenaBytes;
  if (device) {
    memory["device"] = device->arena + device->staging;
    memory["driver"] = device->driver;
    memory["pinned"] = device->pinned;
  }
  const int64_t copy = copyForSaves(program, recipe);
  memory["outside"] = {{"gemm_buffers", outside.gemm}, {"batches_ahead", outside.batches}};
  if (copy > 0)
    memory["outside"]["copy_for_saves"] = copy;
  memory["outside"]["process"] = outside.process;
  memory["outside"]["bound"] = outside.total() + copy;
  return memory;
}

} // namespace

Json figuresJson(const Figures& figures) {
  return {{"commands", figures.commands()}, {"kernels", figures.kernels}, {"gemms", figures.gemms},
          {"copies", figures.copies},       {"zeros", figures.zeros},     {"flops", figures.flops},
          {"bytes", figures.bytes}};
}

namespace {

Json gemmsJson(const Program& program) {
  Json list = Json::array();
  for (const LibraryCall& call : program.libraryCalls) {
    if (call.routine != LibraryRoutine::Gemm)
      continue;
    const Gemm& g = call.gemm;
    Json item = {
        {"label", call.label},
        {"m", g.m},
        {"n", g.n},
        {"k", g.k},
        {"batch", g.batch},
        {"transpose", fmt::format("{}{}", g.transposeA ? 'T' : 'N', g.transposeB ? 'T' : 'N')}};
    if (hasTiles(program))
      item["tile"] = {g.tileM, g.tileN};
    item["accumulate"] = g.accumulate;
    item["bias"] = g.bias;
    item["relu"] = g.relu;
    item["dtypes"] = {name(g.a), name(g.b), name(g.c)};
    list.push_back(std::move(item));
  }
  return list;
}

/// Of a card's program: the calls that a library may compute.
Json attentionJson(const Program& program) {
  Json list = Json::array();
  for (const LibraryCall& call : program.libraryCalls) {
    if (call.routine != LibraryRoutine::Attention)
      continue;
    const Attention& a = call.attention;
    list.push_back({{"label", call.label},
                    {"backward", a.backward},
                    {"batch", a.batch},
                    {"heads", a.heads},
                    {"key_heads", a.keyHeads},
                    {"queries", a.queries},
                    {"keys", a.keys},
                    {"width", a.width},
                    {"value_width", a.valueWidth},
                    {"causal", a.causal},
                    {"workspace", call.workspace}});
  }
  return list;
}

/// Entry points of an image; nothing for a CPU.
std::optional<size_t> entriesOf(const Program& program) {
  std::set<std::string_view> entries;
  for (const Kernel& kernel : program.kernels)
    for (const GridLaunch& launch : kernel.launches)
      entries.insert(launch.entry);
  return entries.empty() ? std::nullopt : std::optional(entries.size());
}

Json planObject(const Program& program, const std::vector<HostRow>& hostRows, const Recipe& recipe,
                const checkpoint::SaveSize& save, int threads, bool library) {
  Json functions = Json::object();
  for (const Function& function : program.functions) {
    Json& json = functions[function.name] = figuresJson(plannedFigures(function));
    json["model_flops"] = function.modelFlops;
    if (entriesOf(program))
      json["launches"] = launchesOf(program, function);
  }
  Json communication = ledgerJson(ledgerOf(program));
  for (const Json& row : hostLedgerJson(hostRows, program.mesh))
    communication.push_back(row);
  Json plan = {{"model", program.model},
               {"target", program.target.kind},
               {"memory", memoryPlan(program, recipe, threads, library)},
               {"functions", functions},
               {"kernels", program.kernels.size()}};
  if (const std::optional<size_t> entries = entriesOf(program))
    plan["entries"] = *entries;
  plan["gemms"] = gemmsJson(program);
  if (Json attention = attentionJson(program); !attention.empty())
    plan["attention"] = std::move(attention);
  plan["save"] = {{"bytes", save.bytes}, {"files", save.files}};
  plan["communication"] = communication;
  return plan;
}

/// ", tiles 64 x 256"
std::string tilesText(const Json& gemm) {
  if (!gemm.contains("tile"))
    return {};
  return fmt::format(", tiles {} x {}", gemm["tile"][0].get<int64_t>(),
                     gemm["tile"][1].get<int64_t>());
}

void printText(const Json& plan, const Program& program, const Recipe& recipe,
               const std::vector<HostRow>& hostRows) {
  auto line = [](const char* label, const Json& bytes, int indent = 2,
                 const std::string& more = "") {
    fmt::print("{:{}}{:<{}}{:>14}  {}{}\n", "", indent, label, 26 - indent, bytes.get<int64_t>(),
               readableBytes(bytes.get<int64_t>()), more);
  };
  const Json& memory = plan["memory"];
  fmt::print("{} on {}\n\nmemory, bytes\n", plan["model"].get<std::string>(),
             plan["target"].get<std::string>());
  for (const char* part : {"state", "bindings"}) {
    line(part, memory[part]["total"]);
    for (const auto& [kind, bytes] : memory[part].items())
      if (kind != "total" && bytes != 0)
        line(kind.c_str(), bytes, 4,
             kind == nameOf(StateKind::Ema) && recipe.ema.device == "host"
                 ? keepsAveragesOnHost(recipe, program.target.kind)
                       ? " in the host's memory, pinned"
                       : " on the host, which is the device here"
                 : "");
  }
  line("constants", memory["constants"]);
  line("temporaries", memory["temporaries"]);
  if (memory.contains("tree_sums") && memory["tree_sums"]["levels"] > 0) {
    const Json& sums = memory["tree_sums"];
    line("sums of a tree", sums["total"], 4,
         fmt::format(" = levels {} x gradients {}", sums["levels"].get<int64_t>(),
                     readableBytes(sums["gradients"].get<int64_t>())));
  }
  if (const int64_t ranks = rankCount(program.mesh); program.stagingBytes > 0)
    line("staging, shared", memory["staging"], 2,
         fmt::format(" a rank, {} for {} ranks", readableBytes(ranks * program.stagingBytes),
                     ranks));
  if (memory.contains("workspace"))
    line("workspace of libraries", memory["workspace"]);
  line("arena (high water)", memory["arena"]);
  if (memory.contains("device")) {
    line("staging of a batch", memory["staging"]);
    line("on the card", memory["device"], 2,
         fmt::format(", and {} left for the driver",
                     readableBytes(memory["driver"].get<int64_t>())));
    line("pinned on the host", memory["pinned"]);
  }
  line("outside, at most", memory["outside"]["bound"]);
  if (memory["outside"].contains("copy_for_saves"))
    line("saves copy, at most", memory["outside"]["copy_for_saves"], 4);
  const int64_t saved = plan["save"]["bytes"].get<int64_t>();
  fmt::print(
      "\na save writes {} bytes, {}, in {} files and a manifest; a run that is stopped takes {}\n",
      saved, readableBytes(saved), plan["save"]["files"].get<int64_t>(),
      memory["outside"].contains("copy_for_saves") ? "up to the rest of one save and one more"
                                                   : "as long as one save");
  fmt::print("\n{:<10}{:>10}{:>10}{:>8}{:>8}{:>18}{:>18}{:>16}{:>16}\n", "function", "commands",
             "kernels", "gemms", "copies", "FLOP", "of the model", "bytes moved", "max live");
  for (const auto& [name, f] : plan["functions"].items())
    fmt::print("{:<10}{:>10}{:>10}{:>8}{:>8}{:>18}{:>18}{:>16}{:>16}\n", name,
               f["commands"].get<int64_t>(), f["kernels"].get<int64_t>(), f["gemms"].get<int64_t>(),
               f["copies"].get<int64_t>() + f["zeros"].get<int64_t>(), f["flops"].get<int64_t>(),
               f["model_flops"].get<int64_t>(), f["bytes"].get<int64_t>(),
               memory["max_live"][name].get<int64_t>());
  fmt::print("\n{} distinct kernels, ", plan["kernels"].get<int64_t>());
  if (plan.contains("entries"))
    fmt::print("{} entry points, ", plan["entries"].get<int64_t>());
  fmt::print("{} product configurations\n", plan["gemms"].size());
  for (const Json& g : plan["gemms"])
    fmt::print("  {} x {} x {} {}{}{}{}{}: {}\n", g["m"].get<int64_t>(), g["n"].get<int64_t>(),
               g["k"].get<int64_t>(), g["transpose"].get<std::string>(), tilesText(g),
               g["accumulate"].get<bool>() ? ", accumulates" : "",
               g["bias"].get<bool>() ? ", bias" : "", g["relu"].get<bool>() ? ", relu" : "",
               g["label"].get<std::string>());
  for (const auto& [name, f] : plan["functions"].items())
    if (f.contains("launches"))
      fmt::print("{} is {} launches, copies and fills\n", name, f["launches"].get<int64_t>());
  fmt::print("\n{}", ledgerText(ledgerOf(program), program.mesh));
  fmt::print("{}", hostLedgerText(hostRows, program.mesh));
}

} // namespace

Status planJob(Session& session) {
  const bool library = session.options().gemm != "generated";
  std::vector<const Program*> programs = {&session.program()};
  for (const Program& other : session.others())
    programs.push_back(&other);
  Json plans = Json::array();
  for (const Program* program : programs) {
    const std::vector<HostRow> hostRows = TITAN_TRY(hostLedgerOf(*program, /*rank=*/0));
    const checkpoint::SaveSize save = TITAN_TRY(checkpoint::sizeOfSave(*program));
    plans.push_back(
        planObject(*program, hostRows, session.recipe(), save, session.threads(), library));
    if (session.options().json)
      continue;
    fmt::print("{}", program == programs.front() ? "" : "\n");
    printText(plans.back(), *program, session.recipe(), hostRows);
  }
  if (!session.options().json)
    return {};
  Json plan = plans.front();
  plans.erase(0);
  if (!plans.empty())
    plan["others"] = std::move(plans);
  fmt::print("{}\n", plan.dump(2));
  return {};
}

} // namespace titan
