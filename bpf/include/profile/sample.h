/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Shared by all samples: identity, reports of new stacks, counts. */
#pragma once
#include "maps.h"
#include "request.h"

/* Describes the current task, without its stacks. False: it is excluded. */
static __always_inline bool begin_sample(struct walk *w, u32 kind)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 pid = id >> 32;
	if (self_pid && pid == self_pid) {
		add(&own, 1);
		return false;
	}
	add(&samples[kind], 1);
	w->key.user = w->key.kernel = 0;
	w->key.request = request_of(kind == svc_sample_kind_off_cpu);
	w->key.pid = pid;
	w->key.kind = kind;
	bpf_get_current_comm(w->key.comm, sizeof(w->key.comm));
	return true;
}

/* Reports a stack with `frames` frames, unless already reported. `again`: it is reported the next time, too. */
static __always_inline void tell(struct walk *w, struct svc_stack_record *record, u32 kind, u32 frames, bool again)
{
	u32 now = epoch;
	u32 *told = bpf_map_lookup_elem(&seen, &record->hash);
	if (told && *told == now)
		return;
	record->kind = kind;
	record->pid = w->key.pid;
	__builtin_memcpy(record->comm, w->key.comm, sizeof(record->comm));
	u64 size = offsetof(struct svc_stack_record, frame) + 8 * (frames & 255);
	/* The reader comes regularly, but the ring must not be full by then. */
	bool is_late = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > 256 << 10;
	if (bpf_ringbuf_output(&ring, record, size, is_late ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP)) {
		add(&ring_full, 1);
		return;
	}
	if (!again)
		bpf_map_update_elem(&seen, &record->hash, &now, BPF_ANY);
}

/* Takes the kernel stack of a task that runs in the kernel, without its `skip` innermost frames. */
static __always_inline void take_kernel_stack(struct walk *w, void *context, u64 skip)
{
	if (!include_kernel)
		return;
	long bytes = bpf_get_stack(context, w->kernel.frame, 8 * FRAMES, skip);
	if (bytes <= 0)
		return;
	u32 count = bytes / 8;
	u64 hash = 0x6b65726e656c0001ull; /* distinct from user stacks */
	for (u32 i = 0; i < FRAMES; i++) {
		if (i >= count)
			break;
		hash = mixed(hash, w->kernel.frame[i]);
	}
	w->key.kernel = w->kernel.hash = named(hash);
	w->kernel.frames = count;
	w->kernel.inner = 0;
	w->kernel.end = count < FRAMES ? svc_stack_end_complete : svc_stack_end_truncated;
	tell(w, &w->kernel, svc_stack_record_kind_kernel, count, false);
}

/* Hashes the stack in `user` with its end, and reports it. */
static __always_inline void finish_user_stack(struct walk *w)
{
	u32 end = w->stack_end & (STACK_ENDS - 1);
	add(&ends[end], 1);
	if (!w->user.frames)
		return;
	u64 hash = mixed(w->hash, end);
	if (w->is_private)
		hash = mixed(mixed(hash, w->key.pid), w->mm);
	w->key.user = w->user.hash = named(hash);
	w->user.end = end;
	tell(w, &w->user, svc_stack_record_kind_user, (u32)w->user.frames + w->user.inner,
	     end == svc_stack_end_unknown_file);
}

static __always_inline void count_in(void *map, struct svc_count_key *key, u64 count, u64 value)
{
	struct svc_count *known = bpf_map_lookup_elem(map, key);
	if (!known) {
		struct svc_count first = { .count = count, .value = value };
		long error = bpf_map_update_elem(map, key, &first, BPF_NOEXIST);
		if (!error)
			return;
		if (error == -EEXIST) /* another CPU was first */
			known = bpf_map_lookup_elem(map, key);
		if (!known) {
			if (key->kind < SAMPLE_KINDS)
				add(&counts_full[key->kind], count);
			return;
		}
	}
	add(&known->count, count);
	add(&known->value, value);
}

static __always_inline void count_sample(struct svc_count_key *key, u64 count, u64 value)
{
	u32 table = active & 1;
	if (table)
		count_in(&counts_odd, key, count, value);
	else
		count_in(&counts_even, key, count, value);
	/* After the count: if the table is read in between, it is read once more. */
	counted[table] = 1;
}
