// The compiled job as data: what codegen writes and the executor walks.
//
// A Program is everything but machine code: state and its names, where each buffer lies in the one
// arena, and for each function (`step`, `eval`, `predict`) a list of commands. `plan`, the
// profiler, the tests' recording device and graph capture all read this one table. Kernels are
// code; the control flow of the step is not.
//
// The serialized form (Serialize.cpp) is versioned, little-endian and checked when it is read.
#pragma once

#include "runtime/program/Affine.h"
#include "runtime/program/Collective.h"
#include "runtime/program/DType.h"
#include "runtime/program/Piece.h"

#include <optional>
#include <string>
#include <vector>

namespace titan {

/// Signature of every generated kernel: does units [begin, end) of its iteration space.
/// `operands` are addresses in the arena, `scalars` are values; both in the order of the command's
/// lists. How the units are divided over threads never changes the bits of a result.
using KernelFunction = void (*)(char* const* operands, const int64_t* scalars, int64_t begin,
                                int64_t end);

enum class Phase : uint8_t { Forward, Backward, Update };

/// C[m, n] (+)= op(A) * op(B), row-major, computed tile by tile: unit u of a command is one tile of
/// the grid batch x ceil(m / tileM) x ceil(n / tileN), in row-major order; the last tile of a row
/// or a column may be smaller. K is never split. The grid is part of the meaning (it decides bits),
/// so it is fixed at compile time. Operands of the command: A, B, C, then bias ([n], of C's
/// type) when `bias`.
struct Gemm {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  int64_t lda = 0, ldb = 0, ldc = 0;                            ///< leading dimensions, elements
  int64_t batchStrideA = 0, batchStrideB = 0, batchStrideC = 0; ///< elements
  bool transposeA = false;                                      ///< A is stored [k, m]
  bool transposeB = false;                                      ///< B is stored [n, k]
  bool accumulate = false;                                      ///< C += instead of C =
  bool bias = false;                                            ///< C += bias after the product
  bool relu = false;                                            ///< C = max(C, 0) last
  /// F32 or BF16; sums are f32. An F32 B beside a BF16 A is rounded to bf16 as it is read; a BF16 C
  /// is rounded last.
  DType a = DType::F32, b = DType::F32, c = DType::F32;
  int64_t tileM = 0, tileN = 0;

  int64_t tilesM() const { return m / tileM + (m % tileM != 0); }
  int64_t tilesN() const { return n / tileN + (n % tileN != 0); }
  int64_t units() const { return batch * tilesM() * tilesN(); }
  bool operator==(const Gemm&) const = default;
};

/// A tensor [batch, row, head, width] inside of an operand: strides and offset count elements, the
/// width is contiguous.
struct AttentionView {
  uint32_t operand = 0; ///< of the command
  int64_t offset = 0, batch = 0, row = 0, head = 0;
  bool operator==(const AttentionView&) const = default;
};

/// softmax(scale query keyT) value for each head, without masks of its own and without dropout, or
/// its gradient: titan.attention, titan.attention_grad. Head h has the keys of head
/// h / (heads / keyHeads).
struct Attention {
  int64_t batch = 0, heads = 0, keyHeads = 0;
  int64_t queries = 0, keys = 0;     ///< rows
  int64_t width = 0, valueWidth = 0; ///< of a head
  bool causal = false;               ///< query i attends to keys up to i
  bool backward = false;
  double scale = 1;
  DType element = DType::BF16; ///< of all views; scores and sums are f32
  uint32_t operands = 0;       ///< of a command, without the workspace
  uint32_t logSumExp = 0;      ///< the operand f32 [batch, heads, queries], natural logarithms
  AttentionView query, key, value, result;
  AttentionView dresult, dquery, dkey, dvalue; ///< backward: read, and written
  bool operator==(const Attention&) const = default;
};

/// The kind implies the queue on which a device runs the command.
enum class CommandKind : uint8_t {
  Kernel,  ///< run kernel `target` over the units of `launch`
  Library, ///< run call `target` of Program::libraryCalls, or its fallback kernel
  Copy,    ///< operands: destination, source, of one size
  Zero,    ///< operands: destination
  Repeat,  ///< run the commands up to the matching EndRepeat `launch.units` times
  EndRepeat,
  /// Collective `target` of Program::collectives begins: its sources are ready. Operands: the
  /// sources (Read), which lie in the staging region, then the results (Write), one a piece.
  CollectiveStart,
  /// It is done: its results are there. The operands of its start.
  CollectiveWait,
};

enum class Access : uint8_t { Read, Write, Both };

/// A buffer that a command uses: [address, address + bytes) of the arena.
struct Operand {
  Affine address = {};
  int64_t bytes = 0;
  Access access = Access::Read;
  bool operator==(const Operand&) const = default;
};

/// How a command is spread over a CPU's threads; a card has Kernel::launches.
struct Launch {
  int64_t units = 1; ///< independent units of work, [0, units)
  int64_t grain = 1; ///< a thread gets at least so many units (cost model, at compile time)
  bool operator==(const Launch&) const = default;
};

struct Command {
  CommandKind kind = CommandKind::Kernel;
  Phase phase = Phase::Forward;
  uint32_t target = 0; ///< index in Program::kernels, libraryCalls or collectives
  std::vector<Operand> operands;
  std::vector<Affine> scalars;
  Launch launch;
  int64_t flops = 0; ///< of one execution
  int64_t bytes = 0; ///< read + written by one execution, each operand once
  bool operator==(const Command&) const = default;
};

/// One entry point of an image, as a card launches it: parameters are the addresses of the
/// command's operands and then its scalars, 8 bytes each. Grids and blocks have one dimension.
struct GridLaunch {
  static constexpr int64_t mostBlocks = (int64_t{1} << 31) - 1, mostThreads = 1024,
                           mostSharedBytes = int64_t{227} << 10;

