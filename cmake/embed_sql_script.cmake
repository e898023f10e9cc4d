# Writes the header that EmbedSql.cmake describes. Run by the build:
#
#   cmake -DNAME=store_sqlite -DOUTPUT=<file> -DSTATEMENTS=<files> -DMIGRATIONS=<files> -P <this>
#
# A file of statements:
#
#   Comments of the file as a whole, up to the first name.
#   -- name: events_claim
#   -- Purpose and index: for the reader, left out of the constant.
#   SELECT seq, id FROM outbox_events WHERE ...
#
# becomes
#
#   namespace postrider::sql::store_sqlite {
#   struct Statement { std::string_view name, text; };
#   struct Migration { int number; std::string_view name, up, down; };
#   inline constexpr std::string_view events_claim = R"sql(SELECT ...)sql"sv;
#   inline constexpr Statement statements[] = {{"events_claim", events_claim}};
#   inline constexpr Migration migrations[] = {{1, "create_events", R"..."sv, R"..."sv}};
#   }
#
# `statements` lets a test prepare every statement on a real schema. A table without rows is left
# out, as C++ has no empty arrays.

cmake_minimum_required(VERSION 3.25)

# SQL is full of semicolons and brackets, which CMake's lists do not survive. So text is handled
# only as whole strings, and only file names are ever in a list.

# Sets <out> to `text` as a raw string literal whose delimiter does not occur in the text.
function(raw_literal out text)
  set(delimiter sql)
  set(number 0)
  while(1)
    string(FIND "${text}" ")${delimiter}\"" collision)
    if(collision EQUAL -1)
      break()
    endif()
    math(EXPR number "${number} + 1")
    set(delimiter sql${number})
  endwhile()
  # "sv", because measuring a long text with strlen breaks the compiler's limit for loops.
  set(${out} "R\"${delimiter}(${text})${delimiter}\"sv" PARENT_SCOPE)
endfunction()

set(constants "")
set(statement_rows "")
set(known_names "")

function(add_statement file name text)
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "${file}: statement name '${name}' is not snake_case")
  endif()
  if(name IN_LIST known_names)
    message(FATAL_ERROR "${file}: a second statement is named '${name}'")
  endif()
  # The comment right after the name. One line at a time, as CMake's `^` matches anew after each
  # replacement and would eat comments in the middle of the statement as well.
  while(text MATCHES "^[ \t]*(--[^\n]*)?\n")
    string(LENGTH "${CMAKE_MATCH_0}" length)
    string(SUBSTRING "${text}" ${length} -1 text)
  endwhile()
  string(STRIP "${text}" text)
  if(text STREQUAL "")
    message(FATAL_ERROR "${file}: statement '${name}' is empty")
  endif()
  raw_literal(literal "${text}")
  set(constants "${constants}inline constexpr std::string_view ${name} = ${literal};\n\n"
      PARENT_SCOPE)
  set(statement_rows "${statement_rows}    {\"${name}\", ${name}},\n" PARENT_SCOPE)
  set(known_names "${known_names};${name}" PARENT_SCOPE)
endfunction()

set(marker "\n-- name:")
string(LENGTH "${marker}" marker_length)
foreach(file IN LISTS STATEMENTS)
  file(READ "${file}" rest)
  string(PREPEND rest "\n")
  string(FIND "${rest}" "${marker}" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "${file}: no statement; one starts with a line '-- name: <noun>_<verb>'")
  endif()
  string(SUBSTRING "${rest}" 0 ${begin} head)
  if(head MATCHES "\n[ \t]*[^- \t\n]" OR head MATCHES "\n[ \t]*-[^-]")
    message(FATAL_ERROR "${file}: SQL above the first '-- name:' line belongs to no statement")
  endif()
  while(NOT begin EQUAL -1)
    math(EXPR begin "${begin} + ${marker_length}")
    string(SUBSTRING "${rest}" ${begin} -1 rest)
    string(FIND "${rest}" "${marker}" begin)
    string(SUBSTRING "${rest}" 0 ${begin} statement)  # To the end of the file when begin is -1.
    string(APPEND statement "\n")
    string(FIND "${statement}" "\n" end_of_name)
    string(SUBSTRING "${statement}" 0 ${end_of_name} name)
    string(STRIP "${name}" name)
    string(SUBSTRING "${statement}" ${end_of_name} -1 text)
    add_statement("${file}" "${name}" "${text}")
  endwhile()
endforeach()

set(migration_rows "")
set(last_number 0)
list(SORT MIGRATIONS)  # The numbers have three digits, so the order of names is that of numbers.
foreach(file IN LISTS MIGRATIONS)
  cmake_path(GET file FILENAME file_name)
  if(NOT file_name MATCHES "^([0-9][0-9][0-9])_([a-z0-9]+_[a-z0-9_]+)\\.(up|down)\\.sql$")
    message(FATAL_ERROR "${file}: a migration is called NNN_verb_object.up.sql or .down.sql")
  endif()
  set(digits "${CMAKE_MATCH_1}")
  set(name "${CMAKE_MATCH_2}")
  set(direction "${CMAKE_MATCH_3}")
  string(REGEX REPLACE "\\.(up|down)\\.sql$" "" stem "${file}")
  if(NOT EXISTS "${stem}.up.sql" OR NOT EXISTS "${stem}.down.sql")
    message(FATAL_ERROR "${file}: its counterpart (.up.sql, .down.sql) is missing")
  endif()
  if(direction STREQUAL "down")
    continue()  # Read together with its .up.sql.
  endif()
  math(EXPR number "1${digits} - 1000")  # A number with leading zeros would be octal in C++.
  if(NOT number GREATER last_number)
    message(FATAL_ERROR "${file}: the number is used twice, or is 000")
  endif()
  set(last_number ${number})
  file(READ "${stem}.up.sql" up)
  file(READ "${stem}.down.sql" down)
  raw_literal(up_literal "${up}")
  raw_literal(down_literal "${down}")
  string(APPEND migration_rows
         "    {${number}, \"${name}\", ${up_literal}, ${down_literal}},\n")
endforeach()

set(header "// Generated from .sql files by cmake/embed_sql_script.cmake. Changes here are lost.\n")
string(APPEND header "#pragma once\n")
# g++ warns about a backslash at the end of a line even in a raw string literal.
string(APPEND header "#pragma GCC system_header\n\n#include <string_view>\n\n")
string(APPEND header "namespace postrider::sql::${NAME} {\n\n")
string(APPEND header "using std::string_view_literals::operator\"\"sv;\n\n")
string(APPEND header "struct Statement {\n  std::string_view name, text;\n};\n\n")
string(APPEND header
       "struct Migration {\n  int number;\n  std::string_view name, up, down;\n};\n\n")
string(APPEND header "${constants}")
if(NOT statement_rows STREQUAL "")
  string(APPEND header "inline constexpr Statement statements[] = {\n${statement_rows}};\n\n")
endif()
if(NOT migration_rows STREQUAL "")
  string(APPEND header "inline constexpr Migration migrations[] = {\n${migration_rows}};\n\n")
endif()
string(APPEND header "}  // namespace postrider::sql::${NAME}\n")
file(WRITE "${OUTPUT}" "${header}")
