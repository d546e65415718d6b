/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* From a function to its caller, by the rules of its file (System V ABI, AMD64; DWARF 5, 6.4) or by frame pointers. */
#pragma once
#include "mapping.h"

/* Larger frames are invalid. The limit is much lower if it is unknown whether code keeps frame pointers. */
#define FRAME_MOST (1ull << 20)
#define FRAME_DOUBTFUL (1ull << 16)

/* Offsets in a signal frame on x86-64: the return address is gone, ucontext_t is at rsp, its registers (struct
 * sigcontext: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip) start at offset 40. */
#define SIGNAL_RBP (40 + 8 * 10)
#define SIGNAL_RSP (40 + 8 * 15)

/* Result of follow if there is a caller. */
#define HAS_CALLER STACK_ENDS

struct walk_context {
	struct walk *walk;
};

static __always_inline bool read_word(u64 *to, u64 address)
{
	return !bpf_probe_read_user(to, 8, (void *)address);
}

static __always_inline struct svc_unwind_rule rule_at(struct walk *w, u64 offset)
{
	struct svc_unwind_rule none = {};
	struct svc_unwind_file *file = &files[w->file & (FILES - 1)];
	u64 page = offset >> 16;
	if (page >= file->pages)
		return none;
	u32 low16 = offset & 0xffff;
	w->low = pages[(file->first_page + page) & (PAGES - 1)];
	w->high = pages[(file->first_page + page + 1) & (PAGES - 1)];
	/* First row after the offset: at most 2^16 rows per page. */
	for (u32 i = 0; i < 17; i++) {
		u32 low = w->low, high = w->high;
		if (low >= high)
			break;
		u32 middle = low + (high - low) / 2;
		if (row_at(middle) >> 16 <= low16)
			w->low = middle + 1;
		else
			w->high = middle;
	}
	u32 behind = w->low;
	if (behind <= file->first_row || behind - file->first_row > file->rows)
		return none;
	return rules[row_at(behind - 1) & (RULES - 1)];
}

static __always_inline bool is_tagged(u64 word)
{
	return (word & 3) == 1 && !(word >> 48);
}

/* A JavaScript frame has its context at fp - 8 and its function at fp - 16; other frames have a small integer there
 * (V8, src/execution/frame-constants.h). Code moves and is compiled again, the reported object does not. */
static __always_inline void read_v8_frame(struct walk *w, const u64 *record)
{
	u64 shared;
	if (!is_tagged(record[1]) || !is_tagged(record[0]) || !read_word(&shared, record[0] - 1 + w->process.v8_shared))
		return;
	if (!is_tagged(shared))
		return;
	w->frame = (u64)svc_frame_space_v8 << 48 | (shared - 1);
	w->is_private = true;
}

static __always_inline u32 frame_pointer_failure(struct walk *w)
{
	/* The outermost frame pointer is cleared (System V ABI, AMD64, 3.4.1). */
	if (!w->fp && w->is_chained)
		return svc_stack_end_complete;
	return w->file && files[w->file & (FILES - 1)].rows ? svc_stack_end_no_rule : svc_stack_end_frame_pointer_end;
}

static __always_inline u32 follow_frame_pointer(struct walk *w, bool may_be_v8)
{
	u64 record[4], fp = w->fp;
	if (fp < w->sp || fp & 7 || fp - w->sp > (w->is_doubtful ? FRAME_DOUBTFUL : FRAME_MOST))
		return frame_pointer_failure(w);
	if (may_be_v8) {
		if (bpf_probe_read_user(record, 32, (void *)(fp - 16)))
			return svc_stack_end_read_fault;
		read_v8_frame(w, record);
	} else if (bpf_probe_read_user(record + 2, 16, (void *)fp)) {
		return svc_stack_end_read_fault;
	}
	w->fp = record[2];
	w->pc = RETURN_ADDRESS(record[3]);
	w->sp = fp + 16;
	w->is_chained = true;
	return w->pc ? HAS_CALLER : svc_stack_end_complete;
}

static __always_inline u32 follow_signal(struct walk *w)
{
	u64 registers[2];
	if (!read_word(&w->fp, w->sp + SIGNAL_RBP) || bpf_probe_read_user(registers, 16, (void *)(w->sp + SIGNAL_RSP)))
		return svc_stack_end_read_fault;
	w->sp = registers[0];
	w->pc = registers[1];
	w->is_exact = true;
	w->is_chained = false;
	return HAS_CALLER;
}

