// Undoes what exporters do to the identity of modules and parameters, before anything is named.
#pragma once

#include "frontend/onnx/name/Scopes.h"

namespace titan::frontend {

/// All of the following, in the order that they need.
void recoverSource(Graph& graph);

/// Legacy scopes leave out containers that are not called ("/down_1/MatMul" for blocks.1.down):
/// sets `Node::module` of every node in a scope that uses a tensor of its module, and of scopes
/// between two of one container.
void resolveScopes(Graph& graph);

/// An optimizer takes biases that are all zeros out of Gemm and convolutions. Where a node says
/// that it lost its bias this way, the parameter that its fx metadata names is there again, as
/// zeros.
void restoreRemovedBiases(Graph& graph);

/// The input of BatchNormalization, behind those of ONNX, that counts the batches of its running
/// statistics.
inline constexpr size_t kBatchCounter = 5;
/// PyTorch's norms of the batch have num_batches_tracked, which no file has. Each node whose
/// running mean is called so has it here, from zero, as its input `kBatchCounter`.
void addBatchCounters(Graph& graph);

/// Gives the graph a tensor `name` of the bytes of `original`, an initializer. Nobody reads it yet.
/// `nameless`: what it is called in the source is still to be found.
void addCopy(Graph& graph, const std::string& original, const std::string& name, bool nameless);

/// Undoes the same where the TorchScript exporter did it, which writes an Identity for each tensor
/// but one.
void separateEqualTensors(Graph& graph);

/// Exporters merge tensors of equal bytes, such as the ones of all norms: trained as one they would
/// be tied. Where the fx metadata names different parameters for the uses of one initializer, each
/// gets a copy ("name#1"), with a note.
void splitMergedTensors(Graph& graph);

/// The same where nodes have no metadata: each layer with a matrix of its own gets its own norms
/// and biases. Where the signature lists as many, they have its names.
void splitMergedLayers(Graph& graph);

/// PyTorch's exporters write a norm of groups as one of instances, whose ones and zeros are theirs.
/// Where those were merged with parameters of equal values, they are numbers of their own again.
void separateNormsOfGroups(Graph& graph);

/// With a fixed batch, optimizers also fold what each sample repeats: positions looked up for every
/// sample are [batch, position, width]. Such an initializer keeps one sample, [1, position, width],
/// which its users broadcast: as a parameter it then has the source's gradient.
void shareRepeatedSamples(Graph& graph);
/// What is behind the name of such an initializer in that of its value for all samples.
inline const std::string kRepeated = "#repeated";

} // namespace titan::frontend
