# SQL lives in .sql files and reaches C++ as constants of a header generated at build time:
# "<name>_sql.hpp" for the target postrider_<name>, namespace postrider::sql::<name>. Its content
# and the rules for the files are described in embed_sql_script.cmake.

# All generated headers; what a tool must build before it can read our sources.
if(NOT TARGET postrider_generated)
  add_custom_target(postrider_generated)
endif()

# postrider_embed_sql(<target> FILES <file>...)
#
# Gives every statement of the files as a constant.
#
#   # src/store/sqlite/CMakeLists.txt
#   postrider_embed_sql(store_sqlite FILES sql/events.sql sql/leases.sql)
#
#   #include "store_sqlite_sql.hpp"
#   connection.prepare(postrider::sql::store_sqlite::events_claim);
function(postrider_embed_sql name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_FILES)
    message(FATAL_ERROR "postrider_embed_sql(${name}): expected FILES and a list")
  endif()
  list(TRANSFORM arg_FILES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  postrider_generate_sql_header(${name} POSTRIDER_SQL_FILES ${arg_FILES})
endfunction()

# postrider_embed_migrations(<target> DIR <folder>)
#
# Gives the folder's migrations, NNN_verb_object.up.sql and .down.sql, as the table `migrations` in
# ascending order.
#
#   postrider_embed_migrations(store_sqlite DIR migrations)
function(postrider_embed_migrations name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DIR" "")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_DIR)
    message(FATAL_ERROR "postrider_embed_migrations(${name}): expected DIR and a folder")
  endif()
  # Listed and not named one by one: a migration that is on disk but not in the program would leave
  # a gap in every database it is run on.
  file(GLOB files CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${arg_DIR}/*.sql")
  if(NOT files)
    message(FATAL_ERROR "postrider_embed_migrations(${name}): no .sql file in ${arg_DIR}")
  endif()
  postrider_generate_sql_header(${name} POSTRIDER_MIGRATION_FILES ${files})
endfunction()

# Adds files to the target's generated header. Both functions above feed the same header, in either
# order, so the command reads its file lists from target properties, which are complete only when
# the whole tree has been read.
function(postrider_generate_sql_header name property)
  string(REGEX REPLACE "^postrider_" "" name "${name}")
  set(target postrider_${name})
  set_property(TARGET ${target} APPEND PROPERTY ${property} ${ARGN})
  if(TARGET ${target}_sql)
    return()
  endif()

  set(folder "${PROJECT_BINARY_DIR}/generated/${name}")
  set(header "${folder}/${name}_sql.hpp")
  set(script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed_sql_script.cmake")
  set(statements "$<TARGET_PROPERTY:${target},POSTRIDER_SQL_FILES>")
  set(migrations "$<TARGET_PROPERTY:${target},POSTRIDER_MIGRATION_FILES>")
  add_custom_command(
    OUTPUT "${header}"
    COMMAND "${CMAKE_COMMAND}" "-DNAME=${name}" "-DOUTPUT=${header}" "-DSTATEMENTS=${statements}"
            "-DMIGRATIONS=${migrations}" -P "${script}"
    DEPENDS "${script}" "${statements}" "${migrations}"
    COMMENT "Embedding the SQL of ${name}"
    VERBATIM)
  add_custom_target(${target}_sql DEPENDS "${header}")
  add_dependencies(postrider_generated ${target}_sql)
  add_dependencies(${target} ${target}_sql)
  # Public, so that the backend's tests can walk the tables.
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${folder}>")
endfunction()
