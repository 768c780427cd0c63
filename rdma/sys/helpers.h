/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inline functions and macros of the RDMA core and its neighbours, as functions
 * that Rust can call.  Each does what the C name after "rust_rdma_" does, no more.
 */
#ifndef RDMA_SYS_HELPERS_H
#define RDMA_SYS_HELPERS_H

#include <linux/interval_tree.h>
#include <linux/mmu_notifier.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

/* Devices and ports. */
bool rust_rdma_rdma_protocol_roce(const struct ib_device *device, u32 port);
bool rust_rdma_rdma_cap_opa_ah(struct ib_device *device, u32 port);
bool rust_rdma_rdma_is_port_valid(const struct ib_device *device, u32 port);
bool rust_rdma_rdma_cap_ib_cm(const struct ib_device *device, u32 port);
bool rust_rdma_rdma_dev_access_current_netns(const struct ib_device *device);
const char *rust_rdma_dev_name(const struct ib_device *device);

/* Protection domains, queue pairs, completion queues, memory regions. */
struct ib_pd *rust_rdma_ib_alloc_pd(struct ib_device *device);
int rust_rdma_ib_dealloc_pd(struct ib_pd *pd);
struct ib_cq *rust_rdma_ib_alloc_cq_any(struct ib_device *device, void *context,
					int nr_cqe, enum ib_poll_context poll_ctx);
struct ib_qp *rust_rdma_ib_create_qp(struct ib_pd *pd,
				     struct ib_qp_init_attr *init_attr);
int rust_rdma_ib_destroy_qp(struct ib_qp *qp);
int rust_rdma_ib_post_send(struct ib_qp *qp, const struct ib_send_wr *wr);
int rust_rdma_ib_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr);
int rust_rdma_ib_check_mr_access(struct ib_device *device, unsigned int flags);
int rust_rdma_ib_dereg_mr(struct ib_mr *mr);
u32 rust_rdma_ib_inc_rkey(u32 rkey);
void rust_rdma_ib_update_fast_reg_key(struct ib_mr *mr, u8 newkey);
struct ib_umem *rust_rdma_ib_umem_get_va(struct ib_device *device,
					 unsigned long addr, size_t size,
					 int access);
size_t rust_rdma_ib_umem_num_pages(struct ib_umem *umem);

/* Addresses and paths. */
void rust_rdma_rdma_gid2ip(struct sockaddr_in6 *out, const union ib_gid *gid);
struct net *rust_rdma_init_net(void);

/*
 * Bit-fields.  bindgen lays a bit-field that would cross its storage unit where
 * no C compiler does, and no size or offset shows it: so they are read here.
 */
bool rust_rdma_cm_req_has_srq(const struct ib_cm_req_event_param *req);
u8 rust_rdma_cm_req_rnr_retry_count(const struct ib_cm_req_event_param *req);
bool rust_rdma_cm_rep_has_srq(const struct ib_cm_rep_event_param *rep);

/* mmu interval notifiers. */
void rust_rdma_mmu_interval_set_seq(struct mmu_interval_notifier *notifier,
				    unsigned long cur_seq);
bool rust_rdma_mmu_interval_read_retry(struct mmu_interval_notifier *notifier,
				       unsigned long seq);
bool rust_rdma_mmu_notifier_range_blockable(const struct mmu_notifier_range *range);
void rust_rdma_mmgrab(struct mm_struct *mm);
void rust_rdma_mmdrop(struct mm_struct *mm);

/* Memory shared with user space, work queues, users. */
void *rust_rdma_vmalloc_user(unsigned long size);
void rust_rdma_vfree(const void *addr);
struct workqueue_struct *rust_rdma_alloc_workqueue(const char *name,
						   unsigned int flags,
						   int max_active);
u32 rust_rdma_kuid_in_init_ns(kuid_t uid);
void rust_rdma_task_comm(const struct task_struct *task, char comm[TASK_COMM_LEN]);

/* Whether another log line that others can cause may be printed. */
bool rust_rdma_log_allowed(void);

#endif /* RDMA_SYS_HELPERS_H */
