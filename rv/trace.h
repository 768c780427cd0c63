/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The trace events of rv, group "rv". Documentation/rv.rst explains the fields;
 * rv/trace.rs has the calls.
 *
 * Events carry numbers and copies of names, no addresses of the kernel's memory.
 */

#undef TRACE_SYSTEM
#define TRACE_SYSTEM rv

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace

#if !defined(_RV_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _RV_TRACE_H

#include <linux/string.h>
#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <trace/misc/rdma.h>

#include "abi.h"

/* Bytes of the name of a state, a message or an event, with its NUL. */
#define RV_TRACE_NAME_LEN 16

#define RV_TRACE_COMMANDS			\
	RV_TRACE_COMMAND(QUERY_R2)		\
	RV_TRACE_COMMAND(ATTACH)		\
	RV_TRACE_COMMAND(ATTACH_R5)		\
	RV_TRACE_COMMAND(REG_MEM)		\
	RV_TRACE_COMMAND(REG_MEM_R4)		\
	RV_TRACE_COMMAND(REG_MEM_R1)		\
	RV_TRACE_COMMAND(DEREG_MEM)		\
	RV_TRACE_COMMAND(EVICT)			\
	RV_TRACE_COMMAND(GET_CACHE_STATS)	\
	RV_TRACE_COMMAND(CONN_CREATE)		\
	RV_TRACE_COMMAND(CONN_CONNECT)		\
	RV_TRACE_COMMAND(CONN_CONNECTED)	\
	RV_TRACE_COMMAND(POST_RDMA_WR_IMMED)	\
	RV_TRACE_COMMAND(CONN_GET_STATS)	\
	RV_TRACE_COMMAND(GET_EVENT_STATS)	\
	RV_TRACE_COMMAND(CONN_GET_CONN_COUNT)	\
	RV_TRACE_COMMAND_LAST(CAPABILITY)

#undef RV_TRACE_COMMAND
#undef RV_TRACE_COMMAND_LAST
#define RV_TRACE_COMMAND(name) TRACE_DEFINE_ENUM(RV_CMD_##name);
#define RV_TRACE_COMMAND_LAST(name) TRACE_DEFINE_ENUM(RV_CMD_##name);
RV_TRACE_COMMANDS

#undef RV_TRACE_COMMAND
#undef RV_TRACE_COMMAND_LAST
#define RV_TRACE_COMMAND(name) { RV_CMD_##name, #name },
#define RV_TRACE_COMMAND_LAST(name) { RV_CMD_##name, #name }
#define rv_show_command(cmd) __print_symbolic(cmd, RV_TRACE_COMMANDS)

/* --- ioctls ---------------------------------------------------------------- */

TRACE_EVENT(rv_ioctl_enter,
	TP_PROTO(u32 cmd),
	TP_ARGS(cmd),
	TP_STRUCT__entry(
		__field(u32, cmd)
	),
	TP_fast_assign(
		__entry->cmd = cmd;
	),
	TP_printk("cmd=0x%x (%s)", __entry->cmd, rv_show_command(__entry->cmd))
);

TRACE_EVENT(rv_ioctl_exit,
	TP_PROTO(u32 cmd, s32 ret, u64 duration_ns),
	TP_ARGS(cmd, ret, duration_ns),
	TP_STRUCT__entry(
		__field(u64, duration_ns)
		__field(u32, cmd)
		__field(s32, ret)
	),
	TP_fast_assign(
		__entry->duration_ns = duration_ns;
		__entry->cmd = cmd;
		__entry->ret = ret;
	),
	TP_printk("cmd=0x%x (%s) ret=%d duration_ns=%llu", __entry->cmd,
		  rv_show_command(__entry->cmd), __entry->ret, __entry->duration_ns)
);

/* --- devices and attached files -------------------------------------------- */

DECLARE_EVENT_CLASS(rv_device,
	TP_PROTO(const u8 (*device)[RV_MAX_DEV_NAME_LEN]),
	TP_ARGS(device),
	TP_STRUCT__entry(
		__array(char, device, RV_MAX_DEV_NAME_LEN)
	),
	TP_fast_assign(
		memcpy(__entry->device, *device, sizeof(*device));
	),
	TP_printk("device=%s", __entry->device)
);

DEFINE_EVENT(rv_device, rv_device_add,
	TP_PROTO(const u8 (*device)[RV_MAX_DEV_NAME_LEN]),
	TP_ARGS(device)
);

