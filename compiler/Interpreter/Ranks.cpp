#include "compiler/Interpreter/Ranks.h"

#include "compiler/Interpreter/Collectives.h"
#include "runtime/program/Collective.h"

#include "mlir/IR/OperationSupport.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

using namespace mlir;

namespace titan::interpreter {

using AllTerms = std::vector<Tensors>; ///< by the number of the rank

/// Says which of several threads runs.
class Baton {
public:
  explicit Baton(int64_t holders) : given_(holders) {}

  void giveTo(int64_t holder) {
    std::lock_guard lock(mutex_);
    holder_ = holder;
    given_[holder].notify_one();
  }
  void await(int64_t holder) {
    std::unique_lock lock(mutex_);
    given_[holder].wait(lock, [&] { return holder_ == holder; });
  }

private:
  std::mutex mutex_;
  std::deque<std::condition_variable> given_; ///< one a holder
  int64_t holder_ = -1;
};

/// Ranks are threads, so that a program may stop in the midst of nested loops. Only one of them
/// runs at a time: results do not depend on chance, and nothing of MLIR is used by two at once.
class Meeting {
public:
  Meeting(std::span<const MeshAxis> mesh, llvm::function_ref<LogicalResult(Rank&)> program)
      : mesh(mesh.begin(), mesh.end()), program_(program), baton_(rankCount(mesh) + 1) {}

  const std::vector<MeshAxis> mesh;

  LogicalResult run() {
    for (int64_t number = 0; number < rankCount(mesh); ++number)
      members_.emplace_back(Rank(*this, number));
    for (Member& member : members_)
      member.thread = std::thread([this, &member] { runMember(member); });
    while (!isCancelled_ && !haveAllEnded())
      isCancelled_ = failed(runToNextMeeting());
    for (Member& member : members_) {
      while (!member.hasEnded)
        resume(member);
      member.thread.join();
    }
    return success(!isCancelled_);
  }

  /// Called by the rank's program: lets the others run until they are here, too.
  FailureOr<std::shared_ptr<const AllTerms>> meet(int64_t rank, Operation* op, Tensors terms) {
    Member& member = members_[rank];
    member.place = op;
    member.terms = std::move(terms);
    baton_.giveTo(organizer());
    baton_.await(rank);
    if (isCancelled_)
      return failure();
    return met_;
  }

private:
  struct Member {
    explicit Member(Rank rank) : rank(std::move(rank)) {}
    Rank rank;
    std::thread thread;
    Operation* place = nullptr; ///< where it waits
    Tensors terms;              ///< what it brings there
    bool hasEnded = false;
    LogicalResult result = success();
  };

  /// The holder of the baton that is no rank.
  int64_t organizer() const { return rankCount(mesh); }

  void runMember(Member& member) {
    baton_.await(member.rank.number());
    member.result = isCancelled_ ? failure() : program_(member.rank);
    member.place = nullptr;
    member.hasEnded = true;
    baton_.giveTo(organizer());
  }

  /// Runs one rank until it waits or ends.
  void resume(Member& member) {
    baton_.giveTo(member.rank.number());
    baton_.await(organizer());
  }

  LogicalResult runToNextMeeting() {
    for (Member& member : members_) {
      if (!member.hasEnded)
        resume(member);
      if (failed(member.result))
        return failure();
    }
    if (failed(checkPlaces()))
      return failure();
    auto met = std::make_shared<AllTerms>();
    for (Member& member : members_)
      met->push_back(std::move(member.terms));
    met_ = std::move(met);
    return success();
  }

  bool haveAllEnded() const {
    return llvm::all_of(members_, [](const Member& member) { return member.hasEnded; });
  }

  /// Is every rank where rank 0 is?
  LogicalResult checkPlaces() {
    Operation* first = members_.front().place;
    for (Member& member : members_) {
      Operation* place = member.place;
      if (place == first || (place && first && areAlike(place, first)))
        continue;
      const int64_t other = member.rank.number();
      if (!place)
        return first->emitError() << "rank 0 is at '" << textOf(first) << "', rank " << other
                                  << " has ended";
      if (!first)
        return place->emitError() << "rank " << other << " is at '" << textOf(place)
                                  << "', rank 0 has ended";
      return place->emitError() << "rank " << other << " is at '" << textOf(place)
                                << "', rank 0 at '" << textOf(first) << "'";
    }
    return success();
  }

  static std::string textOf(Operation* op) {
    std::string text;
    llvm::raw_string_ostream out(text);
    op->print(out);
    return text;
  }

  static bool areAlike(Operation* a, Operation* b) {
    return OperationEquivalence::isEquivalentTo(a, b, OperationEquivalence::ignoreValueEquivalence,
                                                /*markEquivalent=*/nullptr,
                                                OperationEquivalence::IgnoreLocations);
  }

  llvm::function_ref<LogicalResult(Rank&)> program_;
  std::deque<Member> members_;
  Baton baton_;
  std::shared_ptr<const AllTerms> met_; ///< of the last meeting
  bool isCancelled_ = false;
};

Rank::Rank(Meeting& meeting, int64_t number)
    : meeting_(meeting), number_(number), coordinates_(coordinatesOf(number, meeting.mesh)) {}

int64_t Rank::coordinateOn(StringRef axis) const {
  auto found =
      llvm::find_if(meeting_.mesh, [&](const MeshAxis& each) { return each.name == axis; });
  assert(found != meeting_.mesh.end() && "the verifiers know the mesh");
  return coordinates_[found - meeting_.mesh.begin()];
}

Tensor Rank::shardOf(const Tensor& whole, ArrayAttr axes, int64_t dim) const {
  return interpreter::shardOf(whole, dim, groupAt(number_, axes, meeting_.mesh));
}

FailureOr<Tensors> Rank::exchange(Operation* collective, Tensors operands, Engine engine) {
  auto met = meeting_.meet(number_, collective, std::move(operands));
  if (failed(met))
    return failure();
  return resultsOf(collective, **met, number_, meeting_.mesh, engine);
}

LogicalResult Rank::start(dist::StartOp start, Tensors ins) {
  auto met = meeting_.meet(number_, start, std::move(ins));
  if (failed(met))
    return failure();
  started_[start] = *met;
  return success();
}

FailureOr<Tensors> Rank::wait(dist::WaitOp wait, Engine engine) {
  Operation* start = wait.getStart();
  auto found = started_.find(start);
  assert(found != started_.end() && "the start stands before its wait, in one block");
  std::shared_ptr<const AllTerms> terms = found->second;
  started_.erase(found);
  if (failed(meeting_.meet(number_, wait, {})))
    return failure();
  return resultsOf(start, *terms, number_, meeting_.mesh, engine);
}

LogicalResult runRanks(std::span<const MeshAxis> mesh,
                       llvm::function_ref<LogicalResult(Rank&)> program) {
  return Meeting(mesh, program).run();
}

std::vector<MeshAxis> meshAxesOf(Operation* op) {
  std::vector<MeshAxis> axes;
  if (dist::MeshAttr mesh = dist::meshOf(op))
    for (auto [name, ranks] : llvm::zip_equal(mesh.getAxes(), mesh.getExtents()))
      axes.push_back({name.str(), ranks});
  return axes;
}

} // namespace titan::interpreter
