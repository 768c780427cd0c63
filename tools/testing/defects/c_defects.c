// SPDX-License-Identifier: GPL-2.0
/*
 * Mistakes in C, made on purpose, one at each load, as in rust_defects.rs: those that our
 * C helpers could make, and those that need a C structure to be made at all.
 */
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

static int defect;
module_param(defect, int, 0);
MODULE_PARM_DESC(defect, "Number of the mistake to make");

/* The compiler may not know where an index or a count points to. */
static volatile int four = 4, seventy = 70;

struct timed {
	struct timer_list timer;
};

struct worker {
	struct delayed_work work;
};

static void nothing(struct timer_list *timer)
{
}

static void no_work(struct work_struct *work)
{
}

static int index_behind_the_array(void)
{
	volatile char before[4] = "abc", array[4] = "def", after[4] = "ghi";

	pr_info("%c %c %c\n", before[0], array[four], after[0]);
	return 0;
}

static int shift_by_too_much(void)
{
	volatile int one = 1;

	pr_info("%d\n", one << seventy);
	return 0;
}

static int free_a_running_timer(void)
{
	struct timed *timed = kmalloc(sizeof(*timed), GFP_KERNEL);

	if (!timed)
		return -ENOMEM;
	timer_setup(&timed->timer, nothing, 0);
	mod_timer(&timed->timer, jiffies + 1000 * HZ);
	kfree(timed);
	return 0;
}

static int free_pending_work(void)
{
	struct worker *worker = kmalloc(sizeof(*worker), GFP_KERNEL);

	if (!worker)
		return -ENOMEM;
	INIT_DELAYED_WORK(&worker->work, no_work);
	schedule_delayed_work(&worker->work, 1000 * HZ);
	kfree(worker);
	return 0;
}

static int dereference_outside_of_rcu(void)
{
	static int __rcu *pointer;

	pr_info("%p\n", rcu_dereference(pointer));
	return 0;
}

static int write_behind_the_allocation(void)
{
	char *memory = kmalloc(40, GFP_KERNEL);

	if (!memory)
		return -ENOMEM;
	OPTIMIZER_HIDE_VAR(memory);
	memory[four * 10] = 'x';
	kfree(memory);
	return 0;
}

static int (*const defects[])(void) = {
	index_behind_the_array,
	shift_by_too_much,
	free_a_running_timer,
	free_pending_work,
	dereference_outside_of_rcu,
	write_behind_the_allocation,
};

static int __init make_a_mistake(void)
{
	int ret;

	if (defect < 1 || defect > ARRAY_SIZE(defects))
		return -EINVAL;
	ret = defects[defect - 1]();
	return ret ? ret : -ECANCELED;
}
module_init(make_a_mistake);

MODULE_DESCRIPTION("Mistakes in C, made on purpose");
MODULE_LICENSE("GPL");