DEFINE_EVENT(rv_device, rv_device_remove,
	TP_PROTO(const u8 (*device)[RV_MAX_DEV_NAME_LEN]),
	TP_ARGS(device)
);

TRACE_EVENT(rv_attach,
	TP_PROTO(const u8 (*device)[RV_MAX_DEV_NAME_LEN], u32 port, u16 gid_index,
		 u32 uid, u8 num_conn, u32 q_depth, u32 cache_mib, u32 cq_entries, s32 index, s32 ret),
	TP_ARGS(device, port, gid_index, uid, num_conn, q_depth, cache_mib,
		cq_entries, index, ret),
	TP_STRUCT__entry(
		__array(char, device, RV_MAX_DEV_NAME_LEN)
		__field(u32, port)
		__field(u32, uid)
		__field(u32, q_depth)
		__field(u32, cache_mib)
		__field(u32, cq_entries)
		__field(s32, index)
		__field(s32, ret)
		__field(u16, gid_index)
		__field(u8, num_conn)
	),
	TP_fast_assign(
		memcpy(__entry->device, *device, sizeof(*device));
		__entry->port = port;
		__entry->uid = uid;
		__entry->q_depth = q_depth;
		__entry->cache_mib = cache_mib;
		__entry->cq_entries = cq_entries;
		__entry->index = index;
		__entry->ret = ret;
		__entry->gid_index = gid_index;
		__entry->num_conn = num_conn;
	),
	TP_printk("device=%s port=%u gid_index=%u uid=%u num_conn=%u q_depth=%u cache_mib=%u cq_entries=%u index=%d ret=%d",
		  __entry->device, __entry->port, __entry->gid_index, __entry->uid,
		  __entry->num_conn, __entry->q_depth, __entry->cache_mib,
		  __entry->cq_entries, __entry->index, __entry->ret)
);

TRACE_EVENT(rv_detach,
	TP_PROTO(const u8 (*device)[RV_MAX_DEV_NAME_LEN], u32 port, s32 index),
	TP_ARGS(device, port, index),
	TP_STRUCT__entry(
		__array(char, device, RV_MAX_DEV_NAME_LEN)
		__field(u32, port)
		__field(s32, index)
	),
	TP_fast_assign(
		memcpy(__entry->device, *device, sizeof(*device));
		__entry->port = port;
		__entry->index = index;
	),
	TP_printk("device=%s port=%u index=%d", __entry->device, __entry->port,
		  __entry->index)
);

/* --- MR cache -------------------------------------------------------------- */

TRACE_EVENT(rv_cache_miss,
	TP_PROTO(u64 cache, u64 start, u64 len, u32 access),
	TP_ARGS(cache, start, len, access),
	TP_STRUCT__entry(
		__field(u64, cache)
		__field(u64, start)
		__field(u64, len)
		__field(u32, access)
	),
	TP_fast_assign(
		__entry->cache = cache;
		__entry->start = start;
		__entry->len = len;
		__entry->access = access;
	),
	TP_printk("cache=%llu start=0x%llx len=%llu access=0x%x", __entry->cache,
		  __entry->start, __entry->len, __entry->access)
);

DECLARE_EVENT_CLASS(rv_cache_entry,
	TP_PROTO(u64 cache, u64 handle, u64 start, u64 len, u32 access, u32 refs),
	TP_ARGS(cache, handle, start, len, access, refs),
	TP_STRUCT__entry(
		__field(u64, cache)
		__field(u64, handle)
		__field(u64, start)
		__field(u64, len)
		__field(u32, access)
		__field(u32, refs)
	),
	TP_fast_assign(
		__entry->cache = cache;
		__entry->handle = handle;
		__entry->start = start;
		__entry->len = len;
		__entry->access = access;
		__entry->refs = refs;
	),
	TP_printk("cache=%llu handle=%llu start=0x%llx len=%llu access=0x%x refs=%u",
		  __entry->cache, __entry->handle, __entry->start, __entry->len,
		  __entry->access, __entry->refs)
);

#undef RV_CACHE_EVENT
#define RV_CACHE_EVENT(name)							\
DEFINE_EVENT(rv_cache_entry, name,						\
	TP_PROTO(u64 cache, u64 handle, u64 start, u64 len, u32 access, u32 refs), \
	TP_ARGS(cache, handle, start, len, access, refs)			\
)

RV_CACHE_EVENT(rv_cache_hit);
RV_CACHE_EVENT(rv_cache_insert);
RV_CACHE_EVENT(rv_cache_invalidate);
RV_CACHE_EVENT(rv_cache_evict);
RV_CACHE_EVENT(rv_cache_remove);

