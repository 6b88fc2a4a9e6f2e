#include "runtime/checkpoint/LoadBlocks.h"

#include "runtime/checkpoint/Chunks.h"
#include "runtime/checkpoint/Convert.h"
#include "runtime/checkpoint/StrictJson.h"
#include "runtime/program/Collective.h"

#include <algorithm>
#include <map>

namespace titan::checkpoint {
namespace {

constexpr int64_t flagBytes =
    1; ///< behind a block that is sent round: not 0 where it could not be read

Json bytesJson(const std::string& bytes) { return Json::binary({bytes.begin(), bytes.end()}); }

std::string bytesOf(const Json& json) {
  const auto& binary = json.get_binary();
  return {binary.begin(), binary.end()};
}

/// The digests of a header's chunks.
std::string headerDigests(const std::string& header) {
  ChunkDigests digests;
  digests.update(header);
  return digests.finish();
}

std::string_view digestAt(const std::string& list, int64_t chunk) {
  return std::string_view(list).substr(static_cast<size_t>(chunk * chunkDigestBytes),
                                       static_cast<size_t>(chunkDigestBytes));
}

std::string digestBytes(std::string_view bytes) {
  Digest digest;
  digest.update(bytes);
  return digest.bytes();
}

/// Block `index` of a file: bytes [index * chunkBytes, ...) of at most chunkBytes.
struct Block {
  size_t file = 0;
  int64_t index = 0;
  std::vector<int64_t> users; ///< the ranks that need some of it, in order
  int64_t reader = 0;

  bool isPrivate() const { return users.empty() || (users.size() == 1 && users[0] == reader); }
};

/// Who needs which block, and who reads it: alike on all ranks.
class BlockPlan {
public:
  BlockPlan(const std::vector<Catalog::File>& files, int64_t ranks)
      : files_(files), quotas_(static_cast<size_t>(ranks)) {
    for (size_t file = 0; file < files.size(); ++file) {
      firstBlocks_.push_back(blocks_.size());
      for (int64_t index = 0; index < chunkCount(files[file].bytes); ++index)
        blocks_.push_back({file, index, {}, 0});
    }
  }

  const std::vector<Block>& blocks() const { return blocks_; } ///< of all files, in order
  size_t numberOf(const Block& block) const {
    return firstBlocks_[block.file] + static_cast<size_t>(block.index);
  }
  bool isDigestedWhole(const Block& block) const {
    return files_[block.file].chunks.empty() && !files_[block.file].digest.empty();
  }
  int64_t bytesOf(const Block& block) const {
    return std::min(chunkBytes, files_[block.file].bytes - block.index * chunkBytes);
  }

  /// `rank` needs `count` bytes of a file, between `begin` and `end`. Ranks come in their order.
  /// Returns the numbers of the blocks: the first, and one behind the last.
  std::pair<size_t, size_t> need(int64_t rank, size_t file, int64_t begin, int64_t end,
                                 int64_t count) {
    quotas_[static_cast<size_t>(rank)] += count;
    const size_t first = firstBlocks_[file] + static_cast<size_t>(begin / chunkBytes);
    const size_t behind = firstBlocks_[file] + static_cast<size_t>((end - 1) / chunkBytes) + 1;
    for (size_t block = first; block < behind; ++block) {
      std::vector<int64_t>& users = blocks_[block].users;
      if (users.empty() || users.back() != rank)
        users.push_back(rank);
    }
    return {first, behind};
  }

  /// When all needs are known.
  void chooseReaders() {
    std::vector<int64_t> behind = quotas_;
    const auto assign = [&](Block& block, int64_t rank) {
      block.reader = rank;
      behind[static_cast<size_t>(rank)] -= bytesOf(block);
    };
    const auto isFree = [&](const Block& block) {
      return block.users.size() > 1 && !isDigestedWhole(block);
    };
    for (Block& block : blocks_)
      if (isDigestedWhole(block))
        assign(block, static_cast<int64_t>(block.file) % std::ssize(quotas_));
      else if (!isFree(block))
        assign(block, block.users.empty() ? 0 : block.users[0]);
    for (Block& block : blocks_)
      if (isFree(block))
        assign(block, *std::ranges::max_element(block.users, {}, [&](int64_t rank) {
                 return behind[static_cast<size_t>(rank)];
               }));
  }

