/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#pragma once
#include "layout.h"

/* How callers are found. User space writes these through its own mapping, in this order: rows, rules, pages, file,
 * and last the inode; it removes them in reverse. Rows: after the counted ones. */
u32 pages[PAGES];
struct svc_unwind_rule rules[RULES];
struct svc_unwind_file files[FILES];

/* Settings, which may change at any time. */
u32 include_kernel;
u32 self_pid;    /* 0: no process is excluded */
u32 active;      /* index of the table of counts being written: 0 or 1 */
u32 counted[2];  /* set after a count in each table, cleared by user space before it reads the table */
u32 epoch;       /* stacks reported before a change are reported again */
u64 period_ns;   /* the longest of all CPUs */
u32 cpu_turn;    /* number of times that CPU sampling was started */
u32 waits_turn;  /* the same for waits: the end of a wait from an earlier one was missed */
u64 page_bytes;

/* Counted since the load. */
u64 samples[SAMPLE_KINDS];
u64 samples_ns; /* CPU time that samples represent, without idle time */
u64 idle;
u64 idle_ns;
u64 own; /* samples of `self_pid` */
u64 ends[STACK_ENDS];
u64 ring_full;
u64 counts_full[SAMPLE_KINDS];
u64 other_memory; /* a process whose settings are for a previous program */
u64 other_thread; /* another thread was the interpreter's current one */

#ifdef OLD_KERNEL
/* Up to Linux 5.10, a map element, and hence a data section, has at most 4 MiB. */
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

/* State of one sample on one CPU. An event that interrupts another has its own. */
/* Stacks alternate between a program and its libraries. */
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
	u64 frame;   /* current frame */
	u64 inner;   /* current frame of the interpreter */
	u64 last_ns; /* last sample of this CPU, in the turn `turn` */
	u64 vma;
	u64 start; /* last mapping found */
	u64 end;
	u64 offset;
	u32 turn;
	u32 file;
	u32 stack_end;
	u32 runtime;     /* whether the process's settings are known */
	u32 is_private;  /* frames are valid only within the process */
	u32 is_doubtful; /* the walk crossed code of a file without a table */
	u32 is_exact;    /* pc is the code's own address, not a return address */
	u32 is_chained;  /* fp comes from a frame pointer's record */
	/* Indices in searches. In memory, since in registers each path through a search would be a state of its own
	 * to the verifier. */
	volatile u32 low, high;
	struct svc_inode inode;
	struct svc_profile_process process;
	struct svc_count_key key;
	u64 node[32]; /* of the tree of mappings */
	struct mapping met[MAPPINGS]; /* last ones in this stack */
	u32 mappings;
#ifdef OLD_KERNEL
	volatile u64 branch; /* next branch of the tree of mappings */
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

/* Files and processes that user space was asked about, with the time. */
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

/* Reported stacks by hash, with their epoch. */
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

/* One is written while the other is read and cleared. */
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