  std::string entry;
  int64_t blocks = 1, threads = 1; ///< of the grid, of a block
  int64_t sharedBytes = 0;         ///< of a block, besides what the entry declares
  bool operator==(const GridLaunch&) const = default;
};

/// One generated kernel. Equal bodies are generated once and shared by several commands.
struct Kernel {
  std::string symbol;
  std::string label; ///< what it computes and for which module path(s); shown by profile and plan
  /// What a card does for a command that runs the kernel, in this order. Empty on a CPU, which
  /// calls the symbol over the command's units.
  std::vector<GridLaunch> launches = {};
  bool operator==(const Kernel&) const = default;
};

/// How far an element that a card wrote may be from what the kernel's host code makes of the same
/// inputs. Numbers that compare equal are equal, and so are two NaN.
enum class Tolerance : uint8_t {
  Any,       ///< a workspace: nothing is said of it
  Equal,     ///< not at all
  Bounded,   ///< by what the kernel's code for bounds says
  Magnitude, ///< by `factor` of what the host code makes of the magnitudes of all inputs
  Scale,     ///< by `factor` of the largest magnitude of the operand
};

/// One operand of a kernel's commands, as `compare` sees it.
struct ComparedOperand {
  DType dtype = DType::F32;
  Shape shape;
  Tolerance tolerance = Tolerance::Equal; ///< of what is written
  double factor = 0;
  bool operator==(const ComparedOperand&) const = default;
};

/// How a kernel for cards is compared with its host code.
struct Comparison {
  std::vector<ComparedOperand> operands; ///< in the order of the command's
  /// Units of the host code that finds bounds; 0: there is none. Its operands are the kernel's and
  /// behind them one of f32 for each that is Bounded, of as many elements.
  int64_t boundUnits = 0;
  bool operator==(const Comparison&) const = default;
};

/// What a library computes.
enum class LibraryRoutine : uint8_t { Gemm, Attention };

/// One configuration of a library's routine, with the generated kernel (same units, same operands)
/// that stands in where the library is missing.
struct LibraryCall {
  LibraryRoutine routine = LibraryRoutine::Gemm;
  Gemm gemm;           ///< the descriptor of routine Gemm
  Attention attention; ///< that of routine Attention
  std::string label;
  uint32_t fallback = 0; ///< index in Program::kernels
  /// The cost model takes the generated kernel even where the library is there: a small product.
  bool generated = false;
  /// Of the operand behind the routine's own, bytes; 0: there is none.
  int64_t workspace = 0;
  bool operator==(const LibraryCall&) const = default;
};

/// The next `count` elements of a sample are labels or indices in [0, classes); 0: any value.
struct ClassRun {
  int64_t count = 0;
  int64_t classes = 0;
  bool operator==(const ClassRun&) const = default;
};

/// Where a function's argument or result lies.
struct Binding {
  enum class Role : uint8_t {
    Input,   ///< batch data. step: [microbatches, micro, ...]; eval, predict: [micro, ...]
    Control, ///< a scalar hyperparameter or the seed, by its recipe key: "optimizer.lr",
             ///< "train.seed", "valid_rows"
    Metric,  ///< a scalar result of step or eval: "loss", "grad_norm", "lr", "loss_sum", "count",
             ///< "correct"
    Output,  ///< a tensor result of predict, by the model's own output name
  };
  Role role = Role::Input;
  std::string name;
  DType dtype = DType::F32;
  Shape shape;        ///< of the job
  Shape local;        ///< of this rank
  int64_t offset = 0; ///< bytes in the arena
  int64_t bytes = 0;
  int64_t classes = 0; ///< Input: the values are labels or indices in [0, classes); 0: any value
  /// Input: the same by element of a sample, where that is narrower for some of them; behind the
  /// last run comes the first.
  std::vector<ClassRun> runs = {};
  bool operator==(const Binding&) const = default;
};

/// A temporary buffer and the commands between which it is live, both ends included. For a buffer
/// that is live anywhere in a repeat and outside of it, the whole repeat counts.
struct LiveRange {
  int64_t offset = 0, bytes = 0;
  uint32_t first = 0, last = 0; ///< indices in Function::commands
  bool operator==(const LiveRange&) const = default;
};

struct Function {
  std::string name; ///< "step", "eval", "predict", averageFunction()
  std::vector<Binding> bindings;
  std::vector<Command> commands;
  std::vector<LiveRange> temporaries;
  int64_t maxLiveBytes = 0; ///< the largest sum of live temporaries at any command
  /// FLOP of contractions and attention (pairs that the mask allows), both directions, of all ranks
  /// together. What the commands compute again, pointwise work and the update are in their own
  /// `flops` alone. 0: none, or not known.
  int64_t modelFlops = 0;
  bool operator==(const Function&) const = default;
};

/// How often each command runs in one execution of `function`, whose repeats are balanced; a Repeat
/// or EndRepeat as often as its repeat begins.
std::vector<int64_t> executionsOf(const Function& function);

/// The bytes of one initializer, row-major.
struct StoredRange {
  std::string path; ///< External: relative to --weights-dir; Payload: empty
  int64_t offset = 0, bytes = 0;
  uint64_t digest = 0; ///< XXH3-64 of the bytes
  Shape shape;
  bool operator==(const StoredRange&) const = default;
};

/// How a state tensor starts.
struct Init {
  enum class Kind : uint8_t {
    Payload,  ///< ranges of the payload that the job carries
    External, ///< ranges of files
    Constant, ///< every element = `a`
    Normal,   ///< normal(mean a, standard deviation b), keyed by (seed, name, element)
    Uniform,  ///< uniform[a, b), likewise
  };
  Kind kind = Kind::Constant;
  double a = 0, b = 0;
  /// Payload, External: of each initializer of initializersOf(State::sources); without sources one,
  /// which is alike. What goes where the sources say.
  std::vector<StoredRange> stored;
  bool operator==(const Init&) const = default;
};

enum class StateKind : uint8_t { Param, Buffer, Slot, Ema, Counter };

/// Where a state lives while the job runs; the same on a CPU.
enum class MemorySpace : uint8_t { Device, Host };

/// A state symbol: what the checkpoint stores under its canonical name. Unique by kind, profile and
/// name.
struct State {
  std::string name; ///< canonical (fully qualified) name; slots "<param>.exp_avg"; counters "step",
                    ///< "optimizer.t", "samples", "skipped"
  StateKind kind = StateKind::Param;
  std::string profile; ///< Ema: the name of its profile
  DType dtype = DType::F32;
  Shape shape;         ///< global, as checkpoints hold it
  Shape local;         ///< this rank's part with its padding: localShape()
  Placement placement; ///< cuts by axes of Program::mesh
  MemorySpace space = MemorySpace::Device;
  bool trainable = false;
  std::vector<std::string> aliases; ///< other names of a tied set
  /// Where the model file has it, each element once, shortened(); empty: an initializer of the same
  /// name and layout, or none.
  std::vector<TensorSource> sources;
  Init init;
  int64_t offset = 0; ///< bytes in the arena
  int64_t bytes = 0;  ///< of the local part
  bool operator==(const State&) const = default;
};

/// Constants that the model file holds and that are no state: copied into the arena at start.
struct Constant {
  int64_t offset = 0, bytes = 0; ///< in the arena
  int64_t payloadOffset = 0;     ///< in the job's payload
  bool operator==(const Constant&) const = default;
};

/// Machine code of a program's kernels.
struct Image {
  enum class Kind : uint8_t {
    Object, ///< for the host: linked into the job, so its bytes have no place of their own
    Cubin,  ///< bytes of the job's payload, as is Ptx
    Ptx,
  };
  Kind kind = Kind::Object;
  std::string arch;              ///< "znver5", "sm_90"
  int64_t offset = 0, bytes = 0; ///< in the job's payload; of an Object only the size
  std::string digest;            ///< of the code: digest128()
  bool operator==(const Image&) const = default;
};

/// The machine that the code of a program is for. Of a card, Program::images know more.
struct ProgramTarget {
  std::string kind;                  ///< "cpu", "cuda"
  std::string cpu;                   ///< LLVM's name of the CPU: "znver5"; empty for a card
  std::vector<std::string> features; ///< that kernels need, and the start-up check requires: "avx2"
  bool operator==(const ProgramTarget&) const = default;
};

/// The staging region consists of whole pages: it is mapped by itself.
constexpr int64_t stagingAlignment = 4096;

struct Program {
  static constexpr uint32_t currentVersion = 8;