  /// What goes round, with the flags behind it: of `rank`, and to it.
  Traffic traffic(int64_t rank) const {
    Traffic traffic;
    for (const Block& block : blocks_)
      if (!block.isPrivate()) {
        ++traffic.executions;
        (block.reader == rank ? traffic.payload : traffic.moved) += bytesOf(block) + flagBytes;
      }
    return traffic;
  }

private:
  const std::vector<Catalog::File>& files_;
  std::vector<Block> blocks_;
  std::vector<size_t> firstBlocks_; ///< of each file
  std::vector<int64_t> quotas_;     ///< bytes that each rank gets
};

class BlockLoader {
public:
  BlockLoader(const Catalog& catalog, const std::vector<Destination>& destinations,
              std::span<const MeshAxis> mesh, Peers& peers, Env& env)
      : catalog_(catalog), destinations_(destinations), peers_(peers), env_(env),
        plan_(catalog.files, peers.count()), piecesOf_(plan_.blocks().size()),
        files_(catalog.files.size()) {
    for (int64_t rank = 0; rank < peers.count(); ++rank)
      addNeeds(rank, mesh);
    plan_.chooseReaders();
  }

  Status run() {
    Status mine; // goes on where it has failed, until the others know
    for (const Block& block : plan_.blocks())
      if (block.isPrivate() && block.reader == peers_.rank() && !plan_.isDigestedWhole(block) &&
          mine.ok())
        mine = take(block);
    for (const Block& block : plan_.blocks()) {
      if (block.isPrivate()) {
        if (block.reader == peers_.rank() && plan_.isDigestedWhole(block) && mine.ok())
          mine = take(block);
      } else if (!TITAN_TRY(share(block, mine))) {
        break;
      }
    }
    return peers_.agree(loadName, std::move(mine));
  }

private:
  const Catalog::File& fileOf(const Block& block) const { return catalog_.files[block.file]; }

  /// What is where for `rank`; of this one, how to copy it.
  void addNeeds(int64_t rank, std::span<const MeshAxis> mesh) {
    const std::vector<int64_t> coordinates = coordinatesOf(rank, mesh);
    for (size_t i = 0; i < catalog_.pieces.size(); ++i) {
      const Catalog::Piece& piece = catalog_.pieces[i];
      const Destination& destination = destinations_[piece.destination];
      const DType dtype = destination.entry.dtype;
      const int64_t elementBytes = byteSize(piece.dtype);
      const Part part = partOf(destination.entry.shape, destination.placement, mesh, coordinates);
      Overlap overlap(inBytes(Part::dense(piece.box), elementBytes), inBytes(part, elementBytes));
      if (!overlap.isEmpty()) {
        const auto [first, behind] = plan_.need(rank, piece.file, piece.begin + overlap.begin(),
                                                piece.begin + overlap.end(), overlap.count());
        for (size_t block = first; block < behind && rank == peers_.rank(); ++block)
          piecesOf_[block].push_back(i);
      }
      if (rank != peers_.rank())
        continue;
      overlaps_.push_back(std::move(overlap));
      sinks_.push_back(piece.dtype == dtype ? destination.sink
                                            : convertingSink(piece.dtype, dtype, destination.sink));
    }
  }

  /// Does anybody read the block at all? Of the header every byte is checked, as it was parsed.
  bool isRead(const Block& block) const {
    return !block.users.empty() || plan_.isDigestedWhole(block) ||
           (!fileOf(block).chunks.empty() && block.index * chunkBytes < fileOf(block).headerBytes);
  }

