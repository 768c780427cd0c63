/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * The user interface of the rendezvous module (/dev/rv), ABI 1.6.
 *
 * Applications: include this file as <rdma/rv_user_ioctls.h>. It needs nothing
 * but the kernel's own user headers, in C (C99 with anonymous unions, or later)
 * and in C++.
 *
 * Rules that hold for the whole file
 *
 * - x86-64, little endian. Every 64-bit field is aligned to 8 bytes on every
 *   architecture, so that only the three forms of REG_MEM, which contain a
 *   size_t and a pointer, differ between 64-bit and 32-bit callers.
 * - An ioctl that takes and gives data has a union of "in" and "out" at offset
 *   0: the output overwrites the beginning of the input.
 * - An ioctl number contains the size of its structure. A structure that grew
 *   therefore got a new number; the old form stays beside it under a name with
 *   the last revision that had it: _R1 is ABI 1.1, _R4 is 1.4, and so on.
 * - Members named hole<n> fill gaps that the compiler would otherwise leave. The
 *   ABI grew with such gaps, and its numbers fix them; naming them makes every
 *   byte that crosses the border visible. Their content is ignored on input,
 *   so that programs which never knew them go on working, and it is 0 on
 *   output.
 * - Members named pad<n>, resv<n> and fill are reserved. Write 0, ignore what
 *   comes back.
 * - An ioctl that this file does not list fails with EINVAL, not with ENOTTY.
 *
 * GPU variants
 *
 * Builds of the interface for GPU memory use the same numbers and sizes. They
 * give meaning to members that are reserved here; this file says so at each of
 * them. They also have ioctls of their own, which fail with EINVAL here:
 *
 *   0xef  GPU_GET_CACHE_STATS  0x81b01bef, 432 bytes out
 *   0xf5  GPU_PIN_MMAP         0xc0201bf5, 32 bytes in, 16 bytes out
 *   0xf5  GPU_PIN_MMAP_R0      0xc0181bf5, 24 bytes in, 16 bytes out
 *   0xee  GPU_MUNMAP_UNPIN     0x40181bee, 24 bytes in, in two old releases
 *
 * The names that tell an application that it is built for GPUs (RV_CAP_GPU_*
 * and RV_GPU_ABI_*) are left out on purpose: libraries test for them with
 * #ifdef.
 */
#ifndef RV_USER_IOCTLS_H
#define RV_USER_IOCTLS_H

#include <linux/types.h>
#include <linux/ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

/* The device node. */
#define RV_FILE_NAME "/dev/rv"

/* The revision that this file describes. */
#define RV_ABI_VER_MAJOR 1
#define RV_ABI_VER_MINOR 6

/* Older revisions, for programs that choose between the forms of an ioctl. */
#define RV_ABI_VER_MAJOR_1 1
#define RV_ABI_VER_MINOR_1 1
#define RV_ABI_VER_MINOR_2 2
#define RV_ABI_VER_MINOR_3 3
#define RV_ABI_VER_MINOR_4 4
#define RV_ABI_VER_MINOR_5 5

/* One number per revision, in the order of the revisions; usable in #if. */
#define RV_ABI_VERSION(major, minor) (((major) << 16) | (minor))
#define RV_ABI_VERSION_CURRENT \
	RV_ABI_VERSION(RV_ABI_VER_MAJOR, RV_ABI_VER_MINOR)

/* Limits of ATTACH. */
#define RV_MAX_DEV_NAME_LEN 64	/* bytes, with the terminating NUL */
#define RV_MAX_NUM_CONN 16	/* queue pairs for each pair of nodes */
#define RV_MAX_INDEX_BITS 12	/* so at most 4096 processes of a job per port */
#define RV_MAX_JOB_KEY_LEN 16	/* bytes */
#define RV_MAX_CQ_ENTRIES 10000	/* entries of an event ring */

/*
 * Capability bits of CAPABILITY. Bits 61 to 63 belong to GPU builds (Intel GPU,
 * NVIDIA GPU, GPU direct): accepted from an application, never answered here.
 */
#define RV_CAP_USER_MR (1ULL << 0)	/* registration on the application's own PD */
#define RV_CAP_EVICT (1ULL << 1)	/* EVICT is there */

/* Modes and flags of rv_attach_params_in.rdma_mode. */
#define RV_RDMA_MODE_USER 0		/* cache for the application's own PD only */
#define RV_RDMA_MODE_KERNEL 1		/* and kernel PD, connections, event ring */
#define RV_RDMA_MODE_MASK 0x1f		/* the bits of the mode; the rest are flags */
#define RV_RDMA_MODE_UPSIZE_CPU 0x20	/* default of the cache size is the larger one */

/*
 * Access bit of REG_MEM and POST beside those of enum ib_uverbs_access_flags in
 * <rdma/ib_user_ioctl_verbs.h>, which are also those of libibverbs: make the MR on
 * the PD of the module. GPU builds also have 0x10000000, an address in GPU memory,
 * which is refused here.
 */
#define IBV_ACCESS_KERNEL 0x80000000

