/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Frames of CPython's own stack. */
#pragma once
#include "walk.h"

/* Number of the current thread in its own PID namespace, as from gettid(2), which CPython stores. */
static __always_inline u32 thread_id(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = BPF_CORE_READ(pid, level);
	u64 numbers = bpf_core_field_offset(struct pid, numbers);
	u32 number = 0;
	if (level < 32) /* MAX_PID_NS_LEVEL */
		bpf_core_read(&number, sizeof(number),
			      (void *)pid + numbers + level * bpf_core_type_size(struct upid) +
				      bpf_core_field_offset(struct upid, nr));
	return number;
}

static long python_frame(u32 index, void *context)
{
	struct walk *w = ((struct walk_context *)context)->walk;
	struct svc_profile_process *process = &w->process;
	u64 at = w->inner, code;
	u8 entry = 0;
	if (!at || !read_word(&code, at + process->python_code) || !code ||
	    !read_word(&w->inner, at + process->python_previous))
		return 1;
	if (process->python_entry)
		bpf_probe_read_user(&entry, 1, (void *)(at + process->python_entry));
	u64 frame = (u64)svc_frame_space_cpython << 48 | (code & ADDRESS_MASK & ~7ull) | !!entry;
	w->user.frame[(w->user.frames + index) & 255] = frame;
	w->user.inner = index + 1;
	w->hash = mixed(w->hash, frame);
	return 0;
}

#ifdef OLD_KERNEL
__noinline int python_step(u32 kind, u32 index)
{
	struct walk_context context = { .walk = bpf_map_lookup_elem(&walks, &kind) };
	return context.walk ? python_frame(index, &context) : 1;
}

static __always_inline void walk_python_frames(struct walk *w)
{
	for (u32 i = 0; i < FRAMES; i++)
		if (python_step(w->key.kind, i))
			break;
}
#else
static __always_inline void walk_python_frames(struct walk *w)
{
	struct walk_context context = { .walk = w };
	bpf_loop(FRAMES, python_frame, &context, 0);
}
#endif

/* Adds the interpreter's frames if it is running this thread: the one with the global lock. */
static __always_inline void walk_python(struct walk *w, struct task_struct *task)
{
	struct svc_profile_process *process = &w->process;
	u64 thread, holder;
	u32 number = 0;
	if (!process->python_runtime ||
	    !read_word(&thread, process->python_runtime + process->python_current_thread) || !thread)
		return;
	if (bpf_probe_read_user(&number, 4, (void *)(thread + process->python_native_thread_id)) ||
	    number != thread_id(task)) {
		add(&other_thread, 1);
		return;
	}
	if (!read_word(&holder, thread + process->python_frame_holder))
		return;
	if (process->python_frame_in_holder >= 0 && (!holder || !read_word(&holder, holder + process->python_frame_in_holder)))
		return;
	w->inner = holder;
	walk_python_frames(w);
	if (w->user.inner)
		w->is_private = true;
}
