/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Reads inside TLS for the back end "syscalls" on Linux 5.10 and later: at the functions where programs exchange
 * plaintext with their library, OpenSSL or GnuTLS. Keys are neither needed nor read. Shares the maps of syscalls.bpf.c,
 * whose programs call this one for each call of a thread that uses TLS. */
#include "include/syscalls-inside.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Processes whose plaintext must not be read, by thread group id. Written by the agent. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u8);
} tls_denied SEC(".maps");

int svc_tls_call(struct exit *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, STAGES);
	__uint(key_size, 4);
	__array(values, int(void *));
} stages SEC(".maps") = {
	.values = {
		[STAGE_TLS] = (void *)&svc_tls_call,
	},
};

/* A system call of a thread that uses TLS moved bytes. No function calls: arm64 kernels before 6.0 reject them together
 * with the tail call. */
static __always_inline int on_tls_call(struct exit *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct work *w = work_of();
	struct tls_thread *t = bpf_map_lookup_elem(&tls_threads, &id);
	if (!w)
		return 0;
	if (t) {
		struct svc_syscall_key key = key_of(id, w->call.fd);
		if (t->session && has_left(t))
			t->session = 0;
		if (t->session ? on_nested(ctx, w, t, key) : on_carried(ctx, w, t, key))
			return 0;
	}
	bpf_tail_call(ctx, &stages, STAGE_REST);
	return 0;
}

SEC("tracepoint")
int svc_tls_call(struct exit *ctx)
{
	return ended(on_tls_call(ctx));
}

static __always_inline bool is_left_alone(u64 id, u64 session)
{
	u32 tgid = id >> 32;
	return is_self(id) || session <= AMBIGUOUS || bpf_map_lookup_elem(&tls_denied, &tgid);
}

static __always_inline int on_enter(const struct call_registers *regs, u32 function)
{
	u64 id = bpf_get_current_pid_tgid();
	struct tls_key key = { .session = CALL_ARG0(regs), .tgid = id >> 32 };
	if (is_left_alone(id, key.session))
		return 0;
	struct tls_thread *t = bpf_map_lookup_elem(&tls_threads, &id);
	if (!t) {
		struct tls_thread made = {};
		bpf_map_update_elem(&tls_threads, &id, &made, BPF_NOEXIST);
		t = bpf_map_lookup_elem(&tls_threads, &id);
	}
	if (!t) {
		count(svc_counter_storage_full);
		return 0;
	}
	if (!call_begins(t, regs, function))
		return 0;
	if (!bpf_map_lookup_elem(&tls_sessions, &key)) {
		if (!may_have_session(ring_owner())) {
			count(svc_counter_storage_full);
			return 0;
		}
		struct tls_binding made = {};
		bpf_map_update_elem(&tls_sessions, &key, &made, BPF_NOEXIST);
	}
	return 0;
}

/* One program per function: programs can identify the function only since Linux 5.15. */
SEC("uprobe")
int svc_tls_read(struct pt_regs *ctx)
{
	return on_enter((void *)ctx, svc_tls_function_read);
}

SEC("uprobe")
int svc_tls_write(struct pt_regs *ctx)
{
	return on_enter((void *)ctx, svc_tls_function_write);
}

SEC("uprobe")
int svc_tls_read_ex(struct pt_regs *ctx)
{
	return on_enter((void *)ctx, svc_tls_function_read_ex);
}

SEC("uprobe")
int svc_tls_write_ex(struct pt_regs *ctx)
{
	return on_enter((void *)ctx, svc_tls_function_write_ex);
}

SEC("uprobe")
int svc_tls_handshake(struct pt_regs *ctx)
{
	return on_enter((void *)ctx, svc_tls_function_handshake);
}

SEC("uprobe")
int svc_tls_free(struct pt_regs *ctx)
{
	const struct call_registers *regs = (void *)ctx;
	u64 id = bpf_get_current_pid_tgid();
	struct tls_key key = { .session = CALL_ARG0(regs), .tgid = id >> 32 };
	return is_left_alone(id, key.session) ? 0 : forget_session(ctx, &key);
}

SEC("uretprobe")
int svc_tls_return(struct pt_regs *ctx)
{
	const struct call_registers *regs = (void *)ctx;
	u64 id = bpf_get_current_pid_tgid();
	struct tls_thread *t = bpf_map_lookup_elem(&tls_threads, &id);
	if (!t || !call_returns(t, regs))
		return 0;
	struct tls_key key = { .session = t->session, .tgid = id >> 32 };
	t->session = 0;
	t->deeper = 0;
	u32 bytes = call_moved(t, regs);
	bool writes = direction_of(t, RECEIVED, SENT) == SENT;
	struct tls_binding *s = bpf_map_lookup_elem(&tls_sessions, &key);
	if (!s)
		return 0;
	if (!t->nested && s->confirmed < 2 && call_carried(t, s, key.session, writes, bytes))
		on_found(ctx, &key, s);
	if (bytes)
		on_plaintext(ctx, &key, s, t, bytes);
	return 0;
}
