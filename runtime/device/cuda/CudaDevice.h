// A card as a device: launches, copies and fills of the command table in one stream. Calls return
// when they are queued; the host waits for events alone.
//
// The first run of a function walks the table, so that the driver loads what it launches. The
// second one is recorded as a graph, and from there on a run is one launch. With an observer, and
// where the graph would be too large, each run is a walk.
//
// Transfers go through the same stream, in the order of the calls. But what is uploaded to a
// function's input travels by a second stream to memory of its own, and is copied to its place when
// the first stream comes to it: so a batch travels while the step before runs. Memory of
// hostBuffer() is pinned: an upload reads it, and a download writes it, as late as the stream comes
// to it. Of other memory the driver makes a copy before upload() returns, and download() returns
// when it is filled.
//
// What reads states beside the runs has a third stream. Until its gate is passed (setGate) a run is
// a walk, which passes it on its way.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/cuda/Card.h"
#include "runtime/device/cuda/CardAttention.h"
#include "runtime/device/cuda/CardMemory.h"
#include "runtime/device/cuda/CardReader.h"
#include "runtime/device/cuda/LoadedImage.h"
#include "runtime/device/cuda/LtProducts.h"
#include "runtime/device/cuda/Owned.h"
#include "runtime/device/cuda/PreparedFunction.h"
#include "runtime/device/cuda/StagedInputs.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace titan {

class CudaDevice final : public Device {
public:
  /// What the driver may take of the card's memory later, for code that it loads when it is first
  /// launched, graphs and libraries: about twice what an H200 takes.
  static constexpr int64_t outsideBytes = int64_t{192} << 20;

  /// Above that many launches, copies and fills a function is walked in every run: it is long
  /// against its launches.
  static constexpr int64_t mostGraphNodes = 32768;

  /// `program` outlives the device, and is for one rank. Its images lie in `payload`, which is read
  /// here alone. Checks the program (verify()). Environment, with what there is and what is needed:
  /// no driver, no card of that number, no image that it can run, not enough memory. BadInput: the
  /// program has collectives, or an image is damaged. `products`, which is read here alone, says
  /// what computes the products; Environment where that is not there.
  static Result<std::unique_ptr<CudaDevice>> create(const Program& program,
                                                    std::string_view payload, int64_t card = 0,
                                                    const cuda::ProductRequest& products = {},
                                                    const cuda::AttentionRequest& attention = {});
  ~CudaDevice() override;

  const cuda::Card& card() const { return card_; }
  /// Which of Program::images runs.
  const Image& image() const { return image_.image(); }
  /// How fast the card copies in its own memory, bytes read + written a second. Takes memory for as
  /// long. Environment: there is not enough.
  Result<double> measureCopy();
  int driverVersion() const { return driver_->version(); }
  /// What computes products.
  const cuda::LtProducts& products() const { return *products_; }
  /// What computes attention.
  const cuda::CardAttention& attention() const { return *attention_; }
  /// A function's graph, once it has one.
  struct Graph {
    std::string function;
    int64_t nodes = 0;
    double seconds = 0; ///< that recording and instantiating it took
  };
  std::vector<Graph> graphs() const;

  Status run(uint32_t function, CommandObserver* observer) override;
  Status upload(int64_t offset, std::span<const char> from) override;
  Status download(int64_t offset, std::span<char> into) override;
  Status fill(int64_t offset, int64_t bytes, char value) override;
  Event record() override;
  Status wait(Event event) override;
  Result<std::span<char>> hostBuffer(int64_t bytes) override;
  std::span<char> window(int64_t, int64_t) override { return {}; }
  Result<std::unique_ptr<StateReader>> reader() override;

private:
  template <bool observed> struct Walker;
  /// How a function runs from its second run on.
  struct Recorded {
    bool walked = false;       ///< once: all that it launches is loaded
    cuda::OwnedGraphExec exec; ///< null until the second run
    double seconds = 0;        ///< that making it took
  };

  CudaDevice(const Program& program, std::unique_ptr<const cuda::Driver> driver, cuda::Card card,
             int64_t bytes);
  Status open(std::string_view payload, const cuda::ProductRequest& products,
              const cuda::AttentionRequest& attention);
  /// A place of each library call, for LtProducts::choose.
  std::vector<cuda::ProductPlace> productPlaces() const;
  /// Likewise for CardAttention::choose.
  std::vector<cuda::AttentionPlace> attentionPlaces() const;
  /// The host reads them as a whole, also what no command has written yet.
  Status clearScalars();
  Result<cuda::OwnedMemory> scratch(int64_t bytes);
  Status reserveMemory();
  /// For states that are not the card's.
  Status reserveHostMemory();

  /// Every call begins with it: the error that stays, else the card's context for this thread.
  Status enter();
  /// An error that every later call returns.
  Error keep(Error error);
  /// Of a call that queued something, or waited for it: the error may be an earlier one's.
  Status check(cuda::Answer answer, const char* what);
  Error commandFailed(cuda::Answer answer, const Function& function, uint32_t command) const;
  /// Queues each command of the function.
  Status walk(const cuda::PreparedFunction& function);
  Status walkObserved(const cuda::PreparedFunction& function, CommandObserver& observer);
  /// The function's commands as one launch.
  Result<cuda::OwnedGraphExec> capture(const cuda::PreparedFunction& function);
  /// Queues one command and waits for it; `seconds`, if not null, is what it took.
  cuda::Answer runAlone(const cuda::PreparedCommand& command, double* seconds) const;
  cuda::Answer queue(const cuda::PreparedCommand& command) const;
  /// The job's own kernel.
  cuda::Answer launch(const cuda::PreparedCommand& command) const;

  /// Recorded in turn: one that is recorded again stands for more calls than were asked for.
  static constexpr size_t eventsInTurn = 64;

  const Program* program_;
  std::unique_ptr<const cuda::Driver> driver_;
  cuda::Card card_;
  cuda::OwnedContext held_;
  cuda::CUcontext context_ = nullptr;
  cuda::LoadedImage image_;
  cuda::CardMemory memory_; ///< the arena
  cuda::OwnedStream stream_;
  cuda::StagedInputs inputs_;
  std::array<cuda::OwnedEvent, eventsInTurn> events_;
  cuda::OwnedEvent start_, end_; ///< of what is timed
  std::vector<cuda::OwnedHostMemory> buffers_;
  std::vector<cuda::PreparedFunction> functions_; ///< as Program::functions
  std::vector<Recorded> recorded_;                ///< of functions_
  std::optional<cuda::LtProducts> products_;
  std::optional<cuda::CardAttention> attention_;
  uint64_t lastEvent_ = 0, doneEvent_ = 0; ///< by number
  std::string running_;                    ///< the function that was queued last
  std::optional<Error> error_;             ///< of the first call that failed
};

} // namespace titan
