/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What crate rdma needs of uverbs, as functions that Rust can call: to recognise
 * an open file of it, to look a protection domain of it up, and to register
 * memory in that as ib_uverbs would.
 *
 * These are C, unlike the rest of the crate, because a part of what they call has
 * no public header: with the kernel's source at hand the compiler compares our
 * declarations with the real ones (see uverbs.c), which no binding could do.
 */
#ifndef RDMA_SYS_UVERBS_H
#define RDMA_SYS_UVERBS_H

#include <linux/types.h>

struct file;
struct ib_device;
struct ib_mr;
struct ib_pd;
struct ib_uobject;
struct ib_uverbs_file;

struct file *rust_rdma_fget(unsigned int fd);
void rust_rdma_fget_again(struct file *file);
void rust_rdma_fput(struct file *file);

/* The uverbs file that @file is, or NULL.  The caller has a reference to @file. */
struct ib_uverbs_file *rust_rdma_uverbs_file(struct file *file);

/* Whether @ufile is in use for @device, which cannot go meanwhile. */
bool rust_rdma_uverbs_is_for(struct ib_uverbs_file *ufile,
			     const struct ib_device *device);

/*
 * Look up the protection domain @handle and keep it from being destroyed, or an
 * error pointer; the opposite; and the protection domain.  @ufile is in use for a
 * device that cannot go meanwhile.
 */
struct ib_uobject *rust_rdma_uverbs_get_pd(struct ib_uverbs_file *ufile,
					   u32 handle);
void rust_rdma_uverbs_put_pd(struct ib_uobject *uobject);
struct ib_pd *rust_rdma_uverbs_pd(struct ib_uobject *uobject);

/*
 * Register memory of the calling process in @pd of @ufile, with the driver's data
 * at the user address @data; and the opposite.
 */
struct ib_mr *rust_rdma_uverbs_reg_mr(struct ib_uverbs_file *ufile,
				      struct ib_pd *pd, u64 start, u64 length,
				      int access, u64 data, size_t data_len);
int rust_rdma_uverbs_dereg_mr(struct ib_uverbs_file *ufile, struct ib_mr *mr);

#endif /* RDMA_SYS_UVERBS_H */
