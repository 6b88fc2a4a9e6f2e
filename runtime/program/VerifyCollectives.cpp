#include "runtime/program/VerifyCollectives.h"

#include <algorithm>
#include <bit>

namespace titan {

namespace {

/// CollectivePiece::wholeBytes() of any extents; nothing for an empty one or on overflow.
std::optional<int64_t> bytesOf(const CollectivePiece& piece) {
  int64_t bytes;
  if (piece.outer < 1 || piece.inner < 1 ||
      __builtin_mul_overflow(piece.outer, piece.inner, &bytes) ||
      __builtin_mul_overflow(bytes, byteSize(piece.dtype), &bytes))
    return std::nullopt;
  return bytes;
}

} // namespace

CollectiveChecker::CollectiveChecker(const Program& program)
    : program_(program), started_(program.collectives.size()) {
  for (const MeshAxis& axis : program.mesh)
    ranks_.push_back(axis.ranks);
}

Status CollectiveChecker::checkTable() const {
  for (size_t i = 0; i < program_.collectives.size(); ++i)
    if (const Status status = checkCollective(program_.collectives[i]); !status.ok())
      return Error::badInput("damaged program: collective {} '{}' {}", i,
                             program_.collectives[i].label, status.error().message());
  return {};
}

Status CollectiveChecker::checkCollective(const Collective& collective) const {
  const std::vector<uint8_t>& axes = collective.axes;
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] >= ranks_.size() || ranks_[axes[i]] < 2 || (i > 0 && axes[i] <= axes[i - 1]))
      return Error::badInput("names axis {}, which the mesh lacks, has one rank or stands before "
                             "the one before",
                             axes[i]);
  const int64_t group = groupSize(axes, program_.mesh);
  if (axes.empty() || collective.pieces.empty())
    return Error::badInput("has {} axes and {} pieces", axes.size(), collective.pieces.size());
  const bool sums = collective.kind != CollectiveKind::AllGather;
  if (collective.order == SumOrder::Tree && (!sums || !std::has_single_bit(uint64_t(group))))
    return Error::badInput("is a tree over {} ranks", group);
  int64_t all = 0; // the ledger's sums do not overflow either
  for (const CollectivePiece& piece : collective.pieces) {
    const std::optional<int64_t> bytes = bytesOf(piece);
    if (!bytes || __builtin_add_overflow(all, *bytes, &all) || all > INT64_MAX / 2 / group)
      return Error::badInput("has a piece of [{}, {}] elements", piece.outer, piece.inner);
    if (collective.kind != CollectiveKind::AllReduce && piece.inner % group != 0)
      return Error::badInput("cuts {} elements for {} ranks", piece.inner, group);
    if (sums && !canSum(piece.dtype))
      return Error::badInput("sums {}", name(piece.dtype));
  }
  return {};
}

bool CollectiveChecker::Extent::meets(const Extent& other) const {
  if (address.terms == other.address.terms) // at one place in every iteration and on every rank
    return address.base < other.address.base + other.bytes &&
           other.address.base < address.base + bytes;
  return low < other.high && other.low < high;
}

CollectiveChecker::Extent CollectiveChecker::extentOf(const Operand& operand,
                                                      std::span<const int64_t> trips) const {
  const Bounds bounds = *boundsOf(operand.address, trips, ranks_);
  return {operand.address, bounds.low, bounds.high + operand.bytes, operand.bytes};
}

Status CollectiveChecker::checkAccess(const Operand& operand, const Extent& extent) const {
  auto meets = [&](const Extent& other) { return extent.meets(other); };
  for (const Open& open : open_) {
    if (std::ranges::any_of(open.outs, meets))
      return Error::badInput("touches a result of collective {}, which is not waited for",
                             open.collective);
    if (operand.access != Access::Read && std::ranges::any_of(open.ins, meets))
      return Error::badInput("writes to a source of collective {}, which is not waited for",
                             open.collective);
  }
  return {};
}

