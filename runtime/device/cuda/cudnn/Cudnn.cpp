// cuDNN's attention by its header-only frontend: the one source that the vendor's headers are for.
#include "runtime/device/cuda/AttentionLibrary.h"
#include "runtime/device/cuda/VendorLibrary.h"
#include "runtime/program/AttentionNeeds.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string_view>

// The frontend asks the CUDA runtime what the card is, and nothing else here. It would load any
// libcudart that it finds, whose structs need not be those of the headers, or none. So it asks us.
namespace {

titan::cuda::Capability cardHere;
char runtimeLibrary; ///< its handle

cudaError_t getDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t getDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  properties->major = cardHere.major;
  properties->minor = cardHere.minor;
  return cudaSuccess;
}
const char* getErrorString(cudaError_t) { return "error of the CUDA runtime"; }

void* openForFrontend(const char* name, int flags) {
  const std::string_view wanted = name;
  if (wanted == "libcudart.so.13")
    return &runtimeLibrary;
  return wanted.starts_with("libcudart") ? nullptr : dlopen(name, flags);
}

void* lookUpForFrontend(void* library, const char* name) {
  if (library != &runtimeLibrary)
    return dlsym(library, name);
  const std::string_view wanted = name;
  if (wanted == "cudaGetDevice")
    return reinterpret_cast<void*>(getDevice);
  if (wanted == "cudaGetDeviceProperties")
    return reinterpret_cast<void*>(getDeviceProperties);
  // Others are for what plans of an older cuDNN do beside it, and would not last in a graph.
  return wanted == "cudaGetErrorString" ? reinterpret_cast<void*>(getErrorString) : nullptr;
}

} // namespace

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#define dlopen openForFrontend
#define dlsym lookUpForFrontend
#include <cudnn_frontend.h>
#undef dlopen
#undef dlsym

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
} // namespace cudnn_frontend

namespace titan::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

/// Earlier ones copy lengths from the host in each run, and cannot say what a plan needs.
constexpr size_t oldestVersion = 91000;
constexpr const char* libraryFile = "libcudnn.so.9";

std::string textOfVersion(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Error errorOf(fe::error_t error) {
  const std::string message = error.get_message();
  return Error::environment("{}", message.substr(0, message.find('\n')));
}

Status need(fe::error_t error) { return error.is_good() ? Status() : Status(errorOf(error)); }

/// The frontend throws some of its errors.
template <typename Function> auto guarded(Function function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::exception& exception) {
    return Error::environment("{}", exception.what());
  }
}

class Handle {
public:
  explicit Handle(cudnnHandle_t cudnn = nullptr) : cudnn_(cudnn) {}
  Handle(const Handle&) = delete;
  ~Handle() {
    if (cudnn_)
      fe::detail::destroy_handle(cudnn_);
  }

  /// Null: without a card.
  cudnnHandle_t get() const { return cudnn_; }
  /// Of the next calls. Nothing is asked of the library where it is the last one's, which may be
  /// recorded.
  bool setStream(CUstream stream) {
    if (stream != stream_ && fe::detail::set_stream(cudnn_, reinterpret_cast<cudaStream_t>(
                                                                stream)) != CUDNN_STATUS_SUCCESS)
      return false;
    stream_ = stream;
    return true;
  }

private:
  cudnnHandle_t cudnn_;
  CUstream stream_ = nullptr;
};

/// A call, or a part of its batch, in the library's terms.
class CallGraph : private fe::graph::Graph {
public:
  struct Place {
    int64_t uid;
    uint32_t operand;
    int64_t offset, ofBatch; ///< bytes: in the operand, and from one batch to the next
  };

  CallGraph(const Attention& attention, int64_t batch) : a_(attention), batch_(batch) {
    set_io_data_type(fe::DataType_t::BFLOAT16);
    set_intermediate_data_type(fe::DataType_t::FLOAT);
    set_compute_data_type(fe::DataType_t::FLOAT);
  }

  /// Asks the library for its plans. `properties` are those of a card that is not here.
  Status prepare(cudnnHandle_t handle, std::shared_ptr<const fe::DeviceProperties> properties) {
    if (properties)
      set_device_properties(properties);
    a_.backward ? addBackward() : addForward();
    TITAN_TRY(need(validate()));
    TITAN_TRY(need(properties ? build_operation_graph() : build_operation_graph(handle)));
    return need(create_execution_plans({fe::HeurMode_t::A}));
  }

  struct Offered {
    int64_t index, workspace;
    std::string name;
  };
  /// No plan is deselected, so all that have a name are there.
  std::vector<Offered> offered() {
    std::vector<Offered> all;
    fe::EngineConfigList configs = plans.get_barred_engine_configs();
    const int64_t beside = get_fe_workspace_size_subtree();
    for (size_t i = 0; i < configs.size(); ++i) {
      const std::vector<fe::NumericalNote_t>& notes = plans.numeric_notes[i];
      Offered offer{static_cast<int64_t>(i), 0, {}};
      if (std::ranges::find(notes, fe::NumericalNote_t::NONDETERMINISTIC) != notes.end() ||
          fe::detail::get_workspace_size(configs[i], offer.workspace).is_bad() ||
          get_plan_name_at_index(offer.index, offer.name).is_bad())
        continue;
      offer.workspace += beside;
      all.push_back(std::move(offer));
    }
    return all;
  }
  Status build(int64_t index) { return need(build_plan_at_index(index)); }