/* What rv_evict_params_in.type selects. GPU builds also have 65 and 66. */
#define RV_EVICT_TYPE_SEARCH_EXACT 1	/* the first idle entry that covers a range */
#define RV_EVICT_TYPE_SEARCH_RANGE 2	/* all idle entries that touch a range */
#define RV_EVICT_TYPE_AMOUNT 3		/* idle entries, least recently used first */

/* The index that stands for all connections of CONN_GET_STATS. */
#define RV_CONN_STAT_AGGREGATE 255

/* Flags of rv_conn_get_stats_params_out. */
#define RV_CONN_STAT_FLAG_SERVER 0x01		/* this side listens */
#define RV_CONN_STAT_FLAG_CLIENT 0x02		/* this side connects */
#define RV_CONN_STAT_FLAG_WAS_CONNECTED 0x04	/* was up at least once */

/* Types of events in the ring. */
#define RV_WC_RDMA_WRITE 0		/* a write that this file posted has ended */
#define RV_WC_RECV_RDMA_WITH_IMM 1	/* a write for this file has arrived */

/**
 * struct rv_query_params_out - the answer of QUERY_R2
 * @major_rev: major number of the module's ABI.
 * @minor_rev: minor number of the module's ABI.
 * @pad: 0. In GPU builds two 16-bit numbers, the revision of the GPU ABI.
 * @capability: RV_CAP_* bits that the module offers.
 * @resv2: 0.
 */
struct rv_query_params_out {
	__u16 major_rev;
	__u16 minor_rev;
	__u32 pad;
	__aligned_u64 capability;
	__aligned_u64 resv2[6];
};

/**
 * struct rv_capability_params - the data of CAPABILITY, in and out
 * @major_rev: in: the major number that the application was built with; out:
 *	that of the module. The application must accept a larger revision than its
 *	own, the module does the same.
 * @minor_rev: the minor number, likewise.
 * @pad: comes back as it was given. In GPU builds two 16-bit numbers, the
 *	revision of the GPU ABI: what comes back is an answer only if the GPU bits
 *	of @capability are set.
 * @capability: in: RV_CAP_* bits that the application wants to use, for
 *	information; out: those that the module offers.
 * @resv2: comes back as it was given.
 */
struct rv_capability_params {
	__u16 major_rev;
	__u16 minor_rev;
	__u32 pad;
	__aligned_u64 capability;
	__aligned_u64 resv2[6];
};

/**
 * struct rv_attach_params_in - what ATTACH takes
 * @dev_name: name of the RDMA device, with a terminating NUL.
 * @mr_cache_size: limit of the MR cache of this file in MiB, 0 for the default
 *	of the module.
 * @rdma_mode: RV_RDMA_MODE_USER or RV_RDMA_MODE_KERNEL, with
 *	RV_RDMA_MODE_UPSIZE_CPU if wanted. All members below but @context,
 *	@reconnect_timeout and @hb_interval are for RV_RDMA_MODE_KERNEL alone.
 * @port_num: port of the device, from 1 on.
 * @num_conn: queue pairs for each pair of nodes, at most RV_MAX_NUM_CONN, 0 for
 *	the default of the module.
 * @hole0: gap.
 * @loc_addr: own address as a number in host order: the LID, or the IPv4
 *	address. Only compared with rv_conn_create_params_in.rem_addr.
 * @index_bits: how many of the highest bits of the immediate data are the
 *	rv_index of the process a write is for, at most RV_MAX_INDEX_BITS. The same
 *	on all nodes of a job.
 * @hole1: gap.
 * @loc_gid_index: index of @loc_gid in the GID table of the port.
 * @loc_gid: own GID in network order.
 * @job_key: key of the job. Processes with equal keys, user and port share
 *	connections.
 * @job_key_len: bytes of @job_key that count, at most RV_MAX_JOB_KEY_LEN.
 * @hole2: gap.
 * @pad: 0. In GPU builds the limit of the cache for GPU memory in MiB; ignored
 *	here.
 * @service_id: service id for the IB CM, 0 for the default of the module. The
 *	same on all nodes of a job.
 * @context: not used.
 * @cq_entries: entries of the event ring, at most RV_MAX_CQ_ENTRIES, 0 for none.
 *	The ring holds one event less than it has entries.
 * @q_depth: writes that may be under way at a time between a pair of nodes, 0
 *	for the default of the module.
 * @reconnect_timeout: how many seconds a broken connection may take to come
 *	back, 0 to give up at once.
 * @hb_interval: milliseconds without traffic after which an idle connection is
 *	probed, 0 for never.
 * @fr_page_list_len: pages for each MR kept ready for fast registration, 0 for
 *	the default of the module. New in ABI 1.6.
 * @hole3: gap at the end.
 */
struct rv_attach_params_in {
	char dev_name[RV_MAX_DEV_NAME_LEN];
	__u32 mr_cache_size;
	__u8 rdma_mode;
	__u8 port_num;
	__u8 num_conn;
	__u8 hole0;
	__u32 loc_addr;
	__u8 index_bits;
	__u8 hole1;
	__u16 loc_gid_index;
	__u8 loc_gid[16];
	__u8 job_key[RV_MAX_JOB_KEY_LEN];
	__u8 job_key_len;
	__u8 hole2[3];
	__u32 pad;
	__aligned_u64 service_id;
	__aligned_u64 context;
	__u32 cq_entries;
	__u32 q_depth;
	__u32 reconnect_timeout;
	__u32 hb_interval;
	__u32 fr_page_list_len;
	__u32 hole3;
};