Status CollectiveChecker::command(const Command& command, std::span<const int64_t> trips) {
  if (command.kind == CommandKind::CollectiveWait)
    return wait(command, trips.size());
  if (!open_.empty())
    for (const Operand& operand : command.operands)
      TITAN_TRY(checkAccess(operand, extentOf(operand, trips)));
  if (command.kind == CommandKind::CollectiveStart)
    return start(command, trips);
  if (command.kind == CommandKind::EndRepeat)
    for (const Open& open : open_)
      if (open.depth >= trips.size())
        return Error::badInput("ends a repeat that does not wait for collective {}",
                               open.collective);
  return {};
}

Status CollectiveChecker::start(const Command& command, std::span<const int64_t> trips) {
  if (command.target >= started_.size())
    return Error::badInput("collective {} of {}", command.target, started_.size());
  if (started_[command.target])
    return Error::badInput("collective {} is started at two places", command.target);
  started_[command.target] = true;
  Open open{command.target, &command, trips.size(), {}, {}};
  const size_t pieces = program_.collectives[command.target].pieces.size();
  if (command.operands.size() != 2 * pieces)
    return Error::badInput("{} operands, expected {}", command.operands.size(), 2 * pieces);
  for (size_t i = 0; i < 2 * pieces; ++i)
    (i < pieces ? open.ins : open.outs).push_back(extentOf(command.operands[i], trips));
  TITAN_TRY(checkOperands(command, open));
  open_.push_back(std::move(open));
  return {};
}

Status CollectiveChecker::checkOperands(const Command& command, const Open& open) const {
  const Collective& collective = program_.collectives[open.collective];
  const int64_t group = groupSize(collective.axes, program_.mesh);
  const size_t pieces = collective.pieces.size();
  for (size_t i = 0; i < 2 * pieces; ++i) {
    const bool isSource = i < pieces;
    const CollectivePiece& piece = collective.pieces[i % pieces];
    const Operand& operand = command.operands[i];
    const int64_t bytes = isSource ? sourceBytes(collective.kind, piece, group)
                                   : resultBytes(collective.kind, piece, group);
    const bool fits =
        operand.bytes == bytes && operand.access == (isSource ? Access::Read : Access::Write);
    if (!fits && isSource)
      return Error::badInput("operand {} is no source of {} bytes", i, bytes);
    if (!fits)
      return Error::badInput("operand {} is no result of {} bytes", i, bytes);
  }
  for (size_t i = 0; i < pieces; ++i) {
    const Extent& in = open.ins[i];
    if (in.low < program_.stagingOffset || in.high > program_.stagingOffset + program_.stagingBytes)
      return Error::badInput("source {} lies outside of staging", i);
    // A peer finds it by its own offset.
    if (!in.address.terms.empty() && in.address.terms.back().variable >= maxRepeatDepth)
      return Error::badInput("source {} lies elsewhere on other ranks", i);
  }
  for (size_t j = 0; j < pieces; ++j) {
    const Extent& out = open.outs[j];
    for (size_t i = 0; i < pieces; ++i) {
      const bool isInPlace = i == j && collective.kind == CollectiveKind::AllReduce &&
                             open.ins[i].address == out.address;
      if ((!isInPlace && out.meets(open.ins[i])) || (i < j && out.meets(open.outs[i])))
        return Error::badInput("result {} lies on another operand", j);
    }
  }
  return {};
}

Status CollectiveChecker::wait(const Command& command, size_t depth) {
  const auto open = std::ranges::find(open_, command.target, &Open::collective);
  if (open == open_.end() || open->depth != depth)
    return Error::badInput("waits for collective {}, which is not started beside it",
                           command.target);
  if (command.operands != open->start->operands)
    return Error::badInput("waits for collective {} with other operands", command.target);
  open_.erase(open);
  return {};
}

Status CollectiveChecker::endFunction() const {
  if (open_.empty())
    return {};
  return Error::badInput("nobody waits for collective {}", open_.front().collective);
}

Status CollectiveChecker::endProgram() const {
  const auto idle = std::ranges::find(started_, false);
  if (idle == started_.end())
    return {};
  return Error::badInput("damaged program: nobody starts collective {}", idle - started_.begin());
}

} // namespace titan
