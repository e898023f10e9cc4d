# One function per kind of target. Each hides what is the same for all targets of its kind, so that
# a folder's CMakeLists.txt says only what the folder holds and what it may use.
#
# Wherever a function takes names of targets, a bare name is one of ours: `core` is postrider::core.
# A name with `::` or with the prefix `postrider_` is taken as it is: GTest::gmock,
# postrider_dep_fmt.

# Sets <out> to the full names of the given targets.
function(postrider_resolve_targets out)
  set(resolved "")
  foreach(name IN LISTS ARGN)
    if(name MATCHES "::" OR name MATCHES "^postrider_")
      list(APPEND resolved ${name})
    else()
      # With `::` a misspelt name is an error at configure time and not a -l flag for the linker.
      list(APPEND resolved postrider::${name})
    endif()
  endforeach()
  set(${out} ${resolved} PARENT_SCOPE)
endfunction()

# Splits targets into those that a program with our archives links too, and libraries that were
# compiled into these archives and are not to be found again on the machine of an application.
function(postrider_split_header_only out_linked out_header_only)
  set(linked "")
  set(header_only "")
  foreach(target IN LISTS ARGN)
    get_target_property(is_header_only ${target} POSTRIDER_HEADER_ONLY)
    if(is_header_only)
      list(APPEND header_only ${target})
    else()
      list(APPEND linked ${target})
    endif()
  endforeach()
  set(${out_linked} ${linked} PARENT_SCOPE)
  set(${out_header_only} ${header_only} PARENT_SCOPE)
endfunction()

# Parses the keywords of the functions below into arg_<KEYWORD> and refuses anything else, as an
# ignored argument is a source file that is silently not built.
macro(postrider_parse function one_value multi_value)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "${one_value}" "${multi_value}")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}(${name}): unexpected arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "${function}(${name}): SOURCES is missing")
  endif()
endmacro()

# postrider_library(<name> SOURCES <file>... [DEPENDS <target>...] [PRIVATE_DEPENDS <target>...])
#
# The library of one folder below src/: target postrider_<name>, alias postrider::<name>. <name> is
# the folder with `/` replaced by `_`. DEPENDS are libraries that the folder's own headers include,
# PRIVATE_DEPENDS those that only its .cpp files include.
#
# Includes name the folder ("store/sqlite/sqlite_store.hpp") and compile only when the target
# depends on that folder: instead of src/, which would open all folders to everybody, each library
# publishes an include path of its own that holds nothing but a link to its folder.
#
#   # src/store/sqlite/CMakeLists.txt
#   postrider_library(store_sqlite
#     SOURCES sqlite_store.cpp sqlite_errors.cpp
#     DEPENDS base store_common
#     PRIVATE_DEPENDS postrider_dep_sqlite3 postrider_dep_fmt)
function(postrider_library name)
  postrider_parse(postrider_library "" "SOURCES;DEPENDS;PRIVATE_DEPENDS")

  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}/src" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REPLACE "/" "_" expected_name "${folder}")
  if(NOT name STREQUAL expected_name)
    message(FATAL_ERROR "postrider_library(${name}): the library of the folder src/${folder} "
                        "must be called ${expected_name}")
  endif()

  set(target postrider_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(postrider::${name} ALIAS ${target})
  postrider_compile_flags(${target})
  target_compile_features(${target} PUBLIC cxx_std_20)

  set(root "${PROJECT_BINARY_DIR}/include_roots/${name}")
  cmake_path(GET folder PARENT_PATH parent)
  file(MAKE_DIRECTORY "${root}/${parent}")
  file(CREATE_LINK "${CMAKE_CURRENT_SOURCE_DIR}" "${root}/${folder}" SYMBOLIC)
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${root}>"
                                              "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>")
  # See postrider_compile_flags: a header that is found below the root is in truth below src/.
  target_compile_options(${target} INTERFACE "$<BUILD_INTERFACE:-fmacro-prefix-map=${root}/=src/>"
                                   PRIVATE "-fmacro-prefix-map=${root}/=src/")

  postrider_resolve_targets(public_targets ${arg_DEPENDS})
  postrider_resolve_targets(private_targets ${arg_PRIVATE_DEPENDS})
  postrider_split_header_only(private_targets header_only ${private_targets})
  target_link_libraries(${target} PUBLIC ${public_targets} PRIVATE ${private_targets})
  if(header_only)
    target_link_libraries(${target} PRIVATE "$<BUILD_INTERFACE:${header_only}>")
  endif()
  # For Package.cmake, which tells applications what to link.
  set_property(TARGET ${target} PROPERTY POSTRIDER_LINKS ${public_targets} ${private_targets})
endfunction()

# postrider_executable(<name> SOURCES <file>... [DEPENDS <target>...])
#
# A program that users run. It is built as bin/<name> in the build folder, and installed.
#
#   # src/cli/CMakeLists.txt
#   postrider_executable(postrider SOURCES main.cpp DEPENDS cli)
function(postrider_executable name)
  postrider_parse(postrider_executable "" "SOURCES;DEPENDS")
  add_executable(${name} ${arg_SOURCES})
  postrider_compile_flags(${name})
  postrider_resolve_targets(targets ${arg_DEPENDS})
  target_link_libraries(${name} PRIVATE ${targets})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  if(POSTRIDER_INSTALL)
    install(TARGETS ${name} RUNTIME COMPONENT runtime)
  endif()
