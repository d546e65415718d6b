/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Kernel types of the profiler, for CO-RE: names and members as in the kernel, offsets by relocation; and the
 * registers passed to a perf event program, which are ABI (linux/bpf_perf_event.h, asm/ptrace.h). */
#pragma once
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "../old-kernel.h"

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

#if defined(__TARGET_ARCH_x86)
struct sample_registers {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct sample_registers {
	u64 regs[31], sp, pc, pstate;
};
#endif

struct sample_context {
	struct sample_registers regs;
	u64 sample_period;
	u64 addr;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct maple_metadata {
	unsigned char end;
};

struct maple_range_64 {
	unsigned long pivot[15];
	void *slot[16];
	struct maple_metadata meta;
};

struct maple_arange_64 {
	unsigned long pivot[9];
	void *slot[10];
	struct maple_metadata meta;
};

enum maple_type { maple_dense, maple_leaf_64, maple_range_64, maple_arange_64 };

struct maple_tree {
	void *ma_root;
};

struct rb_node {
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct mm_context {
	void *vdso;
};

struct mm_struct {
	struct maple_tree mm_mt; /* since Linux 6.1 */
	struct rb_root mm_rb;    /* before */
	struct mm_context context;
};

struct super_block {
	u32 s_dev;
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	u32 i_generation;
};

struct file {
	struct inode *f_inode;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct *vm_mm;
	struct rb_node vm_rb; /* before Linux 6.1 */
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct pid *thread_pid;
	void *stack;
	char comm[16];
};

/* Name of a task's state since Linux 5.14. */
struct task_struct___state {
	unsigned int __state;
};

struct task_struct___old_state {
	long state;
};

union thread_union {
	unsigned long stack[1];
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long bp, ip, sp;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31], sp, pc;
};
#endif

#pragma clang attribute pop

/* include/linux/sched.h. Kernel threads, and those that the kernel starts for a process (io_uring, vhost): they
 * share its memory, and have no user registers. */
enum { PF_IO_WORKER = 0x10, PF_KTHREAD = 0x200000 };
#ifdef OLD_KERNEL
enum { PF_USER_WORKER = 0 }; /* since Linux 6.4; before, this bit had another meaning */
#else
enum { PF_USER_WORKER = 0x4000 };
#endif
enum { VM_EXEC = 4 };
enum { EEXIST = 17 };

#if defined(__TARGET_ARCH_x86)
#define PC_MEMBER ip
#define SP_MEMBER sp
#define FP_MEMBER bp
/* Kernel addresses have the highest bit set. */
#define IN_KERNEL(registers) (PC(registers) >> 63)
#define RETURN_ADDRESS(word) (word)
#elif defined(__TARGET_ARCH_arm64)
#define PC_MEMBER pc
#define SP_MEMBER sp
#define FP_MEMBER regs[29]
#define IN_KERNEL(registers) (PC(registers) >> 63)
/* Without pointer authentication code. */
#define RETURN_ADDRESS(word) ((word) & 0xffffffffffffull)
#endif
#define PC(registers) ((registers)->PC_MEMBER)
#define SP(registers) ((registers)->SP_MEMBER)
#define FP(registers) ((registers)->FP_MEMBER)
