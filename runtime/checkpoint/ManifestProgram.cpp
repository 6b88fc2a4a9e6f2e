#include "runtime/checkpoint/ManifestProgram.h"

#include "runtime/checkpoint/Folders.h"
#include "runtime/program/Text.h"

#include <map>
#include <set>

namespace titan::checkpoint {
namespace {

constexpr const char* rowMajor = "row-major";

/// The members of a piece, each of which may be missing.
constexpr std::pair<const char*, Shape Piece::*> pieceMembers[] = {
    {"at", &Piece::at}, {"from", &Piece::from}, {"extent", &Piece::extent}, {"dims", &Piece::dims}};

OrderedJson formatSources(const std::vector<TensorSource>& sources) {
  OrderedJson list = OrderedJson::array();
  for (const TensorSource& source : sources) {
    OrderedJson item = {{"initializer", source.initializer}};
    for (const auto& [key, member] : pieceMembers)
      if (!(source.piece.*member).empty())
        item[key] = source.piece.*member;
    list.push_back(std::move(item));
  }
  return list;
}

OrderedJson formatEntry(const TableEntry& entry) {
  OrderedJson row = {{"name", entry.name},
                     {"shape", entry.shape},
                     {"dtype", std::string(name(entry.dtype))},
                     {"layout", rowMajor},
                     {"kind", std::string(nameOf(entry.kind))}};
  if (hasProfile(entry.kind))
    row["profile"] = entry.profile;
  if (entry.isCopy)
    row["copy"] = true;
  row["trainable"] = entry.trainable;
  row["aliases"] = entry.aliases;
  row["sources"] = formatSources(entry.sources);
  return row;
}

OrderedJson formatLibraries(const Libraries& libraries) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [routine, choice] : libraries) {
    object[routine] = {{"library", choice.library}};
    if (!choice.version.empty())
      object[routine]["version"] = choice.version;
    if (!choice.device.empty()) {
      object[routine]["device"] = choice.device;
      object[routine]["algorithms"] = choice.algorithms;
    }
  }
  return object;
}

/// A string that may be missing: then it is empty.
Result<std::string> optionalString(const Json& json, std::string_view key) {
  return json.contains(key) ? stringField(json, key) : Result<std::string>(std::string());
}

Result<StateKind> parseKind(std::string_view text) {
  const auto kind = kindNamed(text);
  if (!kind)
    return Error::badInput("field 'kind' is '{}', which is no kind of state", text);
  return *kind;
}

/// Of version 1: a name where it is not the state's, and a permutation where it is one.
Result<std::vector<TensorSource>> parseOneSource(const Json& row, const std::string& state) {
  TensorSource source{TITAN_TRY(stringField(row, "source_name")), {}};
  source.piece.dims = TITAN_TRY(extentsField(row, "source_layout"));
  if (source.initializer.empty() && source.piece.dims.empty())
    return std::vector<TensorSource>();
  if (source.initializer.empty())
    source.initializer = state;
  return std::vector<TensorSource>{std::move(source)};
}

Result<std::vector<TensorSource>> parseSources(const Json& row) {
  std::vector<TensorSource> sources;
  for (const Json& item : *TITAN_TRY(arrayField(row, "sources"))) {
    if (!item.is_object())
      return Error::badInput("field 'sources' holds {}, not objects only", item.type_name());
    TensorSource source{TITAN_TRY(stringField(item, "initializer")), {}};
    for (const auto& [key, member] : pieceMembers)
      if (item.contains(key))
        source.piece.*member = TITAN_TRY(extentsField(item, key));
    sources.push_back(std::move(source));
  }
  return sources;
}

Result<TableEntry> parseEntry(const Json& json, int64_t version) {
  TableEntry entry;
  entry.name = TITAN_TRY(stringField(json, "name"));
  entry.shape = TITAN_TRY(extentsField(json, "shape"));
  entry.dtype = TITAN_TRY(parseDType(TITAN_TRY(stringField(json, "dtype"))));
  if (const std::string layout = TITAN_TRY(stringField(json, "layout")); layout != rowMajor)
    return Error::badInput("field 'layout' of '{}' is '{}', not '{}'", entry.name, layout,
                           rowMajor);
  entry.kind = TITAN_TRY(parseKind(TITAN_TRY(stringField(json, "kind"))));
  if (hasProfile(entry.kind)) {
    entry.profile = TITAN_TRY(stringField(json, "profile"));
    if (!isProfileName(entry.profile))
      return Error::badInput("field 'profile' of '{}' is '{}', which is no name of letters, digits "
                             "and '_'",
                             entry.name, entry.profile);
  }
  entry.isCopy = json.contains("copy") && TITAN_TRY(booleanField(json, "copy"));
  entry.trainable = TITAN_TRY(booleanField(json, "trainable"));
  entry.aliases = TITAN_TRY(stringsField(json, "aliases"));
  entry.sources = TITAN_TRY(version == 1 ? parseOneSource(json, entry.name) : parseSources(json));
  if (const Status status = checkSources(entry.sources, entry.shape, {}); !status.ok())
    return Error::badInput("field 'sources' of '{}': they {}", entry.name,
                           status.error().message());
  return entry;
}

/// A name occurs once in a folder, and once among what the manifest keeps.
Status checkTableNames(const std::vector<TableEntry>& table) {
  std::set<std::pair<std::optional<Folder>, std::string_view>> names;
  for (const TableEntry& row : table) {
    const auto folder = TITAN_TRY(folderOf(row.kind, row.profile));
    if (!names.emplace(folder, row.name).second)
      return Error::badInput("field 'table' names '{}' twice",
                             folder ? folder->shown(row.name) : row.name);
  }
  return {};
}

