// Loading on several ranks, from any mesh to any mesh.
//
// Rank 0 has found that everything fits, and which bytes of which file are which box of which
// state. By this catalog every rank knows who needs which block of 1 MiB. Each block is read by one
// rank, of those that need it, and checked before anything of it is copied. What several need it
// sends round; what it needs alone it takes while the others read theirs.
//
// Who reads is balanced: of the ranks that need a block, the one that is furthest behind with what
// it holds. A file without a list of chunks has one digest at most: one rank reads all of it.
#pragma once

#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/MatchNames.h"

namespace titan::checkpoint {

struct Catalog {
  struct File {
    std::string path;
    int64_t bytes = 0;
    int64_t headerBytes = 0;
    std::string header; ///< digests of the header's chunks, as rank 0 parsed it
    std::string chunks; ///< digests of all chunks; empty: there are none
    std::string digest; ///< of the whole; empty: not known
  };
  struct Piece {
    size_t file = 0, destination = 0; ///< indices in `files` and in the request's destinations
    int64_t begin = 0;                ///< in the file; bytes
    Box box;
    DType dtype = DType::F32; ///< in the file; a destination of another type gets it converted
  };
  std::vector<File> files;
  std::vector<Piece> pieces;

  /// `matches` point to `destinations`; their files were opened by Reading::Header.
  static Catalog of(const std::vector<Match>& matches,
                    const std::vector<Destination>& destinations);
  std::string toBytes() const;
  /// Internal: no such bytes.
  static Result<Catalog> parse(const std::string& bytes);
};

/// The wait of a load, and the broadcasts of its blocks.
inline constexpr std::string_view loadName = "the load";

/// Bytes [begin, begin + bytes) of a file, all of which `rank` needs.
struct Need {
  int64_t rank = 0;
  size_t file = 0; ///< index in the catalog's files
  int64_t begin = 0, bytes = 0;
};
/// What a load broadcasts where that is what ranks need, in the order of ranks: what `rank` sends
/// round, and gets of others.
Traffic plannedTraffic(const std::vector<Catalog::File>& files, std::span<const Need> needs,
                       int64_t ranks, int64_t rank);

/// Reads all that the catalog has into the parts of this rank. Every rank calls it with the same
/// catalog and destinations; nobody returns before all are done. The error of one is the error of
/// all, with its number; then states are written in part. BadInput: damaged.
Status loadBlocks(const Catalog& catalog, const std::vector<Destination>& destinations,
                  std::span<const MeshAxis> mesh, Peers& peers, Env& env);

} // namespace titan::checkpoint
