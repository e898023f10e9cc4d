# Libraries that a program needs beside our archives. This file is read twice, and is the only place
# that knows how they are found: by our own build, and, installed beside postriderConfig.cmake, by
# the build of an application.
#
# name; how it is found; the package or pkg-config module; its target; its pkg-config module for our
# .pc files, or the flag that stands for one, `-` for neither; the Debian package
set(postrider_linked_libraries
    "fmt       find_package  fmt          fmt::fmt         fmt          libfmt-dev"
    "openssl   find_package  OpenSSL      OpenSSL::SSL     openssl      libssl-dev"
    "threads   find_package  Threads      Threads::Threads -pthread     libc6-dev"
    "date      find_package  date         date::date-tz    -ldate-tz    libhowardhinnant-date-dev"
    "libpq     pkg-config    libpq        -                libpq        libpq-dev"
    "libmariadb pkg-config libmariadb -               libmariadb   libmariadb-dev"
    "sqlite3   pkg-config    sqlite3      -                sqlite3      libsqlite3-dev"
    "rabbitmq  pkg-config    librabbitmq  -                librabbitmq  librabbitmq-dev"
    "curl      pkg-config    libcurl      -                libcurl      libcurl4-openssl-dev")

# postrider_linked_library(<name> <prefix>)
#
# Sets <prefix>_{how,module,target,pkg_config,debian} to the row of the table; <prefix>_how is empty
# when there is none.
function(postrider_linked_library name prefix)
  set(${prefix}_how "" PARENT_SCOPE)
  foreach(row IN LISTS postrider_linked_libraries)
    separate_arguments(cells UNIX_COMMAND "${row}")
    list(POP_FRONT cells row_name how module target pkg_config debian)
    if(row_name STREQUAL name)
      foreach(cell IN ITEMS how module target pkg_config debian)
        set(${prefix}_${cell} "${${cell}}" PARENT_SCOPE)
      endforeach()
    endif()
  endforeach()
endfunction()

# postrider_find_linked_library(<name>)
#
# Makes the target postrider_dep_<name>. Where the library is missing there is no such target.
#
#   postrider_find_linked_library(sqlite3)
function(postrider_find_linked_library name)
  if(TARGET postrider_dep_${name})
    return()
  endif()
  # Our own build links the targets from other folders than the one that found them.
  set(scope "")
  if(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
    set(scope GLOBAL)
  endif()

  postrider_linked_library(${name} library)
  if(NOT library_how)
    message(FATAL_ERROR "The table in LinkedLibraries.cmake has no row for '${name}'; add one.")
  endif()
  if(library_how STREQUAL "pkg-config")
    find_package(PkgConfig QUIET)
    if(PkgConfig_FOUND)
      pkg_check_modules(POSTRIDER_${name} QUIET IMPORTED_TARGET ${scope} ${library_module})
    endif()
    set(library_target PkgConfig::POSTRIDER_${name})
  elseif(NOT TARGET ${library_target})
    find_package(${library_module} QUIET)
  endif()

  if(TARGET ${library_target})
    # Imported, so that its headers are system headers and our warnings do not apply to them.
    add_library(postrider_dep_${name} INTERFACE IMPORTED ${scope})
    target_link_libraries(postrider_dep_${name} INTERFACE ${library_target})
  endif()
endfunction()