/**
 * struct rv_attach_params_in_r5 - what ATTACH took in ABI 1.0 to 1.5
 * @dev_name: as in struct rv_attach_params_in, like all that follows.
 * @mr_cache_size: limit of the MR cache in MiB.
 * @rdma_mode: mode and flags.
 * @port_num: port of the device.
 * @num_conn: queue pairs for each pair of nodes.
 * @hole0: gap.
 * @loc_addr: own address.
 * @index_bits: bits of the immediate data that are an rv_index.
 * @hole1: gap.
 * @loc_gid_index: index of the own GID.
 * @loc_gid: own GID.
 * @job_key: key of the job.
 * @job_key_len: its length.
 * @hole2: gap.
 * @pad: reserved.
 * @service_id: service id for the IB CM.
 * @context: not used.
 * @cq_entries: entries of the event ring.
 * @q_depth: writes under way between a pair of nodes.
 * @reconnect_timeout: seconds for recovery.
 * @hb_interval: milliseconds between probes of an idle connection.
 */
struct rv_attach_params_in_r5 {
	char dev_name[RV_MAX_DEV_NAME_LEN];
	__u32 mr_cache_size;
	__u8 rdma_mode;
	__u8 port_num;
	__u8 num_conn;
	__u8 hole0;
	__u32 loc_addr;
	__u8 index_bits;
	__u8 hole1;
	__u16 loc_gid_index;
	__u8 loc_gid[16];
	__u8 job_key[RV_MAX_JOB_KEY_LEN];
	__u8 job_key_len;
	__u8 hole2[3];
	__u32 pad;
	__aligned_u64 service_id;
	__aligned_u64 context;
	__u32 cq_entries;
	__u32 q_depth;
	__u32 reconnect_timeout;
	__u32 hb_interval;
};

/**
 * struct rv_attach_params_out - what ATTACH gives
 * @rv_index: number of this file among those of the job on this port, for the
 *	highest bits of the immediate data of writes to it. 65535 in
 *	RV_RDMA_MODE_USER.
 * @mr_cache_size: limit of the MR cache in force, in MiB.
 * @q_depth: queue depth in force, 0 in RV_RDMA_MODE_USER.
 * @reconnect_timeout: seconds in force: 0 if a broken connection stays broken.
 * @max_fmr_size: most bytes that one registration on the kernel PD may have, 0 if
 *	the device has no limit. New in ABI 1.4: for an application that claims 1.3
 *	or less it is 0.
 *
 * GPU builds answer with another layout if a GPU flag was set in rdma_mode.
 */
struct rv_attach_params_out {
	__u32 rv_index;
	__u32 mr_cache_size;
	__u32 q_depth;
	__u32 reconnect_timeout;
	__aligned_u64 max_fmr_size;
};

/**
 * struct rv_attach_params - the data of ATTACH
 * @in: what the application gives.
 * @out: what the module answers.
 */
struct rv_attach_params {
	union {
		struct rv_attach_params_in in;
		struct rv_attach_params_out out;
	};
};

/**
 * struct rv_attach_params_r5 - the data of ATTACH_R5
 * @in: what the application gives.
 * @out: what the module answers: 24 bytes as in ATTACH.
 */
struct rv_attach_params_r5 {
	union {
		struct rv_attach_params_in_r5 in;
		struct rv_attach_params_out out;
	};
};

/**
 * struct rv_mem_params_in - what REG_MEM takes
 * @ibv_pd_handle: handle of the application's PD. Not used with
 *	IBV_ACCESS_KERNEL.
 * @cmd_fd_int: the application's uverbs file, which @ibv_pd_handle belongs to.
 *	Not used with IBV_ACCESS_KERNEL.
 * @addr: address of the memory, with any alignment.
 * @length: its length in bytes.
 * @access: IB_UVERBS_ACCESS_* bits, and IBV_ACCESS_KERNEL.
 * @pad: 0. In GPU builds a handle of the GPU driver.
 * @ulen: length of @udata.
 * @udata: data for the RDMA driver, passed on as they are for the
 *	application's PD. Not used with IBV_ACCESS_KERNEL.
 * @pad2: 0. In GPU builds the id of an allocation. New in ABI 1.2.
 * @pad3: 0. In GPU builds the start of an allocation. New in ABI 1.5.
 */
struct rv_mem_params_in {
	__u32 ibv_pd_handle;
	__u32 cmd_fd_int;
	__aligned_u64 addr;
	__aligned_u64 length;
	__u32 access;
	__u32 pad;
	__kernel_size_t ulen;
	void *udata;
	__aligned_u64 pad2;
	__aligned_u64 pad3;
};

