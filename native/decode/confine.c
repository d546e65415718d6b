#define _GNU_SOURCE
#include "confine.h"

#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define NOBODY 65534
#define MEMORY_BYTES (64ul * 1024 * 1024)
// More than stack-allocated expansions may take: see demangle.c.
#define STACK_BYTES (16ul * 1024 * 1024)
// Of its whole life: it is restarted afterwards.
#define CPU_SECONDS 60
#define MOST_DESCRIPTORS 65536

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

static void close_others(void)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, 2u, ~0u, 0u) == 0)
		return;
#endif
	for (int fd = 2; fd < MOST_DESCRIPTORS; fd++)
		close(fd);
}

static void limit(int what, rlim_t most)
{
	// If an operator's seccomp filter rejects it, the other measures remain.
	setrlimit(what, &(struct rlimit){ most, most });
}

// Another user if permitted; no capability in any case.
static bool drop_privileges(void)
{
	struct __user_cap_header_struct version = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };
	for (int capability = 0; capability < 64; capability++)
		prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
	if (geteuid() == 0 && setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	    setresuid(NOBODY, NOBODY, NOBODY) == 0 && setuid(0) == 0)
		return false;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &version, none) == 0;
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOW_HALF(argument) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[argument]))
// Skips this many instructions unless the loaded value equals this one.
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skip))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define ALLOW_CALL(number) UNLESS((number), 1), ALLOW
// Only the low half of the first argument matters: descriptors and timers are ints.
#define ALLOW_CALL_WITH(number, first) UNLESS((number), 4), LOW_HALF(0), UNLESS((first), 1), ALLOW, KILL

static bool filter_calls(void)
{
	struct sock_filter filter[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
		KILL,
		LOAD(nr),
		ALLOW_CALL_WITH(SYS_read, STDIN_FILENO),
		ALLOW_CALL_WITH(SYS_write, STDOUT_FILENO),
		ALLOW_CALL_WITH(SYS_setitimer, ITIMER_PROF),
		ALLOW_CALL(SYS_exit_group),
		KILL,
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
	// prctl instead of seccomp(2), which fewer outer filters allow.
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

bool confine(void)
{
	close_others();
	if (!drop_privileges())
		return false;
	limit(RLIMIT_AS, MEMORY_BYTES);
	limit(RLIMIT_STACK, STACK_BYTES);
	limit(RLIMIT_CPU, CPU_SECONDS);
	limit(RLIMIT_NPROC, 0);
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_NOFILE, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	// After the change of users, which clears it.
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && filter_calls();
}
