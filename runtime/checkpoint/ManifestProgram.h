// The manifest's part about the program: the canonical table, the libraries and the mesh, in each
// version of the format.
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/StrictJson.h"

namespace titan::checkpoint {

using OrderedJson = nlohmann::ordered_json;

/// All of `program` but its mesh.
OrderedJson formatProgram(const ProgramInfo& program);
OrderedJson formatMesh(const std::vector<MeshAxis>& mesh);

/// `manifest` is the whole object, of a known version. BadInput names the field.
Result<ProgramInfo> parseProgram(const Json& manifest, int64_t version);

} // namespace titan::checkpoint
