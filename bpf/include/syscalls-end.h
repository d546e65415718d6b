/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* End of a connection: by close(2) and similar calls, or by the end of the process; and other changes of a
 * descriptor. */
#pragma once
#include "syscalls-context.h"
#include "syscalls-record.h"

static __always_inline void forget_fd(void *ctx, u64 id, u32 fd)
{
	struct svc_syscall_key key = key_of(id, fd);
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &key);
	if (!c) {
		bpf_map_delete_elem(&others, &key);
		return;
	}
	if (c->state == svc_syscall_state_followed)
		put_closed(ctx, c);
	bpf_map_delete_elem(&connections, &key);
}

/* This thread shuts a socket. Requests its ends if they are unknown. */
static __always_inline void expect_ends(u64 id, u32 fd)
{
	struct svc_syscall_key key = key_of(id, fd);
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &key);
	if (!c || c->known || c->state != svc_syscall_state_followed) {
		struct closing *old = bpf_map_lookup_elem(&closings, &id);
		if (old)
			old->id = 0;
		return;
	}
	struct closing closing = { .id = c->id, .time = bpf_ktime_get_ns(), .local_port = c->local_port };
	bpf_map_update_elem(&closings, &id, &closing, BPF_ANY);
}

static __always_inline int on_enter_close(struct enter *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct svc_syscall_settings *s = settings_of();
	if (!s || s->self_pid == id >> 32)
		return 0;
	u32 fd = ctx->arguments[0];
	if (s->magic && fd == s->magic) {
		s->magic = 0;
		s->self_pid = id >> 32;
		return 0;
	}
	expect_ends(id, fd);
	forget_fd(ctx, id, fd);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_close")
int svc_enter_close(struct enter *ctx)
{
	return on_enter_close(ctx);
}

/* If the first program was skipped, the connection still exists. */
SEC("tracepoint/syscalls/sys_enter_close")
int svc_again_enter_close(struct enter *ctx)
{
	struct svc_syscall_key key = key_of(bpf_get_current_pid_tgid(), ctx->arguments[0]);
	return bpf_map_lookup_elem(&connections, &key) ? on_enter_close(ctx) : 0;
}

/* Servers that shut their side send no more responses; clients may still read, unless both sides are shut. */
SEC("tracepoint/syscalls/sys_enter_shutdown")
int svc_enter_shutdown(struct enter *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 how = ctx->arguments[1];
	if (how == SHUT_RD || is_self(id))
		return 0;
	expect_ends(id, ctx->arguments[0]);
	struct svc_syscall_key key = key_of(id, ctx->arguments[0]);
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &key);
	if (c && c->state == svc_syscall_state_followed && (c->role == svc_syscall_role_server || how == SHUT_RDWR))
		put_closed(ctx, c);
	return 0;
}

/* Replaces the second descriptor. The new one is recognised by its bytes. */
static __always_inline int on_dup(struct enter *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	if (!is_self(id) && ctx->arguments[0] != ctx->arguments[1])
		forget_fd(ctx, id, ctx->arguments[1]);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_dup2")
int svc_enter_dup2(struct enter *ctx)
{
	return on_dup(ctx);
}

SEC("tracepoint/syscalls/sys_enter_dup3")
int svc_enter_dup3(struct enter *ctx)
{
	return on_dup(ctx);
}

/* User space checks its known connections of the process. */
static __always_inline void sweep(void *ctx, u64 id, u32 first, u32 last)
{
	u32 pid = id >> 32;
	if (!bpf_map_lookup_elem(&owners, &pid))
		return;
	struct svc_syscall_sweep record = {
		.kind = svc_syscall_kind_sweep,
		.pid = pid,
		.time_ns = bpf_ktime_get_ns(),
		.first = first,
		.last = last,
	};
	put(ctx, &record, sizeof(record));
}

SEC("tracepoint/syscalls/sys_enter_close_range")
int svc_enter_close_range(struct enter *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	if (!is_self(id))
		sweep(ctx, id, ctx->arguments[0], ctx->arguments[1]);
	return 0;
}

SEC("tracepoint/sched/sched_process_exit")
int svc_exit(void *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 pid = id >> 32;
	bpf_map_delete_elem(&calls, &id);
	bpf_map_delete_elem(&tls_threads, &id);
	if (pid != (u32)id) /* a thread; the process ends with its main thread */
		return 0;
	sweep(ctx, id, 0, ~0U);
	bpf_map_delete_elem(&owners, &pid);
	return 0;
}

/* Close-on-exec descriptors are closed by now. */
SEC("tracepoint/sched/sched_process_exec")
int svc_exec(void *ctx)
{
	sweep(ctx, bpf_get_current_pid_tgid(), 0, ~0U);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_fcntl")
int svc_enter_fcntl(struct enter *ctx)
{
	if (ctx->arguments[1] != F_SETFL)
		return 0;
	return set_blocking(bpf_get_current_pid_tgid(), ctx->arguments[0], !(ctx->arguments[2] & O_NONBLOCK));
}

SEC("tracepoint/syscalls/sys_enter_ioctl")
int svc_enter_ioctl(struct enter *ctx)
{
	if (ctx->arguments[1] != FIONBIO)
		return 0;
	u32 on = 0;
	read_user(&on, sizeof(on), (void *)ctx->arguments[2]);
	return set_blocking(bpf_get_current_pid_tgid(), ctx->arguments[0], !on);
}
