# What `cmake --install` lays down: the tools, the shared library Titan::titan with its headers, and what linking a job needs.
#
#   bin/                    titan-compile, titan-run, titan-eager, titan-opt, titan-ckpt
#   lib/libtitan.so         builder and driver
#   lib/titan/              the runtime's archives and the start files that jobs are linked with
#   lib/cmake/Titan/        find_package(Titan)
#   include/titan/          headers, under the paths that they have here
include(CMakePackageConfigHelpers)

set(titan_public_headers
  compiler/Driver/CompileJob.h
  frontend/nn/Layers.h
  frontend/nn/Model.h
  frontend/nn/Models.h
  runtime/program/DType.h
  runtime/program/Error.h
  runtime/program/Placement.h
  runtime/program/Recipe.h)
foreach(header IN LISTS titan_public_headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION include/titan/${folder})
endforeach()

# Only Titan's own names leave the library: it carries protobuf's users, fmt and lld.
add_library(titan_shared SHARED ${PROJECT_SOURCE_DIR}/cmake/Shared.cpp)
set_target_properties(titan_shared PROPERTIES OUTPUT_NAME titan EXPORT_NAME titan LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} VERSION ${PROJECT_VERSION}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exported.map)
target_link_libraries(titan_shared PRIVATE titan_driver)
# All of these, whether or not the driver calls it; CMake's own way refuses archives that others link in part.
target_link_options(titan_shared PRIVATE
  LINKER:--whole-archive,$<TARGET_FILE:titan_driver>,$<TARGET_FILE:titan_nn>,$<TARGET_FILE:titan_program>,--no-whole-archive
  LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exported.map LINKER:--build-id)
target_include_directories(titan_shared INTERFACE $<INSTALL_INTERFACE:include/titan>)
target_compile_features(titan_shared INTERFACE cxx_std_20)
target_link_libraries(titan_shared INTERFACE fmt::fmt-header-only)

set(titan_tools titan-compile titan-run titan-eager titan-opt titan-ckpt)
set_target_properties(${titan_tools} titan_shared PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS ${titan_tools} RUNTIME DESTINATION bin)
install(TARGETS titan_shared EXPORT TitanTargets LIBRARY DESTINATION lib)
install(DIRECTORY ${PROJECT_BINARY_DIR}/lib/titan DESTINATION lib PATTERN gathered EXCLUDE)
install(EXPORT TitanTargets NAMESPACE Titan:: DESTINATION lib/cmake/Titan)
configure_package_config_file(cmake/TitanConfig.cmake.in ${PROJECT_BINARY_DIR}/cmake/TitanConfig.cmake INSTALL_DESTINATION lib/cmake/Titan)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/TitanConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/TitanConfig.cmake ${PROJECT_BINARY_DIR}/cmake/TitanConfigVersion.cmake DESTINATION lib/cmake/Titan)
