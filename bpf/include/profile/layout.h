/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Data that the profiler shares with user space: tables, keys, counts and records. The same numbers are in
 * src/foundation/model/unwind-table.ts and src/foundation/model/raw-stack.ts. */
#pragma once
#include "kernel.h"

#define FRAMES 127
#define ROWS (2u << 20)
#define PAGES (16u << 10)
#define RULES 4096u
#define FILES 4096u

/* Bits of a stack's hash: whole numbers in JavaScript. */
#define HASH_MASK ((1ull << 53) - 1)
#define ADDRESS_MASK ((1ull << 48) - 1)

enum svc_unwind_cfa {
	svc_unwind_cfa_none,
	svc_unwind_cfa_rbp,
	svc_unwind_cfa_rsp,
	svc_unwind_cfa_plt,
	svc_unwind_cfa_deref_rbp,
	svc_unwind_cfa_stop,
	svc_unwind_cfa_unsupported,
	svc_unwind_cfa_signal,
	svc_unwind_cfa_deref_rsp,
	svc_unwind_cfa_frame_pointer,
};

enum svc_unwind_rbp { svc_unwind_rbp_kept, svc_unwind_rbp_saved, svc_unwind_rbp_undefined, svc_unwind_rbp_at_rbp };

struct svc_unwind_rule {
	u8 cfa;
	u8 rbp;
	s16 rbp_offset;
	s32 cfa_offset;
};

/* `pages` counts pages with code; one additional number ends the last. Page numbers count rows of the whole table. */
struct svc_unwind_file {
	u32 first_page;
	u32 pages;
	u32 first_row;
	u32 rows;
	u32 runtime;
	u32 used; /* set here, cleared by user space */
};

/* `address`: just-in-time memory that has an inode, rather than a file with code; frames are reported as addresses. */
enum svc_runtime { svc_runtime_none, svc_runtime_v8, svc_runtime_cpython, svc_runtime_address = 255 };

/* 0, 0, 0: the vDSO, in every process. The number of a deleted file is reused with another generation. */
struct svc_inode {
	u64 inode;
	u32 dev;
	u32 generation;
};

enum svc_stack_end {
	svc_stack_end_complete,
	svc_stack_end_no_mapping,
	svc_stack_end_unknown_file,
	svc_stack_end_no_rule,
	svc_stack_end_read_fault,
	svc_stack_end_truncated,
	svc_stack_end_unsupported,
	svc_stack_end_frame_pointer_end,
};
#define STACK_ENDS 8

/* The highest 16 bits of a frame, unless they are a file's id. */
enum svc_frame_space {
	svc_frame_space_address = 0,
	svc_frame_space_cpython = 0xfffd,
	svc_frame_space_v8 = 0xfffe,
};

enum svc_sample_kind { svc_sample_kind_cpu, svc_sample_kind_memory, svc_sample_kind_off_cpu };
#define SAMPLE_KINDS 3

/* How to read frames of a runtime in one process, while its memory is the one in `mm`. */
struct svc_profile_process {
	u64 mm;
	u64 python_runtime; /* 0: none */
	u32 v8_shared;      /* 0: none */
	u32 python_current_thread;
	u32 python_native_thread_id;
	u32 python_frame_holder;
	s32 python_frame_in_holder;
	u32 python_code;
	u32 python_previous;
	u32 python_entry;
};

enum svc_stack_record_kind {
	svc_stack_record_kind_user,
	svc_stack_record_kind_kernel,
	svc_stack_record_kind_file,
	svc_stack_record_kind_runtime,
};

/* Contains only as many frames as it counts: `frames`, then `inner`. */
struct svc_stack_record {
	u32 kind;
	u32 pid;
	u64 hash;
	u8 comm[16];
	u16 frames;
	u16 inner;
	u32 end;
	u64 frame[256];
};

struct svc_file_record {
	u32 kind;
	u32 pid;
	u64 inode;
	u64 start;
	u64 end;
	u64 offset;
	u32 dev;
	u32 generation;
};

struct svc_runtime_record {
	u32 kind;
	u32 pid;
	u64 mm;
	u64 start;
	u64 offset;
	u32 file;
	u32 pad;
};

struct svc_count_key {
	u64 user;
	u64 kernel;
	u64 request;
	u32 pid;
	u32 kind;
	u8 comm[16];
};

struct svc_count {
	u64 count;
	u64 value;
};

/* Keeps the types in BTF. */
const enum svc_unwind_cfa *unused_cfa __attribute__((unused));
const enum svc_unwind_rbp *unused_rbp __attribute__((unused));
const enum svc_runtime *unused_runtime __attribute__((unused));
const enum svc_stack_end *unused_end __attribute__((unused));
const enum svc_frame_space *unused_space __attribute__((unused));
const enum svc_sample_kind *unused_sample __attribute__((unused));
const enum svc_stack_record_kind *unused_kind __attribute__((unused));
const struct svc_file_record *unused_file __attribute__((unused));
const struct svc_runtime_record *unused_process __attribute__((unused));
