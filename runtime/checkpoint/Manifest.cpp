#include "runtime/checkpoint/Manifest.h"

#include "runtime/checkpoint/Digest.h"
#include "runtime/checkpoint/ManifestProgram.h"

#include <set>

namespace titan::checkpoint {
namespace {

constexpr const char* formatName = "titan-checkpoint";
constexpr size_t digestDigits = 32;

constexpr std::string_view sealStart = ",\n  \"xxh3_128\": \"";
constexpr std::string_view sealEnd = "\"\n}\n";

bool isDigest(std::string_view text) {
  return text.size() == digestDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// A relative path that stays below its directory.
bool isContained(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos)
    return false;
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..")
      return false;
    if (slash == std::string_view::npos)
      return true;
    path.remove_prefix(slash + 1);
  }
}

Result<ChunkListRecord> parseChunkList(const Json& json, const std::string& file) {
  ChunkListRecord list{TITAN_TRY(stringField(json, "path")),
                       TITAN_TRY(stringField(json, "xxh3_128"))};
  const size_t slash = file.rfind('/') + 1;
  if (!isContained(list.path) || list.path.rfind('/') + 1 != slash ||
      list.path.substr(0, slash) != file.substr(0, slash))
    return Error::badInput("field 'chunks' of '{}' names '{}', which does not lie beside it", file,
                           list.path);
  if (!isDigest(list.digest))
    return Error::badInput("field 'xxh3_128' of '{}' is no digest of {} hex digits", list.path,
                           digestDigits);
  return list;
}

OrderedJson formatFile(const FileRecord& file) {
  OrderedJson json = {{"path", file.path}, {"bytes", file.bytes}, {"xxh3_128", file.digest}};
  if (file.chunks)
    json["chunks"] = {{"path", file.chunks->path}, {"xxh3_128", file.chunks->digest}};
  return json;
}

Result<FileRecord> parseFile(const Json& json) {
  FileRecord file;
  file.path = TITAN_TRY(stringField(json, "path"));
  if (!isContained(file.path))
    return Error::badInput("field 'path' is '{}', which leaves the checkpoint", file.path);
  file.bytes = TITAN_TRY(integerField(json, "bytes"));
  if (file.bytes < 0)
    return Error::badInput("field 'bytes' of '{}' is {}", file.path, file.bytes);
  file.digest = TITAN_TRY(stringField(json, "xxh3_128"));
  if (!isDigest(file.digest))
    return Error::badInput("field 'xxh3_128' of '{}' is no digest of {} hex digits", file.path,
                           digestDigits);
  if (json.contains("chunks"))
    file.chunks = TITAN_TRY(parseChunkList(*TITAN_TRY(objectField(json, "chunks")), file.path));
  return file;
}

OrderedJson formatFiles(const std::vector<FileRecord>& files) {
  OrderedJson list = OrderedJson::array();
  for (const FileRecord& file : files)
    list.push_back(formatFile(file));
  return list;
}

Result<std::vector<FileRecord>> parseFileList(const Json& json) {
  std::vector<FileRecord> files;
  std::set<std::string> paths;
  for (const Json& row : *TITAN_TRY(arrayField(json, "files"))) {
    if (!row.is_object())
      return Error::badInput("field 'files' holds {}, not objects only", row.type_name());
    files.push_back(TITAN_TRY(parseFile(row)));
    if (!paths.insert(files.back().path).second)
      return Error::badInput("field 'files' names '{}' twice", files.back().path);
  }
  return files;
}

Result<Counters> parseCounters(const Json& json) {
  Counters counters;
  for (const auto& [name, value] : json.items()) {
    const int64_t count = TITAN_TRY(integerField(json, name));
    if (count < 0)
      return Error::badInput("counter '{}' is {}", name, count);
    counters[name] = count;
  }
  return counters;
}

Result<Json> parseSealed(std::string_view text) {
  const std::string body = TITAN_TRY(unsealManifest(text));
  Json json = TITAN_TRY(parseJsonObject(body, "the manifest"));
  if (const std::string format = TITAN_TRY(stringField(json, "format")); format != formatName)
    return Error::badInput("field 'format' is '{}', not '{}'", format, formatName);
  return json;
}

} // namespace

Result<std::string> unsealManifest(std::string_view text) {
  const size_t sealBytes = sealStart.size() + digestDigits + sealEnd.size();
  const size_t start = text.size() < sealBytes ? 0 : text.size() - sealBytes;
  if (text.size() < sealBytes || !text.substr(start).starts_with(sealStart) ||
      !text.ends_with(sealEnd))
    return Error::badInput("does not end with its digest: cut off or edited");
  const std::string_view body = text.substr(0, start);
  const std::string_view expected = text.substr(start + sealStart.size(), digestDigits);
  const std::string found = digestOf(body);
  if (found != expected)
    return Error::badInput("expected digest {}, found {}", expected, found);
  return std::string(body) + "\n}";
}

