/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Start of a system call: stores its arguments if its end may need them. */
#pragma once
#include "syscalls-context.h"

static __always_inline void remember(u64 id, const struct svc_syscall_call *call)
{
	struct svc_syscall_call *slot = bpf_map_lookup_elem(&calls, &id);
	if (slot)
		*slot = *call;
	else
		bpf_map_update_elem(&calls, &id, call, BPF_ANY);
}

static __always_inline bool is_remembered(const struct enter *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct svc_syscall_call *call = bpf_map_lookup_elem(&calls, &id);
	return call && call->kind && call->nr == ctx->nr && call->fd == (u32)ctx->arguments[0] &&
	       call->address == ctx->arguments[1];
}

/* A call on a descriptor that moves bytes. */
static __always_inline int on_enter(struct enter *ctx, u8 direction, u8 kind, bool is_socket, u64 flags, u64 name)
{
	u64 id = bpf_get_current_pid_tgid();
	u64 fd = ctx->arguments[0];
	if (is_self(id) || fd >= FDS || flags & (MSG_PEEK | MSG_ERRQUEUE))
		return 0;
	struct svc_syscall_key key = key_of(id, fd);
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &key);
	bool looked_at;
	if (c) {
		looked_at = c->state != svc_syscall_state_off && c->state != svc_syscall_state_listening;
	} else {
		u64 *misses = bpf_map_lookup_elem(&others, &key);
		looked_at = !misses || *misses < MISSES_FILE;
	}
	if (!looked_at && !uses_tls(id))
		return 0;
	struct svc_syscall_call call = {
		.address = ctx->arguments[1],
		.time = direction == SENT ? bpf_ktime_get_ns() : 0,
		.count = ctx->arguments[2],
		.fd = fd,
		.nr = ctx->nr,
		.kind = flags & MSG_TRUNC ? svc_syscall_call_kind_unseen : kind, /* such bytes are discarded, not copied */
		.direction = direction,
		.is_socket = is_socket,
		.for_tls = !looked_at,
	};
	if (!c)
		call.name = name;
	remember(id, &call);
	return 0;
}

/* While a program is preempted on Linux 7, the kernel skips its runs for other tasks on that CPU. So there are two
 * of each in sequence, and the second nearly always finds that the first has run. */
#define ON_ENTER_TWICE(syscall, body)                                                                                 \
	SEC("tracepoint/syscalls/sys_enter_" #syscall)                                                                \
	int svc_enter_##syscall(struct enter *ctx)                                                                    \
	{                                                                                                             \
		return body;                                                                                          \
	}                                                                                                             \
	SEC("tracepoint/syscalls/sys_enter_" #syscall)                                                                \
	int svc_again_enter_##syscall(struct enter *ctx)                                                              \
	{                                                                                                             \
		return is_remembered(ctx) ? 0 : body;                                                                 \
	}
#define ON_ENTER(syscall, direction, kind, is_socket, flags)                                                          \
	ON_ENTER_TWICE(syscall, on_enter(ctx, direction, kind, is_socket, flags, 0))

ON_ENTER(read, RECEIVED, svc_syscall_call_kind_buffer, false, 0)
ON_ENTER(readv, RECEIVED, svc_syscall_call_kind_vector, false, 0)
ON_ENTER(preadv2, RECEIVED, svc_syscall_call_kind_vector, false, 0)
ON_ENTER(recvfrom, RECEIVED, svc_syscall_call_kind_buffer, true, ctx->arguments[3])
ON_ENTER(recvmsg, RECEIVED, svc_syscall_call_kind_message, true, ctx->arguments[2])
ON_ENTER(recvmmsg, RECEIVED, svc_syscall_call_kind_messages, true, ctx->arguments[3])
ON_ENTER(write, SENT, svc_syscall_call_kind_buffer, false, 0)
ON_ENTER(writev, SENT, svc_syscall_call_kind_vector, false, 0)
ON_ENTER(pwritev2, SENT, svc_syscall_call_kind_vector, false, 0)
ON_ENTER(sendfile64, SENT, svc_syscall_call_kind_unseen, false, 0)

ON_ENTER_TWICE(sendto, on_enter(ctx, SENT, svc_syscall_call_kind_buffer, true, 0, ctx->arguments[4]))

/* struct msghdr, and struct mmsghdr, which starts with one, start with the peer's address. */
static __always_inline u64 name_of(u64 message)
{
	u64 name = 0;
	read_user(&name, sizeof(name), (void *)message);
	return name;
}

ON_ENTER_TWICE(sendmsg, on_enter(ctx, SENT, svc_syscall_call_kind_message, true, 0, name_of(ctx->arguments[1])))
ON_ENTER_TWICE(sendmmsg, on_enter(ctx, SENT, svc_syscall_call_kind_messages, true, 0, name_of(ctx->arguments[1])))

/* Between two descriptors, one of which is a pipe. */
SEC("tracepoint/syscalls/sys_enter_splice")
int svc_enter_splice(struct enter *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct svc_syscall_key from = key_of(id, ctx->arguments[0]), to = key_of(id, ctx->arguments[2]);
	struct svc_syscall_call call = {
		.time = bpf_ktime_get_ns(),
		.fd = to.fd,
		.nr = ctx->nr,
		.kind = svc_syscall_call_kind_unseen,
		.direction = SENT,
	};
	if (!bpf_map_lookup_elem(&connections, &to)) {
		if (!bpf_map_lookup_elem(&connections, &from))
			return 0;
		call.direction = RECEIVED;
		call.time = 0;
		call.fd = from.fd;
	}
	remember(id, &call);
	return 0;
}

/* Calls that create connections: `kind` is which, `address` the peer's sockaddr. */
static __always_inline int on_enter_setup(struct enter *ctx, u8 kind, u64 count)
{
	u64 id = bpf_get_current_pid_tgid();
	if (is_self(id) || ctx->arguments[0] >= FDS)
		return 0;
	struct svc_syscall_call call = {
		.address = ctx->arguments[1],
		.count = count,
		.fd = ctx->arguments[0],
		.nr = ctx->nr,
		.kind = kind,
	};
	remember(id, &call);
	return 0;
}

ON_ENTER_TWICE(connect, on_enter_setup(ctx, svc_syscall_call_kind_connect, 0))

SEC("tracepoint/syscalls/sys_enter_listen")
int svc_enter_listen(struct enter *ctx)
{
	return on_enter_setup(ctx, svc_syscall_call_kind_listen, 0);
}

ON_ENTER_TWICE(accept, on_enter_setup(ctx, svc_syscall_call_kind_accept, 0))

ON_ENTER_TWICE(accept4, on_enter_setup(ctx, svc_syscall_call_kind_accept, ctx->arguments[3]))
