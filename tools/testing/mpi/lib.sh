# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced by the tests of MPI, which run in two VMs at the same time (see tools/check/vm-tests):
# vm1 starts the jobs, does the rest by ssh, and prints TAP; vm2 only serves.
#
# Variables: MPI_PREFIX is where libfabric with PSM3 is, MPI_PROGRAM the program, MPI_OPTIONS more
# options of mpirun, MPI_LIMIT the seconds that a job may take.

PROGRAM=${MPI_PROGRAM:-$REPO/build/tests/mpi/mpi-exchange}
PREFIX=${MPI_PREFIX:-/opt/psm3}
WITNESSES=$REPO/tools/testing/mpi/witnesses
# In the run directory, so that one can look on.
JOBS=$VM_RESULTS/jobs
LIMIT=${MPI_LIMIT:-600}
# Seconds for what must happen soon, on a machine that may be very slow.
PATIENCE=120
number=0
bad=0

ulimit -l unlimited

# ---- the two hosts -----------------------------------------------------------

# serve: what vm2 does. Keys are made for this run only; the other VM is told by the runner.
serve() {
	mkdir -p /run/sshd /root/.ssh
	ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/host_key
	cat >/root/.ssh/sshd_config <<-END
		ListenAddress $VM_IP
		HostKey /root/.ssh/host_key
		AuthorizedKeysFile /root/.ssh/allowed
		PermitRootLogin prohibit-password
		StrictModes no
		UsePAM no
		MaxStartups 100
		LogLevel ERROR
	END
	vm-put mpi.host-key "$(cut -d ' ' -f 1,2 /root/.ssh/host_key.pub)"
	vm-get mpi.user-key >/root/.ssh/allowed
	/usr/sbin/sshd -f /root/.ssh/sshd_config || exit 1
	vm-put mpi.sshd ready
	vm-get mpi.end >/dev/null
	exit
}

# meet: what vm1 does before the first test.
meet() {
	mkdir -p /root/.ssh
	ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
	vm-put mpi.user-key "$(cat /root/.ssh/id_ed25519.pub)"
	echo "vm2,$VM_PEER_IP $(vm-get mpi.host-key)" >/root/.ssh/known_hosts
	printf 'AddressFamily inet\nBatchMode yes\nConnectTimeout 60\n' >/root/.ssh/config
	vm-get mpi.sshd >/dev/null
	# One connection for all commands but mpirun's own. It must not hold our output open.
	ssh -o ControlMaster=yes -o ControlPath=/root/.ssh/to-vm2 -o ControlPersist=yes \
		vm2 true </dev/null >/dev/null 2>&1
}

# there COMMAND: a line for the shell of vm2.
there() {
	ssh -o ControlPath=/root/.ssh/to-vm2 vm2 "cd '$REPO' && { $1
	}" </dev/null
}

# everywhere COMMAND: a line for the shells of both.
everywhere() {
	bash -c "$1" && there "$1"
}

load_rv() {
	# The runner's variables are not in the environment that sshd gives.
	everywhere "REPO='$REPO' VM_MODULES='${VM_MODULES-}' PATH=$PATH vm-load rv"
}

# The modules can go as soon as nobody uses them: no job has left anything behind.
unload_rv() {
	everywhere "rmmod rv && rmmod rdma_rs"
}

# ---- tests -------------------------------------------------------------------

# check NAME FUNCTION...: one test; what it printed is shown when it fails, of one that passes only
# what the witnesses said.
check() {
	waited=0
	number=$((number + 1))
	vm-mark "$1"
	local start=$SECONDS
	if out=$("${@:2}" 2>&1); then
		echo "ok $number $1"
		echo "# $((SECONDS - start)) s"
		grep '^# [0-9]' <<<"$out"
		return
	fi
	bad=1
	echo "not ok $number $1"
	echo "# $((SECONDS - start)) s"
	echo "$out" | tail -n 40 | sed 's/^/# /'
}

# finish: print the plan, let vm2 end; the exit code of the script.
finish() {
	vm-put mpi.end yes
	echo "1..$number"
	exit $bad
}

# ---- jobs --------------------------------------------------------------------

