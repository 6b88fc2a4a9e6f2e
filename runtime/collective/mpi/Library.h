// The MPIs that a job can use: a shim for each is carried in the program, and loaded where the
// ranks were started by that MPI's launcher.
#pragma once

#include "runtime/collective/mpi/Shim.h"
#include "runtime/program/Error.h"

#include <optional>
#include <span>
#include <string_view>

namespace titan {

enum class MpiKind { OpenMpi, Mpich };

/// "Open MPI", "MPICH"
const char* nameOf(MpiKind kind);
/// Of what TITAN_MPI says: "openmpi", "mpich".
std::optional<MpiKind> mpiOfName(std::string_view name);
/// Was its shim built? It is where its headers were.
bool isCarried(MpiKind kind);

/// Loads the MPI and its shim; it stays loaded. Environment where the shim was not built, or the
/// machine has no such MPI.
Result<const titan_mpi_shim*> loadMpi(MpiKind kind);
/// The same of a shim's bytes; `mpi` is for messages.
Result<const titan_mpi_shim*> loadShim(std::string_view mpi, std::span<const char> bytes);

} // namespace titan
