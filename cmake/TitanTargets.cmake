# Functions that all layers use to declare their targets:
#
#   titan_library(NAME SRCS... [LINK ...] [NO_PCH | PCH state|onnx])     a static library, no MLIR
#   titan_mlir_library(NAME SRCS... [LINK ...] [DEPENDS tablegen targets...])
#   titan_tablegen(NAME FILE.td -flag out ...)    tablegen targets; headers land beside the build tree's copy
#   titan_test(NAME SRCS... [MLIR] [OPTIMIZED] [LINK ...])   a GoogleTest executable, registered with ctest
#   titan_fuzz(NAME SRCS... [LINK ...])           a libFuzzer executable, with TITAN_FUZZ only
#
# The include root is the repository root (and its mirror in the build tree, for generated headers).

add_library(titan_flags INTERFACE)
target_include_directories(titan_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
# No contraction of a*b+c: the source says where an fma is (equal bits).
target_compile_options(titan_flags INTERFACE -Wall -Wextra -Wno-unused-parameter -ffp-contract=off)
# ccache gives back a precompiled header whose text is the same: it must not ask when its files were written.
target_compile_options(titan_flags INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
if(TITAN_ASAN)
  target_compile_options(titan_flags INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer)
  target_link_options(titan_flags INTERFACE -fsanitize=address,undefined)
endif()

if(TITAN_TSAN)
  target_compile_options(titan_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(titan_flags INTERFACE -fsanitize=thread)
endif()

if(TITAN_FUZZ)
  target_compile_options(titan_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

add_library(titan_mlir_flags INTERFACE)
target_include_directories(titan_mlir_flags SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(titan_llvm_definitions NATIVE_COMMAND ${LLVM_DEFINITIONS})
target_compile_definitions(titan_mlir_flags INTERFACE ${titan_llvm_definitions})
target_link_libraries(titan_mlir_flags INTERFACE titan_flags MLIR LLVM)

# NO_PCH: for a library whose own options a precompiled header does not match. PCH: more than standard headers.
function(titan_library name)
  cmake_parse_arguments(arg "NO_PCH" "PCH" "LINK" ${ARGN})
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC titan_flags ${arg_LINK})
  if(arg_PCH)
    titan_reuse_pch(${name} titan_${arg_PCH}_pch)
  elseif(NOT arg_NO_PCH)
    titan_reuse_pch(${name} titan_pch)
  endif()
endfunction()

# Precompiled headers: of sources and of tests, without MLIR and with it. Most tests are compiled without optimization,
# which takes a third of the time; what they test is optimized.
set(titan_pch_headers Pch.h)
set(titan_state_pch_headers Pch.h StatePch.h)
set(titan_onnx_pch_headers Pch.h OnnxPch.h)
set(titan_test_pch_headers Pch.h TestPch.h)
set(titan_optimized_test_pch_headers Pch.h TestPch.h)
set(titan_mlir_pch_headers MlirPch.h)
set(titan_mlir_test_pch_headers MlirPch.h TestPch.h)
set(titan_test_options $<$<CONFIG:Dev>:-O0>)

# titan_reuse_pch(TARGET PCH): PCH is one of these; it is made where it is first asked for.
function(titan_reuse_pch name pch)
  if(NOT TARGET ${pch})
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${pch}.cpp CONTENT "")
    add_library(${pch} STATIC ${PROJECT_BINARY_DIR}/${pch}.cpp)
    target_link_libraries(${pch} PRIVATE titan_flags nlohmann_json::nlohmann_json)
    if(pch MATCHES mlir) # it includes what these generate
      target_link_libraries(${pch} PRIVATE titan_mlir_flags)
      add_dependencies(${pch} titan_interfaces_gen titan_ops_gen titan_accum_gen titan_dist_gen titan_dist_attrs_gen
        titan_kernel_gen titan_kernel_attrs_gen titan_kernel_interfaces_gen)
    endif()
    if(pch MATCHES test)
      target_link_libraries(${pch} PRIVATE GTest::gtest)
      if(NOT pch MATCHES optimized)
        target_compile_options(${pch} PRIVATE ${titan_test_options})
      endif()
    endif()
    list(TRANSFORM ${pch}_headers PREPEND ${PROJECT_SOURCE_DIR}/cmake/ OUTPUT_VARIABLE headers)
    target_precompile_headers(${pch} PRIVATE ${headers})
  endif()
  target_precompile_headers(${name} REUSE_FROM ${pch})
  # An executable compiles with -fPIE, which the shared header does not match.
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC)
  endif()
endfunction()

function(titan_mlir_library name)
  cmake_parse_arguments(arg "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC titan_mlir_flags ${arg_LINK})
  if(arg_DEPENDS)
    add_dependencies(${name} ${arg_DEPENDS})
  endif()
  titan_reuse_mlir_pch(${name})
endfunction()

function(titan_reuse_mlir_pch name)
  titan_reuse_pch(${name} titan_mlir_pch)
endfunction()

# titan_tablegen(target file.td [-flag output]...)
function(titan_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(rest ${ARGN})
  while(rest)
    list(POP_FRONT rest flag output)
    separate_arguments(flag)
    mlir_tablegen(${output} ${flag} EXTRA_INCLUDES ${PROJECT_SOURCE_DIR} ${MLIR_INCLUDE_DIRS})
  endwhile()
  add_public_tablegen_target(${target})
endfunction()

function(titan_test name)
  cmake_parse_arguments(arg "MLIR;OPTIMIZED" "" "LINK;LABELS" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE titan_flags ${arg_LINK} GTest::gtest GTest::gtest_main)
  if(NOT arg_OPTIMIZED)
    target_compile_options(${name} PRIVATE ${titan_test_options})
  endif()
  if(arg_MLIR)
    target_link_libraries(${name} PRIVATE titan_mlir_flags)
    titan_reuse_pch(${name} titan_mlir_test_pch)
  elseif(arg_OPTIMIZED) # tests that compute for seconds themselves
    titan_reuse_pch(${name} titan_optimized_test_pch)
  else()
    titan_reuse_pch(${name} titan_test_pch)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test)
  add_test(NAME ${name} COMMAND ${name})
  if(arg_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}")
  endif()
endfunction()

# The source defines LLVMFuzzerTestOneInput.
function(titan_fuzz name)
  if(NOT TITAN_FUZZ)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE titan_flags ${arg_LINK})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
endfunction()
