// SPDX-License-Identifier: GPL-2.0
/*
 * See helpers.h.
 */

#include <linux/nsproxy.h>
#include <linux/ratelimit.h>
#include <linux/sched/mm.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "helpers.h"

bool rust_rdma_rdma_protocol_roce(const struct ib_device *device, u32 port)
{
	return rdma_protocol_roce(device, port);
}

bool rust_rdma_rdma_cap_opa_ah(struct ib_device *device, u32 port)
{
	return rdma_cap_opa_ah(device, port);
}

bool rust_rdma_rdma_is_port_valid(const struct ib_device *device, u32 port)
{
	return rdma_is_port_valid(device, port);
}

bool rust_rdma_rdma_cap_ib_cm(const struct ib_device *device, u32 port)
{
	return rdma_cap_ib_cm(device, port);
}

bool rust_rdma_rdma_dev_access_current_netns(const struct ib_device *device)
{
	return rdma_dev_access_netns(device, current->nsproxy->net_ns);
}

const char *rust_rdma_dev_name(const struct ib_device *device)
{
	return dev_name(&device->dev);
}

struct ib_pd *rust_rdma_ib_alloc_pd(struct ib_device *device)
{
	return ib_alloc_pd(device, 0);
}

int rust_rdma_ib_dealloc_pd(struct ib_pd *pd)
{
	return ib_dealloc_pd_user(pd, NULL);
}

struct ib_cq *rust_rdma_ib_alloc_cq_any(struct ib_device *device, void *context,
					int nr_cqe, enum ib_poll_context poll_ctx)
{
	return ib_alloc_cq_any(device, context, nr_cqe, poll_ctx);
}

struct ib_qp *rust_rdma_ib_create_qp(struct ib_pd *pd,
				     struct ib_qp_init_attr *init_attr)
{
	return ib_create_qp(pd, init_attr);
}

int rust_rdma_ib_destroy_qp(struct ib_qp *qp)
{
	return ib_destroy_qp(qp);
}

int rust_rdma_ib_post_send(struct ib_qp *qp, const struct ib_send_wr *wr)
{
	return ib_post_send(qp, wr, NULL);
}

int rust_rdma_ib_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr)
{
	return ib_post_recv(qp, wr, NULL);
}

int rust_rdma_ib_check_mr_access(struct ib_device *device, unsigned int flags)
{
	return ib_check_mr_access(device, flags);
}

int rust_rdma_ib_dereg_mr(struct ib_mr *mr)
{
	return ib_dereg_mr(mr);
}

u32 rust_rdma_ib_inc_rkey(u32 rkey)
{
	return ib_inc_rkey(rkey);
}

void rust_rdma_ib_update_fast_reg_key(struct ib_mr *mr, u8 newkey)
{
	ib_update_fast_reg_key(mr, newkey);
}

struct ib_umem *rust_rdma_ib_umem_get_va(struct ib_device *device,
					 unsigned long addr, size_t size,
					 int access)
{
	return ib_umem_get_va(device, addr, size, access);
}

size_t rust_rdma_ib_umem_num_pages(struct ib_umem *umem)
{
	return ib_umem_num_pages(umem);
}

void rust_rdma_rdma_gid2ip(struct sockaddr_in6 *out, const union ib_gid *gid)
{
	rdma_gid2ip((struct sockaddr *)out, gid);
}

struct net *rust_rdma_init_net(void)
{
	return &init_net;
}

bool rust_rdma_cm_req_has_srq(const struct ib_cm_req_event_param *req)
{
	return req->srq;
}

u8 rust_rdma_cm_req_rnr_retry_count(const struct ib_cm_req_event_param *req)
{
	return req->rnr_retry_count;
}

bool rust_rdma_cm_rep_has_srq(const struct ib_cm_rep_event_param *rep)
{
	return rep->srq;
}

void rust_rdma_mmu_interval_set_seq(struct mmu_interval_notifier *notifier,
				    unsigned long cur_seq)
{
	mmu_interval_set_seq(notifier, cur_seq);
}

bool rust_rdma_mmu_interval_read_retry(struct mmu_interval_notifier *notifier,
				       unsigned long seq)
{
	return mmu_interval_read_retry(notifier, seq);
}

bool rust_rdma_mmu_notifier_range_blockable(const struct mmu_notifier_range *range)
{
	return mmu_notifier_range_blockable(range);
}

void rust_rdma_mmgrab(struct mm_struct *mm)
{
	mmgrab(mm);
}

void rust_rdma_mmdrop(struct mm_struct *mm)
{
	mmdrop(mm);
}

void *rust_rdma_vmalloc_user(unsigned long size)
{
	return vmalloc_user(size);
}

void rust_rdma_vfree(const void *addr)
{
	vfree(addr);
}

struct workqueue_struct *rust_rdma_alloc_workqueue(const char *name,
						   unsigned int flags,
						   int max_active)
{
	return alloc_workqueue("%s", flags, max_active, name);
}

u32 rust_rdma_kuid_in_init_ns(kuid_t uid)
{
	return from_kuid(&init_user_ns, uid);
}

void rust_rdma_task_comm(const struct task_struct *task, char comm[TASK_COMM_LEN])
{
	strscpy_pad(comm, task->comm, TASK_COMM_LEN);
}

bool rust_rdma_log_allowed(void)
{
	static DEFINE_RATELIMIT_STATE(state, DEFAULT_RATELIMIT_INTERVAL,
				      DEFAULT_RATELIMIT_BURST);

	return __ratelimit(&state);
}
