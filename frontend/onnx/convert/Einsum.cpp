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

Status einsum(Conversion& c) {
  std::string equation = c.node.text("equation", "");
  std::erase(equation, ' ');
  size_t arrow = equation.find("->");
  if (arrow == std::string::npos || equation.find('.') != std::string::npos)
    return c.error("equation '{}': an explicit output without '...' is needed",
                   printable(equation));
  std::string output = equation.substr(arrow + 2);
  SmallVector<StringRef> letters;
  StringRef(equation).substr(0, arrow).split(letters, ',');
  if (letters.size() != c.count())
    return c.error("equation '{}' has {} terms for {} operands", printable(equation),
                   letters.size(), c.count());

  std::vector<Term> terms;
  std::map<char, int64_t> extents;
  for (auto [i, text] : llvm::enumerate(letters)) {
    Term term{TITAN_TRY(c.floatOperand(i)), text.str()};
    if (static_cast<int64_t>(term.letters.size()) != c.rankOf(term.value) ||
        tensorType(term.value).getElementType() !=
            tensorType(terms.empty() ? term.value : terms[0].value).getElementType())
      return c.error("equation '{}' does not fit operand {} of {}", printable(equation), i,
                     toString(c.shapeOf(term.value)));
    for (auto [d, letter] : llvm::enumerate(term.letters)) {
      if (term.dim(letter) != static_cast<int64_t>(d))
        return c.error("equation '{}': diagonals are not supported", printable(equation));
      auto [it, fresh] = extents.try_emplace(letter, c.shapeOf(term.value)[d]);
      if (it->second != c.shapeOf(term.value)[d])
        return c.error("equation '{}': '{}' is {} and {}", printable(equation),
                       printable(std::string(1, letter)), it->second, c.shapeOf(term.value)[d]);
    }
    terms.push_back(std::move(term));
  }
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
      {"Einsum", 12, einsum, "floats, explicit output, no diagonals, no ellipsis"},
  };
  return table;
}

} // namespace titan::frontend