  std::string model;  ///< base name of the model file
  std::string recipe; ///< the whole recipe as compiled, JSON (Recipe.h)
  ProgramTarget target;
  std::vector<MeshAxis> mesh; ///< the ranks that the program is for
  std::string compilerVersion;
  std::string optimizer; ///< "adamw", "adam", "sgd"

  std::vector<State> states;
  std::vector<Constant> constants;
  std::vector<Kernel> kernels;
  /// Of a card's kernels, one a kernel, where the job has host code for them; else none. The host
  /// code that finds bounds comes behind that of all kernels, in their order.
  std::vector<Comparison> comparisons;
  std::vector<LibraryCall> libraryCalls;
  std::vector<Collective> collectives; ///< each is started and waited for at one place of the table
  std::vector<Image> images;           ///< with the code of all kernels
  std::vector<Function> functions;

  int64_t arenaBytes = 0;
  int64_t stateBytes = 0;   ///< all State
  int64_t bindingBytes = 0; ///< inputs, controls and metrics
  /// The region that the outputs and temporaries of all functions share: outputs are to be read
  /// before another function runs.
  int64_t temporaryBytes = 0;
  /// What the functions share with other ranks, one after the other: temporaries that are sources
  /// of collectives. Multiples of stagingAlignment; 0 and 0 where there are no collectives.
  int64_t stagingOffset = 0, stagingBytes = 0;