/**
 * struct rv_mem_params_in_r4 - what REG_MEM took in ABI 1.2 to 1.4
 * @ibv_pd_handle: as in struct rv_mem_params_in, like all that follows.
 * @cmd_fd_int: uverbs file of the PD.
 * @addr: address of the memory.
 * @length: its length.
 * @access: access bits.
 * @pad: reserved.
 * @ulen: length of @udata.
 * @udata: data for the RDMA driver.
 * @pad2: reserved.
 */
struct rv_mem_params_in_r4 {
	__u32 ibv_pd_handle;
	__u32 cmd_fd_int;
	__aligned_u64 addr;
	__aligned_u64 length;
	__u32 access;
	__u32 pad;
	__kernel_size_t ulen;
	void *udata;
	__aligned_u64 pad2;
};

/**
 * struct rv_mem_params_in_r1 - what REG_MEM took in ABI 1.0 and 1.1
 * @ibv_pd_handle: as in struct rv_mem_params_in, like all that follows.
 * @cmd_fd_int: uverbs file of the PD.
 * @addr: address of the memory.
 * @length: its length.
 * @access: access bits.
 * @pad: reserved.
 * @ulen: length of @udata.
 * @udata: data for the RDMA driver.
 */
struct rv_mem_params_in_r1 {
	__u32 ibv_pd_handle;
	__u32 cmd_fd_int;
	__aligned_u64 addr;
	__aligned_u64 length;
	__u32 access;
	__u32 pad;
	__kernel_size_t ulen;
	void *udata;
};

/**
 * struct rv_mem_params_out - what REG_MEM gives
 * @mr_handle: names the registration in DEREG_MEM. Never 0.
 * @iova: the address that belongs to rv_mem_params_in.addr in the address space
 *	of @lkey and @rkey. With IBV_ACCESS_KERNEL it is not the virtual address,
 *	and a peer must use it as the remote address. Never 0.
 * @lkey: key for local use.
 * @rkey: key for the peer.
 */
struct rv_mem_params_out {
	__aligned_u64 mr_handle;
	__aligned_u64 iova;
	__u32 lkey;
	__u32 rkey;
};

/**
 * struct rv_mem_params - the data of REG_MEM
 * @in: what the application gives.
 * @out: what the module answers.
 */
struct rv_mem_params {
	union {
		struct rv_mem_params_in in;
		struct rv_mem_params_out out;
	};
};

/**
 * struct rv_mem_params_r4 - the data of REG_MEM_R4
 * @in: what the application gives.
 * @out: what the module answers.
 */
struct rv_mem_params_r4 {
	union {
		struct rv_mem_params_in_r4 in;
		struct rv_mem_params_out out;
	};
};

/**
 * struct rv_mem_params_r1 - the data of REG_MEM_R1
 * @in: what the application gives.
 * @out: what the module answers.
 */
struct rv_mem_params_r1 {
	union {
		struct rv_mem_params_in_r1 in;
		struct rv_mem_params_out out;
	};
};

/**
 * struct rv_dereg_params_in - what DEREG_MEM takes
 * @mr_handle: rv_mem_params_out.mr_handle of the registration.
 * @addr: address as it was registered; any part of the registration will do.
 * @length: length as it was registered.
 * @access: access bits as they were registered.
 * @hole0: gap at the end.
 */
struct rv_dereg_params_in {
	__aligned_u64 mr_handle;
	__aligned_u64 addr;
	__aligned_u64 length;
	__u32 access;
	__u32 hole0;
};

/**
 * struct rv_evict_search - a range for EVICT
 * @addr: address of the range.
 * @length: its length in bytes.
 * @access: access bits that an entry must have. Only for
 *	RV_EVICT_TYPE_SEARCH_EXACT.
 * @hole0: gap at the end.
 */
struct rv_evict_search {
	__aligned_u64 addr;
	__aligned_u64 length;
	__u32 access;
	__u32 hole0;
};

/**
 * struct rv_evict_amount - an amount for EVICT
 * @bytes: remove at least this many bytes ...
 * @count: ... and at least this many entries. One entry if both are 0.
 * @hole0: gap at the end.
 */
struct rv_evict_amount {
	__aligned_u64 bytes;
	__u32 count;
	__u32 hole0;
};

/**
 * struct rv_evict_params_in - what EVICT takes
 * @type: one of RV_EVICT_TYPE_*; it says which of the two below counts.
 * @pad: 0.
 * @search: a range of addresses.
 * @amount: a number of bytes and entries.
 */
struct rv_evict_params_in {
	__u8 type;
	__u8 pad[7];
	union {
		struct rv_evict_search search;
		struct rv_evict_amount amount;
	};
};

/**
 * struct rv_evict_params_out - what EVICT gives
 * @bytes: bytes removed. For RV_EVICT_TYPE_SEARCH_EXACT the length that was
 *	asked for, not that of the entry.
 * @count: entries removed.
 * @hole0: gap at the end, 0.
 */
struct rv_evict_params_out {
	__aligned_u64 bytes;
	__u32 count;
	__u32 hole0;
};

/**
 * struct rv_evict_params - the data of EVICT
 * @in: what the application gives.
 * @out: what the module answers.
 */
struct rv_evict_params {
	union {
		struct rv_evict_params_in in;
		struct rv_evict_params_out out;
	};
};