/// What a profile has once more is in the model, and belongs to a profile.
Status checkCopies(const std::vector<TableEntry>& table) {
  std::map<std::string_view, const TableEntry*> model;
  for (const TableEntry& row : table)
    if (row.kind == StateKind::Param || row.kind == StateKind::Buffer)
      model[row.name] = &row;
  for (const TableEntry& copy : table) {
    if (!copy.isCopy)
      continue;
    if (!hasProfile(copy.kind))
      return Error::badInput("field 'copy' of '{}': a {} is no copy", copy.name, nameOf(copy.kind));
    const auto found = model.find(copy.name);
    if (found == model.end() || found->second->dtype != copy.dtype ||
        found->second->shape != copy.shape)
      return Error::badInput("field 'copy' of '{}': the model has no {} {} of that name", copy.name,
                             name(copy.dtype), toString(copy.shape));
  }
  return {};
}

/// Of version 1, where the only choice was that of a CPU's matrix products.
Result<Libraries> parseOldLibraries(const Json& program) {
  Libraries libraries;
  for (const auto& [routine, library] : TITAN_TRY(stringMapField(program, "libraries")))
    libraries["cpu." + routine] = {library, {}};
  return libraries;
}

Result<Libraries> parseLibraries(const Json& program) {
  Libraries libraries;
  for (const auto& [routine, choice] : TITAN_TRY(objectField(program, "libraries"))->items()) {
    if (!choice.is_object())
      return Error::badInput("field 'libraries': '{}' is {}, not an object", routine,
                             choice.type_name());
    libraries[routine] = {TITAN_TRY(stringField(choice, "library")),
                          TITAN_TRY(optionalString(choice, "version")),
                          TITAN_TRY(optionalString(choice, "device")),
                          {}};
    if (choice.contains("algorithms"))
      libraries[routine].algorithms = TITAN_TRY(stringMapField(choice, "algorithms"));
  }
  return libraries;
}

Result<std::vector<MeshAxis>> parseMesh(const Json& manifest) {
  std::vector<MeshAxis> mesh;
  for (const Json& item : *TITAN_TRY(arrayField(manifest, "mesh"))) {
    if (!item.is_object())
      return Error::badInput("field 'mesh' holds {}, not objects only", item.type_name());
    MeshAxis axis{TITAN_TRY(stringField(item, "name")), TITAN_TRY(integerField(item, "ranks"))};
    if (axis.ranks < 1)
      return Error::badInput("field 'ranks' of axis '{}' is {}", axis.name, axis.ranks);
    mesh.push_back(std::move(axis));
  }
  return mesh;
}

} // namespace

OrderedJson formatMesh(const std::vector<MeshAxis>& mesh) {
  OrderedJson list = OrderedJson::array();
  for (const MeshAxis& axis : mesh)
    list.push_back({{"name", axis.name}, {"ranks", axis.ranks}});
  return list;
}

OrderedJson formatProgram(const ProgramInfo& program) {
  OrderedJson table = OrderedJson::array();
  for (const TableEntry& entry : program.table)
    table.push_back(formatEntry(entry));
  OrderedJson recipe = OrderedJson::parse(program.recipe, nullptr, /*allow_exceptions=*/false);
  OrderedJson json = {{"fingerprint", program.fingerprint},
                      {"optimizer", program.optimizer},
                      {"model", program.model},
                      {"recipe", recipe.is_object() ? std::move(recipe) : OrderedJson::object()},
                      {"target", program.target},
                      {"cpu", program.cpu},
                      {"compiler_version", program.compilerVersion}};
  if (!program.kernels.empty())
    json["kernels"] = program.kernels;
  json["libraries"] = formatLibraries(program.libraries);
  json["table"] = std::move(table);
  return json;
}

Result<ProgramInfo> parseProgram(const Json& manifest, int64_t version) {
  const Json& json = *TITAN_TRY(objectField(manifest, "program"));
  ProgramInfo program;
  program.fingerprint = TITAN_TRY(stringField(json, "fingerprint"));
  program.optimizer = TITAN_TRY(stringField(json, "optimizer"));
  program.model = TITAN_TRY(stringField(json, "model"));
  program.recipe = TITAN_TRY(objectField(json, "recipe"))->dump();
  program.target = TITAN_TRY(stringField(json, "target"));
  program.cpu = TITAN_TRY(stringField(json, "cpu"));
  program.compilerVersion = TITAN_TRY(stringField(json, "compiler_version"));
  if (version == 1) {
    program.libraries = TITAN_TRY(parseOldLibraries(json));
  } else {
    program.kernels = TITAN_TRY(optionalString(json, "kernels"));
    program.libraries = TITAN_TRY(parseLibraries(json));
    program.mesh = TITAN_TRY(parseMesh(manifest));
  }
  for (const Json& row : *TITAN_TRY(arrayField(json, "table"))) {
    if (!row.is_object())
      return Error::badInput("field 'table' holds {}, not objects only", row.type_name());
    program.table.push_back(TITAN_TRY(parseEntry(row, version)));
  }
  TITAN_TRY(checkTableNames(program.table));
  TITAN_TRY(checkCopies(program.table));
  return program;
}

} // namespace titan::checkpoint
