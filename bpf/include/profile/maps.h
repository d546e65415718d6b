/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#pragma once
#include "layout.h"

/* How callers are found. User space writes these through its own mapping, in this order: rows, rules, pages, file, and
 * last the inode; it takes them away in the opposite one. Rows: behind what is counted. */
u32 pages[PAGES];
struct svc_unwind_rule rules[RULES];
struct svc_unwind_file files[FILES];

/* Settings, changed at any time. */
u32 include_kernel;
u32 self_pid;    /* 0: nobody is left out */
u32 active;      /* the table of counts that is written to: 0 or 1 */
u32 epoch;       /* stacks that were told before it changed are told again */
u64 period_ns;   /* the longest of all CPUs */
u32 cpu_turn;    /* how often sampling of CPUs was begun */
u32 waits_turn;  /* the same of waits: of those that began in one before, the end was not seen */
u64 page_bytes;

/* Counted since the load. */
u64 samples[SAMPLE_KINDS];
u64 samples_ns; /* CPU time that samples stand for, idle left out */
u64 idle;
u64 idle_ns;
u64 own; /* samples of `self_pid` */
u64 ends[STACK_ENDS];
u64 ring_full;
u64 counts_full[SAMPLE_KINDS];
u64 other_memory; /* a process whose settings are for the program that it ran before */
u64 other_thread; /* the interpreter's current thread was another one */

#ifdef OLD_KERNEL
/* To Linux 5.10 an element of a map, and so a section of data, has 4 MiB at most. */
#define ROW_PARTS 8
typedef u32 row_part[ROWS / ROW_PARTS];
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ROW_PARTS);
	__type(key, u32);
	__type(value, row_part);
} rows SEC(".maps");

static __always_inline u32 row_at(u32 index)
{
	u32 part = index / (ROWS / ROW_PARTS) & (ROW_PARTS - 1);
	u32 *row = bpf_map_lookup_elem(&rows, &part);
	return row ? row[index & (ROWS / ROW_PARTS - 1)] : 0;
}
#else
u32 rows[ROWS];

static __always_inline u32 row_at(u32 index)
{
	return rows[index & (ROWS - 1)];
}
#endif

/* What one sample needs, on one CPU. An event that interrupts another has its own. */
/* Stacks go to and fro between a program and its libraries. */
#define MAPPINGS 4

struct mapping {
	u64 start;
	u64 end;
	u64 offset;
	u64 file;
};

struct walk {
	u64 pc;
	u64 sp;
	u64 fp;
	u64 mm;
	u64 root;    /* of the tree of mappings */
	u64 hash;
	u64 frame;   /* that is looked at */
	u64 inner;   /* the interpreter's frame that is looked at */
	u64 last_ns; /* when this CPU was last sampled, in the turn `turn` */
	u64 vma;
	u64 start; /* the mapping that was found last */
	u64 end;
	u64 offset;
	u32 turn;
	u32 file;
	u32 stack_end;
	u32 runtime;     /* whether the process's settings are known */
	u32 is_private;  /* frames mean nothing outside of the process */
	u32 is_urgent;   /* frames have to be named while the process is there */
	u32 is_doubtful; /* code of a file without a table was walked through */
	u32 is_exact;    /* pc is where the code is, not where a call returns to */
	u32 is_chained;  /* fp comes from the record of a frame pointer */
	/* Indices in searches. Memory, since each way through a search would be a state of its own to the verifier if
	 * they were in registers. */
	volatile u32 low, high;
	struct svc_inode inode;
	struct svc_profile_process process;
	struct svc_count_key key;
	u64 node[32]; /* of the tree of mappings */
	struct mapping met[MAPPINGS]; /* in this stack, the last ones */
	u32 mappings;
#ifdef OLD_KERNEL
	volatile u64 branch; /* of the tree of mappings, that is looked at next */
#endif
	struct svc_stack_record user;
	struct svc_stack_record kernel;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SAMPLE_KINDS);
	__type(key, u32);
	__type(value, struct walk);
} walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * FILES);
	__type(key, struct svc_inode);
	__type(value, u32);
} inodes SEC(".maps");

/* By thread group. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct svc_profile_process);
} processes SEC(".maps");

/* Files and processes that user space was asked about, and when. */
struct asked_key {
	u64 first;  /* inode, or the process's memory */
	u32 second; /* device, or the process */
	u32 file;   /* ~0: asked about a file */
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct asked_key);
	__type(value, u64);
} asked SEC(".maps");

/* Stacks that were told, by hash, and in which epoch. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, u32);
} seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring SEC(".maps");

/* One is written to while the other is read and emptied. */
struct counts {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct svc_count_key);
	__type(value, struct svc_count);
} counts_even SEC(".maps"), counts_odd SEC(".maps");

static __always_inline u64 mixed(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

static __always_inline u64 named(u64 hash)
{
	hash &= HASH_MASK;
	return hash ? hash : 1;
}

static __always_inline void add(u64 *counter, u64 value)
{
	__sync_fetch_and_add(counter, value);
}
