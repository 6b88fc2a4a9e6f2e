// Weights alone: what `--init` takes.
#include "runtime/checkpoint/LoadBlocks.h"
#include "runtime/checkpoint/WeightFiles.h"

namespace titan::checkpoint {
namespace {

constexpr std::string_view advice =
    "rename with --map 'old.*=new.*'; name what may keep its own initialisation with --fresh "
    "'head.*', and what is to be left out of the file with --ignore 'old_head.*'";

} // namespace

Result<InitReport> loadWeights(const std::string& path, const InitRequest& request, Env& env) {
  Matching matching;
  std::unique_ptr<FileLock> hold; // of rank 0, until all have loaded
  if (isAlone(request.peers)) {
    hold = TITAN_TRY(holdCheckpoint(path, env));
    FoundWeights found = TITAN_TRY(findWeights(path, request, advice, env, Reading::All));
    TITAN_TRY(readMatches(found.matching.matches));
    matching = std::move(found.matching);
  } else {
    constexpr std::string_view name = "the check of the weights";
    Peers& peers = *request.peers;
    Catalog catalog;
    TITAN_TRY(peers.byFirst(name, [&]() -> Status {
      hold = TITAN_TRY(holdCheckpoint(path, env));
      FoundWeights found = TITAN_TRY(findWeights(path, request, advice, env, Reading::Header));
      catalog = Catalog::of(found.matching.matches, request.destinations);
      matching = std::move(found.matching);
      return {};
    }));
    const std::string bytes = TITAN_TRY(peers.fromFirst(name, catalog.toBytes()));
    if (!peers.isFirst())
      catalog = TITAN_TRY(Catalog::parse(bytes));
    TITAN_TRY(loadBlocks(catalog, request.destinations, request.mesh, peers, env));
  }
  return InitReport{{path, std::move(matching.fresh), request.renames, std::move(matching.ignored),
                     std::move(matching.rounded)},
                    std::move(matching.notes)};
}

} // namespace titan::checkpoint
