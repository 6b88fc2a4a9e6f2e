// Who decides where a test's model of the world leaves several ways open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace titan::checkpoint {

class Choices {
public:
  virtual ~Choices() = default;
  /// A number below `ways`, which is at least 1.
  virtual size_t choose(size_t ways) = 0;
  /// Is a name there that may be lost?
  virtual bool keepsName() { return choose(2) == 1; }
  /// Of the sizes that a file may have, oldest first.
  virtual size_t chooseSize(size_t sizes) { return choose(sizes); }
};

/// Draws each one. Three times of four most names and sizes are the newest: what becomes of a
/// file's pages is seen in a long file below a whole path alone.
class DrawnChoices : public Choices {
public:
  explicit DrawnChoices(uint64_t seed) : random_(seed), prefersNew_(seed % 4 != 0) {}
  size_t choose(size_t ways) override { return random_() % ways; }
  bool keepsName() override { return choose(prefersNew_ ? 64 : 2) > 0; }
  size_t chooseSize(size_t sizes) override {
    return prefersNew_ && choose(4) > 0 ? sizes - 1 : choose(sizes);
  }

private:
  std::mt19937_64 random_;
  bool prefersNew_;
};

/// Takes every way once, one a round:
///
///   EveryChoice choices;
///   do { ... choices.choose(2) ... } while (choices.next());
///
/// What is asked in a round may depend on the answers before it, and on nothing else.
class EveryChoice : public Choices {
public:
  size_t choose(size_t ways) override {
    if (asked_ == taken_.size())
      taken_.push_back({0, ways});
    return taken_[asked_++].way;
  }

  /// Begins the next round; false when all ways were taken.
  bool next() {
    asked_ = 0;
    while (!taken_.empty() && taken_.back().way + 1 == taken_.back().ways)
      taken_.pop_back();
    if (taken_.empty())
      return false;
    ++taken_.back().way;
    return true;
  }

private:
  struct Taken {
    size_t way, ways;
  };
  std::vector<Taken> taken_; ///< of this round, as far as it is decided
  size_t asked_ = 0;         ///< so far in this round
};

} // namespace titan::checkpoint
