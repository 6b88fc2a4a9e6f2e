// Sums are made block by block, so that a block's accumulators stay in the first cache while the
// terms stream through it.
#include "runtime/collective/Sum.h"

#include <algorithm>

namespace titan {
namespace {

constexpr int64_t blockElements = 1024;

// Storage and accumulator of each element type. Integers wrap around, so they are added unsigned.
template <typename Element> struct AsStored {
  using Stored = Element;
  using Sum = Element;
  static Sum load(Stored value) { return value; }
  static Stored store(Sum value) { return value; }
};
using F32 = AsStored<float>;
using F64 = AsStored<double>;
using I64 = AsStored<uint64_t>;
struct BF16 {
  using Stored = uint16_t;
  using Sum = float;
  static Sum load(Stored value) { return fromBFloat16(value); }
  static Stored store(Sum value) { return toBFloat16(value); }
};

template <typename Type> const typename Type::Stored* elements(const char* term, int64_t begin) {
  return reinterpret_cast<const typename Type::Stored*>(term) + begin;
}

/// x0 + x1 + ... of `count` elements from `begin` on.
template <typename Type>
void addInOrder(std::span<const char* const> terms, int64_t begin, int64_t count,
                typename Type::Sum* sum) {
  const auto* first = elements<Type>(terms[0], begin);
  for (int64_t i = 0; i < count; ++i)
    sum[i] = Type::load(first[i]);
  for (const char* term : terms.subspan(1)) {
    const auto* next = elements<Type>(term, begin);
    for (int64_t i = 0; i < count; ++i)
      sum[i] += Type::load(next[i]);
  }
}

/// (x0 + x1) + (x2 + x3); each leaf enters as 0 + x.
template <typename Type>
void addAsTree(std::span<const char* const> terms, int64_t begin, int64_t count,
               typename Type::Sum* sum) {
  if (terms.size() == 1) {
    const auto* leaf = elements<Type>(terms[0], begin);
    for (int64_t i = 0; i < count; ++i)
      sum[i] = typename Type::Sum(0) + Type::load(leaf[i]);
    return;
  }
  typename Type::Sum right[blockElements];
  addAsTree<Type>(terms.first(terms.size() / 2), begin, count, sum);
  addAsTree<Type>(terms.subspan(terms.size() / 2), begin, count, right);
  for (int64_t i = 0; i < count; ++i)
    sum[i] += right[i];
}

template <typename Type>
void add(SumOrder order, std::span<const char* const> terms, char* sum, int64_t count) {
  auto* stored = reinterpret_cast<typename Type::Stored*>(sum);
  typename Type::Sum block[blockElements];
  for (int64_t begin = 0; begin < count; begin += blockElements) {
    const int64_t size = std::min(blockElements, count - begin);
    if (order == SumOrder::Tree)
      addAsTree<Type>(terms, begin, size, block);
    else
      addInOrder<Type>(terms, begin, size, block);
    for (int64_t i = 0; i < size; ++i)
      stored[begin + i] = Type::store(block[i]);
  }
}

} // namespace

void addTerms(DType dtype, SumOrder order, std::span<const char* const> terms, char* sum,
              int64_t count) {
  switch (dtype) {
  case DType::F32:
    return add<F32>(order, terms, sum, count);
  case DType::F64:
    return add<F64>(order, terms, sum, count);
  case DType::I64:
    return add<I64>(order, terms, sum, count);
  case DType::BF16:
    return add<BF16>(order, terms, sum, count);
  default:
    return;
  }
}

} // namespace titan
