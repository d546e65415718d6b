/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Arguments of the programs of the back end "syscalls". */
#pragma once
#include "syscalls-tls.h"

/* STAGE_TLS is set by the object that reads inside TLS. */
enum { STAGE_PART, STAGE_END, STAGE_LOOK, STAGE_REST, STAGE_TLS, STAGE_OPENING, STAGES = STAGE_OPENING + 4 };

/* Records of the tracepoints, as in their `format` files. */
struct enter {
	u64 common;
	s32 nr;
	u32 pad;
	u64 arguments[6];
};

struct exit {
	u64 common;
	s32 nr;
	u32 pad;
	s64 result;
};

struct state_change {
	u64 common;
	u64 sock;
	s32 from;
	s32 to;
	u16 local_port;
	u16 peer_port;
	u16 family;
	u8 protocol;
};

struct new_task {
	u64 common;
	s32 pid;
	u8 comm[16];
	u32 pad;
	u64 flags;
};

enum { F_SETFL = 4, FIONBIO = 0x5421, EINTR = 4, EPIPE = 32, ECONNRESET = 104, ETIMEDOUT = 110, EINPROGRESS = 115,
       SHUT_RD = 0, SHUT_RDWR = 2 };

static __always_inline bool is_self(u64 id)
{
	struct svc_syscall_settings *s = settings_of();
	return !s || s->self_pid == id >> 32;
}

static __always_inline struct svc_syscall_key key_of(u64 id, u32 fd)
{
	struct svc_syscall_key key = { .pid = id >> 32, .fd = fd };
	return key;
}

static __always_inline int set_blocking(u64 id, u64 fd, bool blocking)
{
	struct svc_syscall_key key = key_of(id, fd);
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &key);
	if (c)
		c->blocking = blocking;
	return 0;
}