  /// Reads and checks a block, and copies what this rank needs of it.
  Status take(const Block& block) {
    if (!isRead(block))
      return {};
    buffer_.resize(static_cast<size_t>(plan_.bytesOf(block)));
    TITAN_TRY(read(block, buffer_));
    return copy(block, buffer_);
  }

  /// The same with all ranks. False: its reader has failed before or here.
  Result<bool> share(const Block& block, Status& mine) {
    buffer_.assign(static_cast<size_t>(plan_.bytesOf(block) + flagBytes), '\0');
    const auto bytes = std::span<char>(buffer_).first(buffer_.size() - 1);
    if (block.reader == peers_.rank()) {
      if (mine.ok())
        mine = read(block, bytes);
      buffer_.back() = static_cast<char>(!mine.ok());
    }
    TITAN_TRY(peers_.broadcast(loadName, block.reader, buffer_));
    if (buffer_.back() != 0)
      return false;
    if (mine.ok())
      mine = copy(block, bytes);
    return true;
  }

  Status read(const Block& block, std::span<char> into) {
    const Catalog::File& file = fileOf(block);
    std::unique_ptr<ReadableFile>& open = files_[block.file];
    if (!open)
      open = TITAN_TRY(env_.openFile(file.path));
    TITAN_TRY(open->read(block.index * chunkBytes, into.data(), static_cast<int64_t>(into.size())));
    return check(block, {into.data(), into.size()});
  }

  Status check(const Block& block, std::string_view bytes) {
    const Catalog::File& file = fileOf(block);
    if (!file.chunks.empty()) {
      const std::string_view expected = digestAt(file.chunks, block.index);
      if (const std::string found = digestBytes(bytes); found != expected)
        return damagedChunk(
            file.path, file.bytes, block.index, expected, found,
            [&](int64_t begin, int64_t end) { return contentOf(block.file, begin, end); });
    }
    if (plan_.isDigestedWhole(block)) {
      Digest& digest = digests_[block.file];
      digest.update(bytes);
      if (block.index + 1 == chunkCount(file.bytes))
        if (const std::string found = digest.hex(); found != file.digest)
          return Error::badInput("'{}' is damaged: expected digest {}, found {}", file.path,
                                 file.digest, found);
    }
    const int64_t header = std::min(file.headerBytes - block.index * chunkBytes, chunkBytes);
    if (header > 0 && digestBytes(bytes.substr(0, static_cast<size_t>(header))) !=
                          digestAt(file.header, block.index))
      return Error::badInput("'{}' changed while it was loaded: its header is another", file.path);
    return {};
  }

  /// "tensors 'a', 'b' and 7 more", of those that are loaded.
  std::string contentOf(size_t file, int64_t begin, int64_t end) const {
    std::vector<std::string> names;
    for (const Catalog::Piece& piece : catalog_.pieces) {
      const int64_t bytes = elementCount(piece.box.extent) * byteSize(piece.dtype);
      if (piece.file == file && piece.begin < end && piece.begin + bytes > begin)
        names.push_back(destinations_[piece.destination].entry.name);
    }
    return describeContent(begin < catalog_.files[file].headerBytes, names);
  }

  Status copy(const Block& block, std::span<const char> bytes) {
    for (size_t i : piecesOf_[plan_.numberOf(block)]) {
      const Catalog::Piece& piece = catalog_.pieces[i];
      // In bytes of the piece; those of the block that lie before it are left out.
      const int64_t first = block.index * chunkBytes - piece.begin;
      const int64_t skipped = std::max<int64_t>(0, -first);
      Status copied = copyInto(overlaps_[i], 1, first + skipped,
                               bytes.subspan(static_cast<size_t>(skipped)), sinks_[i]);
      if (!copied.ok() && piece.dtype != destinations_[piece.destination].entry.dtype)
        return copied.takeError().withContext(
            fmt::format("'{}'", destinations_[piece.destination].entry.name));
      TITAN_TRY(std::move(copied));
    }
    return {};
  }