/**
 * struct rv_cache_stats_params_out - what GET_CACHE_STATS gives
 * @cache_size: bytes in the cache now.
 * @max_cache_size: most bytes that were in it.
 * @limit_cache_size: limit in MiB.
 * @count: entries now.
 * @max_count: most entries that there were.
 * @inuse: entries with a reference now.
 * @max_inuse: most entries with a reference that there were.
 * @hole0: gap, 0.
 * @inuse_bytes: bytes of the entries with a reference now.
 * @max_inuse_bytes: the most that was.
 * @max_refcount: most references that one entry had.
 * @hole1: gap, 0.
 * @hit: registrations answered from the cache.
 * @miss: registrations that made a new entry.
 * @full: registrations that failed since the limit was reached.
 * @failed: registrations that failed for memory, or in the device.
 * @remove: entries that went since their memory was unmapped, or at close.
 * @evict: entries that went for the limit, by EVICT, or at their last release
 *	after their memory had been unmapped.
 *
 * All 0 if the file is not attached.
 */
struct rv_cache_stats_params_out {
	__aligned_u64 cache_size;
	__aligned_u64 max_cache_size;
	__u32 limit_cache_size;
	__u32 count;
	__u32 max_count;
	__u32 inuse;
	__u32 max_inuse;
	__u32 hole0;
	__aligned_u64 inuse_bytes;
	__aligned_u64 max_inuse_bytes;
	__u32 max_refcount;
	__u32 hole1;
	__aligned_u64 hit;
	__aligned_u64 miss;
	__aligned_u64 full;
	__aligned_u64 failed;
	__aligned_u64 remove;
	__aligned_u64 evict;
};

/**
 * struct rv_conn_create_params_in - what CONN_CREATE takes
 * @ah: address of the remote node, the same bytes as struct ibv_ah_attr of
 *	libibverbs.
 * @rem_addr: address of the remote node as a number, in the way of
 *	rv_attach_params_in.loc_addr. Without a GRH the node with the lower number
 *	listens; with one, the node with the lower GID.
 * @hole0: gap.
 * @context: not used.
 */
struct rv_conn_create_params_in {
	struct ib_uverbs_ah_attr ah;
	__u32 rem_addr;
	__u32 hole0;
	__aligned_u64 context;
};

/**
 * struct rv_conn_create_params_out - what CONN_CREATE gives
 * @handle: names the connection in the ioctls of this file. Never 0.
 * @conn_handle: names the connection in the events of all files that share it.
 */
struct rv_conn_create_params_out {
	__aligned_u64 handle;
	__aligned_u64 conn_handle;
};

/**
 * struct rv_conn_create_params - the data of CONN_CREATE
 * @in: what the application gives.
 * @out: what the module answers.
 */
struct rv_conn_create_params {
	union {
		struct rv_conn_create_params_in in;
		struct rv_conn_create_params_out out;
	};
};

/**
 * struct rv_conn_connect_params_in - what CONN_CONNECT takes
 * @handle: rv_conn_create_params_out.handle. If the path does not fit it, the
 *	handle is gone.
 * @path: the path to the remote node.
 */
struct rv_conn_connect_params_in {
	__aligned_u64 handle;
	struct ib_user_path_rec path;
};

/**
 * struct rv_conn_connected_params_in - what CONN_CONNECTED takes
 * @handle: rv_conn_create_params_out.handle.
 *
 * The answer is the value of the ioctl: 1 if the connection is up, 0 if it is
 * not yet. EIO says that it will not come up.
 */
struct rv_conn_connected_params_in {
	__aligned_u64 handle;
};

/**
 * struct rv_conn_get_conn_count_params_in - what CONN_GET_CONN_COUNT takes
 * @handle: rv_conn_create_params_out.handle.
 * @index: which of the queue pairs, see rv_post_write_params_out.sconn_index.
 * @hole0: gap at the end.
 */
struct rv_conn_get_conn_count_params_in {
	__aligned_u64 handle;
	__u8 index;
	__u8 hole0[7];
};

/**
 * struct rv_conn_get_conn_count_params_out - what CONN_GET_CONN_COUNT gives
 * @count: how often the queue pair was connected. When it is higher than the
 *	rv_post_write_params_out.conn_count of a write, everything that write
 *	causes is in the rings.
 */
struct rv_conn_get_conn_count_params_out {
	__u32 count;
};

/**
 * struct rv_conn_get_conn_count_params - the data of CONN_GET_CONN_COUNT
 * @in: what the application gives.
 * @out: what the module answers.
 */
struct rv_conn_get_conn_count_params {
	union {
		struct rv_conn_get_conn_count_params_in in;
		struct rv_conn_get_conn_count_params_out out;
	};
};

/**
 * struct rv_conn_get_stats_params_in - what CONN_GET_STATS takes
 * @handle: rv_conn_create_params_out.handle, or 0 for all connections of this
 *	file.
 * @index: which of the queue pairs, or RV_CONN_STAT_AGGREGATE for all of them.
 * @hole0: gap.
 */
struct rv_conn_get_stats_params_in {
	__aligned_u64 handle;
	__u8 index;
	__u8 hole0[7];
};

