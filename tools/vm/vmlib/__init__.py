# SPDX-License-Identifier: GPL-2.0
"""The library behind tools/vm/{enter,roots,run}.

Reading order: config (where things are), enter (how a command gets into a
root), apt and roots (how a root is made), initramfs and guest/ (what a VM boots),
qemu, machine and runner (one VM, all VMs), klog (verdict on the kernel log).
"""
