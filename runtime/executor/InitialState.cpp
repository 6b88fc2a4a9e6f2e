#include "runtime/executor/InitialState.h"

#include "runtime/executor/StoredWeights.h"
#include "runtime/program/Random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

namespace titan {
namespace {

// A share of a thread: a draw costs tens of nanoseconds.
constexpr int64_t elementsPerThread = 4096;
constexpr size_t drawnAtOnce = 256; ///< elements

template <typename T> T asElement(double value) {
  if constexpr (std::is_same_v<T, uint16_t>)
    return toBFloat16(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

template <typename T, typename Make>
Status fillAs(const State& state, const Part& part, const ByteSink& memory, ThreadPool& pool,
              const Make& make) {
  const Overlap overlap(part, Part::whole(state.shape));
  return memory.fillPieces([&](int64_t offset, std::span<char> piece) -> Status {
    constexpr auto elementBytes = static_cast<int64_t>(sizeof(T));
    const int64_t first = offset / elementBytes;
    const int64_t last = first + static_cast<int64_t>(piece.size()) / elementBytes;
    if (part.isPadded())
      std::memset(piece.data(), 0, piece.size());
    overlap.forEachRun(first, last, [&](int64_t at, int64_t whole, int64_t count) {
      T* elements = reinterpret_cast<T*>(piece.data()) + (at - first);
      pool.parallelFor(count, elementsPerThread, [&](int64_t begin, int64_t end) {
        make(whole + begin, std::span(elements + begin, elements + end));
      });
    });
    return {};
  });
}

/// Elements of the state's dtype: make(first, elements) writes those of the whole from `first` on.
template <typename Make>
Status fill(const State& state, const Part& part, const ByteSink& memory, ThreadPool& pool,
            const Make& make) {
  switch (state.dtype) {
  case DType::F64:
    return fillAs<double>(state, part, memory, pool, make);
  case DType::F32:
    return fillAs<float>(state, part, memory, pool, make);
  case DType::BF16:
    return fillAs<uint16_t>(state, part, memory, pool, make);
  case DType::I64:
    return fillAs<int64_t>(state, part, memory, pool, make);
  case DType::I32:
    return fillAs<int32_t>(state, part, memory, pool, make);
  case DType::U8:
  case DType::Bool:
    return fillAs<uint8_t>(state, part, memory, pool, make);
  default:
    return Error::internal(
        "state '{}' of dtype {} has an init rule: only F64, F32, BF16, I64, I32, U8 and BOOL have",
        state.name, name(state.dtype));
  }
}

/// The box `piece` of a state, from the stored tensor of shape `stored`: what of it lies in `part`,
/// the bytes from element `first` of the state on. Rows of the state are walked in order; a row's
/// elements lie one stride of the stored tensor apart.
void copyBox(const Piece& piece, const Shape& state, int64_t elementBytes, const char* bytes,
             const Shape& stored, int64_t first, std::span<char> part) {
  const size_t rank = state.size();
  Shape storedStride(stored.size(), 1), stateStride(rank, 1), stride(rank), index(rank, 0);
  for (size_t i = stored.size(); i-- > 1;)
    storedStride[i - 1] = storedStride[i] * stored[i];
  for (size_t i = rank; i-- > 1;)
    stateStride[i - 1] = stateStride[i] * state[i];
  int64_t from = 0, to = 0;
  for (size_t i = 0; i < stored.size(); ++i)
    from += piece.from[i] * storedStride[i];
  for (size_t d = 0; d < rank; ++d) {
    stride[d] = storedStride[static_cast<size_t>(piece.dims[d])];
    to += piece.at[d] * stateStride[d];
  }
  const int64_t length = rank > 0 ? piece.extent[rank - 1] : 1;
  const int64_t step = rank > 0 ? stride[rank - 1] : 1;
  const int64_t end = first + static_cast<int64_t>(part.size()) / elementBytes;
  for (;;) {
    const int64_t begin = std::max(to, first), stop = std::min(to + length, end);
    for (int64_t i = begin; i < stop; ++i)
      std::memcpy(part.data() + (i - first) * elementBytes,
                  bytes + (from + (i - to) * step) * elementBytes,
                  static_cast<size_t>(elementBytes));
    // The next row.
    size_t d = rank > 0 ? rank - 1 : 0;
    for (; d > 0; --d) {
      from += stride[d - 1];
      to += stateStride[d - 1];
      if (++index[d - 1] < piece.extent[d - 1])
        break;
      from -= index[d - 1] * stride[d - 1];
      to -= index[d - 1] * stateStride[d - 1];
      index[d - 1] = 0;
    }
    if (d == 0)
      return;
  }
}

using WeightsOf = std::function<Result<StoredWeights>(const StoredRange&)>;

/// Reads what is stored of `state` into place. `changed` gets the range whose bytes have another
/// digest.
Status place(const State& state, const WeightsOf& weightsOf, const ByteSink& destination,
             const StoredRange*& changed) {
  const std::vector<StoredRange>& stored = state.init.stored;
  const auto check = [&](const StoredRange& range, uint64_t digest) {
    if (digest != range.digest)
      changed = &range;
  };
  if (isStoredInPlace(state)) {
    const StoredWeights weights = TITAN_TRY(weightsOf(stored[0]));
    check(stored[0], TITAN_TRY(weights.read(stored[0].offset, destination)));
    return {};
  }
  std::vector<std::string> bytes;
  for (const StoredRange& range : stored) {
    const StoredWeights weights = TITAN_TRY(weightsOf(range));
    std::string& into = bytes.emplace_back(static_cast<size_t>(range.bytes), '\0');
    check(range, TITAN_TRY(weights.read(range.offset, std::span<char>(into.data(), into.size()))));
  }
  const std::vector<std::string> initializers = initializersOf(state.sources);
  const int64_t elementBytes = byteSize(state.dtype);
  return destination.fillPieces([&](int64_t offset, std::span<char> part) -> Status {
    for (const TensorSource& source : state.sources) {
      const auto name = std::find(initializers.begin(), initializers.end(), source.initializer);
      const auto i = static_cast<size_t>(name - initializers.begin());
      copyBox(writtenOut(source.piece, state.shape), state.shape, elementBytes, bytes[i].data(),
              stored[i].shape, offset / elementBytes, part);
    }
    return {};
  });
}

Status fromPayload(const State& state, std::string_view payload, const ByteSink& destination) {
  for (const StoredRange& range : state.init.stored)
    if (range.offset < 0 || range.offset > static_cast<int64_t>(payload.size()) ||
        range.bytes > static_cast<int64_t>(payload.size()) - range.offset)
      return Error::internal(
          "the weights of '{}', {} bytes at {}, leave the job's payload of {} bytes", state.name,
          range.bytes, range.offset, payload.size());
  const StoredRange* changed = nullptr;
  TITAN_TRY(place(
      state, [&](const StoredRange&) { return StoredWeights::ofPayload(payload); }, destination,
      changed));
  if (changed)
    return Error::badInput(
        "the weights of '{}' in the job's file are damaged: compile the job again", state.name);
  return {};
}

Status fromFile(const State& state, const std::string& directory, const ByteSink& destination) {
  std::string path;                   // of the range that is read
  const StoredRange* range = nullptr; // once its file is open
  const auto open = [&](const StoredRange& next) -> Result<StoredWeights> {
    range = nullptr;
    path = next.path.starts_with('/') ? next.path : directory + "/" + next.path;
    Result<StoredWeights> weights = StoredWeights::ofFile(path);
    if (weights.ok())
      range = &next;
    return weights;
  };
  const StoredRange* changed = nullptr;
  const Status placed = place(state, open, destination, changed);
  if (!placed.ok() && !range)
    return Error::badInput("cannot open '{}', which holds the weights of '{}': {}: give its "
                           "directory by --weights-dir",
                           path, state.name, placed.error().message());
  if (!placed.ok())
    return Error::badInput("cannot read the weights of '{}', {} bytes at {} of '{}': {}",
                           state.name, range->bytes, range->offset, path, placed.error().message());
  if (changed)
    return Error::badInput(
        "'{}' has changed since the job was compiled: the weights of '{}' have another digest: "
        "compile the job again",
        changed->path.starts_with('/') ? changed->path : directory + "/" + changed->path,
        state.name);
  return {};
}

} // namespace

bool isStored(const State& state) {
  return state.init.kind == Init::Kind::Payload || state.init.kind == Init::Kind::External;
}

bool isStoredInPlace(const State& state) {
  const std::vector<StoredRange>& stored = state.init.stored;
  return isStored(state) && stored.size() == 1 && stored.front().shape == state.shape &&
         std::ranges::all_of(state.sources,
                             [](const TensorSource& s) { return s.piece.isInPlace(); });
}

Status drawInitialState(const State& state, const Part& part, uint64_t seed, ThreadPool& pool,
                        const ByteSink& memory) {
  const Init& init = state.init;
  const uint64_t key = randomKey(seed, XXH3_64bits(state.name.data(), state.name.size()));
  // a + scale * the draw of each element.
  const auto drawn = [&](auto draws, double scale) {
    return fill(state, part, memory, pool, [=, &init]<typename T>(int64_t first, std::span<T> all) {
      std::array<float, drawnAtOnce> buffer;
      for (size_t i = 0; i < all.size(); i += drawnAtOnce) {
        const std::span<T> elements = all.subspan(i, std::min(all.size() - i, drawnAtOnce));
        const auto numbers = std::span(buffer).first(elements.size());
        draws(key, /*step=*/0, static_cast<uint64_t>(first) + i, numbers);
        std::ranges::transform(numbers, elements.begin(), [&](float number) {
          return asElement<T>(init.a + scale * static_cast<double>(number));
        });
      }
    });
  };
  switch (init.kind) {
  case Init::Kind::Constant:
    return fill(state, part, memory, pool, [&]<typename T>(int64_t, std::span<T> elements) {
      std::ranges::fill(elements, asElement<T>(init.a));
    });
  case Init::Kind::Normal:
    return drawn(normalDraws, init.b);
  case Init::Kind::Uniform:
    return drawn(uniformDraws, init.b - init.a);
  case Init::Kind::Payload:
  case Init::Kind::External:
    break;
  }
  return Error::internal("no rule draws state '{}'", state.name);
}

Status writeInitialState(const State& state, const InitialStateSources& sources, ThreadPool& pool,
                         const ByteSink& whole) {
  if (const int64_t bytes = elementCount(state.shape) * byteSize(state.dtype);
      whole.bytes() != bytes)
    return Error::internal("state '{}' of {} {} has {} bytes, not {}", state.name,
                           name(state.dtype), toString(state.shape), bytes, whole.bytes());
  switch (state.init.kind) {
  case Init::Kind::Payload:
    return fromPayload(state, sources.payload, whole);
  case Init::Kind::External:
    return fromFile(state, sources.weightsDirectory, whole);
  default:
    return drawInitialState(state, Part::whole(state.shape), sources.seed, pool, whole);
  }
}

} // namespace titan
