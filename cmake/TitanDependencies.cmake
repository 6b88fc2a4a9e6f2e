# Every package that Titan builds against; versions are Debian 12's. `scripts/install-dependencies`
# installs them.
find_program(LLVM_CONFIG llvm-config-22 REQUIRED)
execute_process(COMMAND ${LLVM_CONFIG} --cmakedir OUTPUT_VARIABLE titan_llvm_cmake
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${LLVM_CONFIG} --bindir OUTPUT_VARIABLE TITAN_LLVM_BIN
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(MLIR_DIR ${titan_llvm_cmake}/../mlir CACHE PATH "")
find_package(MLIR 22.1 REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

find_package(Protobuf REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
find_path(ONNX_INCLUDE onnx/onnx_pb.h REQUIRED)
find_library(ONNX_PROTO_LIBRARY onnx_proto REQUIRED)