  bool operator==(const Program&) const = default;

  const Function* findFunction(std::string_view name) const;
  /// A parameter, buffer, slot or counter.
  const State* findState(std::string_view name) const;
};

/// Launches, copies and fills of one execution on a card, repeats multiplied out: the nodes of its
/// graph. `function` is of `program`.
int64_t launchesOf(const Program& program, const Function& function);

/// Checks what the executor relies on, for all values of the repeat counters and on every rank:
/// indices lie inside their tables, and operands inside the arena; a product stays inside its
/// operands; grids are such as a card can launch; repeats are balanced; the sources of a state
/// cover it once and lie in what is stored of it; nothing writes to an input, a control or a
/// constant, nor to a state before the first command of phase update; each collective is started
/// and waited for once, in one iteration, by all ranks of a group that exists, with the bytes that
/// it says, and in between nothing writes to its sources or touches its results. Fails with
/// BadInput naming the function and command.
Status verify(const Program& program);

/// The programs of one job, one a device, are verified and share their states (local shape,
/// placement and place in the arena aside), optimizer and recipe: a checkpoint of one is one of
/// all. Fails with BadInput naming the programs and what differs.
Status verifyJob(std::span<const Program> programs);

/// The job's bytes for `program`; equal programs give equal bytes.
std::string serialize(const Program& program);
/// Fails with BadInput naming the field where `bytes` are cut, too long, or of another version;
/// verifies what it read.
Result<Program> deserialize(std::string_view bytes);
/// digest128() of the serialized program, which has the digests of its code: guards that all ranks
/// of one run are the same.
std::string fingerprint(const Program& program);
/// The commands as text, one a line, for `--emit=codegen`.
std::string dump(const Program& program);

} // namespace titan
