# What `cmake --install` makes of the libraries: archives, headers, a CMake package and pkg-config
# files. Why it is done this way stands in docs/adr/0009-one-component-per-backend.md.

# Where the package finds its own files, below the prefix.
set(postrider_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/postrider")
set(postrider_suite_dir "${CMAKE_INSTALL_DATADIR}/postrider")

# postrider_component(<name> DESCRIPTION <text> LIBRARIES <library>...)
#
# A part of the library as applications know it: target postrider::<name>. LIBRARIES are folders
# below src/, dependents before what they depend on. All components stand on `outbox`, which is
# declared first. Nothing happens when a library is not in this build.
#
#   postrider_component(sqlite DESCRIPTION "The store, outbox and inbox" LIBRARIES store_sqlite)
function(postrider_component name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DESCRIPTION" "LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_DESCRIPTION OR NOT arg_LIBRARIES)
    message(FATAL_ERROR "postrider_component(${name}): expected DESCRIPTION and LIBRARIES")
  endif()
  set_property(GLOBAL APPEND PROPERTY POSTRIDER_KNOWN_COMPONENTS ${name})
  foreach(library IN LISTS arg_LIBRARIES)
    if(NOT TARGET postrider_${library})
      return()
    endif()
  endforeach()

  set(target postrider_component_${name})
  add_library(${target} INTERFACE)
  add_library(postrider::${name} ALIAS ${target})
  postrider_resolve_targets(libraries ${arg_LIBRARIES})
  if(NOT name STREQUAL "outbox")
    list(APPEND libraries postrider::outbox)
  endif()
  target_link_libraries(${target} INTERFACE ${libraries})

  postrider_links_of_component(linked ${name} ${arg_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY POSTRIDER_BUILT_COMPONENTS ${name})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name}
    POSTRIDER_DESCRIPTION "${arg_DESCRIPTION}"
    POSTRIDER_LIBRARIES "${arg_LIBRARIES}"
    POSTRIDER_LINKED "${linked}")
endfunction()

# Sets <out> to the rows of LinkedLibraries.cmake that the libraries of a component link.
function(postrider_links_of_component out name)
  set(linked "")
  foreach(library IN LISTS ARGN)
    get_target_property(links postrider_${library} POSTRIDER_LINKS)
    foreach(link IN LISTS links)
      if(link MATCHES "^postrider::")
        continue()
      elseif(link STREQUAL "Threads::Threads")
        set(link postrider_dep_threads)
      endif()
      string(REPLACE "postrider_dep_" "" dependency "${link}")
      postrider_linked_library(${dependency} row)
      if(NOT row_how)
        message(FATAL_ERROR "postrider_component(${name}): ${library} links ${link}, and an "
                            "application could not: LinkedLibraries.cmake has no row for it.")
      endif()
      list(APPEND linked ${dependency})
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES linked)
  set(${out} ${linked} PARENT_SCOPE)
endfunction()

# postrider_install_package()
#
# Installs what was declared with postrider_component. The last call after all of them.
function(postrider_install_package)
  get_property(known GLOBAL PROPERTY POSTRIDER_KNOWN_COMPONENTS)
  get_property(components GLOBAL PROPERTY POSTRIDER_BUILT_COMPONENTS)
  foreach(component IN LISTS components)
    postrider_install_component(${component})
  endforeach()
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
          COMPONENT development FILES_MATCHING PATTERN "*.hpp")
  # As sources: objects would have been compiled against another GoogleTest than the backend's.
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/tests/conformance"
          DESTINATION "${postrider_suite_dir}" COMPONENT development
          FILES_MATCHING PATTERN "*.cpp" PATTERN "*.hpp")

  set(facts "")
  foreach(component IN LISTS components)
    get_target_property(linked postrider_component_${component} POSTRIDER_LINKED)
    string(APPEND facts "set(postrider_${component}_links \"${linked}\")\n")
  endforeach()
  include(CMakePackageConfigHelpers)
  set(build_dir "${PROJECT_BINARY_DIR}/package")
  configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/packaging/postriderConfig.cmake.in" "${build_dir}/postriderConfig.cmake"
    INSTALL_DESTINATION "${postrider_package_dir}" PATH_VARS postrider_suite_dir)
  # Before 1.0 a minor version may change what compiles.
  write_basic_package_version_file("${build_dir}/postriderConfigVersion.cmake"
                                   COMPATIBILITY SameMinorVersion)
  install(FILES "${build_dir}/postriderConfig.cmake" "${build_dir}/postriderConfigVersion.cmake"
                "${PROJECT_SOURCE_DIR}/cmake/LinkedLibraries.cmake"
          DESTINATION "${postrider_package_dir}" COMPONENT development)
endfunction()

# Archives, targets and the pkg-config file of one component. Each has an export of its own, so that
# an application on SQLite need not have the client library of PostgreSQL.
function(postrider_install_component name)
  set(target postrider_component_${name})
  get_target_property(libraries ${target} POSTRIDER_LIBRARIES)
  foreach(library IN LISTS libraries)
    set_target_properties(postrider_${library} PROPERTIES EXPORT_NAME ${library})
    install(TARGETS postrider_${library} EXPORT postrider-${name}
            ARCHIVE COMPONENT development INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  endforeach()
  install(TARGETS ${target} EXPORT postrider-${name})
  install(EXPORT postrider-${name} NAMESPACE postrider:: FILE postrider-${name}.cmake
          DESTINATION "${postrider_package_dir}" COMPONENT development)
  postrider_install_pkg_config(${name})
endfunction()

# The name of a component's pkg-config module.
function(postrider_pkg_config_module out component)
  if(component STREQUAL "outbox")
    set(${out} postrider PARENT_SCOPE)
  else()
    set(${out} postrider-${component} PARENT_SCOPE)
  endif()
endfunction()

function(postrider_install_pkg_config component)
  set(target postrider_component_${component})
  get_target_property(description ${target} POSTRIDER_DESCRIPTION)
  get_target_property(libraries ${target} POSTRIDER_LIBRARIES)
  get_target_property(linked ${target} POSTRIDER_LINKED)
  postrider_pkg_config_module(module ${component})

  set(requires "")
  if(NOT component STREQUAL "outbox")
    list(APPEND requires "postrider = ${PROJECT_VERSION}")
  endif()
  list(TRANSFORM libraries PREPEND "-lpostrider_" OUTPUT_VARIABLE libs)
  foreach(dependency IN LISTS linked)
    postrider_linked_library(${dependency} row)
    if(row_pkg_config MATCHES "^-.")
      list(APPEND libs ${row_pkg_config})
    elseif(NOT row_pkg_config STREQUAL "-")
      list(APPEND requires ${row_pkg_config})
    endif()
  endforeach()
  list(JOIN requires ", " requires)
  list(JOIN libs " " libs)

  # From the file's own place, so that the installed tree can be moved.
  set(prefix "\${pcfiledir}")
  file(RELATIVE_PATH up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
  set(prefix "\${pcfiledir}/${up}")
  string(REGEX REPLACE "/$" "" prefix "${prefix}")
  set(libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
  set(file "${PROJECT_BINARY_DIR}/package/${module}.pc")
  configure_file("${PROJECT_SOURCE_DIR}/packaging/postrider.pc.in" "${file}" @ONLY)
  install(FILES "${file}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
endfunction()