/**
 * struct rv_conn_get_stats_params_out - what CONN_GET_STATS gives
 * @index: the queue pair, or RV_CONN_STAT_AGGREGATE.
 * @flags: RV_CONN_STAT_FLAG_* bits.
 * @hole0: gap, 0.
 * @num_conn: queue pairs in the sums.
 * @req_error: CM: no answer to our REQ.
 * @req_recv: CM: REQ received.
 * @rep_error: CM: no answer to our REP.
 * @rep_recv: CM: REP received.
 * @rtu_recv: CM: RTU received.
 * @established: CM: known to be up by the first packet, before the RTU.
 * @dreq_error: CM: no answer to our DREQ.
 * @dreq_recv: CM: DREQ received.
 * @drep_recv: CM: DREP received.
 * @timewait: CM: end of the time-wait state.
 * @mra_recv: CM: MRA received.
 * @rej_recv: CM: REJ received.
 * @lap_error: CM: no answer to a LAP.
 * @lap_recv: CM: LAP received.
 * @apr_recv: CM: APR received.
 * @unexp_event: CM: other events.
 * @req_sent: CM: REQ sent.
 * @rep_sent: CM: REP sent.
 * @rtu_sent: CM: RTU sent.
 * @rej_sent: CM: REJ sent.
 * @dreq_sent: CM: DREQ sent.
 * @drep_sent: CM: DREP sent.
 * @wait_time: microseconds until the first REQ came in.
 * @resolve_time: microseconds of the first address resolution.
 * @connect_time: microseconds from the first REQ to being up.
 * @connected_time: microseconds of being up.
 * @resolve: address resolutions for the first connection.
 * @resolve_fail: those that failed.
 * @conn_recovery: how often the connection came back.
 * @hole1: gap, 0.
 * @rewait_time: microseconds of waiting for a REQ during recovery.
 * @reresolve_time: microseconds of address resolution during recovery.
 * @reconnect_time: microseconds of connecting during recovery.
 * @max_rewait_time: longest of the waits.
 * @max_reresolve_time: longest of the resolutions.
 * @max_reconnect_time: longest of the connects.
 * @reresolve: address resolutions during recovery.
 * @reresolve_fail: those that failed.
 * @post_write: writes given to the queue pair.
 * @post_write_fail: writes that the queue pair did not take.
 * @post_write_bytes: bytes of the writes given to the queue pair.
 * @outstand_send_write: writes under way now.
 * @hole2: gap, 0.
 * @send_write_cqe: writes that ended well.
 * @send_write_cqe_fail: writes that ended in an error.
 * @recv_write_cqe: writes that arrived.
 * @recv_write_bytes: bytes of the writes that arrived.
 * @recv_cqe_fail: receives that ended in an error other than a flush.
 * @post_hb: probes given to the queue pair.
 * @post_hb_fail: probes that the queue pair did not take.
 * @send_hb_cqe: probes that ended well.
 * @send_hb_cqe_fail: probes that ended in an error.
 * @recv_hb_cqe: probes that arrived.
 *
 * Counters belong to the connection, which processes of a job share. In an
 * aggregate they are added up, times are the longest ones, and
 * RV_CONN_STAT_FLAG_WAS_CONNECTED is set if all of them have it.
 */
struct rv_conn_get_stats_params_out {
	__u8 index;
	__u8 flags;
	__u8 hole0[2];
	__u32 num_conn;

	__u32 req_error;
	__u32 req_recv;
	__u32 rep_error;
	__u32 rep_recv;
	__u32 rtu_recv;
	__u32 established;
	__u32 dreq_error;
	__u32 dreq_recv;
	__u32 drep_recv;
	__u32 timewait;
	__u32 mra_recv;
	__u32 rej_recv;
	__u32 lap_error;
	__u32 lap_recv;
	__u32 apr_recv;
	__u32 unexp_event;
	__u32 req_sent;
	__u32 rep_sent;
	__u32 rtu_sent;
	__u32 rej_sent;
	__u32 dreq_sent;
	__u32 drep_sent;

	__aligned_u64 wait_time;
	__aligned_u64 resolve_time;
	__aligned_u64 connect_time;
	__aligned_u64 connected_time;
	__u32 resolve;
	__u32 resolve_fail;
	__u32 conn_recovery;
	__u32 hole1;
	__aligned_u64 rewait_time;
	__aligned_u64 reresolve_time;
	__aligned_u64 reconnect_time;
	__aligned_u64 max_rewait_time;
	__aligned_u64 max_reresolve_time;
	__aligned_u64 max_reconnect_time;
	__u32 reresolve;
	__u32 reresolve_fail;

	__aligned_u64 post_write;
	__aligned_u64 post_write_fail;
	__aligned_u64 post_write_bytes;
	__u32 outstand_send_write;
	__u32 hole2;
	__aligned_u64 send_write_cqe;
	__aligned_u64 send_write_cqe_fail;
	__aligned_u64 recv_write_cqe;
	__aligned_u64 recv_write_bytes;
	__aligned_u64 recv_cqe_fail;

