# Compiles Triton's sources against an installed LLVM and MLIR, and defines what lib/ adds itself to:
#
#   triton_library_options  interface library: the include directories, switches and flags of Triton's own code
#   TritonScan              (made in lib/CMakeLists.txt) the object library with the lowering, which both products link
#
# Products: libtriton.so and triton-opt in BUILD/bin. The sources' own root CMakeLists is not used.

set(TRITON_SOURCE "" CACHE PATH "Triton's sources with patches/source-* applied")
option(TRITON_ASSERTIONS "Keep assertions in Triton's and our code; LLVM's follow its own build" OFF)
if(NOT EXISTS ${TRITON_SOURCE}/.complete)
  message(FATAL_ERROR "TRITON_SOURCE=${TRITON_SOURCE} holds no complete, patched sources; "
    "run python/build_helpers/source_tree.py")
endif()

enable_language(C) # LLVM's CMake files look for libraries with it
foreach(language C CXX)
  if(NOT CMAKE_${language}_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "the source base is compiled with clang, but the compiler is ${CMAKE_${language}_COMPILER} "
      "(${CMAKE_${language}_COMPILER_ID} ${CMAKE_${language}_COMPILER_VERSION}). "
      "Unset CC and CXX, or set them to clang and clang++ (Debian: clang-22, clang++-22).")
  endif()
endforeach()

# --- LLVM and MLIR: LLVM_SYSPATH, else where Debian and apt.llvm.org put them ---
set(llvm_series 22)
set(llvm_packages "clang-22 lld-22 llvm-22-dev libmlir-22-dev mlir-22-tools libzstd-dev zlib1g-dev")
set(llvm_way_out "Install ${llvm_packages} (Debian 12 or newer, or apt.llvm.org), "
  "or set LLVM_SYSPATH to an install of LLVM, MLIR and LLD ${llvm_series}.1.")
string(JOIN "" llvm_way_out ${llvm_way_out})
if("$ENV{LLVM_SYSPATH}" STREQUAL "")
  set(llvm_roots /usr/lib/llvm-${llvm_series} /usr)
else()
  get_filename_component(llvm_roots "$ENV{LLVM_SYSPATH}" ABSOLUTE)
endif()
set(llvm_root "")
foreach(root ${llvm_roots})
  if(EXISTS ${root}/lib/cmake/mlir/MLIRConfig.cmake AND EXISTS ${root}/lib/cmake/llvm/LLVMConfigVersion.cmake)
    set(llvm_root ${root})
    break()
  endif()
endforeach()
if(NOT llvm_root)
  string(JOIN " or " llvm_roots ${llvm_roots})
  message(FATAL_ERROR "no MLIR ${llvm_series} found: ${llvm_roots} has no lib/cmake/mlir/MLIRConfig.cmake with "
    "lib/cmake/llvm/LLVMConfigVersion.cmake beside it. ${llvm_way_out}")
endif()
file(READ ${llvm_root}/lib/cmake/llvm/LLVMConfigVersion.cmake llvm_version)
if(NOT llvm_version MATCHES "PACKAGE_VERSION \"(${llvm_series}\\.1\\.[0-9]+)")
  string(REGEX MATCH "PACKAGE_VERSION \"([^\"]*)" found "${llvm_version}")
  message(FATAL_ERROR "${llvm_root} holds LLVM ${CMAKE_MATCH_1}, but the patches were made for ${llvm_series}.1. "
    "${llvm_way_out}")
endif()
set(llvm_version ${CMAKE_MATCH_1})
foreach(needed lib/libLLVMSupport.a lib/libLLVMNVPTXCodeGen.a lib/libLLVMAMDGPUCodeGen.a lib/libMLIRIR.a
        bin/mlir-tblgen bin/llvm-nm bin/ld.lld)
  if(NOT EXISTS ${llvm_root}/${needed})
    message(FATAL_ERROR "the LLVM ${llvm_version} in ${llvm_root} lacks ${needed}. ${llvm_way_out}")
  endif()
endforeach()
foreach(library z zstd) # else linking says so, at the end
  find_library(library_${library} ${library})
  if(NOT library_${library})
    message(FATAL_ERROR "there is no lib${library}, which LLVM needs. ${llvm_way_out}")
  endif()
