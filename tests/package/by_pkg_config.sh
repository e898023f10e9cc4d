#!/bin/sh
# Builds one file with a plain compiler line and the modules of an installed Postrider, and runs it.
#
#   by_pkg_config.sh PREFIX COMPILER SOURCE PROGRAM MODULE... -- ARGUMENT...
#
# An argument -D… is for the compiler, any other for the program.
set -eu

prefix=$1 compiler=$2 source=$3 program=$4
shift 4
modules=
while [ "$1" != -- ]; do
  modules="$modules $1"
  shift
done
shift
definitions=
arguments=
for argument in "$@"; do
  case $argument in
    -D*) definitions="$definitions $argument" ;;
    *) arguments="$arguments $argument" ;;
  esac
done

PKG_CONFIG_PATH=$(find "$prefix" -type d -name pkgconfig)
export PKG_CONFIG_PATH
# Lists of words, all of them.
# shellcheck disable=SC2086
flags=$(pkg-config --print-errors --cflags --libs $modules)
# shellcheck disable=SC2086
"$compiler" -std=c++20 -Wall -Wextra -Werror $definitions "$source" $flags -o "$program"
# shellcheck disable=SC2086
"$program" $arguments