	__aligned_u64 post_hb;
	__aligned_u64 post_hb_fail;
	__aligned_u64 send_hb_cqe;
	__aligned_u64 send_hb_cqe_fail;
	__aligned_u64 recv_hb_cqe;
};

/**
 * struct rv_conn_get_stats_params - the data of CONN_GET_STATS
 * @in: what the application gives.
 * @out: what the module answers.
 */
struct rv_conn_get_stats_params {
	union {
		struct rv_conn_get_stats_params_in in;
		struct rv_conn_get_stats_params_out out;
	};
};

/**
 * struct rv_event_stats_params_out - what GET_EVENT_STATS gives
 * @send_write_cqe: events of type RV_WC_RDMA_WRITE with a good status.
 * @send_write_cqe_fail: those with a bad status.
 * @send_write_bytes: bytes of the good ones.
 * @recv_write_cqe: events of type RV_WC_RECV_RDMA_WITH_IMM with a good status.
 * @recv_write_cqe_fail: those with a bad status.
 * @recv_write_bytes: bytes of the good ones.
 *
 * Events that found the ring full are not counted. All 0 without a ring.
 */
struct rv_event_stats_params_out {
	__aligned_u64 send_write_cqe;
	__aligned_u64 send_write_cqe_fail;
	__aligned_u64 send_write_bytes;
	__aligned_u64 recv_write_cqe;
	__aligned_u64 recv_write_cqe_fail;
	__aligned_u64 recv_write_bytes;
};

/**
 * struct rv_post_write_params_in - what POST_RDMA_WR_IMMED takes
 * @handle: rv_conn_create_params_out.handle.
 * @loc_addr: address of the data.
 * @loc_mr_handle: rv_mem_params_out.mr_handle. The module finds the
 *	registration by the three members that follow.
 * @loc_mr_addr: address that was registered.
 * @loc_mr_length: length that was registered.
 * @loc_mr_access: access bits that were registered, with IBV_ACCESS_KERNEL.
 * @rkey: rv_mem_params_out.rkey of the peer.
 * @rem_addr: rv_mem_params_out.iova of the peer, plus an offset.
 * @length: bytes to write. With 0 bytes both events come all the same.
 * @wr_id: comes back in the event.
 * @immed: immediate data in host order; its highest rv_attach_params_in.index_bits
 *	bits are the peer's rv_index.
 * @hole0: gap at the end.
 */
struct rv_post_write_params_in {
	__aligned_u64 handle;
	__aligned_u64 loc_addr;
	__aligned_u64 loc_mr_handle;
	__aligned_u64 loc_mr_addr;
	__aligned_u64 loc_mr_length;
	__u32 loc_mr_access;
	__u32 rkey;
	__aligned_u64 rem_addr;
	__aligned_u64 length;
	__aligned_u64 wr_id;
	__u32 immed;
	__u32 hole0;
};

/**
 * struct rv_post_write_params_out - what POST_RDMA_WR_IMMED gives
 * @sconn_index: the queue pair that took the write.
 * @hole0: gap, 0.
 * @conn_count: how often that queue pair has been connected, see
 *	struct rv_conn_get_conn_count_params_out.
 */
struct rv_post_write_params_out {
	__u8 sconn_index;
	__u8 hole0[3];
	__u32 conn_count;
};

/**
 * struct rv_post_write_params - the data of POST_RDMA_WR_IMMED
 * @in: what the application gives.
 * @out: what the module answers.
 */
struct rv_post_write_params {
	union {
		struct rv_post_write_params_in in;
		struct rv_post_write_params_out out;
	};
};

/**
 * struct rv_event_wc - how a write ended; it is at offset 1 of struct rv_event
 * @status: enum ib_wc_status, 0 if all is well.
 * @resv1: 0.
 * @imm_data: immediate data in host order. 0 in RV_WC_RDMA_WRITE.
 * @hole0: gap, 0.
 * @wr_id: rv_post_write_params_in.wr_id. 0 in RV_WC_RECV_RDMA_WITH_IMM.
 * @conn_handle: rv_conn_create_params_out.conn_handle.
 * @byte_len: bytes of the write.
 * @resv2: 0.
 */
struct rv_event_wc {
	__u8 status;
	__u16 resv1;
	__u32 imm_data;
	__u8 hole0;
	__u64 wr_id;
	__u64 conn_handle;
	__u32 byte_len;
	__u32 resv2;
} __attribute__((packed));

/**
 * struct rv_event - an entry of the event ring
 * @event_type: RV_WC_RDMA_WRITE or RV_WC_RECV_RDMA_WITH_IMM.
 * @wc: what these two types have.
 * @fill: the size of an entry, 0 behind @wc.
 *
 * An entry has 65 bytes, one more than a cache line, and no alignment. This is
 * how the ABI has been from its first revision on, and the entries of the ring
 * follow one another at this distance.
 */
struct rv_event {
	__u8 event_type;
	union {
		struct rv_event_wc wc;
		__u8 fill[64];
	};
} __attribute__((packed));

