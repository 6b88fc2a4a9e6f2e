#include "runtime/executor/InitialState.h"

#include "runtime/executor/StoredWeights.h"
#include "runtime/program/Random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

namespace titan {
namespace {

// A share of a thread: a draw costs tens of nanoseconds.
constexpr int64_t elementsPerThread = 4096;

template <typename T, typename Value>
Status fillAs(const ByteSink& destination, ThreadPool& pool, const Value& value) {
  return destination.fillPieces([&](int64_t offset, std::span<char> piece) -> Status {
    constexpr auto elementBytes = static_cast<int64_t>(sizeof(T));
    T* elements = reinterpret_cast<T*>(piece.data());
    const int64_t first = offset / elementBytes;
    const int64_t count = static_cast<int64_t>(piece.size()) / elementBytes;
    pool.parallelFor(count, elementsPerThread, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if constexpr (std::is_same_v<T, uint16_t>)
          elements[i] = toBFloat16(static_cast<float>(value(first + i)));
        else
          elements[i] = static_cast<T>(value(first + i));
      }
    });
    return {};
  });
}

/// Element i = value(i), a double, in the state's dtype.
template <typename Value>
Status fill(const State& state, ThreadPool& pool, const ByteSink& destination, const Value& value) {
  switch (state.dtype) {
  case DType::F64:
    return fillAs<double>(destination, pool, value);
  case DType::F32:
    return fillAs<float>(destination, pool, value);
  case DType::BF16:
    return fillAs<uint16_t>(destination, pool, value);
  case DType::I64:
    return fillAs<int64_t>(destination, pool, value);
  case DType::I32:
    return fillAs<int32_t>(destination, pool, value);
  case DType::U8:
  case DType::Bool:
    return fillAs<uint8_t>(destination, pool, value);
  default:
    return Error::internal(
        "state '{}' of dtype {} has an init rule: only F64, F32, BF16, I64, I32, U8 and BOOL have",
        state.name, name(state.dtype));
  }
}

/// Fills `piece`, which begins at element `first` of the state, from `stored`: state dim i is
/// stored dim permutation[i].
void copyPermuted(const State& state, const char* stored, int64_t first, std::span<char> piece) {
  const std::vector<int64_t>& permutation = state.init.permutation;
  const size_t rank = state.shape.size();
  const int64_t elementBytes = byteSize(state.dtype);
  const int64_t count = static_cast<int64_t>(piece.size()) / elementBytes;
  Shape storedShape(rank), storedStride(rank, 1), stride(rank), index(rank, 0);
  for (size_t i = 0; i < rank; ++i)
    storedShape[permutation[i]] = state.shape[i];
  for (size_t i = rank; i-- > 1;)
    storedStride[i - 1] = storedStride[i] * storedShape[i];
  int64_t source = 0, rest = first;
  for (size_t d = rank; d-- > 0; rest /= state.shape[d]) {
    stride[d] = storedStride[permutation[d]];
    index[d] = rest % state.shape[d];
    source += index[d] * stride[d];
  }
  for (int64_t element = 0; element < count; ++element) {
    std::memcpy(piece.data() + element * elementBytes, stored + source * elementBytes,
                static_cast<size_t>(elementBytes));
    for (size_t d = rank; d-- > 0;) {
      source += stride[d];
      if (++index[d] < state.shape[d])
        break;
      source -= index[d] * stride[d];
      index[d] = 0;
    }
  }
}

Status checkPermutation(const State& state) {
  const std::vector<int64_t>& permutation = state.init.permutation;
  std::vector<bool> seen(permutation.size());
  bool valid = permutation.empty() || permutation.size() == state.shape.size();
  for (int64_t dim : permutation) {
    valid = valid && dim >= 0 && dim < static_cast<int64_t>(seen.size()) && !seen[dim];
    if (valid)
      seen[dim] = true;
  }
  if (!valid)
    return Error::internal(
        "the init of state '{}' has a layout that is no permutation of its {} dims", state.name,
        state.shape.size());
  return {};
}

