/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Finds the mapping and file of an address in the process. `bpf_find_vma` works only once per interrupt, so the tree
 * of mappings is read from memory: lib/maple_tree.c since Linux 6.1, lib/rbtree.c before. */
#pragma once
#include "maps.h"
#include "ask.h"

/* A member of the mapping in `node`. */
#define OF_VMA(w, member) ((w)->node[bpf_core_field_offset(struct vm_area_struct, member) / 8 & 31])

static __always_inline bool read_vma(struct walk *w)
{
	/* One read up to the last member. */
	u64 size = bpf_core_field_offset(struct vm_area_struct, vm_file) + 8;
	return size <= sizeof(w->node) && !bpf_probe_read_kernel(w->node, size, (void *)w->vma);
}

#ifdef OLD_KERNEL
#define LEVELS 40 /* a balanced tree of 65,530 mappings (vm.max_map_count) has 32 */

static __always_inline u64 root_of(struct mm_struct *mm)
{
	return (u64)BPF_CORE_READ(mm, mm_rb.rb_node);
}

static __always_inline bool find_vma(struct walk *w, u64 address)
{
	w->branch = w->root;
	for (u32 level = 0; level < LEVELS; level++) {
		if (!w->branch)
			return false;
		w->vma = w->branch - bpf_core_field_offset(struct vm_area_struct, vm_rb);
		if (!read_vma(w))
			return false;
		if (address < OF_VMA(w, vm_start))
			w->branch = OF_VMA(w, vm_rb.rb_left);
		else if (address >= OF_VMA(w, vm_end))
			w->branch = OF_VMA(w, vm_rb.rb_right);
		else
			return true;
	}
	return false;
}
#else
#define NODE_BYTES 256ull /* nodes are aligned to their size; the low bits of a pointer contain the node's type */
#define LEVELS 8
#define WORD(type, member) (bpf_core_field_offset(type, member) / 8)
#define WORDS(type, member) (bpf_core_field_size(type, member) / 8)

static __always_inline u64 root_of(struct mm_struct *mm)
{
	return (u64)mm->mm_mt.ma_root;
}

/* Word of the node with the pointer that leads to the address. */
static __always_inline u32 slot_of(struct walk *w, u32 type, u64 address)
{
	bool wide = type == bpf_core_enum_value(enum maple_type, maple_arange_64);
	u32 pivots = wide ? WORDS(struct maple_arange_64, pivot) : WORDS(struct maple_range_64, pivot);
	u32 pivot = wide ? WORD(struct maple_arange_64, pivot) : WORD(struct maple_range_64, pivot);
	u32 slot = wide ? WORD(struct maple_arange_64, slot) : WORD(struct maple_range_64, slot);
	u32 meta = wide ? bpf_core_field_offset(struct maple_arange_64, meta)
			: bpf_core_field_offset(struct maple_range_64, meta);
	u32 end = pivots;
	/* The other kind stores its end in the last slot, if that is free. */
	if (wide || !w->node[(pivot + pivots - 1) & 31])
		end = ((u8 *)w->node)[meta & (NODE_BYTES - 1)];
	w->low = end;
	for (u32 i = 0; i < 15; i++) {
		if (i >= end)
			break;
		u64 last = w->node[(pivot + i) & 31];
		if (address <= last || (!last && i)) {
			w->low = i;
			break;
		}
	}
	return (slot + w->low) & 31;
}

static __always_inline bool find_vma(struct walk *w, u64 address)
{
	u64 entry = w->root;
	for (u32 level = 0; level < LEVELS; level++) {
		if (entry <= 4096) /* not a pointer */
			return false;
		u32 type = entry >> 3 & 15;
		if (bpf_probe_read_kernel(w->node, sizeof(w->node), (void *)(entry & ~(NODE_BYTES - 1))))
			return false;
		entry = w->node[slot_of(w, type, address)];
		if (type == bpf_core_enum_value(enum maple_type, maple_leaf_64)) {
			w->vma = entry;
			return entry > 4096;
		}
	}
	return false;
}
#endif

static __always_inline void set_file(struct walk *w)
{
	struct file *file = (void *)OF_VMA(w, vm_file);
	w->file = 0;
	if (file) {
		struct inode *inode = BPF_CORE_READ(file, f_inode);
		w->inode.inode = BPF_CORE_READ(inode, i_ino);
		w->inode.dev = BPF_CORE_READ(inode, i_sb, s_dev);
		w->inode.generation = BPF_CORE_READ(inode, i_generation);
	} else {
		struct mm_struct *mm = (void *)w->mm;
		/* A 32-bit program has a different vDSO, at an address that it can reach. */
		if ((u64)BPF_CORE_READ(mm, context.vdso) != w->start || !(w->start >> 32))
			return;
		w->inode.inode = 0;
		w->inode.dev = w->inode.generation = 0;
	}
	u32 *id = bpf_map_lookup_elem(&inodes, &w->inode);
	if (id) {
		w->file = *id & (FILES - 1);
	} else if (file) {
		w->is_doubtful = true;
		ask_file(w);
	}
}

/* A mapping that this stack was in before. */
static __always_inline bool find_met(struct walk *w, u64 address)
{
	for (u32 i = 0; i < MAPPINGS; i++) {
		struct mapping *met = &w->met[i];
		if (i >= w->mappings)
			break;
		if (address < met->start || address >= met->end)
			continue;
		w->start = met->start;
		w->end = met->end;
		w->offset = met->offset;
		w->file = met->file;
		return true;
	}
	return false;
}

static __always_inline void keep_mapping(struct walk *w)
{
	u32 i = w->mappings;
	if (i >= MAPPINGS)
		return;
	w->met[i].start = w->start;
	w->met[i].end = w->end;
	w->met[i].offset = w->offset;
	w->met[i].file = w->file;
	w->mappings = i + 1;
}

/* Sets the mapping that contains code at an address. False: there is none. */
static __noinline bool find_mapping(struct walk *w, u64 address)
{
	if (find_met(w, address))
		return true;
	w->end = 0;
	if (!find_vma(w, address) || !read_vma(w))
		return false;
	u64 start = OF_VMA(w, vm_start), end = OF_VMA(w, vm_end);
	/* Read while the process may change it: a freed mapping may have been reused. */
	if (address < start || address >= end || !(OF_VMA(w, vm_flags) & VM_EXEC) || OF_VMA(w, vm_mm) != w->mm)
		return false;
	w->start = start;
	w->end = end;
	w->offset = OF_VMA(w, vm_pgoff) * page_bytes;
	set_file(w);
	if (w->file) {
		struct svc_unwind_file *file = &files[w->file & (FILES - 1)];
		if (!file->used)
			file->used = 1;
		if (file->runtime == svc_runtime_address)
			w->file = 0;
		else if (file->runtime && !w->runtime)
			ask_runtime(w);
	}
	keep_mapping(w);
	return true;
}
