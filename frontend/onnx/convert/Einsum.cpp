// Einstein summation: pairwise contractions from left to right, then the output's order.
#include "frontend/onnx/convert/Conversion.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace titan::frontend {

using namespace ir;

namespace {

/// A value with one letter per dimension.
struct Term {
  Value value;
  std::string letters;

  int64_t dim(char letter) const {
    size_t at = letters.find(letter);
    return at == std::string::npos ? -1 : static_cast<int64_t>(at);
  }
};

/// Sums over the letters of `term` that nothing in `needed` has.
Term summed(Conversion& c, Term term, const std::string& needed) {
  SmallVector<int64_t> dims;
  std::string kept;
  for (auto [d, letter] : llvm::enumerate(term.letters)) {
    if (needed.find(letter) == std::string::npos)
      dims.push_back(static_cast<int64_t>(d));
    else
      kept += letter;
  }
  if (dims.empty())
    return term;
  return {c.reduce(ReduceKind::Sum, term.value, dims), kept};
}

/// `value` without dimension `second`, of the extent of `first`: the elements whose coordinates in
/// both are equal.
Value diagonal(Conversion& c, Value value, int64_t first, int64_t second) {
  const Shape from = c.shapeOf(value);
  const int64_t extent = from[first];
  SmallVector<int64_t> order, offsets(from.size() - 1, 0), strides(from.size() - 1, 1);
  Shape kept, pairs;
  for (auto [d, size] : llvm::enumerate(from)) {
    const auto dim = static_cast<int64_t>(d);
    if (dim == second)
      continue;
    order.push_back(dim);
    kept.push_back(size);
    pairs.push_back(dim == first ? extent * extent : size);
    if (dim == first)
      order.push_back(second);
  }
  strides[first] = extent + 1;
  return c.slice(c.reshaped(c.transposed(value, order), pairs), kept, offsets, strides);
}

/// Each letter once: those that `term` has twice walk along its diagonal.
Term withoutRepeats(Conversion& c, Term term) {
  for (size_t d = 1; d < term.letters.size();) {
    const int64_t first = term.dim(term.letters[d]);
    if (first == static_cast<int64_t>(d)) {
      ++d;
      continue;
    }
    term.value = diagonal(c, term.value, first, static_cast<int64_t>(d));
    term.letters.erase(d, 1);
  }
  return term;
}

/// The product of two terms, summed over the letters that both have and `needed` has not.
Term product(Conversion& c, const Term& a, const Term& b, const std::string& needed) {
  SmallVector<int64_t> batchA, batchB, contractA, contractB;
  std::string batch, freeA, freeB;
  for (char letter : a.letters) {
    bool shared = b.dim(letter) >= 0, kept = needed.find(letter) != std::string::npos;
    if (!shared) {
      freeA += letter;
    } else if (kept) {
      batch += letter;
      batchA.push_back(a.dim(letter));
      batchB.push_back(b.dim(letter));
    } else {
      contractA.push_back(a.dim(letter));
      contractB.push_back(b.dim(letter));
    }
  }
  for (char letter : b.letters)
    if (a.dim(letter) < 0)
      freeB += letter;
  Value value = c.create<ContractOp>(a.value, b.value, Value(), ArrayRef<int64_t>(batchA),
                                     ArrayRef<int64_t>(batchB), ArrayRef<int64_t>(contractA),
                                     ArrayRef<int64_t>(contractB));
  return {c.convert(value, tensorType(a.value).getElementType()), batch + freeA + freeB};
}

/// The digits that stand for `count` dimensions of "...", which are aligned at their ends.
std::string digits(int64_t count) {
  std::string all;
  for (int64_t i = count; i > 0; --i)
    all += static_cast<char>('0' + i - 1);
  return all;
}

/// `text` with digits in place of "...", which is `count` dimensions. Nothing: other dots, digits,
/// or too many dimensions.
std::optional<std::string> expanded(StringRef text, int64_t count) {
  if (!text.contains("..."))
    return text.contains('.') ? std::nullopt : std::optional(text.str());
  auto [before, behind] = text.split("...");
  if (count < 0 || count > 10 || before.contains('.') || behind.contains('.'))
    return std::nullopt;
  return before.str() + digits(count) + behind.str();
}

/// What an equation without an output gives: "...", then the letters that occur once, in order.
std::string impliedOutput(StringRef inputs) {
  std::map<char, int> times;
  for (char letter : inputs)
    ++times[letter];
  std::string output = inputs.contains("...") ? "..." : "";
  for (auto [letter, count] : times)
    if (llvm::isAlpha(letter) && count == 1)
      output += letter;
  return output;
}

/// Without its dimensions of one element where another term has more in the place of "...".
Term withoutBroadcast(Conversion& c, const Term& term, const std::map<char, int64_t>& widest) {
  Shape shape;
  std::string kept;
  for (auto [d, letter] : llvm::enumerate(term.letters)) {
    const int64_t extent = c.shapeOf(term.value)[d];
    if (llvm::isDigit(letter) && extent == 1 && widest.at(letter) > 1)
      continue;
    kept += letter;
    shape.push_back(extent);
  }
  return kept == term.letters ? term : Term{c.reshaped(term.value, shape), kept};
}

Status einsum(Conversion& c) {
  std::string equation = c.node.text("equation", "");
  std::erase(equation, ' ');
  auto [inputs, arrowed] = StringRef(equation).split("->");
  if (llvm::any_of(inputs, llvm::isDigit))
    return c.error("equation '{}' is not one of letters", printable(equation));
  SmallVector<StringRef> letters;
  inputs.split(letters, ',');
  if (letters.size() != c.count())
    return c.error("equation '{}' has {} terms for {} operands", printable(equation),
                   letters.size(), c.count());

  std::vector<Term> terms;
  int64_t most = 0; // dimensions of "..."
  std::map<char, int64_t> widest;
  for (auto [i, text] : llvm::enumerate(letters)) {
    Value value = TITAN_TRY(c.floatOperand(i));
    const int64_t dots = c.rankOf(value) - (static_cast<int64_t>(text.size()) - 3);
    std::optional<std::string> dims = expanded(text, dots);
    if (!dims || static_cast<int64_t>(dims->size()) != c.rankOf(value) ||
        tensorType(value).getElementType() !=
            tensorType(terms.empty() ? value : terms[0].value).getElementType())
      return c.error("equation '{}' does not fit operand {} of {}", printable(equation), i,
                     toString(c.shapeOf(value)));
    most = std::max(most, text.contains("...") ? dots : 0);
    for (auto [letter, extent] : llvm::zip_equal(*dims, c.shapeOf(value)))
      widest[letter] = std::max(widest[letter], extent);
    terms.push_back({value, *dims});
  }
  std::map<char, int64_t> extents;
  for (Term& term : terms) {
    term = withoutBroadcast(c, term, widest);
    for (auto [d, letter] : llvm::enumerate(term.letters)) {
      auto [it, fresh] = extents.try_emplace(letter, c.shapeOf(term.value)[d]);
      if (it->second != c.shapeOf(term.value)[d])
        return c.error("equation '{}': '{}' is {} and {}", printable(equation),
                       llvm::isDigit(letter) ? "..." : printable(std::string(1, letter)),
                       it->second, c.shapeOf(term.value)[d]);
    }
    term = withoutRepeats(c, term);
  }
  const std::string wanted =
      StringRef(equation).contains("->") ? arrowed.str() : impliedOutput(inputs);
  if (most > 0 && wanted.find("...") == std::string::npos)
    return c.error("equation '{}': its output has no '...'", printable(equation));
  const std::string output = expanded(wanted, most).value_or(".");
  for (size_t i = 0; i < output.size(); ++i)
    if (!extents.contains(output[i]) || output.find(output[i]) != i)
      return c.error("equation '{}': its output is not a list of its letters", printable(equation));

  // What is still needed after a term: the letters of the output and of the terms to come.
  auto neededAfter = [&](size_t i) {
    std::string needed = output;
    for (size_t k = i + 1; k < terms.size(); ++k)
      needed += terms[k].letters;
    return needed;
  };
  Term total = summed(c, terms[0], neededAfter(0));
  for (size_t i = 1; i < terms.size(); ++i)
    total = product(c, total, summed(c, terms[i], neededAfter(i) + total.letters), neededAfter(i));
  total = summed(c, total, output);
  SmallVector<int64_t> permutation;
  for (char letter : output)
    permutation.push_back(total.dim(letter));
  if (llvm::is_sorted(permutation))
    return c.give(total.value);
  return c.give(c.transpose(total.value, permutation));
}

} // namespace

ArrayRef<ConverterEntry> einsumConverters() {
  static const ConverterEntry table[] = {
      {"Einsum", 12, einsum, "floats"},
  };
  return table;
}

} // namespace titan::frontend