/// Reads the stored bytes of `state` into place. False when they have another digest.
Result<bool> place(const State& state, const StoredWeights& weights, const ByteSink& destination) {
  if (state.init.permutation.empty())
    return TITAN_TRY(weights.read(state.init.offset, destination)) == state.init.digest;
  std::string stored(static_cast<size_t>(state.bytes), '\0');
  const uint64_t digest =
      TITAN_TRY(weights.read(state.init.offset, std::span<char>(stored.data(), stored.size())));
  TITAN_TRY(destination.fillPieces([&](int64_t offset, std::span<char> piece) -> Status {
    copyPermuted(state, stored.data(), offset / byteSize(state.dtype), piece);
    return {};
  }));
  return digest == state.init.digest;
}

Status fromPayload(const State& state, std::string_view payload, const ByteSink& destination) {
  const int64_t offset = state.init.offset;
  if (offset < 0 || offset > static_cast<int64_t>(payload.size()) ||
      state.bytes > static_cast<int64_t>(payload.size()) - offset)
    return Error::internal(
        "the weights of '{}', {} bytes at {}, leave the job's payload of {} bytes", state.name,
        state.bytes, offset, payload.size());
  TITAN_TRY(checkPermutation(state));
  if (!TITAN_TRY(place(state, StoredWeights::ofPayload(payload), destination)))
    return Error::badInput(
        "the weights of '{}' in the job's file are damaged: compile the job again", state.name);
  return {};
}

Status fromFile(const State& state, const std::string& directory, const ByteSink& destination) {
  const std::string path =
      state.init.path.starts_with('/') ? state.init.path : directory + "/" + state.init.path;
  TITAN_TRY(checkPermutation(state));
  Result<StoredWeights> weights = StoredWeights::ofFile(path);
  if (!weights.ok())
    return Error::badInput("cannot open '{}', which holds the weights of '{}': {}: give its "
                           "directory by --weights-dir",
                           path, state.name, weights.error().message());
  Result<bool> placed = place(state, *weights, destination);
  if (!placed.ok())
    return Error::badInput("cannot read the weights of '{}', {} bytes at {} of '{}': {}",
                           state.name, state.bytes, state.init.offset, path,
                           placed.error().message());
  if (!*placed)
    return Error::badInput(
        "'{}' has changed since the job was compiled: the weights of '{}' have another digest: "
        "compile the job again",
        path, state.name);
  return {};
}

} // namespace

Status writeInitialState(const State& state, const InitialStateSources& sources, ThreadPool& pool,
                         const ByteSink& destination) {
  if (state.bytes != elementCount(state.shape) * byteSize(state.dtype))
    return Error::internal("state '{}' of {} {} has {} bytes", state.name, name(state.dtype),
                           toString(state.shape), state.bytes);
  const Init& init = state.init;
  const uint64_t key = randomKey(sources.seed, XXH3_64bits(state.name.data(), state.name.size()));
  switch (init.kind) {
  case Init::Kind::Payload:
    return fromPayload(state, sources.payload, destination);
  case Init::Kind::External:
    return fromFile(state, sources.weightsDirectory, destination);
  case Init::Kind::Constant:
    return fill(state, pool, destination, [&](int64_t) { return init.a; });
  case Init::Kind::Normal:
    return fill(state, pool, destination, [&](int64_t i) {
      return init.a + init.b * static_cast<double>(normalDraw(key, 0, static_cast<uint64_t>(i)));
    });
  case Init::Kind::Uniform:
    return fill(state, pool, destination, [&](int64_t i) {
      return init.a +
             (init.b - init.a) * static_cast<double>(uniformDraw(key, 0, static_cast<uint64_t>(i)));
    });
  }
  return Error::internal("state '{}' has no init", state.name);
}

} // namespace titan