static __always_inline u32 follow_cfa(struct walk *w, const struct svc_unwind_rule *rule, u64 cfa)
{
	u64 saved[2] = { w->fp, 0 }; /* rbp and the return address, as saved by a function's first instruction */
	bool together = rule->rbp == svc_unwind_rbp_saved && rule->rbp_offset == -16;
	if (together ? bpf_probe_read_user(saved, 16, (void *)(cfa - 16)) : !read_word(&saved[1], cfa - 8))
		return svc_stack_end_read_fault;
	if (!together && rule->rbp == svc_unwind_rbp_saved && !read_word(&saved[0], cfa + rule->rbp_offset))
		return svc_stack_end_read_fault;
	if (rule->rbp == svc_unwind_rbp_at_rbp && !read_word(&saved[0], w->fp + rule->rbp_offset))
		return svc_stack_end_read_fault;
	if (rule->rbp == svc_unwind_rbp_undefined)
		saved[0] = 0;
	if (rule->rbp != svc_unwind_rbp_kept)
		w->is_chained = false;
	w->pc = RETURN_ADDRESS(saved[1]);
	w->fp = saved[0];
	w->sp = cfa;
	return w->pc ? HAS_CALLER : svc_stack_end_complete;
}

/* Moves to the caller, or returns why there is none. */
static __always_inline u32 follow(struct walk *w, u64 pc, u64 offset)
{
	struct svc_unwind_rule rule = {};
	if (w->file)
		rule = rule_at(w, offset);
	w->is_exact = false;
	u64 cfa = 0;
	switch (rule.cfa) {
	case svc_unwind_cfa_none: {
		u32 runtime = w->file ? files[w->file & (FILES - 1)].runtime : svc_runtime_v8;
		return follow_frame_pointer(w, w->process.v8_shared && runtime == svc_runtime_v8);
	}
	case svc_unwind_cfa_frame_pointer:
		return follow_frame_pointer(w, false);
	case svc_unwind_cfa_stop:
		return svc_stack_end_complete;
	case svc_unwind_cfa_signal:
		return follow_signal(w);
	case svc_unwind_cfa_rsp:
		cfa = w->sp + rule.cfa_offset;
		break;
	case svc_unwind_cfa_rbp:
		cfa = w->fp + rule.cfa_offset;
		break;
	case svc_unwind_cfa_plt:
		cfa = w->sp + 8 + ((pc & 15) >= 11 ? 8 : 0);
		break;
	case svc_unwind_cfa_deref_rbp:
	case svc_unwind_cfa_deref_rsp:
		cfa = rule.cfa == svc_unwind_cfa_deref_rsp ? w->sp : w->fp;
		if (!read_word(&cfa, cfa + (s16)rule.cfa_offset))
			return svc_stack_end_read_fault;
		cfa += rule.cfa_offset >> 16;
		break;
	default:
		return svc_stack_end_unsupported;
	}
	return follow_cfa(w, &rule, cfa);
}

static long walk_frame(u32 index, void *context)
{
	struct walk *w = ((struct walk_context *)context)->walk;
	u64 pc = w->pc;
	/* A call may be the last instruction of its function: the return address then belongs to the next one. */
	u64 at = w->is_exact ? pc : pc - 1;
	if ((at < w->start || at >= w->end) && !find_mapping(w, at)) {
		w->stack_end = svc_stack_end_no_mapping;
		return 1;
	}
	u64 offset = at - w->start + w->offset;
	if (w->file) {
		w->frame = (u64)w->file << 48 | (offset & ADDRESS_MASK);
	} else {
		w->frame = at & ADDRESS_MASK;
		w->is_private = true;
	}
	u32 end = follow(w, pc, offset);
	w->user.frame[index & (FRAMES)] = w->frame;
	w->user.frames = index + 1;
	w->hash = mixed(w->hash, w->frame);
	if (end == HAS_CALLER)
		return 0;
	w->stack_end = end;
	return 1;
}

#ifdef OLD_KERNEL
/* The helper bpf_loop exists since Linux 5.17. A function without pointers is verified separately, and so is each
 * iteration. */
__noinline int walk_step(u32 kind, u32 index)
{
	struct walk_context context = { .walk = bpf_map_lookup_elem(&walks, &kind) };
	return context.walk ? walk_frame(index, &context) : 1;
}

static __always_inline void walk_frames(struct walk *w)
{
	for (u32 i = 0; i < FRAMES; i++)
		if (walk_step(w->key.kind, i))
			break;
}
#else
static __always_inline void walk_frames(struct walk *w)
{
	struct walk_context context = { .walk = w };
	bpf_loop(FRAMES, walk_frame, &context, 0);
}
#endif

/* Walks up from the registers in `w`, into `user`. */
static __always_inline void walk_stack(struct walk *w)
{
	w->start = w->end = 0;
	w->mappings = 0;
	w->is_private = w->is_doubtful = w->is_chained = false;
	w->is_exact = true;
	w->stack_end = svc_stack_end_truncated;
	walk_frames(w);
	if (w->is_doubtful)
		w->stack_end = svc_stack_end_unknown_file;
}
