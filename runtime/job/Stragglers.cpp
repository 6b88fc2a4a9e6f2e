#include "runtime/job/Stragglers.h"

#include <fmt/format.h>

#include <algorithm>

namespace titan {

Stragglers::Stragglers(int64_t ranks)
    : before_(static_cast<size_t>(ranks)), waited_(before_.size()), compute_(before_.size()),
      isTold_(before_.size()) {}

void Stragglers::begin(std::span<const double> waited) {
  std::ranges::copy(waited, before_.begin());
}

Stragglers::Step Stragglers::end(double seconds, std::span<const double> waited) {
  for (size_t rank = 0; rank < waited.size(); ++rank)
    compute_[rank] = waited[rank] - before_[rank]; // what it waited in this step
  const auto [least, most] = std::ranges::minmax_element(compute_);
  const Step step = {*most, least - compute_.begin()};
  for (size_t rank = 0; rank < waited.size(); ++rank)
    waited_[rank] += compute_[rank];
  seconds_ += seconds;
  ++steps_;
  begin(waited);
  return step;
}

std::optional<std::string> Stragglers::verdict() {
  if (steps_ < window)
    return std::nullopt;
  for (size_t rank = 0; rank < waited_.size(); ++rank)
    compute_[rank] = std::max(seconds_ - waited_[rank], 0.0) / window;
  waited_.assign(waited_.size(), 0);
  seconds_ = 0;
  steps_ = 0;
  const auto slowest = static_cast<size_t>(std::ranges::max_element(compute_) - compute_.begin());
  const double longest = compute_[slowest];
  const auto middle = compute_.begin() + static_cast<int64_t>(compute_.size() - 1) / 2;
  std::ranges::nth_element(compute_, middle);
  // A rank whose waits fill the window, as beside a save, is no measure.
  if (*middle == 0 || longest <= limit * *middle) {
    isTold_.assign(isTold_.size(), false);
    return std::nullopt;
  }
  if (isTold_[slowest])
    return std::nullopt;
  isTold_[slowest] = true;
  return fmt::format("rank {} computes {:.2f} x as long as the median rank over {} steps ({:.3g} s "
                     "of {:.3g} s a step): the others wait for it, see what else its CPUs do",
                     slowest, longest / *middle, window, longest, *middle);
}

} // namespace titan
