#include "runtime/collective/testing/DrawnCollectives.h"

#include "runtime/collective/testing/RunRanks.h"
#include "runtime/program/Text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace titan::testing {
namespace {

uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

/// An element of a source: of all magnitudes, so that the order of a sum shows, and sometimes -0.
void writeElement(DType dtype, uint64_t bits, char* at) {
  const double value = bits % 16 == 0
                           ? -0.0
                           : std::ldexp(static_cast<double>(static_cast<int64_t>(bits)) * 0x1p-63,
                                        static_cast<int>(bits >> 8 & 15) - 8);
  const auto small = static_cast<float>(value);
  const uint16_t half = toBFloat16(small);
  switch (dtype) {
  case DType::F64:
    std::memcpy(at, &value, sizeof value);
    break;
  case DType::F32:
    std::memcpy(at, &small, sizeof small);
    break;
  case DType::BF16:
    std::memcpy(at, &half, sizeof half);
    break;
  default:
    std::memcpy(at, &bits, static_cast<size_t>(byteSize(dtype)));
  }
}

/// What rank r of the whole job holds of one collective's piece, row-major [outer, inner]; for an
/// all_gather only its part is used.
std::vector<char> wholeOf(const CollectivePiece& piece, uint64_t key, int64_t rank) {
  std::vector<char> bytes(static_cast<size_t>(piece.wholeBytes()));
  const int64_t size = byteSize(piece.dtype);
  for (int64_t i = 0; i < piece.outer * piece.inner; ++i)
    writeElement(piece.dtype, mix(key * 1000003 + static_cast<uint64_t>(rank * 77777777 + i)),
                 bytes.data() + i * size);
  return bytes;
}

/// The part of `whole` at `place` of `ranks`.
std::vector<char> partOf(const CollectivePiece& piece, const std::vector<char>& whole,
                         int64_t place, int64_t ranks) {
  const int64_t row = piece.inner * byteSize(piece.dtype), part = row / ranks;
  std::vector<char> bytes;
  for (int64_t i = 0; i < piece.outer; ++i) {
    const char* begin = whole.data() + i * row + place * part;
    bytes.insert(bytes.end(), begin, begin + part);
  }
  return bytes;
}

template <typename T> T elementOf(const std::vector<char>& bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * static_cast<int64_t>(sizeof value), sizeof value);
  return value;
}

template <typename T, typename Sum, typename Load, typename Store>
std::vector<char> sumAs(SumOrder order, const std::vector<std::vector<char>>& terms, Load load,
                        Store store) {
  std::vector<char> bytes(terms[0].size());
  for (int64_t i = 0; i < static_cast<int64_t>(bytes.size() / sizeof(T)); ++i) {
    std::vector<Sum> values;
    for (const auto& term : terms) {
      const Sum value = load(elementOf<T>(term, i));
      values.push_back(order == SumOrder::Tree ? Sum(0) + value : value);
    }
    while (values.size() > 1) {
      if (order == SumOrder::Rank) {
        values[0] = values[0] + values[1];
        values.erase(values.begin() + 1);
        continue;
      }
      std::vector<Sum> pairs;
      for (size_t j = 0; j < values.size(); j += 2)
        pairs.push_back(values[j] + values[j + 1]);
      values = pairs;
    }
    const T sum = store(values[0]);
    std::memcpy(bytes.data() + i * static_cast<int64_t>(sizeof sum), &sum, sizeof sum);
  }
  return bytes;
}

std::vector<char> sumOf(DType dtype, SumOrder order, const std::vector<std::vector<char>>& terms) {
  const auto same = [](auto value) { return value; };
  switch (dtype) {
  case DType::F64:
    return sumAs<double, double>(order, terms, same, same);
  case DType::F32:
    return sumAs<float, float>(order, terms, same, same);
  case DType::I64:
    return sumAs<uint64_t, uint64_t>(order, terms, same, same);
  default:
    return sumAs<uint16_t, float>(order, terms, fromBFloat16, toBFloat16);
  }
}

/// What `rank` gets of piece `i`, computed from all that the group holds.
std::vector<char> expected(const Collective& collective, size_t i, uint64_t key,
                           const std::vector<int64_t>& group, int64_t rank) {
  const CollectivePiece& piece = collective.pieces[i];
  const auto size = static_cast<int64_t>(group.size());
  std::vector<std::vector<char>> wholes;
  for (int64_t member : group)
    wholes.push_back(wholeOf(piece, key + i, member));
  if (collective.kind != CollectiveKind::AllGather) {
    const std::vector<char> sum = sumOf(piece.dtype, collective.order, wholes);
    const int64_t place = std::ranges::find(group, rank) - group.begin();
    return collective.kind == CollectiveKind::AllReduce ? sum : partOf(piece, sum, place, size);
  }
  std::vector<char> whole(static_cast<size_t>(piece.wholeBytes()));
  const int64_t row = piece.inner * byteSize(piece.dtype), part = row / size;
  for (int64_t place = 0; place < size; ++place)
    for (int64_t r = 0; r < piece.outer; ++r)
      std::memcpy(whole.data() + r * row + place * part,
                  wholes[static_cast<size_t>(place)].data() + r * row + place * part,
                  static_cast<size_t>(part));
  return whole;
}

} // namespace

