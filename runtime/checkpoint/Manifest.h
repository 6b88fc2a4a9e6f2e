// manifest.json: what a checkpoint holds beside its tensors. It is written last, so a directory
// with a manifest is whole. Version 2:
//
//   { "format": "titan-checkpoint", "version": 2, "step": 100,
//     "counters": { "step": 100, "optimizer.t": 100, "samples": 6400 },
//     "data":     { "digest": "<hex>", "length": 50000, "seed": 0 },
//     "mesh":     [ { "name": "replicate", "ranks": 1 }, ... ],
//     "program":  { "fingerprint", "optimizer", "model", "recipe": {...},
//                   "target", "cpu", "compiler_version",
//                   "kernels": "<digest of the code>",
//                   "libraries": { "cpu.gemm": { "library": "onednn",
//                                                "version": "2.6.3" },
//                                  "libc": { ... } },
//                   "table": [ { "name", "shape", "dtype",
//                                "layout": "row-major",
//                                "kind", "profile", "copy", "trainable",
//                                "aliases": [...],
//                                "sources": [ { "initializer", "at": [...],
//                                               "from": [...], "extent": [...],
//                                               "dims": [...] } ] } ] },
//     "init":     { "source": "w.safetensors", "fresh": [...], "map": {...},
//                   "ignored": [...], "rounded": [...],
//                   "ema_start": [...], "ema_drop": [...] },
//     "files":    [ { "path": "model/shard-...", "bytes": n,
//                     "xxh3_128": "<32 hex digits>",
//                     "chunks": { "path": "model/shard-....chunks",
//                                 "xxh3_128" } } ],
//     "xxh3_128": "<32 hex digits>" }
//
// The last line's digest is of all bytes before the comma in front of it. "kernels" may be missing,
// "libraries" has on cards "cuda.card" and "cuda.image", too: what else decides the bits of a run.
// "ignored" and "rounded" stand there where a list has names, "profile" at kinds that have one,
// "chunks" stands at files with tensors. A source is a piece of the tensor
// (runtime/program/Piece.h); what is left out of one is missing: "dims" alone is the whole
// initializer, permuted. A library that has several algorithms stands there with "device" and
// "algorithms", by product. Members that are not known are ignored: a later Titan may add some
// without another version.
//
// Version 1 is read as well. It has no mesh, no kernels and no chunks, "libraries": { "gemm":
// "onednn" }, and in a row of the table "source_name" and "source_layout", which are one source.
#pragma once

#include "runtime/program/Program.h"
#include "runtime/program/Recipe.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace titan::checkpoint {

/// One row of the canonical table: a tensor and everything about it but its bytes.
struct TableEntry {
  std::string name;
  StateKind kind = StateKind::Param;
  std::string profile; ///< of kinds that have one (Folders.h)
  DType dtype = DType::F32;
  Shape shape;
  bool trainable = false;
  std::vector<std::string> aliases;
  /// Cover the tensor once; empty: an initializer of the same name and layout, or none.
  std::vector<TensorSource> sources;
  bool isCopy = false; ///< of a profile: the model's tensor once more, which no load reads
  bool operator==(const TableEntry&) const = default;
};

using Counters = std::map<std::string, int64_t>;

/// Identity of the training data; the cursor is the counter "samples".
struct DataInfo {
  std::string digest; ///< hex, of the data files
  int64_t length = 0; ///< samples
  int64_t seed = 0;
  bool operator==(const DataInfo&) const = default;
};

/// What computed a routine.
struct LibraryChoice {
  std::string library; ///< "onednn", "generated", "glibc"
  std::string version; ///< empty: unknown, or the program's own
  // Of a library with several algorithms: the device that they were chosen on, and by product the
  // library's bytes in hexadecimal, or "generated".
  std::string device = {};
  std::map<std::string, std::string> algorithms = {};
  bool operator==(const LibraryChoice&) const = default;
};

/// By device and routine, "cpu.gemm"; what has no device is the process's, "libc".
using Libraries = std::map<std::string, LibraryChoice>;

