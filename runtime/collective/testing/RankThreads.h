// The ranks of a job as threads of a test.
#pragma once

#include "runtime/collective/InProcess.h"
#include "runtime/collective/Peers.h"

#include <optional>
#include <thread>
#include <vector>

namespace titan::testing {

/// body(peers) of each rank on a thread of its own; what they return, by rank.
template <typename Body> auto onRanks(int64_t ranks, const Body& body) {
  auto communicators = connectInProcess(ranks).take();
  std::vector<Peers> peers;
  for (auto& communicator : communicators)
    peers.emplace_back(nullptr, std::move(communicator));
  using R = decltype(body(peers[0]));
  std::vector<std::optional<R>> results(peers.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < peers.size(); ++rank)
    threads.emplace_back([&, rank] { results[rank].emplace(body(peers[rank])); });
  for (std::thread& thread : threads)
    thread.join();
  std::vector<R> all;
  for (std::optional<R>& result : results)
    all.push_back(std::move(*result));
  return all;
}

} // namespace titan::testing
