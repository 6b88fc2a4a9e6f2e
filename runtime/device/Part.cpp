#include "runtime/device/Part.h"

#include <cstring>

namespace titan {
namespace {

/// Elements from one index of a dimension to the next.
Shape stridesOf(const Shape& local) {
  Shape strides(local.size(), 1);
  for (size_t d = local.size(); d-- > 1;)
    strides[d - 1] = strides[d] * local[d];
  return strides;
}

} // namespace

Part partOf(const Shape& shape, const Placement& placement, std::span<const MeshAxis> mesh,
            std::span<const int64_t> coordinates) {
  const std::vector<Box> boxes = boxesOf(shape, placement, mesh, coordinates);
  const Shape none(shape.size(), 0);
  return {boxes.empty() ? Box{none, none} : boxes.front(),
          localShape(shape, placement, mesh).value_or(shape)};
}

Part partOf(const State& state, std::span<const MeshAxis> mesh,
            std::span<const int64_t> coordinates) {
  return partOf(state.shape, state.placement, mesh, coordinates);
}

Part inBytes(Part part, int64_t elementBytes) {
  part.box.at.push_back(0);
  part.box.extent.push_back(elementBytes);
  part.local.push_back(elementBytes);
  return part;
}

Overlap::Overlap(const Part& from, const Part& to) {
  const size_t rank = from.local.size();
  const Shape fromStrides = stridesOf(from.local), toStrides = stridesOf(to.local);
  Shape extent(rank);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t begin = std::max(from.box.at[d], to.box.at[d]);
    const int64_t end =
        std::min(from.box.at[d] + from.box.extent[d], to.box.at[d] + to.box.extent[d]);
    extent[d] = end - begin;
    empty_ = empty_ || extent[d] <= 0;
    from_ += (begin - from.box.at[d]) * fromStrides[d];
    to_ += (begin - to.box.at[d]) * toStrides[d];
  }
  // Inner dimensions that lie in one piece in both are one run.
  size_t d = rank;
  while (d > 0 && fromStrides[d - 1] == run_ && toStrides[d - 1] == run_)
    run_ *= extent[--d];
  rows_.assign(extent.begin(), extent.begin() + static_cast<std::ptrdiff_t>(d));
  fromStrides_.assign(fromStrides.begin(), fromStrides.begin() + static_cast<std::ptrdiff_t>(d));
  toStrides_.assign(toStrides.begin(), toStrides.begin() + static_cast<std::ptrdiff_t>(d));
}

int64_t Overlap::end() const {
  if (isEmpty())
    return from_;
  int64_t last = from_;
  for (size_t d = 0; d < rows_.size(); ++d)
    last += (rows_[d] - 1) * fromStrides_[d];
  return last + run_;
}

Shape Overlap::rowAt(int64_t first) const {
  Shape index(rows_.size(), 0);
  int64_t rest = std::max<int64_t>(0, first - from_);
  for (size_t d = 0; d < rows_.size(); ++d) {
    index[d] = std::min(rest / fromStrides_[d], rows_[d] - 1);
    rest -= index[d] * fromStrides_[d];
  }
  return index;
}

bool Overlap::advance(Shape& index) const {
  for (size_t d = index.size(); d-- > 0; index[d] = 0)
    if (++index[d] < rows_[d])
      return true;
  return false;
}

ByteSource withoutPadding(const ByteSource& memory, const Part& part, int64_t elementBytes) {
  if (!part.isPadded())
    return memory;
  const Overlap overlap(Part::dense(part.box), part);
  const auto read = [=](int64_t first, std::span<char> into) -> Status {
    const int64_t begin = first / elementBytes,
                  end = begin + static_cast<int64_t>(into.size()) / elementBytes;
    // Of a device without a window, all between the first and the last element at once.
    int64_t from = INT64_MAX, to = 0;
    overlap.forEachRun(begin, end, [&](int64_t, int64_t at, int64_t count) {
      from = std::min(from, at), to = at + count;
    });
    std::string copy;
    const char* bytes = memory.direct().data() + from * elementBytes;
    if (memory.direct().empty()) {
      copy.resize(static_cast<size_t>((to - from) * elementBytes));
      TITAN_TRY(memory.read(from * elementBytes, copy));
      bytes = copy.data();
    }
    overlap.forEachRun(begin, end, [&](int64_t element, int64_t at, int64_t count) {
      std::memcpy(into.data() + (element - begin) * elementBytes,
                  bytes + (at - from) * elementBytes, static_cast<size_t>(count * elementBytes));
    });
    return {};
  };
  return ByteSource::made(part.elements() * elementBytes, read);
}

Status copyInto(const Overlap& overlap, int64_t elementBytes, int64_t first,
                std::span<const char> bytes, const ByteSink& memory) {
  Status copied;
  const int64_t last = first + static_cast<int64_t>(bytes.size()) / elementBytes;
  overlap.forEachRun(first, last, [&](int64_t from, int64_t to, int64_t count) {
    if (copied.ok())
      copied = memory.write(to * elementBytes,
                            bytes.subspan(static_cast<size_t>((from - first) * elementBytes),
                                          static_cast<size_t>(count * elementBytes)));
  });
  return copied;
}

} // namespace titan