struct ProgramInfo {
  std::string fingerprint;
  std::string optimizer; ///< kind: a checkpoint of another one is refused
  std::string model;
  std::string recipe; ///< JSON, with the run's overrides
  std::string target, cpu, compilerVersion;
  std::string kernels; ///< digest of the code; empty: unknown
  Libraries libraries;
  std::vector<MeshAxis> mesh;    ///< outermost first; empty: as the recipe says
  std::vector<TableEntry> table; ///< all state, counters included
  bool operator==(const ProgramInfo&) const = default;
};

/// The profiles of averages that the table has.
std::set<std::string> profilesOf(const ProgramInfo& program);

/// Where a run's state came from, but for checkpoints that it went on from as they were.
struct InitInfo {
  std::string source;             ///< of the first weights: --init
  std::vector<std::string> fresh; ///< canonical names that kept their own initialisation
  std::map<std::string, std::string> renames;    ///< name in the file -> canonical name
  std::vector<std::string> ignored = {};         ///< names in the file: --ignore
  std::vector<std::string> rounded = {};         ///< canonical names: --cast
  std::vector<std::string> averagesStarted = {}; ///< profiles: --ema-start
  std::vector<std::string> averagesDropped = {}; ///< profiles: --ema-drop
  bool operator==(const InitInfo&) const = default;
};

/// The file beside another one that holds the digests of its chunks (Chunks.h).
struct ChunkListRecord {
  std::string path;
  std::string digest;
  bool operator==(const ChunkListRecord&) const = default;
};

struct FileRecord {
  std::string path; ///< relative to the checkpoint, without "." or ".."
  int64_t bytes = 0;
  std::string digest;                    ///< XXH3-128 of the file, 32 hex digits
  std::optional<ChunkListRecord> chunks; ///< of files with tensors; version 1 has none
  bool operator==(const FileRecord&) const = default;
};

struct Manifest {
  static constexpr int64_t oldestVersion = 1, currentVersion = 2;
  static constexpr const char* fileName = "manifest.json";

  int64_t step = 0;
  Counters counters;
  DataInfo data;
  ProgramInfo program;
  InitInfo init;
  std::vector<FileRecord> files;
  bool operator==(const Manifest&) const = default;
};

/// The records of some files, as ranks tell them to each other.
std::string toJson(const std::vector<FileRecord>& files);
Result<std::vector<FileRecord>> parseFiles(std::string_view json);

/// In the current version.
std::string toJson(const Manifest& manifest);

/// The texts of manifests that differ in step, counters and files alone. All else is formatted
/// once.
class ManifestText {
public:
  /// With `common`'s data, program and init.
  explicit ManifestText(const Manifest& common);
  /// toJson() of the manifest that has these, too.
  std::string format(int64_t step, const Counters& counters,
                     const std::vector<FileRecord>& files) const;

private:
  std::string common_; ///< members of the object, each with a comma before it
};

/// Reads untrusted text: digest, types, ranges and paths are checked; BadInput names the field.
Result<Manifest> parseManifest(std::string_view json);
constexpr bool isKnownVersion(int64_t version) {
  return version >= Manifest::oldestVersion && version <= Manifest::currentVersion;
}
/// The version that `json` says, known or not: digest and format are checked, nothing else.
Result<int64_t> manifestVersion(std::string_view json);

/// `body`, the text of a JSON object, with its digest as the last member.
std::string sealManifest(std::string_view body);
/// The object that was sealed, checked against its digest.
Result<std::string> unsealManifest(std::string_view json);

/// The canonical table and the rest of what a checkpoint says about its program. `recipe` is the
/// run's, with the keys that it overrides.
ProgramInfo describe(const Program& program, Libraries libraries, const Recipe& recipe);
/// What differs between the run that wrote a checkpoint and this one, a note each: recipe keys,
/// mesh, CPU, libraries, compiler. A choice for another device than this run's is none, nor is what
/// one side does not know. Empty when the continuation is bit for bit the run that was never
/// interrupted.
std::vector<std::string> describeDifferences(const ProgramInfo& saved, const ProgramInfo& current);

} // namespace titan::checkpoint
