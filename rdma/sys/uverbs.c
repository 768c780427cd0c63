// SPDX-License-Identifier: GPL-2.0
/*
 * See uverbs.h.
 *
 * What keeps things alive: the caller's reference to the file keeps the file's
 * context and objects from being closed; the caller's hold on the device keeps
 * ib_uverbs from disassociating them.  The latter is so because clients of the
 * RDMA core lose a device in the opposite order of their registration, and a user
 * of this module registers after ib_uverbs: rdma_user_mmap_disassociate() below is
 * a symbol of ib_uverbs, so this module cannot be loaded before ib_uverbs is.
 */

#include <linux/cdev.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/uverbs_types.h>

#include "uverbs.h"

#if !IS_MODULE(CONFIG_INFINIBAND_USER_ACCESS)
#error "ib_uverbs must be a module (CONFIG_INFINIBAND_USER_ACCESS=m): its files are recognised by it"
#endif

/*
 * The declarations below have no public header.  When the kernel's source is
 * there (see Kbuild.include), the compiler sees the real ones too, and refuses
 * any that differs.
 */
#ifdef RDMA_SYS_KERNEL_SOURCE
#include "rdma_core.h"
#include "restrack.h"
#endif

struct ib_uobject *uverbs_get_uobject_from_file(u16 object_id,
						enum uverbs_obj_access access,
						s64 id,
						struct uverbs_attr_bundle *attrs);
void rdma_restrack_new(struct rdma_restrack_entry *res,
		       enum rdma_restrack_type type);
void rdma_restrack_set_name(struct rdma_restrack_entry *res, const char *caller);
void rdma_restrack_add(struct rdma_restrack_entry *res);

MODULE_IMPORT_NS("rdma_core");

struct file *rust_rdma_fget(unsigned int fd)
{
	return fget(fd);
}

void rust_rdma_fget_again(struct file *file)
{
	get_file(file);
}

void rust_rdma_fput(struct file *file)
{
	fput(file);
}

/* An address in the module that registers the uverbs client. */
static bool is_ib_uverbs(struct module *module)
{
	return module &&
	       within_module((unsigned long)rdma_user_mmap_disassociate, module);
}

struct ib_uverbs_file *rust_rdma_uverbs_file(struct file *file)
{
	const struct inode *inode = file_inode(file);
	const struct cdev *cdev;

	if (!S_ISCHR(inode->i_mode))
		return NULL;
	/* The open file has a reference to it. */
	cdev = READ_ONCE(inode->i_cdev);
	/* With the operations of its device a file was opened by them. */
	if (!cdev || !is_ib_uverbs(cdev->owner) || file->f_op != cdev->ops)
		return NULL;
	return file->private_data;
}

bool rust_rdma_uverbs_is_for(struct ib_uverbs_file *ufile,
			     const struct ib_device *device)
{
	bool is_for;

	/* Another device's context may be going. */
	down_read(&ufile->hw_destroy_rwsem);
	/* Pairs with the release by which uverbs shows a new context. */
	const struct ib_ucontext *ucontext = smp_load_acquire(&ufile->ucontext);

	is_for = ucontext && ucontext->device == device;
	up_read(&ufile->hw_destroy_rwsem);
	return is_for;
}

struct ib_uobject *rust_rdma_uverbs_get_pd(struct ib_uverbs_file *ufile,
					   u32 handle)
{
	struct uverbs_attr_bundle attrs = { .ufile = ufile };

	return uverbs_get_uobject_from_file(UVERBS_OBJECT_PD,
					    UVERBS_ACCESS_READ, handle, &attrs);
}

void rust_rdma_uverbs_put_pd(struct ib_uobject *uobject)
{
	rdma_lookup_put_uobject(uobject, UVERBS_LOOKUP_READ);
}

struct ib_pd *rust_rdma_uverbs_pd(struct ib_uobject *uobject)
{
	return uobject->object;
}

struct ib_mr *rust_rdma_uverbs_reg_mr(struct ib_uverbs_file *ufile,
				      struct ib_pd *pd, u64 start, u64 length,
				      int access, u64 data, size_t data_len)
{
	/* Drivers find the caller's context from the data, by container_of(). */
	struct uverbs_attr_bundle attrs = {
		.driver_udata = {
			.inbuf = data_len ? u64_to_user_ptr(data) : NULL,
			.inlen = data_len,
		},
		.ufile = ufile,
		.context = ufile->ucontext,
	};
	struct ib_mr *mr;

	if (!pd->device->ops.reg_user_mr)
		return ERR_PTR(-EOPNOTSUPP);
	mr = pd->device->ops.reg_user_mr(pd, start, length, start, access, NULL,
					 &attrs.driver_udata);
	if (IS_ERR(mr))
		return mr;

	/* The rest is not the driver's. */
	mr->device = pd->device;
	mr->pd = pd;
	mr->type = IB_MR_TYPE_USER;
	mr->iova = start;
	mr->length = length;
	mr->uobject = NULL;
	mr->dm = NULL;
	mr->dmah = NULL;
	mr->sig_attrs = NULL;
	atomic_inc(&pd->usecnt);
	rdma_restrack_new(&mr->res, RDMA_RESTRACK_MR);
	rdma_restrack_set_name(&mr->res, NULL);
	rdma_restrack_add(&mr->res);
	return mr;
}

int rust_rdma_uverbs_dereg_mr(struct ib_uverbs_file *ufile, struct ib_mr *mr)
{
	/* No data, but a caller with a context. */
	struct uverbs_attr_bundle attrs = {
		.ufile = ufile,
		.context = ufile->ucontext,
	};

	return ib_dereg_mr_user(mr, &attrs.driver_udata);
}
