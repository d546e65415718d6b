/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#pragma once
#include "kernel.h"

const volatile bool has_requests; /* somebody notes them */

#ifdef OLD_KERNEL
/* Who notes requests (sock.bpf.c) needs a newer one. */
static __always_inline u64 request_of(bool sleeps)
{
	return 0;
}
#else
#include "../request.h"

/* Names the request that the current thread works on; 0: none, or it is not certain, or nobody notes them.
 * `sleeps`: it goes to sleep now. */
static __always_inline u64 request_of(bool sleeps)
{
	return has_requests ? request_served(bpf_get_current_task_btf(), sleeps) : 0;
}
#endif