uint64_t seedOfThisRun() {
  const char* seed = std::getenv("TITAN_TEST_SEED");
  return seed ? std::strtoull(seed, nullptr, 10) : 20240611;
}

// Drawing.

std::vector<MeshAxis> Drawer::mesh() {
  static const std::vector<std::vector<int64_t>> extents = {{2},    {3},    {4},    {2, 2},   {8},
                                                            {2, 3}, {4, 2}, {2, 4}, {2, 2, 2}};
  std::vector<MeshAxis> mesh;
  for (int64_t extent : extents[static_cast<size_t>(below(static_cast<int64_t>(extents.size())))])
    mesh.push_back({"axis" + std::to_string(mesh.size()), extent});
  return mesh;
}

Collective Drawer::collective(std::span<const MeshAxis> mesh) {
  Collective drawn;
  drawn.kind = static_cast<CollectiveKind>(below(3));
  while (drawn.axes.empty())
    for (uint8_t axis = 0; axis < mesh.size(); ++axis)
      if (below(2) == 0)
        drawn.axes.push_back(axis);
  const bool canBeTree = std::has_single_bit(static_cast<uint64_t>(groupSize(drawn.axes, mesh)));
  drawn.order = canBeTree && below(2) == 0 ? SumOrder::Tree : SumOrder::Rank;
  drawn.label = "drawn";
  return drawn;
}

/// 1 to 5 pieces, `elements` together at most; half of the collectives are small.
void Drawer::pieces(Collective& collective, std::span<const MeshAxis> mesh, int64_t elements) {
  static constexpr DType sums[] = {DType::F32, DType::F64, DType::I64, DType::BF16};
  static constexpr DType all[] = {DType::F32, DType::BF16, DType::I32, DType::U8, DType::F64};
  const int64_t ranks = groupSize(collective.axes, mesh);
  const bool cuts = collective.kind != CollectiveKind::AllReduce;
  const int64_t count = 1 + below(5);
  for (int64_t i = 0; i < count; ++i) {
    const auto limit =
        static_cast<int64_t>(std::pow(static_cast<double>(elements) / static_cast<double>(count),
                                      static_cast<double>(below(1001)) / 1000));
    CollectivePiece piece;
    piece.dtype = collective.kind == CollectiveKind::AllGather ? all[below(5)] : sums[below(4)];
    piece.outer = 1 + below(std::min<int64_t>(limit, 7));
    piece.inner = std::max<int64_t>(1, limit / piece.outer);
    if (cuts)
      piece.inner = (piece.inner + ranks - 1) / ranks * ranks;
    collective.pieces.push_back(piece);
  }
}

namespace {

int64_t roundUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// One rank of a drawn job. Sources of a batch lie one behind the other; the next batch overwrites
/// them as soon as the last one is awaited.
class DrawnRank {
public:
  DrawnRank(const Drawn& drawn, Communicator& communicator)
      : drawn_(drawn), communicator_(communicator) {}

  /// A digest of all results, or what is wrong.
  std::string run() {
    StagingRegion staging(stagingBytes());
    Status status = communicator_.setCollectives(drawn_.collectives, drawn_.mesh);
    if (status.ok())
      status = communicator_.shareStaging(staging.bytes());
    for (size_t i = 0; status.ok() && i < drawn_.batches.size(); ++i)
      status = runBatch(drawn_.batches[i], staging.bytes().data());
    if (status.ok())
      status = checkTraffic();
    if (status.ok())
      status = communicator_.finish();
    if (!status.ok())
      return "failed: " + status.error().message();
    return digest128(results_);
  }

private:
  std::vector<int64_t> groupOf(uint32_t collective) const {
    return titan::groupOf(communicator_.rank(), drawn_.collectives[collective].axes, drawn_.mesh);
  }
  uint64_t keyOf(uint32_t collective) const { return drawn_.key + 1000 * collective; }

  int64_t stagingBytes() const {
    int64_t most = 0;
    for (const auto& batch : drawn_.batches) {
      int64_t bytes = 0;
      for (uint32_t index : batch)
        for (const CollectivePiece& piece : drawn_.collectives[index].pieces)
          bytes += roundUp(piece.wholeBytes());
      most = std::max(most, bytes);
    }
    return most;
  }

