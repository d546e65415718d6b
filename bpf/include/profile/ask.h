/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Questions to user space. The process may end soon, so each one wakes the reader. */
#pragma once
#include "maps.h"

#define FILE_AGAIN_NS 1000000000ull
#define RUNTIME_AGAIN_NS 10000000000ull

/* Whether to ask: not done recently. */
static __always_inline bool is_due(struct asked_key *key, u64 again_ns)
{
	u64 now = bpf_ktime_get_ns();
	u64 *last = bpf_map_lookup_elem(&asked, key);
	if (last && now - *last < again_ns)
		return false;
	bpf_map_update_elem(&asked, key, &now, BPF_ANY);
	return true;
}

static __always_inline void forget_question(struct asked_key *key)
{
	bpf_map_delete_elem(&asked, key);
	add(&ring_full, 1);
}

static __noinline int ask_file(struct walk *w)
{
	struct asked_key key = { .first = w->inode.inode, .second = w->inode.dev, .file = ~0u };
	if (!is_due(&key, FILE_AGAIN_NS))
		return 0;
	struct svc_file_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record) {
		forget_question(&key);
		return 0;
	}
	record->kind = svc_stack_record_kind_file;
	record->pid = w->key.pid;
	record->inode = w->inode.inode;
	record->dev = w->inode.dev;
	record->generation = w->inode.generation;
	record->start = w->start;
	record->end = w->end;
	record->offset = w->offset;
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
	return 0;
}

static __noinline int ask_runtime(struct walk *w)
{
	struct asked_key key = { .first = w->mm, .second = w->key.pid, .file = w->file };
	if (!is_due(&key, RUNTIME_AGAIN_NS))
		return 0;
	struct svc_runtime_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record) {
		forget_question(&key);
		return 0;
	}
	record->kind = svc_stack_record_kind_runtime;
	record->pid = w->key.pid;
	record->mm = w->mm;
	record->start = w->start;
	record->offset = w->offset;
	record->file = w->file;
	record->pad = 0;
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
	return 0;
}
