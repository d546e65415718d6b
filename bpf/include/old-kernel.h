/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Objects are built a second time for kernels before 5.12, with OLD_KERNEL: pointers that programs may not follow
 * there are read by helpers. Docs: older-kernels.md. */
#pragma once

#ifdef OLD_KERNEL
#define OF(pointer, member) BPF_CORE_READ(pointer, member)
#define current_task() ((struct task_struct *)bpf_get_current_task())
#else
#define OF(pointer, member) ((pointer)->member)
#define current_task() bpf_get_current_task_btf() /* 5.11 */
#endif
