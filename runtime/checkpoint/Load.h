// Reading state back: strictly (every name, shape and dtype must fit; a difference is printed as a
// diff) and in two passes: no destination is written before all that is to be read was read and
// verified; the second pass reads it again, straight into the destinations.
//
// An error of the second pass (the storage fails, or somebody writes to the files just then) leaves
// destinations written in part. Its message says so; nobody may go on with such a state.
//
// Several ranks load together, in one pass (LoadBlocks.h): rank 0 finds that everything fits, each
// block of a file is read by one rank, and nobody goes on before all are done.
#pragma once

#include "runtime/checkpoint/CheckpointStore.h"

namespace titan::checkpoint {

/// Where one state tensor of the program goes, and what it expects.
struct Destination {
  TableEntry entry;
  ByteSink sink;            ///< this rank's part with its padding; a counter: 8 bytes, I64
  Placement placement = {}; ///< which part each rank has
};

/// All state of a program, counters included.
std::vector<Destination> destinations(StateAccess& access);

struct LoadRequest {
  std::vector<Destination> destinations;
  ProgramInfo program;    ///< this run's: its optimizer kind must be the checkpoint's; other
                          ///< differences give notes
  Peers* peers = nullptr; ///< who load together, all with this request; null: nobody else
  std::vector<MeshAxis> mesh = {}; ///< their places
  /// Profiles of averages that may be on one side alone: the program's `started` are left as they
  /// are where the checkpoint does not have them, its `dropped` are not read.
  std::vector<std::string> started = {}, dropped = {};
};

struct LoadReport {
  Manifest manifest; ///< counters, data and program as they were saved
  std::vector<std::string>
      notes; ///< of rank 0: names that were stripped or were aliases; what differs from the
             ///< saving run
};

/// While it lives, no run deletes the checkpoint at `path`: a shared lock on its manifest, on which
/// a deletion tries the exclusive one. The reads below hold theirs themselves; one from the choice
/// of a checkpoint to its load is the caller's. BadInput: it is being deleted.
Result<std::unique_ptr<FileLock>> holdCheckpoint(const std::string& path, Env& env = posixEnv());

/// `path`: a checkpoint (step-00000100). Writes all destinations or, on an error of the first pass,
/// none. BadInput: no checkpoint, damaged (file, expected and found size or digest), a diff, or
/// changed between the passes. Environment: the storage failed.
Result<LoadReport> load(const std::string& path, const LoadRequest& request, Env& env = posixEnv());

/// The newest checkpoint of the run directory, or nothing if there is none. If it is damaged, the
/// error names the newest good one before it and the flag that goes on from that.
Result<std::optional<LoadReport>> loadLatest(const std::string& directory,
                                             const LoadRequest& request, Env& env = posixEnv());

/// "old=new", one a rename, as InitRequest has them. Usage: another form.
Result<std::map<std::string, std::string>> parseRenames(const std::vector<std::string>& texts);

struct InitRequest {
  std::vector<Destination>
      destinations;               ///< parameters and buffers are loaded; other kinds are left alone
  std::vector<std::string> fresh; ///< globs: these keep their own initialisation
  std::map<std::string, std::string>
      renames;            ///< name in the file -> canonical name; both may have one `*`
  Peers* peers = nullptr; ///< as in LoadRequest
  std::vector<MeshAxis> mesh = {};
  std::vector<std::string> ignored = {}; ///< globs: these tensors of the file are not read
  /// Floating-point types that have all values of the file's are taken in any case; with `cast`
  /// others are rounded to nearest even.
  bool cast = false;
};

struct InitReport {
  InitInfo init; ///< for the run's checkpoints, of rank 0
  std::vector<std::string> notes;
};

/// What is sent round when a program loads what it has saved on its mesh: by `rank`, and to it.
/// Internal: it could not have been saved.
Result<Traffic> ownLoadTraffic(const Program& program, int64_t rank);

/// Weights only. `path`: a .safetensors file, a Hugging Face index (model.safetensors.index.json),
/// a directory of either, or a checkpoint. Writes all destinations or, on an error of the first
/// pass, none.
Result<InitReport> loadWeights(const std::string& path, const InitRequest& request,
                               Env& env = posixEnv());

/// Reads everything a checkpoint names and checks sizes, digests, headers and the canonical table.
Result<Manifest> verify(const std::string& path, Env& env = posixEnv());
/// What is wrong with a checkpoint, found by reading all of it; nothing if it is sound. One that
/// another Titan wrote is not damaged: it is an error, as a disk that cannot be read is.
Result<std::optional<Error>> findDamage(const std::string& path, Env& env = posixEnv());
/// What tells this checkpoint from all others: the digest of its manifest, which has those of all
/// files. Empty where a manifest is missing; BadInput where there is no such directory.
Result<std::string> identityOf(const std::string& path, Env& env = posixEnv());
/// The manifest alone, parsed and checked.
Result<Manifest> readManifest(const std::string& path, Env& env = posixEnv());

} // namespace titan::checkpoint
