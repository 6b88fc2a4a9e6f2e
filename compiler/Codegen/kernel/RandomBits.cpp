#include "compiler/Codegen/kernel/RandomBits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace mlir;

namespace titan::codegen {
namespace {

// Philox4x32 (Salmon et al., SC'11, section 4.3), seven rounds.
constexpr uint64_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
constexpr uint64_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85;
constexpr uint64_t low32 = 0xffffffff;

/// i64 arithmetic on scalars or on vectors of one length.
class Words {
public:
  Words(OpBuilder& builder, Location loc, Type type) : builder(builder), loc(loc), type(type) {}

  Value constant(uint64_t value) {
    TypedAttr attribute = builder.getI64IntegerAttr(static_cast<int64_t>(value));
    if (auto vector = dyn_cast<VectorType>(type))
      attribute = DenseElementsAttr::get(vector, attribute);
    return arith::ConstantOp::create(builder, loc, attribute);
  }
  Value splat(Value scalar) {
    return isa<VectorType>(type)
               ? vector::BroadcastOp::create(builder, loc, type, scalar).getResult()
               : scalar;
  }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulIOp::create(builder, loc, a, b); }
  Value exclusiveOr(Value a, Value b) { return arith::XOrIOp::create(builder, loc, a, b); }
  Value mask(Value a, uint64_t bits) {
    return arith::AndIOp::create(builder, loc, a, constant(bits));
  }
  Value shiftRight(Value a, Value by) { return arith::ShRUIOp::create(builder, loc, a, by); }
  Value shiftRight(Value a, uint64_t by) { return shiftRight(a, constant(by)); }
  Value shiftLeft(Value a, Value by) { return arith::ShLIOp::create(builder, loc, a, by); }

  OpBuilder& builder;
  Location loc;
  Type type;
};

/// The four words of each block, each in the low half of 64 bits.
std::array<Value, 4> philox(Words& words, Value key, Value block, Value step) {
  Value key0 = words.splat(key), key1 = words.shiftRight(key0, 32);
  key0 = words.mask(key0, low32);
  Value steps = words.splat(step);
  std::array<Value, 4> counter = {words.mask(block, low32), words.shiftRight(block, 32),
                                  words.mask(steps, low32), words.shiftRight(steps, 32)};
  for (int round = 0; round < 7; ++round) {
    Value product0 = words.mul(counter[0], words.constant(multiplier0));
    Value product1 = words.mul(counter[2], words.constant(multiplier1));
    auto next = [&](Value product, Value word, Value roundKey) {
      return words.exclusiveOr(words.exclusiveOr(words.shiftRight(product, 32), word), roundKey);
    };
    counter = {next(product1, counter[1], key0), words.mask(product1, low32),
               next(product0, counter[3], key1), words.mask(product0, low32)};
    key0 = words.mask(words.add(key0, words.constant(weyl0)), low32);
    key1 = words.mask(words.add(key1, words.constant(weyl1)), low32);
  }
  return counter;
}

} // namespace

// XXH3's formula for 9 to 16 bytes, without a seed (https://github.com/Cyan4973/xxHash, its
// specification's section on XXH3 with small inputs).
Value emitRandomKey(OpBuilder& builder, Location loc, Value seed, Value stream) {
  Words words(builder, loc, seed.getType());
  auto secret = [](size_t offset) { return XXH_readLE64(XXH3_kSecret + offset); };
  Value low = words.exclusiveOr(seed, words.constant(secret(24) ^ secret(32)));
  Value high = words.exclusiveOr(stream, words.constant(secret(40) ^ secret(48)));
  auto product = arith::MulUIExtendedOp::create(builder, loc, low, high);
  Value folded = words.exclusiveOr(product.getLow(), product.getHigh());
  Value swapped = LLVM::ByteSwapOp::create(builder, loc, low.getType(), low);
  Value hash = words.add(words.add(words.add(words.constant(16), swapped), high), folded);
  hash = words.exclusiveOr(hash, words.shiftRight(hash, 37));
  hash = words.mul(hash, words.constant(0x165667919E3779F9));
  return words.exclusiveOr(hash, words.shiftRight(hash, 32));
}

Value emitRandomKey(OpBuilder& builder, Location loc, Value seed, uint64_t stream) {
  Words words(builder, loc, seed.getType());
  return emitRandomKey(builder, loc, seed, words.constant(stream));
}

std::array<Value, 4> emitRandomWords(OpBuilder& builder, Location loc, Value key, Value step,
                                     Value block) {
  Words words(builder, loc, block.getType());
  return philox(words, key, block, step);
}

Value emitRandomHalf(OpBuilder& builder, Location loc, Value key, Value step, Value element) {
  Words words(builder, loc, element.getType());
  std::array<Value, 4> block = philox(words, key, words.shiftRight(element, 3), step);
  // Half j of the block: the low 64 bits hold halves 0 to 3, the high ones 4 to 7.
  auto pair = [&](Value low, Value high) {
    return words.exclusiveOr(low, words.shiftLeft(high, words.constant(32)));
  };
  Value isHigh = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                       words.mask(element, 4), words.constant(0));
  Value half = arith::SelectOp::create(builder, loc, isHigh, pair(block[2], block[3]),
                                       pair(block[0], block[1]));
  Value shift = words.shiftLeft(words.mask(element, 3), words.constant(4));
  half = words.mask(words.shiftRight(half, shift), 0xffff);
  Type i32 = builder.getI32Type();
  Type result = i32;
  if (auto vector = dyn_cast<VectorType>(words.type))
    result = vector.clone(i32);
  return arith::TruncIOp::create(builder, loc, result, half);
}

Value emitRandomHalfRun(OpBuilder& builder, Location loc, Value key, Value step, Value first,
                        int64_t length) {
  int64_t blocks = length / 8;
  auto type = VectorType::get({blocks}, builder.getI64Type());
  Words words(builder, loc, type);
  SmallVector<int64_t> counting(blocks);
  for (int64_t i = 0; i < blocks; ++i)
    counting[i] = i;
  Value offsets = arith::ConstantOp::create(builder, loc, builder.getI64VectorAttr(counting));
  Value firstBlock = arith::ShRUIOp::create(
      builder, loc, first, arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(3)));
  std::array<Value, 4> block =
      philox(words, key, words.add(words.splat(firstBlock), offsets), step);
  // Pairs of words as 64 bits, the two pairs of a block interleaved: 4 halves each, in order.
  auto pair = [&](Value low, Value high) {
    return words.exclusiveOr(low, words.shiftLeft(high, words.constant(32)));
  };
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < blocks; ++i)
    order.append({i, blocks + i});
  Value quads = vector::ShuffleOp::create(builder, loc, pair(block[0], block[1]),
                                          pair(block[2], block[3]), order);
  auto halves = VectorType::get({length}, builder.getI16Type());
  Value bits = vector::BitCastOp::create(builder, loc, halves, quads);
  return arith::ExtUIOp::create(builder, loc, halves.clone(builder.getI32Type()), bits);
}

} // namespace titan::codegen
