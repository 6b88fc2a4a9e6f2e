#include "compiler/Interpreter/Recurrence.h"

#include "compiler/Interpreter/Matmul.h"

#include <cmath>

using titan::ir::RecurrentCell;

namespace titan::interpreter {

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Where the parts of a step lie.
class Steps {
public:
  explicit Steps(const RecurrenceProblem& problem)
      : p(problem), batch(p.shape.batch), width(p.shape.width), rows(p.shape.rows()) {}

  /// The place in time of step `step`.
  int64_t at(int64_t step) const { return p.shape.reverse ? p.shape.steps - 1 - step : step; }
  /// Element `j` of sample `b` in [T, B, H], and of gate `g` in [T, B, G H].
  int64_t state(int64_t t, int64_t b, int64_t j) const { return (t * batch + b) * width + j; }
  int64_t gate(int64_t t, int64_t b, unsigned g, int64_t j) const {
    return (t * batch + b) * rows + p.shape.order[g] * width + j;
  }
  /// Likewise in the tensors of one step.
  int64_t gate(int64_t b, unsigned g, int64_t j) const { return gate(0, b, g, j); }
  int64_t state(int64_t b, int64_t j) const { return state(0, b, j); }
  /// `states` of the step before: of all steps, or the first ones.
  const double* before(int64_t step, const double* states, const double* first) const {
    return step == 0 ? first : states + state(at(step - 1), 0, 0);
  }

  template <typename Function> void forEach(Function function) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t j = 0; j < width; ++j)
        function(b, j);
  }

  const RecurrenceProblem& p;
  int64_t batch, width, rows;
};

class Forward : Steps {
public:
  using Steps::Steps;

  void run(const double* projected, const double* bias, double* result, double* gates,
           double* cells) {
    for (int64_t step = 0; step < p.shape.steps; ++step) {
      const int64_t t = at(step);
      const double *h = before(step, result, p.h0), *c = before(step, cells, p.c0);
      const bool resetsBefore = p.shape.cell == RecurrentCell::GruResetBefore;
      sums.assign(batch * rows, 0);
      addProducts(0, resetsBefore ? 2 * width : rows, [&](int64_t i) { return h[i]; }, bias);
      const auto sum = [&](int64_t b, unsigned g, int64_t j) {
        return p.wide(projected[gate(t, b, g, j)] + sums[gate(b, g, j)]);
      };
      if (resetsBefore) {
        forEach([&](int64_t b, int64_t j) {
          for (unsigned g : {ir::gate::reset, ir::gate::update})
            gates[gate(t, b, g, j)] = p.wide(sigmoid(sum(b, g, j)));
        });
        addProducts(
            2 * width, width,
            [&](int64_t i) {
              return p.wide(gates[gate(t, i / width, ir::gate::reset, i % width)] * h[i]);
            },
            bias);
      }
      forEach([&](int64_t b, int64_t j) {
        const int64_t i = state(b, j);
        const auto keep = [&](unsigned g, double value) {
          return gates[gate(t, b, g, j)] = p.wide(value);
        };
        double& next = result[state(t, b, j)];
        switch (p.shape.cell) {
        case RecurrentCell::Lstm: {
          const double in = keep(ir::gate::input, sigmoid(sum(b, ir::gate::input, j))),
                       forget = keep(ir::gate::forget, sigmoid(sum(b, ir::gate::forget, j))),
                       g = keep(ir::gate::candidate, std::tanh(sum(b, ir::gate::candidate, j))),
                       out = keep(ir::gate::output, sigmoid(sum(b, ir::gate::output, j)));
          double& cell = cells[state(t, b, j)];
          cell = p.wide(forget * c[i] + in * g);
          next = p.wide(out * std::tanh(cell));
          return;
        }
        case RecurrentCell::Gru: {
          const double r = keep(ir::gate::reset, sigmoid(sum(b, ir::gate::reset, j))),
                       z = keep(ir::gate::update, sigmoid(sum(b, ir::gate::update, j)));
          const double s = cells[state(t, b, j)] = sums[gate(b, ir::gate::candidate, j)];
          const double n = keep(ir::gate::candidate,
                                std::tanh(projected[gate(t, b, ir::gate::candidate, j)] + r * s));
          next = p.wide((1 - z) * n + z * h[i]);
          return;
        }
        case RecurrentCell::GruResetBefore: {
          const double z = gates[gate(t, b, ir::gate::update, j)],
                       n = keep(ir::gate::candidate, std::tanh(sum(b, ir::gate::candidate, j)));
          next = p.wide((1 - z) * n + z * h[i]);
          return;
        }
        case RecurrentCell::Tanh:
          next = p.wide(std::tanh(sum(b, 0, j)));
          return;
        case RecurrentCell::Relu:
          const double a = sum(b, 0, j);
          next = a < 0 ? 0 : a;
          return;
        }
      });
    }
  }

private:
  /// sums[b, row] = recurrent[row] . factor[b] + bias[row] for `count` rows from `first` on.
  template <typename Factor>
  void addProducts(int64_t first, int64_t count, Factor factor, const double* bias) {
    std::vector<double> left(batch * width), right(width * count), product(batch * count, 0);
    for (int64_t i = 0; i < batch * width; ++i)
      left[i] = p.narrow(factor(i));
    for (int64_t k = 0; k < width; ++k)
      for (int64_t row = 0; row < count; ++row)
        right[k * count + row] = p.recurrent[(first + row) * width + k];
    multiplyAdd(batch, count, width, left.data(), width, 1, right.data(), count, product.data(),
                count);
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t row = 0; row < count; ++row) {
        double value = p.wide(product[b * count + row]);
        if (bias)
          value = p.wide(value + bias[first + row]);
        sums[b * rows + first + row] = value;
      }
  }

  std::vector<double> sums; ///< [B, G H] of one step
};