/* --- connections ----------------------------------------------------------- */

TRACE_EVENT(rv_conn_create,
	TP_PROTO(u64 conn, const char *role, u8 num_conn, u32 rem_addr,
		 const u8 (*dgid)[16]),
	TP_ARGS(conn, role, num_conn, rem_addr, dgid),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(u32, rem_addr)
		__array(u8, dgid, 16)
		__array(char, role, RV_TRACE_NAME_LEN)
		__field(u8, num_conn)
	),
	TP_fast_assign(
		__entry->conn = conn;
		__entry->rem_addr = rem_addr;
		memcpy(__entry->dgid, *dgid, sizeof(*dgid));
		strscpy(__entry->role, role, RV_TRACE_NAME_LEN);
		__entry->num_conn = num_conn;
	),
	TP_printk("conn=%llu role=%s num_conn=%u rem_addr=0x%x dgid=%pI6c", __entry->conn,
		  __entry->role, __entry->num_conn, __entry->rem_addr, __entry->dgid)
);

TRACE_EVENT(rv_conn_state,
	TP_PROTO(u64 conn, u8 index, const char *old, const char *new, u64 spent_us),
	TP_ARGS(conn, index, old, new, spent_us),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(u64, spent_us)
		__array(char, old, RV_TRACE_NAME_LEN)
		__array(char, new, RV_TRACE_NAME_LEN)
		__field(u8, index)
	),
	TP_fast_assign(
		__entry->conn = conn;
		__entry->spent_us = spent_us;
		strscpy(__entry->old, old, RV_TRACE_NAME_LEN);
		strscpy(__entry->new, new, RV_TRACE_NAME_LEN);
		__entry->index = index;
	),
	TP_printk("conn=%llu index=%u old=%s new=%s spent_us=%llu", __entry->conn,
		  __entry->index, __entry->old, __entry->new, __entry->spent_us)
);

TRACE_EVENT(rv_cm_event,
	TP_PROTO(u64 conn, u8 index, const char *event, const char *state, u32 code, u32 reason),
	TP_ARGS(conn, index, event, state, code, reason),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(u32, code)
		__field(u32, reason)
		__array(char, event, RV_TRACE_NAME_LEN)
		__array(char, state, RV_TRACE_NAME_LEN)
		__field(u8, index)
	),
	TP_fast_assign(
		__entry->conn = conn;
		__entry->code = code;
		__entry->reason = reason;
		strscpy(__entry->event, event, RV_TRACE_NAME_LEN);
		strscpy(__entry->state, state, RV_TRACE_NAME_LEN);
		__entry->index = index;
	),
	TP_printk("conn=%llu index=%u event=%s state=%s code=%u reason=%u", __entry->conn,
		  __entry->index, __entry->event, __entry->state, __entry->code,
		  __entry->reason)
);

TRACE_EVENT(rv_cm_send,
	TP_PROTO(u64 conn, u8 index, const char *message, u32 reason, s32 ret),
	TP_ARGS(conn, index, message, reason, ret),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(u32, reason)
		__field(s32, ret)
		__array(char, message, RV_TRACE_NAME_LEN)
		__field(u8, index)
	),
	TP_fast_assign(
		__entry->conn = conn;
		__entry->reason = reason;
		__entry->ret = ret;
		strscpy(__entry->message, message, RV_TRACE_NAME_LEN);
		__entry->index = index;
	),
	TP_printk("conn=%llu index=%u message=%s reason=%u ret=%d", __entry->conn,
		  __entry->index, __entry->message, __entry->reason, __entry->ret)
);

TRACE_EVENT(rv_qp_event,
	TP_PROTO(u64 conn, u8 index, const char *event, u32 number),
	TP_ARGS(conn, index, event, number),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(u32, number)
		__array(char, event, RV_TRACE_NAME_LEN)
		__field(u8, index)
	),
	TP_fast_assign(
		__entry->conn = conn;
		__entry->number = number;
		strscpy(__entry->event, event, RV_TRACE_NAME_LEN);
		__entry->index = index;
	),
	TP_printk("conn=%llu index=%u event=%s number=%u", __entry->conn, __entry->index,
		  __entry->event, __entry->number)
);

/* --- data ------------------------------------------------------------------ */

