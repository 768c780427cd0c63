/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The system calls of 32-bit programs, made by a 64-bit one.
 */
#ifndef RV_I386_H
#define RV_I386_H

#include <stdint.h>

#ifdef __x86_64__

/*
 * An ioctl as a 32-bit program makes it: the i386 entry of the kernel is open to
 * 64-bit code too, as long as its data are below 4 GiB. Only the low 32 bits of
 * the registers count.
 */
static inline int ioctl_of_i386(int fd, unsigned long cmd, void *arg)
{
	int ret;

	asm volatile("int $0x80"
		     : "=a"(ret)
		     : "0"(54), "b"(fd), "c"((unsigned int)cmd), "d"((unsigned int)(uintptr_t)arg)
		     : "memory", "cc", "r8", "r9", "r10", "r11");
	return ret;
}

static inline int getpid_of_i386(void)
{
	int ret;

	asm volatile("int $0x80" : "=a"(ret) : "0"(20) : "memory", "cc", "r8", "r9", "r10", "r11");
	return ret;
}

#endif /* __x86_64__ */

#endif /* RV_I386_H */
