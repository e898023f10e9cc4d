# Installs the built tree into WORK_DIR/prefix, and checks that what is there can be moved.
#
#   cmake -DSOURCE_DIR=… -DBUILD_DIR=… -DWORK_DIR=… -P install.cmake

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}/empty-1" "${WORK_DIR}/empty-2")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${WORK_DIR}/first"
                COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
# Moved: whoever has an absolute path in it finds nothing from here on.
file(RENAME "${WORK_DIR}/first" "${WORK_DIR}/prefix")

file(GLOB_RECURSE texts "${WORK_DIR}/prefix/*.cmake" "${WORK_DIR}/prefix/*.pc"
     "${WORK_DIR}/prefix/*.hpp")
if(NOT texts)
  message(FATAL_ERROR "Nothing was installed.")
endif()
foreach(text IN LISTS texts)
  file(READ "${text}" content)
  foreach(place IN ITEMS "${SOURCE_DIR}" "${BUILD_DIR}" "${WORK_DIR}")
    string(FIND "${content}" "${place}" at)
    if(NOT at EQUAL -1)
      message(SEND_ERROR "${text} names ${place}, which an installed file must not know.")
    endif()
  endforeach()
endforeach()
