/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Programs that continue after an exit. */
#pragma once
#include "syscalls-exit.h"
#include "syscalls-opening.h"

/* Bytes of the next message of the same call. */
static __always_inline void next_message(void *ctx, struct work *w)
{
	u64 message = w->message;
	if (!message)
		return;
	struct svc_syscall_call call = { .kind = svc_syscall_call_kind_messages, .address = message };
	aim(w, &call, 1);
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &w->key);
	if (c && w->left)
		dispatch(ctx, w, c);
}

/* A call of a thread that uses TLS, but not for TLS. */
static __always_inline int on_rest(struct exit *ctx)
{
	struct work *w = work_of();
	if (!w)
		return 0;
	struct svc_syscall_call call = w->call;
	struct svc_syscall_key key = key_of(bpf_get_current_pid_tgid(), call.fd);
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &key);
	if (has_bytes(ctx, &call, key, &c))
		read_bytes(ctx, w, &call, key, c);
	return 0;
}

SEC("tracepoint")
int svc_rest(struct exit *ctx)
{
	return ended(on_rest(ctx));
}

static __always_inline int on_part(void *ctx)
{
	struct work *w = work_of();
	if (!w)
		return 0;
	if (gather(w))
		bpf_tail_call(ctx, &stages, STAGE_PART);
	u64 taken = w->taken;
	if (taken && taken <= w->left) {
		w->room -= taken;
		put_part(ctx, w, taken, taken);
		forget();
		w->taken = 0;
		w->want = w->room < PART ? w->room : PART;
		if (w->room && w->left)
			bpf_tail_call(ctx, &stages, STAGE_PART);
	}
	w->want = w->left;
	if (w->left)
		bpf_tail_call(ctx, &stages, STAGE_END);
	next_message(ctx, w);
	return 0;
}

SEC("tracepoint")
int svc_part(void *ctx)
{
	return ended(on_part(ctx));
}

static __always_inline bool skip_one(struct work *w)
{
	forget();
	if (!w->size && !next_buffer(w))
		return false;
	if (w->size >= w->want)
		return false;
	w->want -= w->size;
	w->size = 0;
	return true;
}

/* Bytes that are not captured, and their end if it is in one buffer. */
static __always_inline int on_end(void *ctx)
{
	struct work *w = work_of();
	if (!w)
		return 0;
	bool more = true;
#pragma unroll
	for (int i = 0; i < 8; i++) {
		if (!skip_one(w)) {
			more = false;
			break;
		}
	}
	forget();
	if (more)
		bpf_tail_call(ctx, &stages, STAGE_END);
	u64 tail = 0;
	if (w->size && w->size == w->want) {
		tail = w->want < TAIL ? w->want : TAIL;
		if (read_user(w->data, bounded(tail, PART_MASK), (void *)(w->base + w->size - tail)))
			tail = 0;
	}
	w->segment.tail = tail;
	put_part(ctx, w, tail, w->left);
	next_message(ctx, w);
	return 0;
}

SEC("tracepoint")
int svc_end(void *ctx)
{
	return ended(on_end(ctx));
}

static __always_inline int on_look(void *ctx)
{
	struct work *w = work_of();
	if (!w)
		return 0;
	if (gather(w) && w->rounds++ < ROUNDS)
		bpf_tail_call(ctx, &stages, STAGE_LOOK);
	look(w, bpf_map_lookup_elem(&connections, &w->key));
	bpf_tail_call(ctx, &stages, STAGE_OPENING);
	return 0;
}

SEC("tracepoint")
int svc_look(void *ctx)
{
	return ended(on_look(ctx));
}

/* No stage recognised the call. */
static __always_inline int not_recognised(struct work *w)
{
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &w->key);
	if (!c) {
		u64 one = w->is_socket ? 1 : 2, *misses = bpf_map_lookup_elem(&others, &w->key);
		if (misses)
			*misses += one;
		else
			bpf_map_update_elem(&others, &w->key, &one, BPF_ANY);
		return 0;
	}
	c->position[w->direction & 1] += w->left;
	if (c->misses++ < (c->joined ? MISSES_OLD : MISSES_NEW) - 1)
		return 0;
	c->state = svc_syscall_state_off;
	count(svc_counter_not_recognised);
	return 0;
}

/* The bytes of `w` open `protocol`. */
static __always_inline bool recognised(void *ctx, struct work *w, u8 protocol, u8 opens)
{
	struct svc_syscall_connection *c = bpf_map_lookup_elem(&connections, &w->key);
	u8 role = role_by(w, c, opens);
	if (!role)
		return false;
	if (!c) {
		c = make_joined(w->key);
		if (!c)
			return true;
	}
	if (follows(w, c, role, protocol))
		dispatch(ctx, w, c);
	return true;
}

static __always_inline int on_opening(void *ctx, u32 protocols, u32 next)
{
	struct work *w = work_of();
	struct svc_syscall_settings *s = settings_of();
	if (!w || !s)
		return 0;
	u32 enabled = s->enabled;
	struct opening found = classify(&w->head, enabled & protocols & ~BIT(http1));
	if (!found.opens && protocols & BIT(http1) && enabled & BIT(http1)) {
		found.opens = next ? opens_http1(&w->head) : may_open_http1(&w->head);
		found.protocol = svc_protocol_http1;
	}
	if (found.opens && recognised(ctx, w, found.protocol, found.opens))
		return 0;
	if (next)
		bpf_tail_call(ctx, &stages, next);
	return not_recognised(w);
}

SEC("tracepoint")
int svc_opening0(void *ctx)
{
	return ended(on_opening(ctx, BY_PREFACE, STAGE_OPENING + 1));
}

SEC("tracepoint")
int svc_opening1(void *ctx)
{
	return ended(on_opening(ctx, BY_COMMAND | BIT(http1), STAGE_OPENING + 2));
}

SEC("tracepoint")
int svc_opening2(void *ctx)
{
	return ended(on_opening(ctx, BY_MESSAGE, STAGE_OPENING + 3));
}

SEC("tracepoint")
int svc_opening3(void *ctx)
{
	return ended(on_opening(ctx, BY_NUMBERS | BY_PORT | BIT(http1), 0));
}