  const Catalog& catalog_;
  const std::vector<Destination>& destinations_;
  Peers& peers_;
  Env& env_;
  BlockPlan plan_;
  std::vector<Overlap>
      overlaps_; ///< of each piece with this rank's part, in bytes of the file's type
  std::vector<ByteSink> sinks_;               ///< of each piece: takes bytes of the file's type
  std::vector<std::vector<size_t>> piecesOf_; ///< that this rank needs, by block
  std::vector<std::unique_ptr<ReadableFile>> files_; ///< once opened
  std::map<size_t, Digest> digests_;                 ///< of files that have one digest
  std::string buffer_;
};

} // namespace

Catalog Catalog::of(const std::vector<Match>& matches,
                    const std::vector<Destination>& destinations) {
  Catalog catalog;
  std::map<const StoredFile*, size_t> numbers;
  for (const Match& match : matches)
    for (const StoredTensors::Piece& piece : match.tensor->pieces) {
      const auto [found, isNew] = numbers.try_emplace(piece.file, catalog.files.size());
      if (isNew) {
        const StoredFile& file = *piece.file;
        catalog.files.push_back({file.path(), file.bytes(), file.header().dataStart,
                                 headerDigests(file.headerBytes()), file.chunkList(),
                                 file.expected() ? file.expected()->digest : std::string()});
      }
      catalog.pieces.push_back(
          {found->second,
           static_cast<size_t>(match.destination - destinations.data()),
           piece.file->header().dataStart + piece.file->header().entries[piece.entry].begin,
           {piece.offsets, piece.shape},
           match.tensor->dtype});
    }
  return catalog;
}

std::string Catalog::toBytes() const {
  Json json = {{"files", Json::array()}, {"pieces", Json::array()}};
  for (const File& file : files)
    json["files"].push_back({bytesJson(file.path), file.bytes, file.headerBytes,
                             bytesJson(file.header), bytesJson(file.chunks), file.digest});
  for (const Piece& piece : pieces)
    json["pieces"].push_back(
        {piece.file, piece.destination, piece.begin, piece.box.at, piece.box.extent, piece.dtype});
  const std::vector<uint8_t> bytes = Json::to_cbor(json);
  return {bytes.begin(), bytes.end()};
}

Result<Catalog> Catalog::parse(const std::string& bytes) {
  const Json json = Json::from_cbor(bytes, /*strict=*/true, /*allow_exceptions=*/false);
  if (!json.is_object())
    return Error::internal("the catalog of a load is no object");
  Catalog catalog;
  for (const Json& file : json["files"])
    catalog.files.push_back({bytesOf(file[0]), file[1].get<int64_t>(), file[2].get<int64_t>(),
                             bytesOf(file[3]), bytesOf(file[4]), file[5].get<std::string>()});
  for (const Json& piece : json["pieces"])
    catalog.pieces.push_back({piece[0].get<size_t>(),
                              piece[1].get<size_t>(),
                              piece[2].get<int64_t>(),
                              {piece[3].get<Shape>(), piece[4].get<Shape>()},
                              piece[5].get<DType>()});
  return catalog;
}

Traffic plannedTraffic(const std::vector<Catalog::File>& files, std::span<const Need> needs,
                       int64_t ranks, int64_t rank) {
  BlockPlan plan(files, ranks);
  for (const Need& need : needs)
    plan.need(need.rank, need.file, need.begin, need.begin + need.bytes, need.bytes);
  plan.chooseReaders();
  return plan.traffic(rank);
}

Status loadBlocks(const Catalog& catalog, const std::vector<Destination>& destinations,
                  std::span<const MeshAxis> mesh, Peers& peers, Env& env) {
  return BlockLoader(catalog, destinations, mesh, peers, env).run();
}

} // namespace titan::checkpoint
