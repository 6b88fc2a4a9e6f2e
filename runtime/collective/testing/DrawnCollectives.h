// Jobs of collectives that are drawn, for tests of communicators: each result is compared to the
// bit with a reference of a few lines.
#pragma once

#include "runtime/collective/Communicator.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace titan::testing {

/// TITAN_TEST_SEED, or always the same.
uint64_t seedOfThisRun();

/// A job: its mesh, its collectives, and in which order they are started and awaited.
struct Drawn {
  std::vector<MeshAxis> mesh;
  std::vector<Collective> collectives;
  std::vector<std::vector<uint32_t>> batches; ///< started together, awaited in another order
  uint64_t key = 0;
};

class Drawer {
public:
  explicit Drawer(uint64_t seed) : random_(seed) {}

  int64_t below(int64_t count) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(count));
  }

  Drawn job(int64_t collectives, int64_t elements) { return job(mesh(), collectives, elements); }

  Drawn job(std::vector<MeshAxis> mesh, int64_t collectives, int64_t elements) {
    Drawn drawn;
    drawn.mesh = std::move(mesh);
    drawn.key = random_();
    for (int64_t i = 0; i < collectives; ++i) {
      Collective collective = this->collective(drawn.mesh);
      pieces(collective, drawn.mesh, elements);
      drawn.collectives.push_back(collective);
    }
    for (uint32_t next = 0; next < drawn.collectives.size();) {
      std::vector<uint32_t> batch;
      for (int64_t i = 1 + below(4); i > 0 && next < drawn.collectives.size(); --i)
        batch.push_back(next++);
      drawn.batches.push_back(batch);
    }
    return drawn;
  }

private:
  std::vector<MeshAxis> mesh();
  Collective collective(std::span<const MeshAxis> mesh);
  void pieces(Collective& collective, std::span<const MeshAxis> mesh, int64_t elements);

  std::mt19937_64 random_;
};

/// One rank of a drawn job, up to the end: a digest of all results, or "failed: " and what is wrong.
/// What moved is compared with what the ledger says, too.
std::string runDrawn(const Drawn& drawn, Communicator& communicator);

} // namespace titan::testing
