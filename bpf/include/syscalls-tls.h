/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* TLS state of the tracepoints: which threads use it. It is handled in a separate object, for kernels from 5.10 on
 * (syscalls-tls.bpf.c). */
#pragma once
#include "syscalls-maps.h"

/* A connection as seen in one of its calls. */
struct tls_sight {
	u64 connection; /* 0: none */
	u32 fd;
	u32 length; /* of the TLS record that was sent or received */
	u8 type;    /* of the record */
	u8 pad[7];
};
#define SEEN(sight) (sight)->connection

#include "tls-call.h"

/* Threads by process and thread id: kernels before 5.11 have no task storage. */
MAP(tls_threads, BPF_MAP_TYPE_LRU_HASH, 16384, u64, struct tls_thread);
/* Whether anything is attached. Otherwise a call only checks this. */
MAP(tls_attached, BPF_MAP_TYPE_ARRAY, 1, u32, u32);

static __always_inline bool uses_tls(u64 id)
{
	u32 zero = 0, *attached = bpf_map_lookup_elem(&tls_attached, &zero);
	return attached && *attached && bpf_map_lookup_elem(&tls_threads, &id);
}