  Status execute(cudnnHandle_t handle, std::span<const int64_t> operands, int64_t index,
                 int64_t part) const {
    std::unordered_map<int64_t, void*> pointers;
    for (const Place& place : places_)
      pointers[place.uid] = reinterpret_cast<void*>(operands[place.operand] + place.offset +
                                                    part * batch_ * place.ofBatch);
    void* workspace =
        operands.size() > a_.operands ? reinterpret_cast<void*>(operands[a_.operands]) : nullptr;
    return need(execute_plan_at_index(handle, pointers, workspace, index));
  }
  int64_t parts() const { return a_.batch / batch_; }

private:
  using Dims = std::vector<int64_t>;
  enum class Rows : uint8_t { Query, Key };

  Dims dims(Rows rows, int64_t width) const {
    return rows == Rows::Key ? Dims{batch_, a_.keyHeads, a_.keys, width}
                             : Dims{batch_, a_.heads, a_.queries, width};
  }
  static Dims strides(const AttentionView& view) { return {view.batch, view.head, view.row, 1}; }
  int64_t place(uint32_t operand, int64_t offset, int64_t ofBatch) {
    const auto uid = static_cast<int64_t>(places_.size()) + 1;
    places_.push_back({uid, operand, offset, ofBatch});
    return uid;
  }
  int64_t place(const AttentionView& view) {
    const int64_t size = byteSize(a_.element);
    return place(view.operand, view.offset * size, view.batch * size);
  }
  int64_t placeStatistics() {
    return place(a_.logSumExp, 0, a_.heads * a_.queries * byteSize(DType::F32));
  }

  Tensor in(const AttentionView& view, Rows rows, int64_t width) {
    return tensor(fe::graph::Tensor_attributes()
                      .set_uid(place(view))
                      .set_dim(dims(rows, width))
                      .set_stride(strides(view)));
  }
  void out(const Tensor& made, const AttentionView& view, Rows rows, int64_t width) {
    made->set_output(true)
        .set_uid(place(view))
        .set_dim(dims(rows, width))
        .set_stride(strides(view));
  }
  /// f32 [batch, heads, queries, 1], contiguous.
  void describeStatistics(fe::graph::Tensor_attributes& statistics) {
    statistics.set_uid(placeStatistics())
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim(dims(Rows::Query, 1))
        .set_stride({a_.heads * a_.queries, a_.queries, 1, 1});
  }

  void addForward() {
    const Tensor query = in(a_.query, Rows::Query, a_.width), key = in(a_.key, Rows::Key, a_.width),
                 value = in(a_.value, Rows::Key, a_.valueWidth);
    fe::graph::SDPA_attributes options;
    options.set_name("attention")
        .set_generate_stats(true)
        .set_attn_scale(static_cast<float>(a_.scale))
        .set_implementation(fe::AttentionImplementation_t::COMPOSITE);
    if (a_.causal)
      limit(options);
    const auto [result, statistics] = sdpa(query, key, value, options);
    out(result, a_.result, Rows::Query, a_.valueWidth);
    statistics->set_output(true);
    describeStatistics(*statistics);
  }

  void addBackward() {
    const Tensor query = in(a_.query, Rows::Query, a_.width), key = in(a_.key, Rows::Key, a_.width),
                 value = in(a_.value, Rows::Key, a_.valueWidth),
                 result = in(a_.result, Rows::Query, a_.valueWidth),
                 dresult = in(a_.dresult, Rows::Query, a_.valueWidth);
    fe::graph::Tensor_attributes described;
    describeStatistics(described);
    fe::graph::SDPA_backward_attributes options;
    options.set_name("attention backward")
        .set_attn_scale(static_cast<float>(a_.scale))
        .set_deterministic_algorithm(true);
    if (a_.causal)
      limit(options);
    const auto [dquery, dkey, dvalue] =
        sdpa_backward(query, key, value, result, dresult, tensor(described), options);
    out(dquery, a_.dquery, Rows::Query, a_.width);
    out(dkey, a_.dkey, Rows::Key, a_.width);
    out(dvalue, a_.dvalue, Rows::Key, a_.valueWidth);
  }

  /// Query i attends to keys 0 to i, whatever the number of keys is.
  static void limit(auto& options) {
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
  }

  Attention a_;
  int64_t batch_;
  std::vector<Place> places_;
};

class CudnnPlan final : public AttentionPlan {
public:
  CudnnPlan(std::shared_ptr<Handle> handle, std::shared_ptr<const CallGraph> graph, int64_t index)
      : handle_(std::move(handle)), graph_(std::move(graph)), index_(index) {}

