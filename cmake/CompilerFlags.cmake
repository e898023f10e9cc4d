# What every target of ours is compiled with. The rest (optimisation, sanitizers, warnings as
# errors) is chosen by a preset: see CMakePresets.json.

set(POSTRIDER_SANITIZE "" CACHE STRING "Sanitizers, for example address,undefined or thread")

# A ten-line change should not cost a full build after switching branches and back.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(POSTRIDER_CCACHE ccache)
  mark_as_advanced(POSTRIDER_CCACHE)
  if(POSTRIDER_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${POSTRIDER_CCACHE}")
    set(CMAKE_C_COMPILER_LAUNCHER "${POSTRIDER_CCACHE}")
  endif()
endif()

# Directory-wide and not per target: a program in which only some objects are instrumented reports
# nonsense.
if(POSTRIDER_SANITIZE)
  add_compile_options(-fsanitize=${POSTRIDER_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${POSTRIDER_SANITIZE})
endif()

# postrider_compile_flags(<target>)
#
# Warnings, and source paths in assertions that do not depend on where the tree was checked out:
# "src/core/relay_core.cpp", in headers as well, although these are found through include_roots
# (see Targets.cmake). The compilers prefer the longer of two matching prefixes.
#
#   postrider_compile_flags(postrider_core)
function(postrider_compile_flags target)
  target_compile_options(
    ${target}
    PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
            # The analysis of the annotated Mutex (base/mutex.hpp) exists in Clang only.
            $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
            "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
endfunction()
