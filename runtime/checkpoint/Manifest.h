// manifest.json: what a checkpoint holds beside its tensors. It is written last, so a directory
// with a manifest is whole.
//
//   { "format": "titan-checkpoint", "version": 1, "step": 100,
//     "counters": { "step": 100, "optimizer.t": 100, "samples": 6400, "skipped": 0 },
//     "data":     { "digest": "<hex>", "length": 50000, "seed": 0 },
//     "program":  { "fingerprint", "optimizer", "model", "recipe": {...}, "target", "cpu",
//     "compiler_version",
//                   "libraries": { "gemm": "onednn" },
//                   "table": [ { "name", "shape", "dtype", "layout": "row-major", "kind",
//                   "trainable",
//                                "aliases": [...], "source_name", "source_layout": [...] } ] },
//     "init":     { "source": "w.safetensors", "fresh": [...], "map": {...} },
//     "files":    [ { "path": "model/shard-...", "bytes": n, "xxh3_128": "<32 hex digits>" } ],
//     "xxh3_128": "<32 hex digits>" }         of all bytes before the comma in front of this last
//     line
#pragma once

#include "runtime/program/Program.h"

#include <map>
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
  std::string sourceName;
  std::vector<int64_t> sourceLayout;
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

struct ProgramInfo {
  std::string fingerprint;
  std::string optimizer; ///< kind: a checkpoint of another one is refused
  std::string model;
  std::string recipe; ///< JSON, with the run's overrides
  std::string target, cpu, compilerVersion;
  std::map<std::string, std::string>
      libraries;                 ///< choice per run, for instance gemm = onednn | generated
  std::vector<TableEntry> table; ///< all state, counters included
  bool operator==(const ProgramInfo&) const = default;
};

/// Where a run's first weights came from, when it was `--init`.
struct InitInfo {
  std::string source;
  std::vector<std::string> fresh; ///< canonical names that kept their own initialisation
  std::map<std::string, std::string> renames; ///< name in the file -> canonical name
  bool operator==(const InitInfo&) const = default;
};

struct FileRecord {
  std::string path; ///< relative to the checkpoint, without "." or ".."
  int64_t bytes = 0;
  std::string digest; ///< XXH3-128 of the file, 32 hex digits
  bool operator==(const FileRecord&) const = default;
};

struct Manifest {
  static constexpr int64_t currentVersion = 1;
  static constexpr const char* fileName = "manifest.json";

  int64_t step = 0;
  Counters counters;
  DataInfo data;
  ProgramInfo program;
  InitInfo init;
  std::vector<FileRecord> files;
  bool operator==(const Manifest&) const = default;
};

std::string toJson(const Manifest& manifest);
/// Reads untrusted text: digest, types, ranges and paths are checked; BadInput names the field.
Result<Manifest> parseManifest(std::string_view json);

/// `body`, the text of a JSON object, with its digest as the last member.
std::string sealManifest(std::string_view body);

/// The canonical table and the rest of what a checkpoint says about its program. `recipe` (JSON)
/// replaces the compiled one where the run overrides keys; empty: as compiled.
ProgramInfo describe(const Program& program, std::map<std::string, std::string> libraries,
                     std::string recipe = {});
/// What differs between the run that wrote a checkpoint and this one, a note each: recipe keys,
/// CPU, libraries, compiler. Empty when the continuation is bit for bit the run that was never
/// interrupted.
std::vector<std::string> describeDifferences(const ProgramInfo& saved, const ProgramInfo& current);

} // namespace titan::checkpoint
