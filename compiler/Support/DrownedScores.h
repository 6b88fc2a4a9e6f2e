// Scores of attention in which a mask of numbers has drowned the query and the key.
#pragma once

namespace titan {

/// Exporters forbid by the smallest f32 instead of -inf. Beside keys that are allowed the
/// probability is 0 all the same; a query that has no other keys attends to all of these alike. But
/// log(sum e^score) of n such scores is the score itself: log n is lost, and e^(score -
/// log-sum-exp) would be 1 instead of 1/n in the backward pass. So where the largest score of a
/// query is below `drownedBelow`, `drownedUnit` times the sum of e^(score - largest) stands in the
/// place of the log-sum-exp, and the probability of every key that is not at -inf is 1 over that
/// sum.
inline constexpr double drownedBelow = -1e30, drownedUnit = -1e31;

} // namespace titan
