// The rules that say what the tensors of a file are, file by file, in the order in which Namer.cpp
// applies them. A rule for one tensor that returns a bool says whether it settled what the tensor
// is; the rules after it then do not look at it. A rule sets `doubt` of what it is not certain of.
#pragma once

#include "frontend/onnx/name/Naming.h"

namespace titan::frontend {

// KeptNames.cpp: a name that the file has kept.

/// Sets the kind of a tensor with its own name.
void classify(Naming& naming, NamedTensor& tensor);
/// The frequencies, cosines or sines of rotary or sinusoidal positions are a buffer in the source.
/// What an input looks up, as words, is rather a table that starts from them.
bool classifyAngles(Naming& naming, NamedTensor& tensor);

// Recurrent.cpp: the operands of LSTM, GRU and RNN, which hold several parameters each.

bool fromRecurrence(Naming& naming, NamedTensor& tensor);

// Projections.cpp: an attention's projection that the exporter cut in two or three.

/// Looks for modules that multiply by such matrices themselves, and reserves their names.
void findProjections(Naming& naming);
bool fromProjection(Naming& naming, NamedTensor& tensor);

// NormsOfGroups.cpp: what scales and shifts a norm of groups of channels.

/// The parameters of torch.nn.GroupNorm, which an exporter that folds has as [C, 1, 1].
bool fromNormOfGroups(Naming& naming, NamedTensor& tensor);

// LegacyFolds.cpp: what the TorchScript exporter computed from parameters and buffers.

bool fromLegacyFold(Naming& naming, NamedTensor& tensor);

// Metadata.cpp: what the fx nodes of torch.export say.

/// The parameter that a node's fx node reads where the node reads `tensor`, if no initializer
/// carries it.
bool fromMetadata(Naming& naming, NamedTensor& tensor);
/// Do fx nodes say that it is no parameter: the value of another node, or a number?
bool isFolded(const Facts& facts, const NamedTensor& tensor);

// Layers.cpp: what the modules of the readers tell.

/// Scopes alone: a matrix that a module multiplies by, anonymous because its transposition was
/// folded, is a Linear's weight, and what it adds is its bias.
bool fromScope(Naming& naming, NamedTensor& tensor);
/// A parameter or statistic by what it does, under a structural name.
bool fromRole(Naming& naming, NamedTensor& tensor);

// Converted.cpp: files of torch.export that lost all metadata.

/// A linear layer's weight is folded when it is transposed, its bias keeps its name: what is added
/// to the product tells what the matrix is most likely called.
bool fromBiasBeside(Naming& naming, NamedTensor& tensor);
/// Copies of a layer, whose small tensors were merged, look like one layer that is called twice.
void doubtShared(Naming& naming);
/// Layers that compute the same, whose small tensors were merged, are one layer of the file.
void doubtLayersBesideGaps(Naming& naming);

// SecondReadings.cpp: tensors that read a parameter which the file has too.

/// Folded tensors with the values of another one, in files without a signature.
void readEqualTensors(Naming& naming);
/// Parameters by movementKey().
using KeptByMovement = std::map<std::string, std::vector<const NamedTensor*>>;
KeptByMovement keptByMovement(const Naming& naming);
/// What has all values of one of `kept`, with its dimensions moved.
bool readAsMoved(Naming& naming, NamedTensor& tensor, const KeptByMovement& kept);
/// Metadata says that it is the transposition of the initializer `of`, whose name is kept.
bool readAsTransposed(Naming& naming, NamedTensor& tensor, const std::string& of);
/// Names are settled: so are those of what copies read.
void settleCopies(Naming& naming);

// Ties.cpp: one tensor under several names.

/// Finds the other names of a tied tensor. Canonical is the first in module order, which the
/// TorchScript exporter keeps, and elsewhere, where no signature tells it, that of the first use.
void tie(Naming& naming, NamedTensor& tensor);

// Folded.cpp: what an optimizing exporter computed.

/// Settles the tensors that no rule before knew: `unknown`, in the order of the file.
void nameFolded(Naming& naming, const std::vector<size_t>& unknown);

// MergedNodes.cpp: layers that became one.

/// Doubts parameters that may stand for others of the source, which the file has not: those beside
/// it, those that are called alike in another module, and those that were merged with equal ones.
void doubtMergedLayers(Naming& naming);

// Detached.cpp: gradients that the source stops.

/// Doubts the parameters of which the source detaches what it computes, or may do so.
void doubtDetached(Naming& naming);

// Proofs.cpp: why a tensor that a gradient may reach is none that is trained.

/// Of a constant, where the source does not say it.
Proof proofOf(const Facts& facts, const NamedTensor& constant);
/// Of an unknown tensor that a gradient reaches.
Proof proofOfFolded(const Facts& facts, const NamedTensor& tensor);
/// Zeros that recurrent layers of a converted file start from.
bool areZeroStates(const Facts& facts, const NamedTensor& tensor);
/// Zeros [batch, 1, queries, keys] that nothing but sums separate from a softmax.
bool isOpenMask(const Facts& facts, const NamedTensor& tensor);

} // namespace titan::frontend