  struct UnderWay {
    Communicator::Ticket ticket;
    std::vector<char*> ins, outs;
    std::vector<std::vector<char>> sources, results;
  };

  Status runBatch(const std::vector<uint32_t>& batch, char* staging) {
    std::vector<UnderWay> underWay(batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      place(batch[i], underWay[i], staging);
      TITAN_TRY(
          communicator_.start(batch[i], underWay[i].ins, underWay[i].outs, underWay[i].ticket));
    }
    for (size_t i = batch.size(); i-- > 0;) {
      TITAN_TRY(communicator_.wait(underWay[i].ticket));
      TITAN_TRY(check(batch[i], underWay[i]));
    }
    return {};
  }

  void place(uint32_t index, UnderWay& underWay, char*& staging) {
    const Collective& collective = drawn_.collectives[index];
    const std::vector<int64_t> group = groupOf(index);
    const auto size = static_cast<int64_t>(group.size());
    const int64_t place = std::ranges::find(group, communicator_.rank()) - group.begin();
    for (size_t i = 0; i < collective.pieces.size(); ++i) {
      const CollectivePiece& piece = collective.pieces[i];
      std::vector<char> source = wholeOf(piece, keyOf(index) + i, communicator_.rank());
      if (collective.kind == CollectiveKind::AllGather)
        source = partOf(piece, source, place, size);
      std::memcpy(staging, source.data(), source.size());
      underWay.ins.push_back(staging);
      underWay.sources.push_back(source);
      staging += roundUp(static_cast<int64_t>(source.size()));
      underWay.results.emplace_back(static_cast<size_t>(resultBytes(collective.kind, piece, size)),
                                    '\x5a');
    }
    for (std::vector<char>& result : underWay.results)
      underWay.outs.push_back(result.data());
  }

  Status check(uint32_t index, const UnderWay& underWay) {
    const Collective& collective = drawn_.collectives[index];
    for (size_t i = 0; i < underWay.results.size(); ++i) {
      const CollectivePiece& piece = collective.pieces[i];
      const auto describe = [&](const char* what) {
        return Error::internal("{}: collective {} ({}, {}), piece {}: {} x {} {}", what, index,
                               toString(collective.kind), toString(groupOf(index)), i, piece.outer,
                               piece.inner, name(piece.dtype));
      };
      if (underWay.results[i] !=
          expected(collective, i, keyOf(index), groupOf(index), communicator_.rank()))
        return describe("other bits");
      if (std::memcmp(underWay.ins[i], underWay.sources[i].data(), underWay.sources[i].size()) != 0)
        return describe("the source was written");
      results_.append(underWay.results[i].data(), underWay.results[i].size());
    }
    return {};
  }

  /// Payload is what one rank brings, what moved in a group is (r - 1) n, or twice that.
  Status checkTraffic() {
    const std::span<const Traffic> traffic = communicator_.traffic();
    std::vector<std::string> all;
    TITAN_TRY(communicator_.exchange(
        "traffic", {reinterpret_cast<const char*>(traffic.data()), traffic.size_bytes()}, all));
    for (uint32_t index = 0; index < traffic.size(); ++index) {
      const std::vector<int64_t> group = groupOf(index);
      const auto size = static_cast<int64_t>(group.size());
      const Collective& collective = drawn_.collectives[index];
      int64_t moved = 0, whole = 0;
      for (int64_t member : group) {
        Traffic theirs;
        std::memcpy(&theirs, all[static_cast<size_t>(member)].data() + index * sizeof theirs,
                    sizeof theirs);
        moved += theirs.moved;
      }
      for (const CollectivePiece& piece : collective.pieces)
        whole += piece.wholeBytes();
      const int64_t passes = collective.kind == CollectiveKind::AllReduce ? 2 : 1;
      if (moved != passes * (size - 1) * whole || traffic[index].executions != 1 ||
          traffic[index].payload != payloadBytes(collective, size))
        return Error::internal("collective {}: {} of {} bytes moved, payload {}", index, moved,
                               passes * (size - 1) * whole, traffic[index].payload);
      // A ledger's wire is the mean of the group, rounded up.
      if (wireBytes(collective, size) != (moved + size - 1) / size)
        return Error::internal("collective {}: {} bytes moved, wire {}", index, moved,
                               wireBytes(collective, size));
    }
    return {};
  }

  const Drawn& drawn_;
  Communicator& communicator_;
  std::string results_;
};

} // namespace

std::string runDrawn(const Drawn& drawn, Communicator& communicator) {
  return DrawnRank(drawn, communicator).run();
}

} // namespace titan::testing