endforeach()
find_package(MLIR REQUIRED CONFIG PATHS ${llvm_root} NO_DEFAULT_PATH)
message(STATUS "LLVM ${llvm_version} of ${llvm_root}")

list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

find_package(Python3 QUIET COMPONENTS Interpreter Development.Module)
if(NOT Python3_FOUND)
  message(FATAL_ERROR "${Python3_EXECUTABLE} has no headers (Python.h): install them (Debian: python3-dev).")
endif()
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import pybind11; print(pybind11.get_include())"
  OUTPUT_VARIABLE pybind11_include OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  message(FATAL_ERROR "${Python3_EXECUTABLE} has no pybind11: `${Python3_EXECUTABLE} -m pip install pybind11`")
endif()

# --- how everything is compiled ---
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Newer CMakes set it for Ninja; every version is to give the compiler the same command, which ccache knows again.
unset(CMAKE_COLOR_DIAGNOSTICS)
unset(CMAKE_COLOR_DIAGNOSTICS CACHE)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_INCLUDE_CURRENT_DIR ON) # the sources include what lies beside them, and what is generated there
set(BUILD_SHARED_LIBS OFF)
add_compile_definitions(__STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS _GNU_SOURCE)
if(NOT TRITON_ASSERTIONS)
  add_compile_definitions(NDEBUG)
endif()
add_compile_options(-fno-exceptions -fvisibility=hidden -fvisibility-inlines-hidden -ffunction-sections
  -fdata-sections -ffile-prefix-map=${TRITON_SOURCE}=triton -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.
  -ffile-prefix-map=${CMAKE_BINARY_DIR}=build)
include_directories(${TRITON_SOURCE} ${TRITON_SOURCE}/include ${TRITON_SOURCE}/third_party
  ${CMAKE_BINARY_DIR}/triton ${CMAKE_BINARY_DIR}/triton/include ${CMAKE_BINARY_DIR}/triton/third_party)
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})

