// Facts of a pass that others ask for: may it be skipped, does it keep every bit? They stand in the
// pass's td entry (`let facts`, PassFacts.td), which makes them a base class of it.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace titan {

/// Members in the order in which a td entry lists them.
struct PassFacts {
  /// Only makes the program better: a user may skip it, and the job trains to the same bits.
  bool isOptional = false;
  /// Computes sums in another order, or composes functions of others. Values are rounded elsewhere,
  /// so what it leaves equals what it took to a tolerance only.
  bool movesRounding = false;
  /// Moves rounding where it cuts a loss into rows, nowhere else.
  bool cutsLoss = false;
};

/// What a pass with facts is besides a pass.
class HasPassFacts {
public:
  virtual ~HasPassFacts() = default;
  virtual PassFacts passFacts() const = 0;
};

/// The base class that `let facts` gives a pass.
template <typename Base, PassFacts facts> class PassWithFacts : public Base, public HasPassFacts {
public:
  PassFacts passFacts() const final { return facts; }

protected:
  explicit PassWithFacts(mlir::TypeID id) : Base(id) {}
  PassWithFacts(const PassWithFacts&) = default;
};

/// The facts of `pass`; none for one that says nothing.
inline PassFacts factsOf(const mlir::Pass& pass) {
  const auto* said = dynamic_cast<const HasPassFacts*>(&pass);
  return said ? said->passFacts() : PassFacts();
}

} // namespace titan
