#include "compiler/Interpreter/Attention.h"

#include "compiler/Interpreter/Matmul.h"
#include "runtime/program/Random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using llvm::MutableArrayRef;

namespace titan::interpreter {

namespace {

constexpr int64_t rowBlock = 32; ///< query rows at a time: the scores of a block stay in cache
constexpr double nothing = -std::numeric_limits<double>::infinity();

/// rows of one head -> [width, rows], so that it is the right factor of a product over the width.
std::vector<double> transposed(Heads<const double> x, int64_t b, int64_t h, int64_t rows,
                               int64_t width) {
  std::vector<double> result(rows * width);
  for (int64_t p = 0; p < rows; ++p)
    for (int64_t i = 0; i < width; ++i)
      result[i * rows + p] = x.at(b, p, h)[i];
  return result;
}

/// One block of query rows of one head.
struct Block {
  const AttentionProblem& problem;
  int64_t b, h, keyHead;
  int64_t first, rows; ///< query rows [first, first + rows)
  int64_t keys;        ///< keys that any of them may attend to

  int64_t query(int64_t row) const { return first + row; }
  MutableArrayRef<double> row(std::vector<double>& matrix, int64_t row) const {
    return MutableArrayRef(matrix).slice(row * problem.keys, problem.keys);
  }

  /// left[rows, width] * right[width, keys], in rows of problem.keys.
  std::vector<double> product(Heads<const double> left, const std::vector<double>& right,
                              int64_t width) const {
    std::vector<double> result(rows * problem.keys);
    multiplyAdd(rows, keys, width, left.at(b, first, h), left.position, 1, right.data(),
                problem.keys, result.data(), problem.keys);
    return result;
  }
  /// scale * query key^T + mask; -inf where a query does not attend.
  std::vector<double> scores(const std::vector<double>& keyColumns) const {
    std::vector<double> result = product(problem.query, keyColumns, problem.width);
    for (int64_t r = 0; r < rows; ++r) {
      MutableArrayRef<double> line = row(result, r);
      for (double& x : line)
        x *= problem.scale;
      if (problem.mask)
        problem.mask(b, h, query(r), line);
      if (problem.roundScore)
        for (double& x : line)
          x = problem.roundScore(x);
      if (problem.causal)
        for (int64_t s = query(r) + 1; s < keys; ++s)
          line[s] = nothing;
    }
    return result;
  }
  /// e^(score - logSumExp), in place; the largest score is subtracted first where it is apart.
  void normalise(std::vector<double>& scores) const {
    for (int64_t r = 0; r < rows; ++r) {
      double total = *problem.logSumExp.at(b, query(r), h);
      double largest = problem.largest.data ? *problem.largest.at(b, query(r), h) : 0;
      for (double& x : row(scores, r).take_front(keys))
        x = x == nothing ? 0 : std::exp((x - largest) - total);
    }
  }
  void drop(std::vector<double>& matrix) const {
    if (problem.dropout)
      for (int64_t r = 0; r < rows; ++r)
        problem.dropout(b, h, query(r), row(matrix, r).take_front(keys));
  }
  void round(std::vector<double>& matrix) const {
    if (problem.round)
      for (double& x : matrix)
        x = problem.round(x);
  }
};

template <typename Function>
void forEachBlock(const AttentionProblem& p, int64_t b, int64_t h, Function function) {
  for (int64_t first = 0; first < p.queries; first += rowBlock) {
    int64_t rows = std::min(rowBlock, p.queries - first);
    int64_t keys = p.causal ? std::min(p.keys, first + rows) : p.keys;
    function(Block{p, b, h, h / (p.heads / p.keyHeads), first, rows, keys});
  }
}

/// Of one query's scores. Where nothing is attended to, {0, -inf}.
struct Statistics {
  double largest;
  double logSum; ///< log(sum of e^(score - largest))
};
Statistics statisticsOf(llvm::ArrayRef<double> line) {
  double largest = nothing, sum = 0;
  for (double x : line)
    largest = x > largest || std::isnan(x) ? x : largest;
  if (largest == nothing)
    return {0, nothing};
  for (double x : line)
    sum += std::exp(x - largest);
  return {largest, std::log(sum)};
}

} // namespace

void MaskRows::operator()(int64_t b, int64_t h, int64_t t, MutableArrayRef<double> scores) const {
  int64_t first = b * batch + h * head + t * query;
  for (auto [s, x] : llvm::enumerate(scores)) {
    int64_t i = first + static_cast<int64_t>(s);
    if (mask.isFloat())
      x += mask.floats()[i];
    else if (!mask.integers()[i])
      x = fill;
  }
}

void FilledRows::operator()(int64_t b, int64_t h, int64_t t,
                            MutableArrayRef<double> adjoints) const {
  int64_t first = b * mask.batch + h * mask.head + t * mask.query;
  for (auto [s, x] : llvm::enumerate(adjoints))
    if (!mask.mask.integers()[first + static_cast<int64_t>(s)])
      x = 0;
}

void DropoutRows::operator()(int64_t b, int64_t h, int64_t t,
                             MutableArrayRef<double> probabilities) const {
  int64_t line = (b * global[1] + h) * global[2] + t;
  uint64_t element = base + line * global[3];
  for (double& x : probabilities)
    x = dropoutKeeps(key, step, element++, threshold) ? x * scale : 0;
}

void attend(const AttentionProblem& p, Heads<double> result) {
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t h = 0; h < p.heads; ++h) {
      int64_t keyHead = h / (p.heads / p.keyHeads);
      std::vector<double> keyColumns = transposed(p.key, b, keyHead, p.keys, p.width);
      forEachBlock(p, b, h, [&](const Block& block) {
        std::vector<double> matrix = block.scores(keyColumns);
        for (int64_t r = 0; r < block.rows; ++r) {
          auto [largest, logSum] = statisticsOf(block.row(matrix, r).take_front(block.keys));
          if (p.largest.data)
            *p.largest.at(b, block.query(r), h) = largest;
          *p.logSumExp.at(b, block.query(r), h) = p.largest.data ? logSum : largest + logSum;
        }
        block.normalise(matrix);
        block.drop(matrix);
        block.round(matrix);
        for (int64_t r = 0; r < block.rows; ++r)
          std::fill_n(result.at(b, block.query(r), h), p.valueWidth, 0.0);
        multiplyAdd(block.rows, p.valueWidth, block.keys, matrix.data(), p.keys, 1,
                    p.value.at(b, 0, keyHead), p.value.position, result.at(b, block.first, h),
                    result.position);
      });
    }
}