/**
 * struct rv_ring_header - the event ring, as mmap() of the file shows it
 * @head: index of the next entry that the application will read. The
 *	application writes it, the module reads it.
 * @tail: index of the next entry that the module will write. The module writes
 *	it and never reads it.
 * @overflow_cnt: events lost since the ring was full.
 * @pad: 0.
 * @entries: rv_attach_params_in.cq_entries entries.
 *
 * Both indices go from 0 to cq_entries - 1 and then to 0 again. The ring is empty
 * if they are equal, and full if @tail would reach @head by its next step.
 *
 * The application loads @tail with acquire semantics, reads the entry at @head,
 * then stores the next @head with release semantics. One thread at a time.
 * Nothing wakes the application: it polls. The three counters are volatile since
 * applications written against this ABI poll them with plain loads.
 */
struct rv_ring_header {
	volatile __u32 head;
	volatile __u32 tail;
	volatile __aligned_u64 overflow_cnt;
	__aligned_u64 pad[6];

	__extension__ struct rv_event entries[];
};

/* Bytes to map for a ring of so many entries. */
#define RV_RING_ALLOC_LEN(num_entries)            \
	((__u32)(sizeof(struct rv_ring_header) +  \
		 sizeof(struct rv_event) * (num_entries)))

/*
 * The ioctls. CAPABILITY or QUERY_R2 comes first, then ATTACH; the others need a
 * file that is attached. The module takes every form of every ioctl. An
 * application that may meet an older module looks at the revision which that
 * answered: ATTACH needs 1.6, REG_MEM needs 1.5, REG_MEM_R4 needs 1.2.
 */

/* Exchange revisions and capabilities. ABI 1.3 and later. */
#define RV_IOCTL_CAPABILITY \
	_IOWR(RDMA_IOCTL_MAGIC, 0xFC, struct rv_capability_params)

/* The same for applications of ABI 1.0 to 1.2, where it was called QUERY. */
#define RV_IOCTL_QUERY_R2 \
	_IOR(RDMA_IOCTL_MAGIC, 0xFC, struct rv_query_params_out)
#define RV_IOCTL_QUERY RV_IOCTL_QUERY_R2

/* Bind the file to a port of an RDMA device and to a job. Once. */
#define RV_IOCTL_ATTACH \
	_IOWR(RDMA_IOCTL_MAGIC, 0xF1, struct rv_attach_params)
#define RV_IOCTL_ATTACH_R5 \
	_IOWR(RDMA_IOCTL_MAGIC, 0xF1, struct rv_attach_params_r5)

/* Register memory, or take one more reference on a registration in the cache. */
#define RV_IOCTL_REG_MEM \
	_IOWR(RDMA_IOCTL_MAGIC, 0xF3, struct rv_mem_params)
#define RV_IOCTL_REG_MEM_R4 \
	_IOWR(RDMA_IOCTL_MAGIC, 0xF3, struct rv_mem_params_r4)
#define RV_IOCTL_REG_MEM_R1 \
	_IOWR(RDMA_IOCTL_MAGIC, 0xF3, struct rv_mem_params_r1)

/* Drop one reference; the registration may stay in the cache. */
#define RV_IOCTL_DEREG_MEM \
	_IOW(RDMA_IOCTL_MAGIC, 0xF4, struct rv_dereg_params_in)

/* Remove idle registrations from the cache. ABI 1.1 and later. */
#define RV_IOCTL_EVICT \
	_IOWR(RDMA_IOCTL_MAGIC, 0xF6, struct rv_evict_params)

/* Counters of the cache. */
#define RV_IOCTL_GET_CACHE_STATS \
	_IOR(RDMA_IOCTL_MAGIC, 0xF7, struct rv_cache_stats_params_out)

/* Make a connection to a node, or join the one that the job has. No traffic. */
#define RV_IOCTL_CONN_CREATE \
	_IOWR(RDMA_IOCTL_MAGIC, 0xF8, struct rv_conn_create_params)

/* Start to connect, if this node is the one that connects. Does not wait. */
#define RV_IOCTL_CONN_CONNECT \
	_IOW(RDMA_IOCTL_MAGIC, 0xF9, struct rv_conn_connect_params_in)

/* Ask whether the connection is up: 1 or 0. */
#define RV_IOCTL_CONN_CONNECTED \
	_IOW(RDMA_IOCTL_MAGIC, 0xFA, struct rv_conn_connected_params_in)

/* Start an RDMA WRITE with immediate data. */
#define RV_IOCTL_POST_RDMA_WR_IMMED \
	_IOWR(RDMA_IOCTL_MAGIC, 0xFB, struct rv_post_write_params)

/* Counters of a connection. */
#define RV_IOCTL_CONN_GET_STATS \
	_IOWR(RDMA_IOCTL_MAGIC, 0xFD, struct rv_conn_get_stats_params)

/* Counters of the event ring. */
#define RV_IOCTL_GET_EVENT_STATS \
	_IOR(RDMA_IOCTL_MAGIC, 0xFE, struct rv_event_stats_params_out)

/* How often a queue pair of a connection was connected. */
#define RV_IOCTL_CONN_GET_CONN_COUNT \
	_IOWR(RDMA_IOCTL_MAGIC, 0xFF, struct rv_conn_get_conn_count_params)

#endif /* RV_USER_IOCTLS_H */