if(CCACHE) # else ccache takes every precompiled header for a new one
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  set(launcher ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# The widest headers of MLIR and of Triton, parsed once.
add_library(triton_pch OBJECT ${CMAKE_SOURCE_DIR}/cmake/pch.cpp)
target_precompile_headers(triton_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h)

# --- what the sources' CMake files call ---
# All generated headers before all compilations: an order that the link dependencies of static libraries would give.
add_custom_target(triton-headers)
add_dependencies(triton_pch triton-headers)
function(add_public_tablegen_target target)
  if(NOT TABLEGEN_OUTPUT)
    message(FATAL_ERROR "${target} generates nothing")
  endif()
  add_custom_target(${target} DEPENDS ${TABLEGEN_OUTPUT})
  add_dependencies(triton-headers ${target})
  set(TABLEGEN_OUTPUT "" PARENT_SCOPE)
endfunction()

function(add_mlir_doc)
endfunction()

# Object libraries, whose LINK_LIBS are left out: Debian's exported MLIR targets would bring libLLVM.so.
function(add_triton_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS;LINK_LIBS")
  add_library(${name} OBJECT ${arg_UNPARSED_ARGUMENTS})
  add_dependencies(${name} triton-headers)
  target_precompile_headers(${name} REUSE_FROM triton_pch)
  target_compile_options(${name} PRIVATE -w)
  set_property(GLOBAL APPEND PROPERTY TRITON_LIBS ${name})
endfunction()

# The libraries with test passes, which triton-opt alone has.
function(add_mlir_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS;LINK_LIBS")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${arg_UNPARSED_ARGUMENTS})
  add_dependencies(${name} triton-headers)
  target_precompile_headers(${name} REUSE_FROM triton_pch)
  target_compile_options(${name} PRIVATE -w)
  set_property(GLOBAL APPEND PROPERTY TRITON_TEST_LIBS ${name})
endfunction()

# --- the sources, less what the repackager added (third_party/triton-source.lock.json says what) ---
macro(add_source directory)
  add_subdirectory(${TRITON_SOURCE}/${directory} triton/${directory})
endmacro()
foreach(directory Conversion Target Dialect/Triton Dialect/TritonGPU Dialect/TritonNvidiaGPU)
  add_source(include/triton/${directory})
endforeach()
foreach(directory Analysis Conversion Target Tools Dialect/Triton Dialect/TritonGPU Dialect/TritonNvidiaGPU)
  add_source(lib/${directory})
endforeach()
foreach(directory f2reduce nvidia amd proton/dialect)
  add_source(third_party/${directory})
endforeach()
add_source(test/lib/Analysis)

# --- the products ---
# Who uses several backends includes their headers under the names that these have among themselves.
set(TRITON_BACKEND_INCLUDES "")
foreach(backend amd nvidia proton/dialect)
  list(APPEND TRITON_BACKEND_INCLUDES ${TRITON_SOURCE}/third_party/${backend}/include
    ${CMAKE_BINARY_DIR}/triton/third_party/${backend}/include)
endforeach()
file(GLOB mlir_archives ${llvm_root}/lib/libMLIR*.a)
file(GLOB llvm_archives ${llvm_root}/lib/libLLVM*.a)
add_library(triton_link INTERFACE)
target_link_options(triton_link INTERFACE -fuse-ld=${llvm_root}/bin/ld.lld -Wl,--gc-sections -Wl,-O1
  -Wl,--build-id=none -Wl,--exclude-libs,ALL) # no other LLVM in the process may meet this one's symbols
target_link_libraries(triton_link INTERFACE
  -Wl,--start-group ${mlir_archives} ${llvm_archives} -Wl,--end-group z zstd dl m pthread)

function(link_triton name)
  get_property(libs GLOBAL PROPERTY TRITON_LIBS)
  get_property(test_libs GLOBAL PROPERTY TRITON_TEST_LIBS)
  foreach(lib ${libs} TritonScan)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${lib}>)
  endforeach()
  if(ARGN)
    foreach(lib ${test_libs})
      target_sources(${name} PRIVATE $<TARGET_OBJECTS:${lib}>)
    endforeach()
  endif()
  target_link_libraries(${name} PRIVATE triton_link)
  add_dependencies(${name} triton-headers)
endfunction()

add_library(triton MODULE
  ${TRITON_SOURCE}/python/src/interpreter.cc ${TRITON_SOURCE}/python/src/ir.cc ${TRITON_SOURCE}/python/src/llvm.cc
  ${TRITON_SOURCE}/python/src/main.cc ${TRITON_SOURCE}/python/src/passes.cc
  ${TRITON_SOURCE}/third_party/nvidia/triton_nvidia.cc ${TRITON_SOURCE}/third_party/amd/python/triton_amd.cc
  ${TRITON_SOURCE}/third_party/proton/dialect/triton_proton.cc
  ${CMAKE_SOURCE_DIR}/lib/BuiltIn/Python.cpp)
target_compile_definitions(triton PRIVATE "TRITON_BACKENDS_TUPLE=(nvidia,amd,proton,native_scan)" TRITON_BUILD_PYTHON_MODULE)
target_compile_options(triton PRIVATE -fexceptions -w)
target_include_directories(triton PRIVATE ${CMAKE_SOURCE_DIR}/include ${TRITON_SOURCE}/python/src
  ${TRITON_BACKEND_INCLUDES})
target_include_directories(triton SYSTEM PRIVATE ${pybind11_include} ${Python3_INCLUDE_DIRS})
target_precompile_headers(triton PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h <pybind11/pybind11.h> <pybind11/stl.h>)
link_triton(triton)
# What -z defs would do, but for Python's own symbols.
add_custom_command(TARGET triton POST_BUILD VERBATIM
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/python/build_helpers/undefined.py
          ${llvm_root}/bin/llvm-nm $<TARGET_FILE:triton>)

foreach(tool triton-opt triton-llvm-opt triton-tensor-layout)
  add_executable(${tool} EXCLUDE_FROM_ALL ${TRITON_SOURCE}/bin/${tool}.cpp)
  target_include_directories(${tool} PRIVATE ${TRITON_BACKEND_INCLUDES})
  # As the precompiled header: CMake would make it -fPIE.
  set_target_properties(${tool} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${tool} PRIVATE -w -fPIC)
  target_precompile_headers(${tool} REUSE_FROM triton_pch)
  link_triton(${tool} WITH_TESTS)
  target_link_options(${tool} PRIVATE -Wl,-z,defs)
endforeach()
add_custom_target(triton-tools DEPENDS triton-opt triton-llvm-opt triton-tensor-layout)
