# The interface library `triton_wheel`: the headers, switches and flags with which code can live inside the
# libtriton.so of an upstream wheel.

foreach(name TRITON_SITE LLVM_INCLUDE_DIRS)
  if(NOT ${name})
    message(FATAL_ERROR "${name} is not set; see the top of CMakeLists.txt, or run python/build_helpers/extension.py")
  endif()
endforeach()

set(LIBTRITON_DIR ${TRITON_SITE}/triton/_C)
set(LIBTRITON ${LIBTRITON_DIR}/libtriton.so)
foreach(needed ${LIBTRITON} ${TRITON_SITE}/triton/include/triton/Tools/PluginUtils.h)
  if(NOT EXISTS ${needed})
    message(FATAL_ERROR "TRITON_SITE=${TRITON_SITE} is not an unpacked triton 3.9 wheel: there is no ${needed}")
  endif()
endforeach()

# Finds the one file under LLVM_INCLUDE_DIRS that a compiler would take.
function(find_llvm_header header out)
  foreach(dir ${LLVM_INCLUDE_DIRS})
    if(EXISTS ${dir}/${header})
      set(${out} ${dir}/${header} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "no ${header} under LLVM_INCLUDE_DIRS=${LLVM_INCLUDE_DIRS}; "
    "set LLVM_SYSPATH to an LLVM and MLIR install")
endfunction()
find_llvm_header(mlir/IR/Operation.h ignored)
find_llvm_header(llvm/Config/abi-breaking.h abi_breaking_header)
find_llvm_header(llvm/Config/llvm-config.h llvm_config_header)
file(STRINGS ${llvm_config_header} version_line REGEX "#define LLVM_VERSION_STRING ")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" LLVM_HEADERS_VERSION "${version_line}")

# LLVM_ENABLE_ABI_BREAKING_CHECKS changes the layout of containers, so it must be what libtriton.so was built with.
# LLVM leaves one of two symbols to tell.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${LIBTRITON} ${abi_breaking_header})
execute_process(COMMAND ${CMAKE_NM} -D --defined-only ${LIBTRITON}
  OUTPUT_VARIABLE symbols RESULT_VARIABLE failed ERROR_VARIABLE nm_error)
if(failed)
  message(FATAL_ERROR "cannot read the symbols of ${LIBTRITON}: ${nm_error}")
endif()
string(FIND "${symbols}" " _ZN4llvm23EnableABIBreakingChecksE\n" enabled)
string(FIND "${symbols}" " _ZN4llvm24DisableABIBreakingChecksE\n" disabled)
if(enabled GREATER -1 AND disabled EQUAL -1)
  set(abi_breaking_checks 1)
elseif(disabled GREATER -1 AND enabled EQUAL -1)
  set(abi_breaking_checks 0)
else()
  message(FATAL_ERROR "${LIBTRITON} exports neither or both of llvm::EnableABIBreakingChecks and "
    "llvm::DisableABIBreakingChecks, so LLVM_ENABLE_ABI_BREAKING_CHECKS cannot be told")
endif()
message(STATUS "libtriton.so was built with LLVM_ENABLE_ABI_BREAKING_CHECKS=${abi_breaking_checks}")
# For tests of the ABI gate only.
if(DEFINED OVERRIDE_ABI_BREAKING_CHECKS)
  set(abi_breaking_checks ${OVERRIDE_ABI_BREAKING_CHECKS})
  message(WARNING "LLVM_ENABLE_ABI_BREAKING_CHECKS overridden to ${abi_breaking_checks}")
endif()

set(switch "#define LLVM_ENABLE_ABI_BREAKING_CHECKS")
file(READ ${abi_breaking_header} text)
string(REGEX REPLACE "${switch} [01]" "${switch} ${abi_breaking_checks}" text "${text}")
string(FIND "${text}" "${switch} ${abi_breaking_checks}\n" found)
if(found EQUAL -1)
  message(FATAL_ERROR "${abi_breaking_header} has no line '${switch} 0' or '... 1'")
endif()
set(GENERATED_INCLUDE_DIR ${CMAKE_BINARY_DIR}/generated)
file(CONFIGURE OUTPUT ${GENERATED_INCLUDE_DIR}/llvm/Config/abi-breaking.h CONTENT "@text@" @ONLY)

add_library(triton_wheel INTERFACE)
target_compile_features(triton_wheel INTERFACE cxx_std_20)
target_compile_definitions(triton_wheel INTERFACE
  NDEBUG __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
target_include_directories(triton_wheel SYSTEM INTERFACE
  ${GENERATED_INCLUDE_DIR} ${TRITON_SITE}/triton/include ${LLVM_INCLUDE_DIRS})
target_compile_options(triton_wheel INTERFACE
  -fPIC -fno-rtti -fno-exceptions -fvisibility=hidden -fvisibility-inlines-hidden -ffunction-sections -fdata-sections
  # The same bytes whatever the directories are called.
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build
  -ffile-prefix-map=${TRITON_SITE}=site)
foreach(dir ${LLVM_INCLUDE_DIRS})
  target_compile_options(triton_wheel INTERFACE -ffile-prefix-map=${dir}=llvm)
endforeach()
# Python loads libtriton.so with RTLD_LOCAL, so the extension has to name it as NEEDED; it is loaded by then, so no
# rpath. By name and not by path: the linker would record a path.
target_link_directories(triton_wheel INTERFACE ${LIBTRITON_DIR})
target_link_libraries(triton_wheel INTERFACE -l:libtriton.so)
