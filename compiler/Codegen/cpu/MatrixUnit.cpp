#include "compiler/Codegen/cpu/MatrixUnit.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// AMX. LLVM gives the tiles registers and configures them where they are first used; a tile that
/// lives across a call would be stored and loaded around it.
class Amx : public MatrixUnit {
public:
  explicit Amx(KernelBuilder& builder) : g(builder) {
    tile = LLVM::LLVMX86AMXType::get(g.builder.getContext());
    auto constant = [&](int64_t value) {
      return g.create<arith::ConstantOp>(g.builder.getI16IntegerAttr(value));
    };
    rows = constant(MatrixTile::rows);
    bytes = constant(MatrixTile::rowBytes);
  }

  Value zero(int64_t) override { return call("llvm.x86.tilezero.internal", {rows, bytes}); }
  Value load(int64_t, Value pointer, Value rowBytes) override {
    return call("llvm.x86.tileloadd64.internal", {rows, bytes, pointer, rowBytes});
  }
  void store(Value value, Value pointer, Value rowBytes) override {
    LLVM::CallIntrinsicOp::create(g.builder, g.loc,
                                  g.builder.getStringAttr("llvm.x86.tilestored64.internal"),
                                  ValueRange{rows, bytes, pointer, rowBytes, value});
  }
  Value multiplyAdd(Value sum, Value a, Value b) override {
    return call("llvm.x86.tdpbf16ps.internal", {rows, bytes, bytes, sum, a, b});
  }

private:
  Value call(StringRef name, ArrayRef<Value> operands) {
    return LLVM::CallIntrinsicOp::create(g.builder, g.loc, tile, g.builder.getStringAttr(name),
                                         operands)
        .getResult(0);
  }

  KernelBuilder& g;
  Type tile;
  Value rows, bytes;
};

/// A tile is a KiB of the stack; a product is a call. For tests on any CPU.
class Emulated : public MatrixUnit {
public:
  explicit Emulated(KernelBuilder& builder) : g(builder) {
    for (Value& slot : registers)
      slot = g.stack(MatrixTile::bytes, g.i8);
    line = g.create<arith::ConstantOp>(g.builder.getI64IntegerAttr(MatrixTile::rowBytes));
    auto found = g.module.lookupSymbol<func::FuncOp>(emulatedMultiplyAdd);
    if (!found) {
      OpBuilder::InsertionGuard guard(g.builder);
      g.builder.setInsertionPointToStart(g.module.getBody());
      found =
          func::FuncOp::create(g.builder, g.loc, emulatedMultiplyAdd,
                               g.builder.getFunctionType({g.pointer, g.pointer, g.pointer}, {}));
      found.setPrivate();
    }
    function = found;
  }

  Value zero(int64_t number) override {
    g.loop(0, MatrixTile::bytes / 4, MatrixTile::columns, [&](Value i) {
      g.store(g.zeros(g.vectorOf(g.f32, MatrixTile::columns)), g.at(registers[number], i, g.f32));
    });
    return registers[number];
  }
  Value load(int64_t number, Value pointer, Value rowBytes) override {
    copy(registers[number], line, pointer, rowBytes);
    return registers[number];
  }
  void store(Value tile, Value pointer, Value rowBytes) override {
    copy(pointer, rowBytes, tile, line);
  }
  Value multiplyAdd(Value sum, Value a, Value b) override {
    func::CallOp::create(g.builder, g.loc, function, ValueRange{sum, a, b});
    return sum;
  }

private:
  void copy(Value to, Value toBytes, Value from, Value fromBytes) {
    g.loop(0, MatrixTile::rows, 1, [&](Value row) {
      auto at = [&](Value pointer, Value bytes) {
        return g.at(pointer, g.mul(row, g.toIndex(bytes)), g.i8);
      };
      g.store(g.load(g.vectorOf(g.i32, MatrixTile::columns), at(from, fromBytes)), at(to, toBytes));
    });
  }

  KernelBuilder& g;
  std::array<Value, 8> registers;
  Value line;
  func::FuncOp function;
};

} // namespace

std::unique_ptr<MatrixUnit> MatrixUnit::create(KernelBuilder& builder, MatrixUnitKind kind) {
  if (kind == MatrixUnitKind::Amx)
    return std::make_unique<Amx>(builder);
  return std::make_unique<Emulated>(builder);
}

} // namespace titan::codegen
