#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The inner half of tools/vm/enter: called as the first process of a new mount
# and PID namespace, as its root, it mounts what a command in a root needs and
# runs the command there. Nothing is unmounted at the end: the namespace goes
# away with its last process, and the mounts with it.
#
# enter-root.sh --root DIR [--writable] [--bind ro|rw SRC DST]... --chdir DIR -- CMD ARGS...
set -eu

die() {
	echo "enter: $*" >&2
	exit 126
}

# An unprivileged mount namespace may not drop flags that the file system under
# it was mounted with; name the usual ones when the plain form is refused.
make_read_only() {
	mount -o remount,bind,ro "$1" 2>/dev/null ||
		mount -o remount,bind,ro,nosuid,nodev "$1" 2>/dev/null ||
		mount -o remount,bind,ro,nosuid,nodev,noexec "$1" 2>/dev/null ||
		echo "enter: note: $1 stays writable, this host refuses a read-only bind mount" >&2
}

bind() {
	target=$root$3
	if [ -d "$2" ]; then
		mkdir -p "$target"
	elif [ ! -e "$target" ]; then
		mkdir -p "${target%/*}"
		: >"$target"
	fi
	mount --bind "$2" "$target" || die "cannot bind-mount $2"
	[ "$1" = rw ] || make_read_only "$target"
}

[ "$1" = --root ] || die "usage: see the head of $0"
root=$2
shift 2
writable=
if [ "$1" = --writable ]; then
	writable=yes
	shift
fi
[ -d "$root/usr" ] || die "$root is no root file system"

mount --bind "$root" "$root" || die "cannot bind-mount $root"
# A container may refuse a new proc because its own is partly hidden.
mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=0755 tmpfs "$root/run"

while [ "$1" = --bind ]; do
	bind "$2" "$3" "$4"
	shift 4
done
[ -n "$writable" ] || make_read_only "$root"

[ "$1" = --chdir ] && [ "$3" = -- ] || die "usage: see the head of $0"
dir=$2
shift 3

# Not exec: this shell stays the namespace's first process, which ignores
# signals; the command, being an ordinary one, dies of Ctrl-C as it should.
# shellcheck disable=SC2016
chroot "$root" /bin/sh -c 'cd "$1" 2>/dev/null || cd /; shift; exec "$@"' sh "$dir" "$@"
exit $?
