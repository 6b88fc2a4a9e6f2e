#include "runtime/job/Info.h"

#include "runtime/program/Text.h"

#include <nlohmann/json.hpp>

namespace titan {
namespace {

using Json = nlohmann::ordered_json;

std::string sourceOf(const State& state) {
  switch (state.init.kind) {
  case Init::Kind::Payload:
    return "embedded weights";
  case Init::Kind::External:
    return state.init.stored.front().path;
  case Init::Kind::Constant:
    return fmt::format("constant {}", state.init.a);
  case Init::Kind::Normal:
    return fmt::format("normal({}, {:.6g})", state.init.a, state.init.b);
  case Init::Kind::Uniform:
    return fmt::format("uniform[{}, {})", state.init.a, state.init.b);
  }
  return {};
}

/// As in a checkpoint's manifest: what is left out of a piece is left out here.
Json sourcesJson(const State& state) {
  Json list = Json::array();
  for (const TensorSource& source : state.sources) {
    Json item = {{"initializer", source.initializer}};
    for (const auto& [name, values] : {std::pair("at", &source.piece.at),
                                       {"from", &source.piece.from},
                                       {"extent", &source.piece.extent},
                                       {"dims", &source.piece.dims}})
      if (!values->empty())
        item[name] = *values;
    list.push_back(std::move(item));
  }
  return list;
}

Json stateJson(const State& state) {
  Json json = {{"name", state.name},
               {"shape", state.shape},
               {"dtype", name(state.dtype)},
               {"kind", nameOf(state.kind)},
               {"trainable", state.trainable},
               {"aliases", state.aliases},
               {"sources", sourcesJson(state)},
               {"init", sourceOf(state)}};
  if (!state.profile.empty())
    json["profile"] = state.profile;
  return json;
}

Json infoObject(const Session& session, const Program& program) {
  Json parameters = Json::array(), state = Json::array();
  int64_t elements = 0, trainable = 0;
  for (const State& s : program.states) {
    const bool model = s.kind == StateKind::Param || s.kind == StateKind::Buffer;
    (model ? parameters : state).push_back(stateJson(s));
    if (s.kind == StateKind::Param) {
      elements += elementCount(s.shape);
      trainable += s.trainable ? elementCount(s.shape) : 0;
    }
  }
  const Json machine = describeMachine(
      program, {session.options().gemm, session.options().attention, session.threads()});
  return {{"model", program.model},
          {"fingerprint", fingerprint(program)},
          {"compiler_version", program.compilerVersion},
          {"program_version", Program::currentVersion},
          {"target", machine["target"]},
          {"machine", machine["machine"]},
          {"libraries", machine["libraries"]},
          {"optimizer", program.optimizer},
          {"parameter_count", elements},
          {"trainable_count", trainable},
          {"parameters", parameters},
          {"state", state},
          {"recipe", Json::parse(toJson(session.recipe()), nullptr, false)}};
}

/// What of `info` depends on the device.
constexpr const char* ofDevice[] = {"fingerprint", "target", "machine", "libraries"};

void printText(const Json& info, const Session& session) {
  auto text = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  fmt::print("model        {}\nfingerprint  {}\ncompiler     {}\n", text(info["model"]),
             text(info["fingerprint"]), text(info["compiler_version"]));
  fmt::print("{}", describeMachineText(session.program(), info));
  for (size_t i = 0; i < session.others().size(); ++i) {
    const Json& other = info["others"][i];
    fmt::print("\nfingerprint  {}\n{}\n", text(other["fingerprint"]),
               describeMachineText(session.others()[i], other));
  }
  fmt::print("optimizer    {}\nparameters   {}, {} trainable\n\n", text(info["optimizer"]),
             text(info["parameter_count"]), text(info["trainable_count"]));
  size_t width = 4;
  for (const Json& parameter : info["parameters"])
    width = std::max(width, text(parameter["name"]).size());
  fmt::print("{:<{}}  {:<6} {:<8} {:<9} {:<20} {}\n", "name", width, "dtype", "kind", "trainable",
             "shape", "init");
  for (const Json& p : info["parameters"])
    fmt::print("{:<{}}  {:<6} {:<8} {:<9} {:<20} {}\n", text(p["name"]), width, text(p["dtype"]),
               text(p["kind"]), p["trainable"].get<bool>() ? "yes" : "no",
               toString(p["shape"].get<Shape>()), text(p["init"]));
  fmt::print("\nrecipe\n");
  for (const auto& [section, keys] : info["recipe"].items())
    for (const auto& [key, value] : keys.items())
      fmt::print("  {}.{} = {}\n", section, key, value.dump());
}

} // namespace

Status infoJob(Session& session) {
  Json info = infoObject(session, session.program());
  for (const Program& program : session.others()) {
    const Json whole = infoObject(session, program);
    Json& other = info["others"].emplace_back();
    for (const char* key : ofDevice)
      other[key] = whole[key];
  }
  if (session.options().json)
    fmt::print("{}\n", info.dump(2));
  else
    printText(info, session);
  return {};
}

} // namespace titan