  Answer queue(std::span<const int64_t> operands, CUstream stream) const override {
    if (!handle_->setStream(stream))
      return {CUDA_ERROR_INVALID_VALUE, "cudnnSetStream"};
    const Status queued = guarded([&]() -> Status {
      for (int64_t part = 0; part < graph_->parts(); ++part)
        TITAN_TRY(graph_->execute(handle_->get(), operands, index_, part));
      return {};
    });
    if (queued.ok())
      return {CUDA_SUCCESS, "cudnnBackendExecute"};
    said_ = queued.error().message();
    return {CUDA_ERROR_INVALID_VALUE, "cudnnBackendExecute"};
  }
  std::string said() const override { return said_; }

private:
  std::shared_ptr<Handle> handle_;
  std::shared_ptr<const CallGraph> graph_;
  int64_t index_;
  mutable std::string said_;
};

class CudnnLibrary final : public AttentionLibrary {
public:
  CudnnLibrary(std::shared_ptr<Handle> handle, size_t version,
               std::shared_ptr<const fe::DeviceProperties> properties = nullptr)
      : handle_(std::move(handle)), version_(textOfVersion(version)),
        properties_(std::move(properties)) {}

  const std::string& version() const override { return version_; }

  Result<std::vector<AttentionOffer>> offers(const Attention& attention,
                                             int64_t workspace) const override {
    return guarded([&]() -> Result<std::vector<AttentionOffer>> {
      const int64_t batch = batchesAtOnce(attention, workspace);
      auto graph = std::make_shared<CallGraph>(attention, batch);
      TITAN_TRY(graph->prepare(handle_->get(), properties_));
      std::vector<AttentionOffer> offers;
      for (CallGraph::Offered& offered : graph->offered()) {
        const int64_t index = offered.index;
        // The size of a part decides the order of no sum, but which kernels there are.
        offers.push_back(
            {batch == attention.batch ? std::move(offered.name)
                                      : fmt::format("{} x {}", graph->parts(), offered.name),
             offered.workspace,
             [handle = handle_, graph, index] { return build(handle, graph, index); }});
      }
      if (offers.empty())
        return Error::environment("it knows no way that gives the same bits in each run");
      return offers;
    });
  }

private:
  static Result<std::unique_ptr<AttentionPlan>> build(const std::shared_ptr<Handle>& handle,
                                                      const std::shared_ptr<CallGraph>& graph,
                                                      int64_t index) {
    return guarded([&]() -> Result<std::unique_ptr<AttentionPlan>> {
      TITAN_TRY(graph->build(index));
      return std::unique_ptr<AttentionPlan>(new CudnnPlan(handle, graph, index));
    });
  }

  std::shared_ptr<Handle> handle_;
  std::string version_;
  std::shared_ptr<const fe::DeviceProperties> properties_; ///< null: the card is here
};

/// Loads the library, once a process: the frontend keeps addresses of its functions.
Result<size_t> openLibrary() {
  const std::string path = locateLibrary(libraryFile);
  if (!fe::cudnn_dlhandle) {
    // Never unloaded: it has state of the process.
    fe::cudnn_dlhandle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!fe::cudnn_dlhandle)
      return Error::environment("cannot load cuDNN: {}: install cuDNN 9 for CUDA 13, or the wheel "
                                "nvidia-cudnn-cu13, and name its folder in {}",
                                dlerror(), librariesVariable);
  }
  return guarded([&]() -> Result<size_t> {
    const size_t version = fe::detail::get_backend_version();
    if (version < oldestVersion)
      return Error::environment("cuDNN ('{}') has version {}, and a job takes {} or later: update "
                                "it, or name another folder in {}",
                                path, textOfVersion(version), textOfVersion(oldestVersion),
                                librariesVariable);
    return version;
  });
}

} // namespace

Result<std::unique_ptr<AttentionLibrary>> loadCudnn(const Card& card) {
  const size_t version = TITAN_TRY(openLibrary());
  cardHere = card.capability;
  return guarded([&]() -> Result<std::unique_ptr<AttentionLibrary>> {
    cudnnHandle_t handle = nullptr;
    if (const cudnnStatus_t status = fe::detail::create_handle(&handle);
        status != CUDNN_STATUS_SUCCESS)
      return Error::environment("cuDNN {} does not work here: cudnnCreate: {}",
                                textOfVersion(version), fe::detail::get_error_string(status));
    return std::unique_ptr<AttentionLibrary>(
        new CudnnLibrary(std::make_shared<Handle>(handle), version));
  });
}

Result<std::string> findCudnn() { return textOfVersion(TITAN_TRY(openLibrary())); }

Result<std::unique_ptr<AttentionLibrary>> loadCudnnWithoutCard(const Card& card,
                                                               std::string_view properties) {
  const size_t version = TITAN_TRY(openLibrary());
  cardHere = card.capability;
  return guarded([&]() -> Result<std::unique_ptr<AttentionLibrary>> {
    auto recorded = std::make_shared<fe::DeviceProperties>();
    TITAN_TRY(need(recorded->deserialize({properties.begin(), properties.end()})));
    return std::unique_ptr<AttentionLibrary>(
        new CudnnLibrary(std::make_shared<Handle>(), version, std::move(recorded)));
  });
}

} // namespace titan::cuda