class Backward : Steps {
public:
  using Steps::Steps;

  void run(const double* result, const double* gates, const double* cells,
           const RecurrenceAdjoints& out) {
    product.assign(batch * width, 0);
    carried.assign(batch * width, 0);
    const bool isLstm = p.shape.cell == RecurrentCell::Lstm;
    for (int64_t step = p.shape.steps - 1; step >= 0; --step) {
      const int64_t t = at(step);
      const double *h = before(step, result, p.h0), *c = before(step, cells, p.c0);
      double *dp = out.dprojected + t * batch * rows,
             *ds = out.dsums ? out.dsums + t * batch * rows : dp;
      const auto dh = [&](int64_t b, int64_t j) {
        double value = p.wide(out.dresult[state(t, b, j)] + product[state(b, j)]);
        return ir::isGru(p.shape.cell) ? p.wide(value + carried[state(b, j)]) : value;
      };
      const auto kept = [&](int64_t b, unsigned g, int64_t j) { return gates[gate(t, b, g, j)]; };
      const auto set = [&](int64_t b, unsigned g, int64_t j, double value) {
        dp[gate(b, g, j)] = p.narrow(p.wide(value));
      };
      forEach([&](int64_t b, int64_t j) {
        const int64_t i = state(b, j);
        switch (p.shape.cell) {
        case RecurrentCell::Lstm: {
          const double in = kept(b, ir::gate::input, j), forget = kept(b, ir::gate::forget, j),
                       g = kept(b, ir::gate::candidate, j), o = kept(b, ir::gate::output, j),
                       tanh = std::tanh(cells[state(t, b, j)]), d = dh(b, j);
          double dc = d * o * (1 - tanh * tanh) + carried[i];
          if (out.dcells)
            dc += out.dcells[state(t, b, j)];
          dc = p.wide(dc);
          set(b, ir::gate::input, j, dc * g * in * (1 - in));
          set(b, ir::gate::forget, j, dc * c[i] * forget * (1 - forget));
          set(b, ir::gate::candidate, j, dc * in * (1 - g * g));
          set(b, ir::gate::output, j, d * tanh * o * (1 - o));
          carried[i] = p.wide(dc * forget);
          return;
        }
        case RecurrentCell::Gru:
        case RecurrentCell::GruResetBefore: {
          const double z = kept(b, ir::gate::update, j), n = kept(b, ir::gate::candidate, j),
                       d = dh(b, j);
          const double dn = p.wide(d * (1 - z) * (1 - n * n));
          set(b, ir::gate::candidate, j, dn);
          set(b, ir::gate::update, j, d * (h[i] - n) * z * (1 - z));
          carried[i] = p.wide(d * z);
          if (p.shape.cell == RecurrentCell::GruResetBefore)
            return;
          const double r = kept(b, ir::gate::reset, j);
          set(b, ir::gate::reset, j, dn * cells[state(t, b, j)] * r * (1 - r));
          for (unsigned g : {ir::gate::reset, ir::gate::update})
            ds[gate(b, g, j)] = dp[gate(b, g, j)];
          ds[gate(b, ir::gate::candidate, j)] = p.narrow(p.wide(dn * r));
          return;
        }
        case RecurrentCell::Tanh: {
          const double y = result[state(t, b, j)];
          set(b, 0, j, dh(b, j) * (1 - y * y));
          return;
        }
        case RecurrentCell::Relu:
          set(b, 0, j, result[state(t, b, j)] > 0 ? dh(b, j) : 0);
          return;
        }
      });
      if (p.shape.cell != RecurrentCell::GruResetBefore) {
        multiply(ds, 0, rows);
        continue;
      }
      // The adjoint of r h first.
      multiply(ds, 2 * width, width);
      forEach([&](int64_t b, int64_t j) {
        const int64_t i = state(b, j);
        const double r = kept(b, ir::gate::reset, j), d = product[i];
        set(b, ir::gate::reset, j, d * h[i] * r * (1 - r));
        carried[i] = p.wide(carried[i] + d * r);
      });
      multiply(ds, 0, 2 * width);
    }
    forEach([&](int64_t b, int64_t j) {
      const int64_t i = state(b, j);
      out.dh0[i] = ir::isGru(p.shape.cell) ? p.wide(product[i] + carried[i]) : product[i];
      if (isLstm)
        out.dc0[i] = carried[i];
    });
  }

private:
  /// product[b] = sums[b] recurrent, over `count` rows from `first` on.
  void multiply(const double* sums, int64_t first, int64_t count) {
    product.assign(batch * width, 0);
    multiplyAdd(batch, width, count, sums + first, rows, 1, p.recurrent.data() + first * width,
                width, product.data(), width);
    for (double& value : product)
      value = p.wide(value);
  }

  std::vector<double> product; ///< [B, H]: what the next step gives to h
  std::vector<double> carried; ///< [B, H]: to c of an lstm, to h of a gru past the products
};

} // namespace

void recur(const RecurrenceProblem& problem, const double* projected, const double* bias,
           double* result, double* gates, double* cells) {
  Forward(problem).run(projected, bias, result, gates, cells);
}

void recurBackward(const RecurrenceProblem& problem, const double* result, const double* gates,
                   const double* cells, const RecurrenceAdjoints& adjoints) {
  Backward(problem).run(result, gates, cells, adjoints);
}

} // namespace titan::interpreter
