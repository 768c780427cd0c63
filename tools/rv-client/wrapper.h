/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What build.rs hands to bindgen: the ABI header, and as plain constants what
 * bindgen cannot take from it by itself: macros that contain sizeof(), and the
 * layout of the 65-byte rv_event.
 */
#include <stddef.h>
#include <rdma/rv_user_ioctls.h>
#include <rdma/ib_user_ioctl_verbs.h>

enum rvc_ioctl {
	RVC_CAPABILITY = RV_IOCTL_CAPABILITY,
	RVC_QUERY_R2 = RV_IOCTL_QUERY_R2,
	RVC_ATTACH = RV_IOCTL_ATTACH,
	RVC_ATTACH_R5 = RV_IOCTL_ATTACH_R5,
	RVC_REG_MEM = RV_IOCTL_REG_MEM,
	RVC_REG_MEM_R4 = RV_IOCTL_REG_MEM_R4,
	RVC_REG_MEM_R1 = RV_IOCTL_REG_MEM_R1,
	RVC_DEREG_MEM = RV_IOCTL_DEREG_MEM,
	RVC_EVICT = RV_IOCTL_EVICT,
	RVC_GET_CACHE_STATS = RV_IOCTL_GET_CACHE_STATS,
	RVC_CONN_CREATE = RV_IOCTL_CONN_CREATE,
	RVC_CONN_CONNECT = RV_IOCTL_CONN_CONNECT,
	RVC_CONN_CONNECTED = RV_IOCTL_CONN_CONNECTED,
	RVC_POST_RDMA_WR_IMMED = RV_IOCTL_POST_RDMA_WR_IMMED,
	RVC_CONN_GET_STATS = RV_IOCTL_CONN_GET_STATS,
	RVC_GET_EVENT_STATS = RV_IOCTL_GET_EVENT_STATS,
	RVC_CONN_GET_CONN_COUNT = RV_IOCTL_CONN_GET_CONN_COUNT,
};

enum rvc_event_layout {
	RVC_EVENT_SIZE = sizeof(struct rv_event),
	RVC_EVENT_TYPE = offsetof(struct rv_event, event_type),
	RVC_EVENT_STATUS = offsetof(struct rv_event, wc.status),
	RVC_EVENT_IMM_DATA = offsetof(struct rv_event, wc.imm_data),
	RVC_EVENT_WR_ID = offsetof(struct rv_event, wc.wr_id),
	RVC_EVENT_CONN_HANDLE = offsetof(struct rv_event, wc.conn_handle),
	RVC_EVENT_BYTE_LEN = offsetof(struct rv_event, wc.byte_len),
};

enum rvc_ring_layout {
	RVC_RING_HEADER_SIZE = sizeof(struct rv_ring_header),
	RVC_RING_HEAD = offsetof(struct rv_ring_header, head),
	RVC_RING_TAIL = offsetof(struct rv_ring_header, tail),
	RVC_RING_OVERFLOW_CNT = offsetof(struct rv_ring_header, overflow_cnt),
	RVC_RING_ALLOC_LEN_1 = RV_RING_ALLOC_LEN(1),
	RVC_RING_ALLOC_LEN_192 = RV_RING_ALLOC_LEN(192),
	RVC_RING_ALLOC_LEN_10000 = RV_RING_ALLOC_LEN(10000),
};

enum rvc_constant {
	RVC_ACCESS_LOCAL_WRITE = IB_UVERBS_ACCESS_LOCAL_WRITE,
	RVC_ACCESS_REMOTE_WRITE = IB_UVERBS_ACCESS_REMOTE_WRITE,
	RVC_ACCESS_KERNEL = IBV_ACCESS_KERNEL,
};
