/* Process and machine: clocks, limits, memory, statistics of BPF programs. */
#define _GNU_SOURCE
#include "addon.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static napi_value num_cpus(napi_env env, napi_callback_info info)
{
  int count = libbpf_num_possible_cpus();
  return count < 0 ? throw_errno(env, count, "cannot count the CPUs at /sys/devices/system/cpu/possible")
                   : make_number(env, count);
}

static napi_value bump_memlock(napi_env env, napi_callback_info info)
{
  struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0)
    return throw_errno(env, errno, "cannot raise the limit of locked memory");
  return make_undefined(env);
}

static int64_t read_clock(clockid_t clock)
{
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static napi_value clock_pair(napi_env env, napi_callback_info info)
{
  int64_t best = INT64_MAX, monotonic = 0, boottime = 0, realtime = 0;
  /* The fastest of several readings: a preemption between the clocks would appear as an offset. */
  for (int i = 0; i < 8; i++) {
    int64_t before = read_clock(CLOCK_MONOTONIC), boot = read_clock(CLOCK_BOOTTIME), real = read_clock(CLOCK_REALTIME),
            after = read_clock(CLOCK_MONOTONIC);
    if (after - before >= best)
      continue;
    best = after - before;
    monotonic = before + best / 2;
    boottime = boot;
    realtime = real;
  }
  napi_value result;
  if (napi_create_object(env, &result) != napi_ok)
    return NULL;
  set_number(env, result, "monotonicNs", monotonic);
  set_number(env, result, "boottimeNs", boottime);
  set_number(env, result, "realtimeUs", realtime / 1e3);
  return result;
}

static napi_value set_process_name(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  char name[MAX_NAME];
  if (!read_arguments(env, info, 1, argument) || !read_name(env, argument[0], "the process's name", name))
    return NULL;
  name[15] = 0; /* TASK_COMM_LEN */
  prctl(PR_SET_NAME, name);
  return make_undefined(env);
}

#define IN_USE (3ULL << 62) /* bits of /proc/self/pagemap: present, swapped */
#define OF_FILE (1ULL << 61)

/* Pages of the process's own stay: large pages of code (--use-largepages), or breakpoints. */
static void unmap_file_pages(int pagemap, uintptr_t from, uintptr_t end, size_t page)
{
  uint64_t pages[512];
  for (uintptr_t at = from; at < end;) {
    size_t most = (end - at) / page;
    ssize_t bytes = pread(pagemap, pages, (most < 512 ? most : 512) * sizeof *pages, at / page * sizeof *pages);
    if (bytes < (ssize_t)sizeof *pages)
      return;
    for (size_t i = 0; i < bytes / sizeof *pages; i++, at += page) {
      bool own = (pages[i] & IN_USE) && !(pages[i] & OF_FILE);
      if (own || at + page == end) {
        madvise((void *)from, (own ? at : end) - from, MADV_DONTNEED);
        from = at + page;
      }
    }
  }
}

/* The first object is the executable. What is used of its read-only pages comes back from the page cache, some hundred
 * faults within a millisecond or two. */
static int unmap_read_only(struct dl_phdr_info *object, size_t size, void *data)
{
  size_t page = sysconf(_SC_PAGESIZE);
  uintptr_t mask = ~(uintptr_t)(page - 1);
  for (size_t i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || part->p_flags & PF_W)
      continue;
    uintptr_t from = (object->dlpi_addr + part->p_vaddr) & mask;
    unmap_file_pages(*(int *)data, from, (object->dlpi_addr + part->p_vaddr + part->p_filesz) & mask, page);
  }
  return 1;
}

static napi_value give_back_memory(napi_env env, napi_callback_info info)
{
  malloc_trim(0);
  int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pagemap >= 0) {
    dl_iterate_phdr(unmap_read_only, &pagemap);
    close(pagemap);
  }
  return make_undefined(env);
}

/* Node.js has no datagram sockets of this family. */
static napi_value send_datagram(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  char name[MAX_NAME];
  uint8_t *bytes;
  size_t length;
  if (!read_arguments(env, info, 2, argument) || !read_name(env, argument[0], "the socket's address", name) ||
      !read_bytes(env, argument[1], "the datagram", 1, &bytes, &length))
    return NULL;
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  size_t used = strlen(name);
  if (used > sizeof address.sun_path - 1 || (name[0] != '/' && name[0] != '@'))
    return throw_errno(env, EINVAL, "cannot send to the socket %s", name);
  memcpy(address.sun_path, name, used);
  bool is_abstract = name[0] == '@';
  if (is_abstract)
    address.sun_path[0] = 0;
  /* An abstract name ends with the address, a path with a zero. */
  socklen_t size = offsetof(struct sockaddr_un, sun_path) + used + !is_abstract;
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return throw_errno(env, errno, "cannot make a socket");
  ssize_t sent = sendto(fd, bytes, length, MSG_NOSIGNAL, (struct sockaddr *)&address, size);
  int error = errno;
  close(fd);
  if (sent < 0 && error == EAGAIN)
    return make_bool(env, false);
  return sent < 0 ? throw_errno(env, error, "cannot send to the socket %s", name) : make_bool(env, true);
}

static void stats_release(void *data)
{
  int *fd = data;
  if (*fd >= 0)
    close(*fd);
  free(fd);
}

static napi_value stats_enable(napi_env env, napi_callback_info info)
{
  int *fd = malloc(sizeof *fd);
  if (!fd)
    return throw_errno(env, ENOMEM, "cannot measure BPF programs");
  *fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
  if (*fd >= 0)
    return new_handle(env, &stats_tag, fd, stats_release);
  throw_errno(env, *fd, "cannot measure BPF programs");
  free(fd);
  return NULL;
}

static napi_value end_process(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  uint64_t code;
  if (!read_arguments(env, info, 1, argument) || !read_uint(env, argument[0], "the exit code", 255, &code))
    return NULL;
  _exit((int)code);
}

static napi_value stats_disable(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  void *data;
  if (!read_arguments(env, info, 1, argument) || !read_handle(env, argument[0], &stats_tag, "BPF statistics", &data))
    return NULL;
  int *fd = data;
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
  return make_undefined(env);
}

const struct function process_functions[] = {
  { "numCpus", num_cpus },
  { "bumpMemlock", bump_memlock },
  { "clock", clock_pair },
  { "setProcessName", set_process_name },
  { "endProcess", end_process },
  { "sendDatagram", send_datagram },
  { "giveBackMemory", give_back_memory },
  { "statsEnable", stats_enable },
  { "statsDisable", stats_disable },
  { NULL, NULL },
};
