# Third-party libraries, each behind one target `postrider_dep_<name>`, so that no other file here
# knows how a library is found. Client libraries of backends are optional, the rest is required.
#
#   postrider_library(config SOURCES toml_file.cpp PRIVATE_DEPENDS postrider_dep_toml)

# A parent project links our static libraries and with them the targets below, from a directory
# that would not see them otherwise.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
include(LinkedLibraries)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

set(postrider_missing "")

# postrider_linked_dependency(<name>)
#
# A library that programs with our archives link: see LinkedLibraries.cmake. When it is not there it
# is noted as missing and reported with all the others.
#
#   postrider_linked_dependency(fmt)
function(postrider_linked_dependency name)
  postrider_find_linked_library(${name})
  if(NOT TARGET postrider_dep_${name})
    set(postrider_missing ${postrider_missing} ${name} PARENT_SCOPE)
  endif()
endfunction()

# postrider_dependency(<name> <target> [HEADER_ONLY])
#
# Makes postrider_dep_<name> stand for <target>. A HEADER_ONLY library is compiled into our archives,
# and whoever links them does not need it.
#
#   find_package(spdlog QUIET)
#   postrider_dependency(spdlog spdlog::spdlog)
function(postrider_dependency name target)
  if(TARGET ${target})
    add_library(postrider_dep_${name} INTERFACE IMPORTED GLOBAL)
    target_link_libraries(postrider_dep_${name} INTERFACE ${target})
    set_property(TARGET postrider_dep_${name} PROPERTY POSTRIDER_HEADER_ONLY "${ARGN}")
  else()
    set(postrider_missing ${postrider_missing} ${name} PARENT_SCOPE)
  endif()
endfunction()

# postrider_backend_option(<NAME> <linked library>)
#
# Declares POSTRIDER_WITH_<NAME> = AUTO|ON|OFF and sets POSTRIDER_HAS_<NAME> to what came of it.
# AUTO builds the backend when its client library is there; ON makes a missing library an error.
#
#   postrider_backend_option(SQLITE sqlite3)
function(postrider_backend_option name dependency)
  set(POSTRIDER_WITH_${name} AUTO CACHE STRING "Build the backend: AUTO, ON or OFF")
  set_property(CACHE POSTRIDER_WITH_${name} PROPERTY STRINGS AUTO ON OFF)
  set(wanted "${POSTRIDER_WITH_${name}}")
  if(NOT wanted MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "POSTRIDER_WITH_${name} is '${wanted}'; it must be AUTO, ON or OFF.")
  endif()

  set(has OFF)
  if(NOT wanted STREQUAL "OFF")
    postrider_find_linked_library(${dependency})
    if(TARGET postrider_dep_${dependency})
      set(has ON)
    elseif(wanted STREQUAL "ON")
      list(APPEND postrider_missing ${dependency})
    endif()
  endif()
  set(POSTRIDER_HAS_${name} ${has} PARENT_SCOPE)
  set(postrider_missing ${postrider_missing} PARENT_SCOPE)
endfunction()

postrider_backend_option(POSTGRES libpq)
postrider_backend_option(MARIADB libmariadb)
postrider_backend_option(SQLITE sqlite3)
postrider_backend_option(RABBITMQ rabbitmq)
postrider_backend_option(HTTP curl)

postrider_linked_dependency(fmt)
postrider_linked_dependency(openssl)
postrider_linked_dependency(date)
find_package(nlohmann_json QUIET)
postrider_dependency(json nlohmann_json::nlohmann_json HEADER_ONLY)
find_package(CLI11 QUIET)
postrider_dependency(cli11 CLI11::CLI11 HEADER_ONLY)
find_package(spdlog QUIET)
postrider_dependency(spdlog spdlog::spdlog)
find_package(Boost 1.81 QUIET)
postrider_dependency(boost Boost::headers HEADER_ONLY)

# From pkg-config, because its flags say whether the library is header-only or shared (Debian's is
# shared); two translation units that disagree on this do not link, or worse, do.
pkg_check_modules(POSTRIDER_TOML QUIET IMPORTED_TARGET GLOBAL tomlplusplus)
postrider_dependency(toml PkgConfig::POSTRIDER_TOML)

if(postrider_missing)
  list(JOIN postrider_missing ", " missing)
  message(FATAL_ERROR "Libraries not found: ${missing}.\n"
                      "On Debian run `scripts/install-deps build`; elsewhere install the packages "
                      "that scripts/packages/build.txt names.")
endif()

# Only <postrider/pqxx.hpp>, a header-only adapter, needs libpqxx.
pkg_check_modules(POSTRIDER_PQXX QUIET IMPORTED_TARGET GLOBAL libpqxx)
if(POSTRIDER_PQXX_FOUND)
  postrider_dependency(pqxx PkgConfig::POSTRIDER_PQXX)
endif()

# Without GoogleTest the product still builds: `make` must work where only the build list of
# packages is installed. scripts/run-tests fails when there are no tests to run.
set(POSTRIDER_HAS_TESTS OFF)
if(POSTRIDER_BUILD_TESTS)
  find_package(GTest QUIET)
  if(GTest_FOUND)
    set(POSTRIDER_HAS_TESTS ON)
    include(GoogleTest)
  endif()
endif()

# postrider_print_summary()
#
# Says at the end of a configure run what will be built. The last call in the root CMakeLists.txt.
function(postrider_print_summary)
  message(STATUS "Postrider ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, "
                 "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  foreach(name IN ITEMS POSTGRES MARIADB SQLITE RABBITMQ HTTP)
    message(STATUS "  ${name}: ${POSTRIDER_HAS_${name}} (asked for: ${POSTRIDER_WITH_${name}})")
  endforeach()
  if(POSTRIDER_BUILD_TESTS AND NOT POSTRIDER_HAS_TESTS)
    message(STATUS "  tests: OFF (GoogleTest not found; `scripts/install-deps test` brings it)")
  else()
    message(STATUS "  tests: ${POSTRIDER_HAS_TESTS}")
  endif()
  if(POSTRIDER_SANITIZE)
    message(STATUS "  sanitizers: ${POSTRIDER_SANITIZE}")
  endif()
endfunction()
