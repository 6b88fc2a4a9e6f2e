#include "runtime/job/Agreement.h"

#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/checkpoint/Commit.h"
#include "runtime/checkpoint/Digest.h"
#include "runtime/program/Collective.h"

#include <nlohmann/json.hpp>

#include <filesystem>

#include <unistd.h>

namespace titan {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t mostDifferences = 4; // that one line tells

std::string serialized(const std::vector<Fact>& facts) {
  Json json = Json::array();
  for (const Fact& fact : facts)
    json.push_back({fact.name, fact.value});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<Fact> readBack(const std::string& text) {
  std::vector<Fact> facts;
  for (const Json& item : Json::parse(text))
    facts.push_back({item[0].get<std::string>(), item[1].get<std::string>()});
  return facts;
}

std::vector<std::string> differences(const std::vector<std::string>& all) {
  std::vector<std::string> lines;
  const std::vector<Fact> first = readBack(all.front());
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const std::vector<Fact> other = readBack(all[rank]);
    for (size_t i = 0; i < first.size() && i < other.size(); ++i)
      if (first[i] != other[i])
        lines.push_back(fmt::format("rank {}: {} = {}, rank 0: {}", rank, first[i].name,
                                    other[i].value, first[i].value));
  }
  return lines;
}

std::string absolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path canonical =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  return error ? path : canonical.string();
}

std::string quoted(const std::string& text) { return fmt::format("'{}'", text); }

std::string hostName() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

} // namespace

Status agreeOn(Peers& peers, std::string_view name,
               const std::function<std::vector<Fact>()>& facts) {
  if (peers.isAlone())
    return {};
  const std::string mine = serialized(facts());
  const std::vector<std::string> digests =
      TITAN_TRY(peers.exchange(name, checkpoint::digestOf(mine)));
  if (std::ranges::all_of(digests, [&](const std::string& d) { return d == digests.front(); }))
    return {};
  std::vector<std::string> lines = differences(TITAN_TRY(peers.exchange(name, mine)));
  const size_t count = lines.size();
  lines.resize(std::min(count, mostDifferences));
  return peers.together(
      Error::usage("{}{}: start all ranks alike", fmt::join(lines, "; "),
                   count > lines.size() ? fmt::format("; and {} more", count - lines.size()) : ""));
}

std::vector<Fact> factsOf(const Session& session) {
  const JobOptions& options = session.options();
  std::vector<Fact> facts = {{"the command", nameOf(options.command)},
                             {"the program's fingerprint", fingerprint(session.program())}};
  const Json document = Json::parse(toJson(session.recipe()));
  for (const auto& [section, keys] : document.items())
    for (const auto& [key, value] : keys.items())
      facts.push_back(
          {section + "." + key, value.dump(-1, ' ', false, Json::error_handler_t::replace)});
  Json renames = options.renames;
  const auto flag = [&](const char* name, const std::string& value) {
    facts.push_back({name, value});
  };
  flag("--out", quoted(absolutePath(options.out)));
  flag("--steps", options.steps ? std::to_string(*options.steps) : "not given");
  flag("--init", quoted(options.init));
  flag("--fresh", fmt::format("[{}]", fmt::join(options.fresh, ", ")));
  flag("--map", renames.dump(-1, ' ', false, Json::error_handler_t::replace));
  flag("--ignore", fmt::format("[{}]", fmt::join(options.ignored, ", ")));
  flag("--cast", options.cast ? "given" : "not given");
  flag("--resume", quoted(options.resume));
  flag("--set-aside", options.setAside ? "given" : "not given");
  flag("--ckpt", quoted(options.checkpoint));
  flag("--output", quoted(options.output));
  flag("--device", options.device);
  flag("--gemm", options.gemm);
  flag("--attention", options.attention);
  flag("--weights-dir", quoted(options.weightsDirectory));
  flag("--prompt", options.prompt ? quoted(*options.prompt) : "not given");
  flag("--tokens", std::to_string(options.tokens));
  flag("--temperature", fmt::format("{}", options.temperature));
  flag("--top-k", std::to_string(options.topK));
  flag("--seed", std::to_string(options.sampleSeed));
  flag("--rank", options.rank ? std::to_string(*options.rank) : "not given");
  flag("--poison", options.poison ? "given" : "not given");
  return facts;
}

Status agreeOnData(Peers& peers, const std::string& key, const Dataset& dataset) {
  return agreeOn(peers, "the data", [&] {
    return std::vector<Fact>{
        {key, fmt::format("{} samples (digest {:016x})", dataset.size(), dataset.digest())}};
  });
}

Status checkRankCount(const Program& program, int64_t started, const std::string& job,
                      JobCommand command) {
  const int64_t ranks = rankCount(program.mesh);
  if (ranks == started)
    return {};
  return Error::usage("this job runs on {}{}: start it with {}{} {}", describeRanks(program.mesh),
                      started > 1 ? fmt::format(", and {} were started", started) : "",
                      ranks > 1 ? fmt::format("titan-run -n {} ", ranks) : "", job,
                      nameOf(command));
}

Status checkImaginedRank(const Program& program, int64_t started, int64_t rank) {
  if (started > 1)
    return Error::usage("--rank {} is one rank alone, and {} were started: start it without "
                        "titan-run",
                        rank, started);
  const int64_t ranks = rankCount(program.mesh);
  if (rank < ranks)
    return {};
  return Error::usage("--rank {}: this job runs on {}, give 0{}", rank, describeRanks(program.mesh),
                      ranks > 1 ? fmt::format(" to {}", ranks - 1) : "");
}

Status checkIsShared(Peers& peers, const std::string& directory) {
  if (peers.isAlone())
    return {};
  // A name that the next store removes if this process cannot.
  checkpoint::Env& env = checkpoint::posixEnv();
  const std::string parent = checkpoint::checkpointsPath(directory);
  std::string token;
  Status made;
  if (peers.isFirst()) {
    token = fmt::format("{}ranks-{:08x}", checkpoint::attemptPrefix, env.uniqueNumber());
    made = env.makeDirectory(checkpoint::joinPath(parent, token));
  }
  TITAN_TRY(peers.agree("a look at --out", std::move(made)));
  token = TITAN_TRY(peers.fromFirst("a look at --out", token));
  const std::string path = checkpoint::joinPath(parent, token);
  const auto look = [&]() -> Status {
    if (TITAN_TRY(env.kindOf(path)) == checkpoint::FileKind::Directory)
      return {};
    return Error::environment("'{}' on {} is not the directory of rank 0: give an --out that all "
                              "ranks share",
                              directory, hostName());
  };
  Status seen = peers.agree("a look at --out", look());
  if (peers.isFirst())
    TITAN_TRY(env.removeDirectory(path));
  return seen;
}

} // namespace titan
