// Evaluates values of a kernel's body at one point of the space, or along one vector of points.
//
// Scopes follow the loops: each knows the coordinates that its loop binds, and keeps the values
// computed in it. A value is computed once in the outermost scope that `hoist` reached it from, on
// a scalar unless it varies along the lanes.
#pragma once

#include "compiler/Codegen/kernel/LoopNest.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

#include <memory>

namespace titan::codegen {

/// `length` consecutive points along a dimension, from coordinate `base` (an index); lanes that are
/// off in `mask` (vector of i1; null: all are on) are computed on zeros and never stored.
struct Lanes {
  unsigned dim = 0;
  mlir::Value base;
  int64_t length = 0;
  mlir::Value mask;
};

/// A buffer as the body reads or writes it.
struct Memory {
  mlir::Value pointer;
  Access access;
  /// Elements from one lane to the next along the scope's lanes; nothing: the access's stride.
  std::optional<int64_t> laneStride;
};

/// Truth values are bytes 0 and 1 in memory.
mlir::Type storedType(mlir::Type element);

/// The elements of one load or store: the first at `pointer`, then every `stride`-th of the buffer.
struct ElementRun {
  const Memory& memory;
  mlir::Value pointer;
  mlir::Type stored;  ///< the type of each in memory
  int64_t length = 0; ///< lanes; 0: one element, as a scalar
  int64_t stride = 1;
  unsigned dim = 0; ///< along which the lanes lie
  mlir::Value mask; ///< lanes that are on; null: all
};

/// How a target reads and writes what bodies name.
class BodyMemory {
public:
  virtual ~BodyMemory() = default;
  /// Scalar `number` of the kernel, an i64.
  virtual mlir::Value scalar(mlir::OpBuilder& builder, mlir::Location loc, unsigned number) = 0;
  virtual mlir::Value load(mlir::OpBuilder& builder, mlir::Location loc, const ElementRun& run) = 0;
  virtual void store(mlir::OpBuilder& builder, mlir::Location loc, const ElementRun& run,
                     mlir::Value value) = 0;
};

class BodyEmitter {
public:
  /// `operands` are the addresses of ins and outs.
  BodyEmitter(mlir::OpBuilder& builder, const LoopNest& nest, mlir::ValueRange operands,
              BodyMemory& access);

  /// Opens a scope in which the given dimensions have these coordinates; closed by its destructor.
  class Scope {
  public:
    Scope(BodyEmitter& emitter, llvm::ArrayRef<std::pair<unsigned, mlir::Value>> coordinates,
          std::optional<Lanes> lanes = std::nullopt);
    ~Scope();
    Scope(const Scope&) = delete;

  private:
    friend class BodyEmitter;
    BodyEmitter& emitter;
    Scope* parent;
    llvm::SmallVector<std::pair<unsigned, mlir::Value>> coordinates;
    std::optional<Lanes> lanes;
    llvm::DenseMap<mlir::Value, mlir::Value> values;
    llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> splats;
    llvm::DenseMap<const Memory*, mlir::Value> indices;
    llvm::DenseMap<mlir::Operation*, mlir::Value> randomKeys;
  };

  /// Computes here what `roots` need, as far as it varies only along dimensions that have
  /// coordinates already and waits for no reduction that is still to be done.
  void hoist(llvm::ArrayRef<mlir::Value> roots);
  /// A value of the body: a scalar, or a vector where it varies along the lanes.
  mlir::Value get(mlir::Value value);
  /// The same, always a vector where there are lanes.
  mlir::Value getLanes(mlir::Value value);
  /// Writes `value` to outs[out] at this point or these lanes.
  void store(unsigned out, mlir::Value value);
  void store(const Memory& memory, mlir::Value value);

  /// Gives the result of a reduction: a value of the innermost scope.
  void setReduction(kernel::ReduceOp reduce, mlir::Value value);
  /// From here on `value`, an in or of an op with one result, is loaded from `memory`, which must
  /// stay. Null: from where it was loaded or computed before.
  void setMemory(mlir::Value value, const Memory* memory);
  /// Does `value` have such a place?
  bool isStored(mlir::Value value) const { return stored.lookup(value) != nullptr; }
  mlir::Value load(const Memory& memory);

  const std::optional<Lanes>& lanes() const;
  mlir::Value coordinate(unsigned dim) const;
  mlir::Value index(int64_t value);

  mlir::OpBuilder& builder;
  mlir::Location loc;
  const LoopNest& nest;

private:
  struct Hoisting {
    DimSet bound = 0;
    llvm::DenseSet<mlir::Value> visited;
    llvm::DenseMap<mlir::Value, bool> ready;
  };
  void hoistFrom(mlir::Value value, Hoisting& hoisting);
  bool isKnown(mlir::Value value) const;
  bool isReady(mlir::Value value, llvm::DenseMap<mlir::Value, bool>& memo) const;
  mlir::Value evaluate(mlir::Value value);
  mlir::Value evaluateRandom(kernel::RandomHalfOp op);
  mlir::Value randomKey(kernel::RandomHalfOp op);
  mlir::Value evaluateAtFirstLane(mlir::Value value);
  mlir::Value splat(mlir::Value scalar, mlir::Type element);
  mlir::Value elementIndex(const Memory& memory, Scope* scope);
  mlir::Value elementPointer(const Memory& memory, mlir::Type stored);
  int64_t laneStride(const Memory& memory) const;
  ElementRun runOf(const Memory& memory);
  const Memory* memoryOf(mlir::Value value) const;

  std::vector<std::unique_ptr<Memory>> ins, outs;
  llvm::DenseMap<mlir::Value, const Memory*> stored; ///< results, and ins that are elsewhere
  BodyMemory& access;
  Scope* scope = nullptr;
};

} // namespace titan::codegen