namespace {

/// `body` is an object's text without its end.
std::string sealed(std::string_view body) {
  return fmt::format("{}{}{}{}", body, sealStart, digestOf(body), sealEnd);
}

} // namespace

std::string sealManifest(std::string_view body) {
  const size_t brace = body.rfind('}');
  const size_t last = body.find_last_not_of(" \n", brace == 0 ? 0 : brace - 1);
  return sealed(body.substr(0, last == std::string_view::npos ? 0 : last + 1));
}

namespace {

/// The text of the members of `object` among those of another one: each behind a comma.
std::string membersOf(const OrderedJson& object) {
  std::string text = object.dump(2, ' ', false, OrderedJson::error_handler_t::replace);
  text.erase(text.rfind("\n}"));
  text.front() = ',';
  return text;
}

OrderedJson formatInit(const InitInfo& init) {
  OrderedJson json = {{"source", init.source}, {"fresh", init.fresh}, {"map", init.renames}};
  if (!init.ignored.empty())
    json["ignored"] = init.ignored;
  if (!init.rounded.empty())
    json["rounded"] = init.rounded;
  if (!init.averagesStarted.empty())
    json["ema_start"] = init.averagesStarted;
  if (!init.averagesDropped.empty())
    json["ema_drop"] = init.averagesDropped;
  return json;
}

Result<InitInfo> parseInit(const Json& json) {
  InitInfo init{TITAN_TRY(stringField(json, "source")), TITAN_TRY(stringsField(json, "fresh")),
                TITAN_TRY(stringMapField(json, "map"))};
  if (json.contains("ignored"))
    init.ignored = TITAN_TRY(stringsField(json, "ignored"));
  if (json.contains("rounded"))
    init.rounded = TITAN_TRY(stringsField(json, "rounded"));
  if (json.contains("ema_start"))
    init.averagesStarted = TITAN_TRY(stringsField(json, "ema_start"));
  if (json.contains("ema_drop"))
    init.averagesDropped = TITAN_TRY(stringsField(json, "ema_drop"));
  return init;
}

} // namespace

std::set<std::string> profilesOf(const ProgramInfo& program) {
  std::set<std::string> profiles;
  for (const TableEntry& row : program.table)
    if (!row.profile.empty())
      profiles.insert(row.profile);
  return profiles;
}

ManifestText::ManifestText(const Manifest& common)
    : common_(membersOf({{"data",
                          {{"digest", common.data.digest},
                           {"length", common.data.length},
                           {"seed", common.data.seed}}},
                         {"mesh", formatMesh(common.program.mesh)},
                         {"program", formatProgram(common.program)},
                         {"init", formatInit(common.init)}})) {}

std::string ManifestText::format(int64_t step, const Counters& counters,
                                 const std::vector<FileRecord>& files) const {
  const std::string first = membersOf({{"format", formatName},
                                       {"version", Manifest::currentVersion},
                                       {"step", step},
                                       {"counters", counters}}),
                    last = membersOf({{"files", formatFiles(files)}});
  return sealed(fmt::format("{{{}{}{}", std::string_view(first).substr(1), common_, last));
}

std::string toJson(const Manifest& manifest) {
  return ManifestText(manifest).format(manifest.step, manifest.counters, manifest.files);
}

Result<int64_t> manifestVersion(std::string_view text) {
  return integerField(TITAN_TRY(parseSealed(text)), "version");
}

Result<Manifest> parseManifest(std::string_view text) {
  const Json json = TITAN_TRY(parseSealed(text));
  const int64_t version = TITAN_TRY(integerField(json, "version"));
  if (!isKnownVersion(version))
    return Error::badInput("version {} was written by another Titan, this one reads versions {} to "
                           "{}",
                           version, Manifest::oldestVersion, Manifest::currentVersion);
  Manifest manifest;
  manifest.step = TITAN_TRY(integerField(json, "step"));
  if (manifest.step < 0)
    return Error::badInput("field 'step' is {}", manifest.step);
  manifest.counters = TITAN_TRY(parseCounters(*TITAN_TRY(objectField(json, "counters"))));
  const Json& data = *TITAN_TRY(objectField(json, "data"));
  manifest.data = {TITAN_TRY(stringField(data, "digest")), TITAN_TRY(integerField(data, "length")),
                   TITAN_TRY(integerField(data, "seed"))};
  manifest.program = TITAN_TRY(parseProgram(json, version));
  manifest.init = TITAN_TRY(parseInit(*TITAN_TRY(objectField(json, "init"))));
  manifest.files = TITAN_TRY(parseFileList(json));
  return manifest;
}

std::string toJson(const std::vector<FileRecord>& files) {
  return OrderedJson({{"files", formatFiles(files)}})
      .dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<std::vector<FileRecord>> parseFiles(std::string_view text) {
  return parseFileList(TITAN_TRY(parseJsonObject(text, "the list of files")));
}

} // namespace titan::checkpoint
