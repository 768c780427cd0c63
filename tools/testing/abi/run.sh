#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Checks the rv ABI header and prints TAP: that it compiles alone with every
# compiler and standard at hand, that every number of rv_abi_table.h is as it must
# be (64 and 32 bits, C and C++), that the table leaves nothing of the header out,
# and that a wrong number would be noticed.
#
# usage: run.sh OUTPUT-DIRECTORY
# Environment: CC_LIST, CXX_LIST: compilers to use instead of gcc, clang, g++ and
# clang++. A compiler that is not installed is a skip.

set -u

here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$(cd "$here/../../.." && pwd) || exit 1
header=$top/include/uapi/rdma/rv_user_ioctls.h
out=${1:?usage: run.sh OUTPUT-DIRECTORY}
mkdir -p "$out" || exit 1

cc_list=${CC_LIST:-gcc clang}
cxx_list=${CXX_LIST:-g++ clang++}
flags="-Wall -Wextra -Werror -I$top/include/uapi"

n=0
pass=0
fail=0
skip=0

# result STATUS NAME [LOG]: one line of TAP; the start of a failure's log
# goes above it.
result()
{
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		pass=$((pass + 1))
		echo "ok $n $2"
	else
		fail=$((fail + 1))
		[ -z "${3:-}" ] || sed 's/^/# /; 40q' "$3"
		echo "not ok $n $2"
	fi
}

skipped()
{
	n=$((n + 1))
	skip=$((skip + 1))
	echo "ok $n $1 # SKIP $2"
}

# compiles NAME COMMAND...: the command must succeed.
compiles()
{
	name=$1
	shift
	"$@" >"$out/log" 2>&1
	result $? "$name" "$out/log"
}

# refuses NAME TEXT COMMAND...: the command must fail and say TEXT.
refuses()
{
	name=$1
	text=$2
	shift 2
	if "$@" >"$out/log" 2>&1; then
		result 1 "$name"
	else
		grep -q "$text" "$out/log"
		result $? "$name" "$out/log"
	fi
}

# Header and assertions with one compiler: $1 compiler, $2 language, $3 standard,
# $4 further flags.
one_standard()
{
	echo '#include <rdma/rv_user_ioctls.h>' >"$out/alone.$2"
	echo 'typedef int translation_unit_is_not_empty;' >>"$out/alone.$2"
	# shellcheck disable=SC2086
	compiles "header alone: $1 -std=$3 -pedantic" \
		"$1" -std="$3" -pedantic $4 $flags -c "$out/alone.$2" -o "$out/alone.o"
	# shellcheck disable=SC2086
	compiles "numbers: $1 -std=$3" \
		"$1" -x "$(language "$2")" -std="$3" $flags \
		-c "$here/rv_abi_static.c" -o "$out/static.o"
}

language()
{
	if [ "$1" = c ]; then echo c; else echo c++; fi
}

# The assertions for i386. No 32-bit C library is needed for that, only kernel
# headers, which are those of the native architecture's include directory.
thirty_two_bits()
{
	arch=$("$1" -print-multiarch 2>/dev/null) || arch=
	[ -n "$arch" ] || arch=x86_64-linux-gnu
	if ! echo 'int x;' | "$1" -m32 -x c -fsyntax-only - 2>"$out/log"; then
		skipped "numbers: $1 -m32" "this compiler has no -m32"
		return
	fi
	# shellcheck disable=SC2086
	compiles "numbers: $1 -m32" \
		"$1" -m32 -std=gnu11 $flags -idirafter "/usr/include/$arch" \
		-fsyntax-only "$here/rv_abi_static.c"
}

# Every ioctl and every structure of the header must be in the table.
nothing_left_out()
{
	table=$here/rv_abi_table.h
	: >"$out/log"
	sed -n 's/^#define RV_IOCTL_\([A-Z0-9_]*\).*/\1/p' "$header" >"$out/ioctls"
	sed -n 's/^struct \(rv_[a-z0-9_]*\) {.*/\1/p' "$header" >"$out/structs"
	while read -r name; do
		grep -q "^IOCTL($name," "$table" || echo "ioctl $name" >>"$out/log"
	done <"$out/ioctls"
	while read -r name; do
		grep -q "^STRUCT($name," "$table" || echo "struct $name" >>"$out/log"
	done <"$out/structs"
	[ -s "$out/ioctls" ] && [ -s "$out/structs" ] && [ ! -s "$out/log" ]
	result $? "the table has every ioctl and structure of the header" "$out/log"
}

