/* The process and the machine: clocks, limits, memory, statistics of BPF programs. */
#define _GNU_SOURCE
#include "addon.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
  /* The reading during which least time passed: a preemption between the clocks would show as an offset. */
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

static napi_value trim_heap(napi_env env, napi_callback_info info)
{
  return make_bool(env, malloc_trim(0));
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
  { "trimHeap", trim_heap },
  { "statsEnable", stats_enable },
  { "statsDisable", stats_disable },
  { NULL, NULL },
};