void attendBackward(const AttentionProblem& p, Heads<const double> result,
                    Heads<const double> dresult, Heads<double> dquery, Heads<double> dkey,
                    Heads<double> dvalue) {
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t h = 0; h < p.heads; ++h) {
      int64_t keyHead = h / (p.heads / p.keyHeads);
      std::vector<double> keyColumns = transposed(p.key, b, keyHead, p.keys, p.width);
      std::vector<double> valueColumns = transposed(p.value, b, keyHead, p.keys, p.valueWidth);
      forEachBlock(p, b, h, [&](const Block& block) {
        std::vector<double> probability = block.scores(keyColumns);
        block.normalise(probability);
        std::vector<double> dscore = block.product(dresult, valueColumns, p.valueWidth);
        block.drop(dscore);
        for (int64_t r = 0; r < block.rows; ++r) {
          const double* dy = dresult.at(b, block.query(r), h);
          const double* y = result.at(b, block.query(r), h);
          double delta = 0;
          for (int64_t i = 0; i < p.valueWidth; ++i)
            delta += dy[i] * y[i];
          for (auto [ds, x] : llvm::zip_equal(block.row(dscore, r), block.row(probability, r)))
            ds = x * (ds - delta);
          if (p.filled)
            p.filled(b, h, block.query(r), block.row(dscore, r).take_front(block.keys));
        }
        block.round(dscore);
        block.drop(probability);
        block.round(probability);

        multiplyAdd(block.keys, p.valueWidth, block.rows, probability.data(), 1, p.keys,
                    dresult.at(b, block.first, h), dresult.position, dvalue.at(b, 0, keyHead),
                    dvalue.position);
        for (double& x : dscore)
          x *= p.scale;
        multiplyAdd(block.rows, p.width, block.keys, dscore.data(), p.keys, 1,
                    p.key.at(b, 0, keyHead), p.key.position, dquery.at(b, block.first, h),
                    dquery.position);
        multiplyAdd(block.keys, p.width, block.rows, dscore.data(), 1, p.keys,
                    p.query.at(b, block.first, h), p.query.position, dkey.at(b, 0, keyHead),
                    dkey.position);
      });
    }
}

} // namespace titan::interpreter
