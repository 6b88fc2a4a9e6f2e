#include "compiler/Codegen/cpu/MatrixPack.h"

#include "compiler/Codegen/cpu/MatrixUnit.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace titan::codegen {
namespace {

constexpr int64_t half = MatrixTile::rows, pairs = matrixStep / 2, tilesPerStep = 2;

class Packing {
public:
  Packing(KernelBuilder& builder, const MatrixOperand& operand, const MatrixPackArguments& arg)
      : g(builder), operand(operand), arg(arg), element(operand.rounds ? g.f32 : g.i16) {}

  void emit() {
    Value steps = g.divide(g.add(arg.depth, matrixStep - 1), matrixStep);
    Value scratch = g.stack(packedStep, element), zero = g.index(0);
    g.loop(zero, arg.count, matrixBlock, [&](Value first) {
      Value count = g.fewer(g.sub(arg.count, first), g.index(matrixBlock));
      Value block = g.at(arg.panel, g.mul(g.mul(first, steps), matrixStep), g.i16);
      g.loop(zero, steps, 1, [&](Value step) {
        Value k = g.mul(step, matrixStep);
        Value depth = g.fewer(g.sub(arg.depth, k), g.index(matrixStep));
        Value line = operand.alongK ? first : k, place = operand.alongK ? k : first;
        Value from = g.at(arg.from, g.add(g.mul(line, arg.leading), place), element);
        Value isWhole =
            g.compare(arith::CmpIPredicate::eq, g.add(count, depth), g.index(2 * matrixStep));
        g.when(g.create<arith::XOrIOp>(isWhole, g.flag(true)), [&] {
          fill(scratch, from, operand.alongK ? count : depth, operand.alongK ? depth : count);
        });
        pack(g.select(isWhole, from, scratch), g.select(isWhole, arg.leading, g.index(matrixStep)),
             g.at(block, g.mul(step, packedStep), g.i16));
      });
    });
  }

private:
  /// A step at an edge: what there is of it, and zeros.
  void fill(Value scratch, Value from, Value lines, Value elements) {
    g.loop(0, matrixStep, 1, [&](Value line) {
      Value here = g.select(g.less(line, lines), elements, g.index(0));
      VectorType type = g.vectorOf(element, matrixStep);
      Value values = g.loadMasked(type, g.at(from, g.mul(line, arg.leading), element),
                                  g.maskBelow(here, matrixStep));
      g.store(values, g.at(scratch, g.mul(line, matrixStep), element));
    });
  }

  /// The two tiles of a step, one at a time. Lines of pairs along k are read as they lie in memory,
  /// or made of two lines each. The unit wants lines of pairs of A, and pairs of lines of B: the
  /// other two are transposed.
  void pack(Value from, Value leading, Value to) {
    auto at = [&](Value line, Value place) {
      return g.at(from, g.add(g.mul(line, leading), place), element);
    };
    g.loop(0, tilesPerStep, 1, [&](Value tile) {
      Value first = g.mul(tile, half);
      SmallVector<Value> lines;
      for (int64_t i = 0; i < half; ++i) {
        if (operand.alongK) {
          lines.push_back(toPairs(load(at(g.add(first, i), g.index(0)), matrixStep)));
          continue;
        }
        Value low = load(at(g.index(2 * i), first), half);
        Value high = load(at(g.index(2 * i + 1), first), half);
        lines.push_back(toPairs(g.create<vector::InterleaveOp>(low, high)));
      }
      if (operand.alongK == operand.isRight)
        g.transpose(lines);
      for (int64_t i = 0; i < half; ++i)
        g.store(lines[i], g.at(to, g.mul(g.add(first, i), matrixStep), g.i16));
    });
  }

  /// The bits of `count` bf16.
  Value load(Value pointer, int64_t count) {
    Value value = g.load(g.vectorOf(element, count), pointer);
    if (!operand.rounds)
      return value;
    Value rounded = g.create<arith::TruncFOp>(g.vectorOf(g.bf16, count), value);
    return g.create<arith::BitcastOp>(g.vectorOf(g.i16, count), rounded);
  }
  Value toPairs(Value elements) {
    return g.create<vector::BitCastOp>(g.vectorOf(g.i32, pairs), elements);
  }

  KernelBuilder& g;
  MatrixOperand operand;
  MatrixPackArguments arg;
  Type element;
};

} // namespace

func::FuncOp getMatrixPack(KernelBuilder& g, const MatrixOperand& operand) {
  Type p = g.pointer, n = g.indexType;
  std::string name = operand.isRight ? "matrix_pack_b" : "matrix_pack_a";
  name += operand.alongK ? "_along_k" : "_across_k";
  name += operand.rounds ? "_rounds" : "";
  return g.getFunction(name, {p, n, n, n, p}, [&](Block& block) {
    Packing(g, operand, argumentsOf<MatrixPackArguments>(block)).emit();
  });
}

} // namespace titan::codegen
