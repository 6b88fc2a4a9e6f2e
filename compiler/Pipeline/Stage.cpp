#include "compiler/Pipeline/Stage.h"

#include "dialects/Titan/Titan.h"
#include "mlir/IR/Builders.h"

#include <array>

using namespace mlir;

namespace titan {

namespace {

struct Entry {
  Stage stage;
  std::string_view name;
};

constexpr std::array<Entry, 9> entries = {{{Stage::Import, "import"},
                                           {Stage::Differentiate, "differentiate"},
                                           {Stage::Optimize, "optimize"},
                                           {Stage::Accumulate, "accumulate"},
                                           {Stage::Shard, "shard"},
                                           {Stage::Schedule, "schedule"},
                                           {Stage::Lower, "lower"},
                                           {Stage::Plan, "plan"},
                                           {Stage::Codegen, "codegen"}}};

constexpr auto stages = [] {
  std::array<Stage, entries.size()> list{};
  for (size_t i = 0; i < entries.size(); ++i)
    list[i] = entries[i].stage;
  return list;
}();

} // namespace

std::string_view stageName(Stage stage) { return entries[static_cast<size_t>(stage)].name; }

std::optional<Stage> parseStage(std::string_view name) {
  for (const Entry& entry : entries)
    if (entry.name == name)
      return entry.stage;
  return std::nullopt;
}

std::span<const Stage> allStages() { return stages; }

FailureOr<Stage> getStage(ModuleOp module) {
  auto attribute = module->getAttrOfType<StringAttr>(ir::tag::stage);
  if (!attribute)
    return Stage::Import;
  if (std::optional<Stage> stage = parseStage(attribute.getValue()))
    return *stage;
  return module.emitError("titan.stage '")
         << attribute.getValue() << "' is no stage of this compiler";
}

void setStage(ModuleOp module, Stage stage) {
  std::string_view name = stageName(stage);
  module->setAttr(ir::tag::stage,
                  StringAttr::get(module.getContext(), StringRef(name.data(), name.size())));
}

} // namespace titan
