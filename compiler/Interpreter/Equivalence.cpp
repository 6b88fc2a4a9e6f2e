#include "compiler/Interpreter/Equivalence.h"

#include "compiler/Interpreter/ShardedRun.h"
#include "dialects/Titan/Titan.h"

#include "llvm/Support/FormatVariadic.h"

#include <bit>
#include <cmath>

using namespace mlir;

namespace titan::interpreter {

namespace {

/// Every bit, the sign of a zero among them; one NaN is as good as another.
bool sameBits(double x, double y) {
  return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y) ||
         (std::isnan(x) && std::isnan(y));
}

bool isClose(double x, double y, double bound) {
  return x == y || std::abs(x - y) <= bound || (std::isnan(x) && std::isnan(y));
}

} // namespace

std::string describeDifference(const Tensor& before, const Tensor& after, double tolerance) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (before.type() != after.type()) {
    out << "is " << after.type() << ", was " << before.type();
    return text;
  }
  double bound = 0;
  if (before.isFloat()) {
    bound = 1;
    for (double x : before.floats())
      if (std::isfinite(x))
        bound = std::max(bound, std::abs(x));
    bound *= tolerance;
  }
  for (int64_t i = 0, n = before.size(); i < n; ++i) {
    double x = before.number(i), y = after.number(i);
    bool equal = !before.isFloat() ? before.integers()[i] == after.integers()[i]
                 : tolerance == 0  ? sameBits(x, y)
                                   : isClose(x, y, bound);
    if (!equal) {
      out << llvm::formatv("element {0} of {1} is {2:e9}, was {3:e9}", i, n, y, x);
      return text;
    }
  }
  return text;
}

namespace {

/// "titan.state @w": the tag of an argument or result as text; empty without one.
std::string tagText(ArrayAttr attributes, unsigned position) {
  std::string text;
  if (!attributes)
    return text;
  llvm::raw_string_ostream out(text);
  for (NamedAttribute attribute : cast<DictionaryAttr>(attributes[position]))
    if (attribute.getName().getValue().starts_with("titan."))
      out << attribute.getName().getValue() << ' ' << attribute.getValue();
  return text;
}

/// The position in `other` of what stands at `position` in `attributes`: by tag, else by position.
std::optional<unsigned> findMatch(ArrayAttr attributes, unsigned position, ArrayAttr other,
                                  unsigned otherCount) {
  std::string tag = tagText(attributes, position);
  if (tag.empty() || !other)
    return position < otherCount ? std::optional<unsigned>(position) : std::nullopt;
  for (unsigned i = 0; i < otherCount; ++i)
    if (tagText(other, i) == tag)
      return i;
  return std::nullopt;
}

/// Whatever the padding of parts holds, `run` has the bits of `results`, which it gave with NaN.
LogicalResult checkPadding(ShardedRun run, ArrayRef<Tensor> arguments, ArrayRef<Tensor> results,
                           Engine engine) {
  if (!run.hasPadding())
    return success();
  run.setPadding(Padding::LargeNumbers);
  FailureOr<Tensors> others = run.run(arguments, engine);
  if (failed(others))
    return failure();
  for (auto [i, result, other] : llvm::enumerate(results, *others)) {
    std::string difference = describeDifference(result, other, /*tolerance=*/0);
    if (!difference.empty())
      return run.function().emitError() << "@" << run.function().getName() << " result " << i
                                        << " depends on the padding of a state: " << difference;
  }
  return success();
}

LogicalResult checkFunction(func::FuncOp before, func::FuncOp after,
                            const EquivalenceOptions& options) {
  FailureOr<ShardedRun> runBefore = ShardedRun::create(before),
                        runAfter = ShardedRun::create(after);
  if (failed(runBefore) || failed(runAfter))
    return failure();
  const auto types = runBefore->argumentTypes(), afterTypes = runAfter->argumentTypes();
  Tensors arguments = randomArguments(before, types, options.random);
  Tensors afterArguments = randomArguments(after, afterTypes, options.random);
  for (unsigned i = 0; i < after.getNumArguments(); ++i)
    if (auto match = findMatch(after.getAllArgAttrs(), i, before.getAllArgAttrs(),
                               before.getNumArguments())) {
      if (afterTypes[i] != types[*match])
        return after.emitError() << "argument " << i << " is " << afterTypes[i] << ", was "
                                 << types[*match];
      afterArguments[i] = arguments[*match];
    }
  FailureOr<Tensors> wanted = runBefore->run(arguments, options.engine);
  if (failed(wanted))
    return failure();
  FailureOr<Tensors> found = runAfter->run(afterArguments, options.engine);
  if (failed(found) || failed(checkPadding(*runAfter, afterArguments, *found, options.engine)))
    return failure();
  const bool isNumberRight = options.commonResultsOnly || wanted->size() == found->size() ||
                             (options.newResults && wanted->size() < found->size());
  if (!isNumberRight)
    return after.emitError() << "@" << after.getName() << " has " << found->size()
                             << " results, had " << wanted->size();
  for (unsigned i = 0; i < wanted->size(); ++i) {
    std::string tag = tagText(before.getAllResultAttrs(), i);
    auto match = findMatch(before.getAllResultAttrs(), i, after.getAllResultAttrs(), found->size());
    if (!match) {
      if (options.commonResultsOnly)
        continue;
      return after.emitError() << "@" << after.getName() << " lost result " << i << " (" << tag
                               << ")";
    }
    std::string difference = describeDifference((*wanted)[i], (*found)[*match], options.tolerance);
    if (!difference.empty())
      return after.emitError() << "@" << after.getName() << " result " << i
                               << (tag.empty() ? "" : " (" + tag + ")") << ": " << difference;
  }
  return success();
}

} // namespace

LogicalResult checkEquivalent(ModuleOp before, ModuleOp after, const EquivalenceOptions& options) {
  unsigned checked = 0;
  for (auto function : before.getOps<func::FuncOp>()) {
    auto other = after.lookupSymbol<func::FuncOp>(function.getName());
    if (!other || function.isDeclaration() || other.isDeclaration())
      continue;
    if (failed(checkFunction(function, other, options)))
      return failure();
    ++checked;
  }
  if (checked == 0)
    return after.emitError() << "no function is in both modules";
  return success();
}

} // namespace titan::interpreter