# job NAME [VARIABLE=VALUE...] -- [OPTION...]: run the program with 2 ranks on each host, to its end.
# What it prints is in $JOBS/NAME/out, PSM3's statistics of both hosts in $JOBS/NAME.
job() {
	local name=$1 exports=()
	shift
	while [ "$1" != -- ]; do
		exports+=(-x "$1")
		shift
	done
	shift
	everywhere "rm -rf $JOBS/$name && mkdir -p $JOBS/$name" || return
	export FI_PSM3_UUID
	FI_PSM3_UUID=$(tee "$JOBS/$name/uuid" </proc/sys/kernel/random/uuid)
	# shellcheck disable=SC2086
	timeout -k 20 "$LIMIT" mpirun --allow-run-as-root -H vm1:2,vm2:2 -n 4 --bind-to none \
		--prtemca oob_tcp_if_include eth0 \
		--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include psm3 \
		--mca mpi_yield_when_idle 1 ${MPI_OPTIONS-} \
		-x LD_LIBRARY_PATH="$PREFIX/lib" \
		-x FI_PROVIDER=psm3 -x FI_LOG_LEVEL=warn -x FI_PSM3_UUID \
		-x PSM3_HAL=verbs -x PSM3_NIC=rxe0 -x PSM3_NIC_SPEED=any \
		-x PSM3_DEVICES=self,shm,nic -x PSM3_IDENTIFY=1 \
		-x PSM3_PRINT_STATS=-1 -x PSM3_PRINT_STATS_PREFIX="$JOBS/$name/" \
		"${exports[@]}" "$PROGRAM" "$@" >"$JOBS/$name/out" 2>"$JOBS/$name/err"
	local code=$?
	there "cd $JOBS/$name && tar c ." | tar x -C "$JOBS/$name"
	return $code
}

# said NAME: the end of what a job printed, for a test that failed.
said() {
	tail -n 15 "$JOBS/$1/out" "$JOBS/$1/err" | tr -d '\0'
}

# data_right NAME CODE: whether a job ended well and every byte was right.
data_right() {
	[ "$2" = 0 ] && ! grep -q '^not ok' "$JOBS/$1/out" && grep -q '^ok' "$JOBS/$1/out" && return
	echo "job $1 ended with code $2"
	said "$1"
	return 1
}

# passes MODE NAME ...: a job whose data are right, and went the way that MODE says (see witnesses).
passes() {
	job "${@:2}"
	data_right "$2" $? && "$WITNESSES" "$1" "$JOBS/$2"
}

# ---- jobs that run while something happens --------------------------------------

declare -A pid_of

# begin NAME ...: start a job that runs until it is told to stop; returns when large data flow.
begin() {
	job "$@" --until "$JOBS/$1/stop" &
	pid_of[$1]=$!
	goes_on "$1"
}

# goes_on NAME: whether a job gets through two more rounds from here.
goes_on() {
	local rounds
	rounds=$(rounds_of "$1")
	until [ "$(rounds_of "$1")" -ge $((rounds + 2)) ]; do
		patient "$1" || return
	done
}

# rounds_of NAME: how many rounds a job has completed.
rounds_of() {
	cat "$JOBS/$1/out" 2>/dev/null | grep -c '^# round [0-9]*, halo' || true
}

# patient NAME: wait a moment for a job that runs; fails when it does not, or for too long.
patient() {
	if ! kill -0 "${pid_of[$1]}" 2>/dev/null; then
		echo "job $1 has ended"
		said "$1"
		return 1
	fi
	if [ $((waited += 1)) -gt $((PATIENCE * 5)) ]; then
		echo "job $1 gets no further"
		said "$1"
		return 1
	fi
	sleep 0.2
}

# stop NAME: let a job end after its round; its exit code.
stop() {
	touch "$JOBS/$1/stop"
	wait "${pid_of[$1]}"
}

# dies NAME: a job must end by itself, with an error, in bounded time, and leave no process.
dies() {
	local waited=0
	while kill -0 "${pid_of[$1]}" 2>/dev/null; do
		patient "$1" || return
	done
	wait "${pid_of[$1]}"
	local code=$?
	echo "job $1 ended with code $code"
	said "$1"
	[ $code != 0 ] && [ $code != 124 ] || return
	everywhere "! pgrep -l mpi-exchange"
}

# complains NAME TEXT: a job must say why it ended.
complains() {
	grep -qa -e "$2" "$JOBS/$1/out" "$JOBS/$1/err" && return
	echo "job $1 did not say: $2"
	return 1
}

# counts NAME COUNTER VALUE: what PSM3 says about rv in all ranks' statistics.
counts() {
	local files
	files=$(grep -lE "^    $2 $3 " "$JOBS/$1"/psm3-perf-stat-* | wc -l)
	echo "$2 is $3 in $files files of 4"
	[ "$files" = 4 ]
}

# ---- the wire ----------------------------------------------------------------

# cut_wire: packets of RoCE that arrive at vm1 are dropped, its own go out. What else is on the wire
# goes through, mpirun's and ours among it. Only what arrives is cut: a packet that cannot be sent
# kills the queue pair of a software device, PSM3's own among them, and so does a new qdisc. So
# call wire_can_be_cut before the job.
wire_can_be_cut() {
	tc qdisc replace dev eth0 clsact
}

cut_wire() {
	tc filter add dev eth0 ingress prio 1 protocol ip flower ip_proto udp dst_port 4791 action drop
}

mend_wire() {
	tc filter del dev eth0 ingress prio 1
}