endfunction()

# postrider_suite(<name> SOURCES <file>... [DEPENDS <target>...])
#
# A conformance suite that the test program of each backend links and instantiates. An OBJECT
# library, because from a static one the linker takes only what somebody calls, and nobody calls a
# test. For the same reason it must be named in the DEPENDS of the test program itself: objects are
# not handed on through another library.
#
#   # tests/conformance/CMakeLists.txt
#   postrider_suite(store_conformance SOURCES store_claim_suite.cpp DEPENDS base)
function(postrider_suite name)
  postrider_parse(postrider_suite "" "SOURCES;DEPENDS")
  set(target postrider_${name})
  add_library(${target} OBJECT ${arg_SOURCES})
  add_library(postrider::${name} ALIAS ${target})
  postrider_compile_flags(${target})
  postrider_resolve_targets(targets ${arg_DEPENDS})
  target_link_libraries(${target} PUBLIC ${targets} GTest::gmock)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}/tests"
                                              "${PROJECT_SOURCE_DIR}/include")
endfunction()

# postrider_test(<name> LABEL <label> SOURCES <file>... [DEPENDS <target>...]
#                [PROPERTIES <property> <value>...])
#
# A GoogleTest program whose tests are known to CTest one by one, under a label that
# scripts/run-tests takes. A test may run for 300 s; PROPERTIES are CTest's and can say otherwise.
# Includes start at tests/: "conformance/store_suite.hpp". Two macros say where things are:
# POSTRIDER_TEST_SOURCE_DIR (the root of the tree: scenarios, golden files) and
# POSTRIDER_TEST_BIN_DIR (where the built postrider is).
#
#   # tests/CMakeLists.txt
#   postrider_test(sqlite_store_test
#     LABEL conformance
#     SOURCES backends/sqlite_store_test.cpp
#     DEPENDS store_sqlite store_conformance
#     PROPERTIES RUN_SERIAL ON)
#
# With ONE_PROCESS ON the program is a single test of CTest: for tests that share what is slow to
# make, and for properties whose values are lists, which the discovery cannot pass on.
function(postrider_test name)
  postrider_parse(postrider_test "LABEL;ONE_PROCESS" "SOURCES;DEPENDS;PROPERTIES")
  if(NOT arg_LABEL)
    message(FATAL_ERROR "postrider_test(${name}): LABEL is missing, so no `make test T=` runs it")
  endif()
  add_executable(${name} ${arg_SOURCES})
  postrider_compile_flags(${name})
  postrider_resolve_targets(targets ${arg_DEPENDS})
  # Objects: from an archive the linker would leave out what nobody calls.
  target_link_libraries(${name} PRIVATE ${targets} postrider_test_marks GTest::gmock
                                        GTest::gtest_main)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests"
                                             "${PROJECT_SOURCE_DIR}/include")
  target_compile_definitions(
    ${name} PRIVATE "POSTRIDER_TEST_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\""
                    "POSTRIDER_TEST_BIN_DIR=\"${PROJECT_BINARY_DIR}/bin\"")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  if(arg_ONE_PROCESS)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT 600)
    return()
  endif()
  # PRE_TEST asks the program for its tests when CTest starts: a program that cannot even start
  # then fails as a test, and does not break the build of everything else.
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS ${arg_LABEL} TIMEOUT 300 ${arg_PROPERTIES})
endfunction()

# postrider_header_check()
#
# Compiles every public header alone, so that none works only behind another's includes, and twice
# in one file, so that none lacks its guard. The target is postrider_headers, a part of the default
# build. The folder is listed, as a header that nobody registers is the one that needs the check.
#
#   postrider_header_check()
function(postrider_header_check)
  set(include_dir "${PROJECT_SOURCE_DIR}/include")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${include_dir}"
       "${include_dir}/postrider/*.hpp")
  if(NOT POSTRIDER_HAS_TESTS)
    list(FILTER headers EXCLUDE REGEX "^postrider/testing/")  # May include GoogleTest.
  endif()
  if(NOT TARGET postrider_dep_pqxx)
    list(REMOVE_ITEM headers postrider/pqxx.hpp)
  endif()
  if(NOT headers)
    return()
  endif()

  set(sources "")
  foreach(header IN LISTS headers)
    set(source "${PROJECT_BINARY_DIR}/header_check/${header}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include <@header@>\n#include <@header@>\n" @ONLY)
    list(APPEND sources "${source}")
  endforeach()
  add_library(postrider_headers OBJECT ${sources})
  postrider_compile_flags(postrider_headers)
  target_include_directories(postrider_headers PRIVATE "${include_dir}")
  # In a unity build a header would find the includes of the one before it.
  set_target_properties(postrider_headers PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(
    postrider_headers PRIVATE $<TARGET_NAME_IF_EXISTS:GTest::gtest>
                              $<TARGET_NAME_IF_EXISTS:postrider_dep_pqxx>)
endfunction()
