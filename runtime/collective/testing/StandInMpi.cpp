#include "runtime/collective/testing/StandInMpi.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace titan::testing {
namespace {

using Group = std::vector<int>; ///< ranks, in its order

enum class Kind { AllToAll, AllGather, Broadcast };

/// One operation of a group: what its members brought.
struct Meeting {
  Kind kind;
  size_t bytes = 0; ///< of a part
  bool differs = false;
  std::vector<std::vector<char>> brought;
  size_t arrived = 0, left = 0;
};

enum Code { fine = 0, different = 1 };

} // namespace

struct StandInMpi::World {
  int64_t ranks;
  std::mutex mutex;
  std::map<std::pair<Group, uint64_t>, Meeting> meetings; ///< by group and its count of them
};

/// What a thread is in its world.
struct StandInRank {
  StandInMpi::World* world = nullptr;
  int rank = 0;
  std::vector<Group> groups;
  std::map<Group, uint64_t> met;
  // The operation under way:
  bool isUnderWay = false;
  std::pair<Group, uint64_t> at;
  char* out = nullptr;

  int begin(int group, Kind kind, const void* in, size_t inBytes, void* to, size_t bytes);
  int test(int* done);
};

namespace {

thread_local StandInRank here;

size_t placeOf(const Group& group) {
  return static_cast<size_t>(std::ranges::find(group, here.rank) - group.begin());
}

} // namespace

int StandInRank::begin(int group, Kind kind, const void* in, size_t inBytes, void* to,
                       size_t bytes) {
  const Group& members = groups[static_cast<size_t>(group)];
  at = {members, met[members]++};
  out = static_cast<char*>(to);
  isUnderWay = true;
  std::lock_guard lock(world->mutex);
  Meeting& meeting = world->meetings[at];
  if (meeting.arrived++ == 0) {
    meeting.kind = kind;
    meeting.bytes = bytes;
    meeting.brought.resize(members.size());
  }
  meeting.differs |= meeting.kind != kind || meeting.bytes != bytes;
  const char* source = static_cast<const char*>(in);
  meeting.brought[placeOf(members)].assign(source, source + inBytes);
  return fine;
}

int StandInRank::test(int* done) {
  *done = !isUnderWay;
  if (!isUnderWay)
    return fine;
  std::lock_guard lock(world->mutex);
  Meeting& meeting = world->meetings[at];
  const Group& group = at.first;
  if (meeting.differs)
    return different;
  if (meeting.arrived < group.size())
    return fine;
  const size_t bytes = meeting.bytes, mine = placeOf(group);
  for (size_t place = 0; place < group.size(); ++place) {
    const std::vector<char>& from = meeting.brought[place];
    if (meeting.kind == Kind::AllToAll)
      std::memcpy(out + place * bytes, from.data() + mine * bytes, bytes);
    else if (meeting.kind == Kind::AllGather)
      std::memcpy(out + place * bytes, from.data(), bytes);
    else if (!from.empty() && bytes > 0)
      std::memcpy(out, from.data(), bytes);
  }
  if (++meeting.left == group.size())
    world->meetings.erase(at);
  isUnderWay = false;
  *done = 1;
  return fine;
}

namespace {

int init() {
  Group all;
  for (int rank = 0; rank < here.world->ranks; ++rank)
    all.push_back(rank);
  here.groups.assign(titan_mpi_groups, {});
  here.groups[0] = all;
  return fine;
}

int size() { return static_cast<int>(here.groups[0].size()); }

int rank() { return here.rank; }

int allToAll(int group, const void* in, void* out, size_t bytes) {
  const size_t members = here.groups[static_cast<size_t>(group)].size();
  return here.begin(group, Kind::AllToAll, in, members * bytes, out, bytes);
}

int allGather(int group, const void* in, void* out, size_t bytes) {
  return here.begin(group, Kind::AllGather, in, bytes, out, bytes);
}

int broadcast(int group, int root, void* data, size_t bytes) {
  const bool isRoot =
      here.groups[static_cast<size_t>(group)][static_cast<size_t>(root)] == here.rank;
  return here.begin(group, Kind::Broadcast, data, isRoot ? bytes : 0, data, bytes);
}

int test(int* done) { return here.test(done); }

int split(int group, int color, int key) {
  struct Ask {
    int color, key, rank;
  };
  const Ask mine{color, key, here.rank};
  std::vector<Ask> all(here.groups[0].size());
  allGather(0, &mine, all.data(), sizeof mine);
  for (int done = 0; done == 0; std::this_thread::yield())
    if (const int code = test(&done))
      return code;
  std::erase_if(all, [&](const Ask& ask) { return ask.color != color; });
  std::ranges::sort(all, {}, [](const Ask& ask) { return std::pair(ask.key, ask.rank); });
  Group& made = here.groups[static_cast<size_t>(group)];
  made.clear();
  for (const Ask& ask : all)
    made.push_back(ask.rank);
  return fine;
}

int finalize() { return fine; }

void describe(int code, char text[titan_mpi_text_bytes]) {
  std::snprintf(text, titan_mpi_text_bytes, "stand-in error %d", code);
}

} // namespace

StandInMpi::StandInMpi(int64_t ranks)
    : world_(new World{.ranks = ranks, .mutex = {}, .meetings = {}}) {}
StandInMpi::~StandInMpi() = default;

void StandInMpi::enter(int64_t rank) {
  here = StandInRank();
  here.world = world_.get();
  here.rank = static_cast<int>(rank);
}

const titan_mpi_shim& StandInMpi::shim() {
  static const titan_mpi_shim shim = {init,      size,      rank, split,    allToAll,
                                      allGather, broadcast, test, finalize, describe};
  return shim;
}

} // namespace titan::testing
