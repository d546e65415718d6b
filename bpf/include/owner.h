/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Owner of a process, for shares of common resources. Include after the kernel types. */
#pragma once
#include "fair.h"

#define NAMESPACES_MAX 33 /* maximum nesting of user namespaces in the kernel */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	const char *name;
};

struct cgroup {
	struct kernfs_node *kn;
	struct cgroup *ancestors[];
};

struct cgroup___numbers {
	int level;
	u64 ancestor_ids[];
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

typedef struct {
	u32 val;
} kuid_t;

struct user_namespace {
	struct user_namespace *parent;
	kuid_t owner;
};

struct cred {
	kuid_t uid;
	struct user_namespace *user_ns;
};

struct task_struct___owner {
	const struct cred *cred;
	struct css_set *cgroups;
};

#pragma clang attribute pop

/* Whether the process is in a Kubernetes group: quality of service, pod, container. */
static __always_inline bool is_in_pod(struct task_struct *task)
{
	if (!bpf_core_field_exists(struct cgroup, ancestors)) /* before Linux 6.1 */
		return false;
	void *group = BPF_CORE_READ((struct task_struct___owner *)task, cgroups, dfl_cgrp);
	struct cgroup *top = 0;
	char name[8] = {};
	bpf_probe_read_kernel(&top, sizeof(top), group + bpf_core_field_offset(struct cgroup, ancestors) + sizeof(top));
	bpf_probe_read_kernel(name, sizeof(name), BPF_CORE_READ(top, kn, name));
	return *(u64 *)name == ('k' | 'u' << 8 | 'b' << 16 | (u64)'e' << 24 | (u64)'p' << 32 | (u64)'o' << 40 | (u64)'d' << 48 |
				(u64)'s' << 56);
}

/* Responsible user: for users of a user namespace, the one who created it. */
static __always_inline u32 user_of(struct task_struct *task)
{
	struct task_struct___owner *of = (void *)task;
	u32 user = BPF_CORE_READ(of, cred, uid.val);
	struct user_namespace *inner = BPF_CORE_READ(of, cred, user_ns);
	for (int i = 0; i < NAMESPACES_MAX; i++) {
		struct user_namespace *outer = BPF_CORE_READ(inner, parent);
		if (!outer)
			break;
		user = BPF_CORE_READ(inner, owner.val);
		inner = outer;
	}
	return user;
}

/* Control group of the current process at a level; 0: none. */
static __always_inline u64 group_at(struct task_struct *task, u32 level)
{
#ifdef OLD_KERNEL
	/* Tracing programs have the helper since Linux 5.15; 6.1 stores the groups themselves instead of their
	 * numbers. */
	struct cgroup___numbers *group = (void *)BPF_CORE_READ((struct task_struct___owner *)task, cgroups, dfl_cgrp);
	u64 id = 0;
	if (bpf_core_field_exists(group->ancestor_ids) && BPF_CORE_READ(group, level) >= (int)level)
		bpf_probe_read_kernel(&id, sizeof(id),
				      (void *)group + bpf_core_field_offset(group->ancestor_ids) + level * sizeof(id));
	return id;
#else
	return bpf_get_current_ancestor_cgroup_id(level);
#endif
}

/* Number of the current process's owner, never 0. Its group is a unit, a container, a pod, or everything of a user
 * (user.slice): the levels of control groups that only root creates. Subgroups and users share within the group.
 * Outside groups each user is one. */
__noinline int svc_owner(void)
{
	struct task_struct *task = current_task();
	u64 user = user_of(task), second = group_at(task, 2), third = group_at(task, 3);
	u64 group = third && is_in_pod(task) ? third : second;
	if (!group)
		group = group_at(task, 1);
	if (!group)
		group = group_of_user(user);
	return owner_number(group, third + (user << 32));
}
