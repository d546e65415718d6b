/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#pragma once
#include "kernel.h"

const volatile bool has_requests; /* whether requests are noted */

#ifdef OLD_KERNEL
/* The program that notes requests (sock.bpf.c) needs a later kernel. */
static __always_inline u64 request_of(bool sleeps)
{
	return 0;
}
#else
#include "../request.h"

/* Number of the request that the current thread works on; 0: none, uncertain, or not noted. `sleeps`: it goes to
 * sleep now. */
static __always_inline u64 request_of(bool sleeps)
{
	return has_requests ? request_served(bpf_get_current_task_btf(), sleeps) : 0;
}
#endif