TRACE_EVENT(rv_post,
	TP_PROTO(u64 conn, u8 index, u64 wr_id, u64 rem_addr, u32 len, u32 imm, s32 ret),
	TP_ARGS(conn, index, wr_id, rem_addr, len, imm, ret),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(u64, wr_id)
		__field(u64, rem_addr)
		__field(u32, len)
		__field(u32, imm)
		__field(s32, ret)
		__field(u8, index)
	),
	TP_fast_assign(
		__entry->conn = conn;
		__entry->wr_id = wr_id;
		__entry->rem_addr = rem_addr;
		__entry->len = len;
		__entry->imm = imm;
		__entry->ret = ret;
		__entry->index = index;
	),
	TP_printk("conn=%llu index=%u wr_id=0x%llx rem_addr=0x%llx len=%u imm=0x%x ret=%d",
		  __entry->conn, __entry->index, __entry->wr_id, __entry->rem_addr,
		  __entry->len, __entry->imm, __entry->ret)
);

TRACE_EVENT(rv_send_done,
	TP_PROTO(u64 conn, u8 index, u64 wr_id, u32 len, u32 status),
	TP_ARGS(conn, index, wr_id, len, status),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(u64, wr_id)
		__field(u32, len)
		__field(u32, status)
		__field(u8, index)
	),
	TP_fast_assign(
		__entry->conn = conn;
		__entry->wr_id = wr_id;
		__entry->len = len;
		__entry->status = status;
		__entry->index = index;
	),
	TP_printk("conn=%llu index=%u wr_id=0x%llx len=%u status=%u (%s)", __entry->conn,
		  __entry->index, __entry->wr_id, __entry->len, __entry->status,
		  rdma_show_wc_status(__entry->status))
);

TRACE_EVENT(rv_recv_done,
	TP_PROTO(u64 conn, u8 index, u32 imm, u32 len, u32 status),
	TP_ARGS(conn, index, imm, len, status),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(u32, imm)
		__field(u32, len)
		__field(u32, status)
		__field(u8, index)
	),
	TP_fast_assign(
		__entry->conn = conn;
		__entry->imm = imm;
		__entry->len = len;
		__entry->status = status;
		__entry->index = index;
	),
	TP_printk("conn=%llu index=%u imm=0x%x len=%u status=%u (%s)", __entry->conn,
		  __entry->index, __entry->imm, __entry->len, __entry->status,
		  rdma_show_wc_status(__entry->status))
);

TRACE_EVENT(rv_heartbeat_post,
	TP_PROTO(u64 conn, u8 index, s32 ret),
	TP_ARGS(conn, index, ret),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(s32, ret)
		__field(u8, index)
	),
	TP_fast_assign(
		__entry->conn = conn;
		__entry->ret = ret;
		__entry->index = index;
	),
	TP_printk("conn=%llu index=%u ret=%d", __entry->conn, __entry->index, __entry->ret)
);

TRACE_EVENT(rv_heartbeat_recv,
	TP_PROTO(u64 conn, u8 index),
	TP_ARGS(conn, index),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(u8, index)
	),
	TP_fast_assign(
		__entry->conn = conn;
		__entry->index = index;
	),
	TP_printk("conn=%llu index=%u", __entry->conn, __entry->index)
);

DECLARE_EVENT_CLASS(rv_ring,
	TP_PROTO(u64 conn, bool received, u32 len, u32 slot, u64 overflows),
	TP_ARGS(conn, received, len, slot, overflows),
	TP_STRUCT__entry(
		__field(u64, conn)
		__field(u64, overflows)
		__field(u32, len)
		__field(u32, slot)
		__field(bool, received)
	),
	TP_fast_assign(
		__entry->conn = conn;
		__entry->overflows = overflows;
		__entry->len = len;
		__entry->slot = slot;
		__entry->received = received;
	),
	TP_printk("conn=%llu type=%s len=%u slot=%u overflows=%llu", __entry->conn,
		  __entry->received ? "received" : "sent", __entry->len,
		  __entry->slot, __entry->overflows)
);

DEFINE_EVENT(rv_ring, rv_ring_push,
	TP_PROTO(u64 conn, bool received, u32 len, u32 slot, u64 overflows),
	TP_ARGS(conn, received, len, slot, overflows)
);

DEFINE_EVENT(rv_ring, rv_ring_overflow,
	TP_PROTO(u64 conn, bool received, u32 len, u32 slot, u64 overflows),
	TP_ARGS(conn, received, len, slot, overflows)
);

#endif /* _RV_TRACE_H */

/* Outside of the guard: it reads this file again. */
#include <trace/define_trace.h>
