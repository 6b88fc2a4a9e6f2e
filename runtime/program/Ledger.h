// The communication ledger: what a program exchanges between ranks, from its table alone.
#pragma once

#include "runtime/program/Program.h"

namespace titan {

/// One collective of one function, at all places of the table: in a loop, and behind it for the
/// iteration that was taken out. Counts and bytes are those of one execution of the function, on
/// one rank; padding counts.
struct LedgerRow {
  std::string function; ///< "step"
  Phase phase = Phase::Forward;
  CollectiveKind kind = CollectiveKind::AllReduce;
  std::vector<std::string> axes;
  std::string dtype;                 ///< "F32"; of a bucket of several: "F32, I64"
  std::string source;                ///< Collective::label
  std::vector<uint32_t> collectives; ///< in Program::collectives, all alike
  int64_t count = 0;                 ///< executions: repeats are multiplied out
  int64_t payload = 0;               ///< bytes of the sources that the rank brings
  int64_t wire = 0;                  ///< bytes that come to it from others: wireBytes()
  bool operator==(const LedgerRow&) const = default;
};

/// In the order in which the table has each first. `program` is verified.
std::vector<LedgerRow> ledgerOf(const Program& program);

} // namespace titan