echo "TAP version 13"

for cc in $cc_list; do
	if ! command -v "$cc" >/dev/null 2>&1; then
		skipped "C: $cc" "$cc is not installed"
		continue
	fi
	one_standard "$cc" c c11 ""
	one_standard "$cc" c gnu17 ""
	thirty_two_bits "$cc"
	refuses "$cc notices a wrong size" 'size of rv_query_params_out' \
		"$cc" -std=c11 "-I$top/include/uapi" -DRV_ABI_WRONG=1 \
		-fsyntax-only "$here/rv_abi_static.c"
	refuses "$cc notices a wrong offset" 'offset of rv_query_params_out.major_rev' \
		"$cc" -std=c11 "-I$top/include/uapi" -DRV_ABI_WRONG=2 \
		-fsyntax-only "$here/rv_abi_static.c"
	refuses "$cc notices a wrong ioctl number" 'ioctl CAPABILITY: value' \
		"$cc" -std=c11 "-I$top/include/uapi" -DRV_ABI_WRONG=3 \
		-fsyntax-only "$here/rv_abi_static.c"
done

for cxx in $cxx_list; do
	if ! command -v "$cxx" >/dev/null 2>&1; then
		skipped "C++: $cxx" "$cxx is not installed"
		continue
	fi
	# A flexible array is an extension in C++; clang has no way to say in the
	# source that it is meant.
	pedantic=
	case $cxx in *clang*) pedantic=-Wno-c99-extensions ;; esac
	one_standard "$cxx" cpp c++11 "$pedantic"
	one_standard "$cxx" cpp c++17 "$pedantic"
done

# Both generations of clients: $1 compiler.
clients()
{
	for family in 1 2; do
		# shellcheck disable=SC2086
		compiles "client of family $family: $1" "$1" -std=gnu11 $flags \
			"-DRV_ABI_FAMILY=$family" "$here/rv_abi_clients.c" -o "$out/client"
		compiles "client of family $family: $1, forms of ioctls" "$out/client"
	done
	# Without the macros of a family, its client must not build unnoticed.
	sed '/define RV_ABI_VER_MINOR_5/d' "$header" >"$out/rdma/rv_user_ioctls.h"
	refuses "$1 notices a missing macro" 'hides older forms' "$1" -std=gnu11 "-I$out" \
		-DRV_ABI_FAMILY=1 -fsyntax-only "$here/rv_abi_clients.c"
}

mkdir -p "$out/rdma" || exit 1
for cc in $cc_list; do
	if command -v "$cc" >/dev/null 2>&1; then
		clients "$cc"
	fi
done

nothing_left_out

# Number by number, by a program; its lines get numbers of this list.
first_cc=
for cc in $cc_list; do
	command -v "$cc" >/dev/null 2>&1 && first_cc=$cc && break
done
if [ -z "$first_cc" ]; then
	result 1 "a C compiler is installed"
else
	# shellcheck disable=SC2086
	compiles "program with the table" \
		"$first_cc" -std=gnu11 $flags "$here/rv_abi_tap.c" -o "$out/rv_abi_tap"
	"$out/rv_abi_tap" >"$out/tap"
	status=$?
	while read -r line; do
		case $line in
		"ok "*) result 0 "${line#ok * }" ;;
		"not ok "*) result 1 "${line#not ok * }" ;;
		"#"*) echo "$line" ;;
		esac
	done <"$out/tap"
	plan=$(sed -n 's/^1\.\.//p' "$out/tap")
	[ "$status" -eq 0 ] && [ "$(grep -c '^\(not \)\?ok ' "$out/tap")" = "${plan:-none}" ]
	result $? "the program came to its end without a failure"
fi

echo "1..$n"
echo "# Totals: pass:$pass fail:$fail xfail:0 xpass:0 skip:$skip error:0"
echo "$pass passed, $fail failed, $skip skipped"
[ "$fail" -eq 0 ]
