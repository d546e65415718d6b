/* Programs at user-space functions: attached to a file, for all processes that map it. Attaching waits for the memory
 * of every process that maps it, detaching for the kernel's readers, a few hundredths of a second per link: threads do
 * both, and the event loop never waits for them. Several at once, since the kernel's waits overlap. */
#include "addon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/bpf.h>

#define MAX_PLACES 64
#define MAX_THREADS 16
#define STACK_BYTES (256 * 1024)

/* One link for many places (kernel 6.6), which libbpf 1.1 lacks: include/uapi/linux/bpf.h of the kernel. */
#define TRACE_UPROBE_MULTI 48
#define MULTI_RETURN 1
struct multi_create {
  uint32_t program_fd, target_fd, attach_type, flags;
  uint64_t path, offsets, reference_counters, cookies;
  uint32_t count, multi_flags, pid;
};

/* An attachment: descriptors of links, and before 6.6 of the events that the links use. */
struct uprobe {
  size_t count;
  int fds[2 * MAX_PLACES];
};

struct place {
  char path[PATH_MAX];
  bool at_return;
  size_t count;
  uint64_t offsets[MAX_PLACES], cookies[MAX_PLACES];
};

/* Work for a thread. The event loop delivers its answer if a caller waits for it. */
struct job {
  struct job *next;
  struct uprobe *uprobe;
  struct place *place; /* NULL: detach */
  int program;         /* for an attachment, a separate descriptor */
  int error;
  char name[MAX_NAME];
  napi_threadsafe_function answer; /* NULL: no caller waits */
  napi_deferred deferred;
};

static struct {
  pthread_mutex_t lock;
  struct job *first, **last;
  unsigned threads;
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER, .last = &queue.first };

static void detach(struct uprobe *uprobe)
{
  while (uprobe->count > 0)
    close(uprobe->fds[--uprobe->count]);
}

/* Attaches all places with one link. Returns 0 or the errno. */
static int attach_multi(struct uprobe *uprobe, int program, const struct place *place)
{
  struct multi_create create = {
    .program_fd = program,
    .attach_type = TRACE_UPROBE_MULTI,
    .path = (uintptr_t)place->path,
    .offsets = (uintptr_t)place->offsets,
    .cookies = (uintptr_t)place->cookies,
    .count = place->count,
    .multi_flags = place->at_return ? MULTI_RETURN : 0,
  };
  int fd = syscall(SYS_bpf, BPF_LINK_CREATE, &create, sizeof create);
  if (fd < 0)
    return errno;
  uprobe->fds[uprobe->count++] = fd;
  return 0;
}

/* The kernel's number for events of this kind, and the bit for returns. -1: it has none. */
static int read_event_number(const char *path, const char *format)
{
  char text[32] = "";
  int number = -1, fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return -1;
  if (read(fd, text, sizeof text - 1) <= 0 || sscanf(text, format, &number) != 1)
    number = -1;
  close(fd);
  return number;
}

/* Attaches each place with its own link. Returns 0 or the errno. */
static int attach_singly(struct uprobe *uprobe, int program, const struct place *place)
{
  int type = read_event_number("/sys/bus/event_source/devices/uprobe/type", "%d");
  int bit = read_event_number("/sys/bus/event_source/devices/uprobe/format/retprobe", "config:%d");
  if (type < 0 || bit < 0)
    return ENOTSUP;
  for (size_t i = 0; i < place->count; i++) {
    struct perf_event_attr attributes = {
      .type = type,
      .size = sizeof attributes,
      .config = place->at_return ? 1ULL << bit : 0,
      .config1 = (uintptr_t)place->path,
      .config2 = place->offsets[i],
    };
    int event = syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
    if (event < 0)
      return errno;
    uprobe->fds[uprobe->count++] = event;
    LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = place->cookies[i]);
    int link = bpf_link_create(program, event, BPF_PERF_EVENT, &options);
    if (link >= 0)
      uprobe->fds[uprobe->count++] = link;
    /* Before 5.15 the program belongs to the event, which has no cookie. */
    else if (link != -EINVAL || place->cookies[i])
      return -link;
    else if (ioctl(event, PERF_EVENT_IOC_SET_BPF, program) || ioctl(event, PERF_EVENT_IOC_ENABLE, 0))
      return errno;
  }
  return 0;
}

static void attach(struct job *job)
{
  job->error = attach_multi(job->uprobe, job->program, job->place);
  /* An older kernel, or a faulty place: attaching one by one shows which. */
  if (job->error == EINVAL || job->error == EOPNOTSUPP || job->error == ENOSYS)
    job->error = attach_singly(job->uprobe, job->program, job->place);
  if (job->error)
    detach(job->uprobe);
  close(job->program);
}

static void free_job(struct job *job)
{
  free(job->place);
  free(job);
}

static void submit(struct job *job);

/* Detaches an attachment without an owner. */
static void discard(struct uprobe *uprobe)
{
  struct job *job = uprobe->count > 0 ? calloc(1, sizeof *job) : NULL;
  if (!job) {
    detach(uprobe);
    free(uprobe);
    return;
  }
  job->uprobe = uprobe;
  submit(job);
}

static void work(struct job *job)
{
  bool attaches = job->place != NULL;
  if (attaches)
    attach(job);
  else
    detach(job->uprobe);
  napi_threadsafe_function answer = job->answer;
  /* If the event loop has ended, the exit of the process detaches it. */
  if (answer) {
    if (napi_call_threadsafe_function(answer, job, napi_tsfn_blocking) == napi_ok)
      napi_release_threadsafe_function(answer, napi_tsfn_release);
    return;
  }
  free(job->uprobe);
  free_job(job);
}

/* Ends when the queue is empty. */
static void work_off(void)
{
  pthread_mutex_lock(&queue.lock);
  for (struct job *job; (job = queue.first);) {
    queue.first = job->next;
    if (!queue.first)
      queue.last = &queue.first;
    pthread_mutex_unlock(&queue.lock);
    work(job);
    pthread_mutex_lock(&queue.lock);
  }
  queue.threads--;
  pthread_mutex_unlock(&queue.lock);
}

static void *run(void *unused)
{
  prctl(PR_SET_NAME, "svc-uprobe");
  work_off();
  return NULL;
}

/* Signals go to other threads: their handlers are Node's. */
static bool start_thread(void)
{
  sigset_t all, before;
  pthread_attr_t attributes;
  pthread_t thread;
  sigfillset(&all);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&thread, &attributes, run, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error == 0;
}

/* Attachments first: callers wait for them, and they take less time. */
static void submit(struct job *job)
{
  pthread_mutex_lock(&queue.lock);
  if (job->place) {
    job->next = queue.first;
    if (!queue.first)
      queue.last = &job->next;
    queue.first = job;
  } else {
    *queue.last = job;
    queue.last = &job->next;
  }
  bool started = queue.threads < MAX_THREADS && start_thread(), alone = !started && queue.threads == 0;
  queue.threads += started || alone;
  pthread_mutex_unlock(&queue.lock);
  if (alone)
    work_off();
}

static void uprobe_release(void *data)
{
  discard(data);
}

static bool read_path(napi_env env, napi_value value, char path[PATH_MAX])
{
  size_t length;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok || length == 0 || length >= PATH_MAX) {
    throw_misuse(env, "the path must be a string of 1 to %d bytes", PATH_MAX - 1);
    return false;
  }
  if (napi_get_value_string_utf8(env, value, path, PATH_MAX, &length) != napi_ok)
    return false;
  if (strlen(path) == length)
    return true;
  throw_misuse(env, "the path must not hold a zero byte");
  return false;
}

/* An array of numbers: 1 to MAX_PLACES of them. */
static bool read_numbers(napi_env env, napi_value value, const char *what, uint64_t numbers[MAX_PLACES], size_t *count)
{
  bool is_array = false;
  uint32_t length = 0;
  if (napi_is_array(env, value, &is_array) != napi_ok || !is_array ||
      napi_get_array_length(env, value, &length) != napi_ok || length == 0 || length > MAX_PLACES) {
    throw_misuse(env, "%s must be an array of 1 to %d numbers", what, MAX_PLACES);
    return false;
  }
  for (uint32_t i = 0; i < length; i++) {
    napi_value element;
    if (napi_get_element(env, value, i, &element) != napi_ok ||
        !read_uint(env, element, what, 9007199254740991.0, &numbers[i]))
      return false;
  }
  *count = length;
  return true;
}

static napi_value uprobe_prepare(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  struct object *object;
  struct bpf_program *program;
  if (!read_arguments(env, info, 2, argument) || !(object = read_object(env, argument[0])) ||
      !(program = read_program(env, object, argument[1])))
    return NULL;
  int error = object->state == OPENED ? bpf_program__set_expected_attach_type(program, TRACE_UPROBE_MULTI) : -EINVAL;
  if (error)
    return throw_errno(env, error, "cannot prepare program '%s' of BPF object '%s' (it must not be loaded yet)",
                       bpf_program__name(program), object->name);
  return make_undefined(env);
}

/* On the event loop: the work is done. */
static void settle(napi_env env, napi_value unused, void *unused_context, void *data)
{
  struct job *job = data;
  napi_value result = NULL;
  if (!env) {
    discard(job->uprobe);
  } else if (job->error) {
    throw_errno(env, job->error, "cannot attach program '%s' to %.200s", job->name, job->place->path);
    free(job->uprobe);
  } else if (job->place) {
    result = new_handle(env, &uprobe_tag, job->uprobe, uprobe_release);
  } else {
    result = make_undefined(env);
    free(job->uprobe);
  }
  if (env && result) {
    napi_resolve_deferred(env, job->deferred, result);
  } else if (env) {
    napi_get_and_clear_last_exception(env, &result);
    napi_reject_deferred(env, job->deferred, result);
  }
  free_job(job);
}

/* Submits a job to a thread and returns a promise of its result. NULL: an exception is pending, and the caller still
 * owns the job. */
static napi_value promise(napi_env env, struct job *job)
{
  napi_value result, name;
  if (napi_create_string_utf8(env, "svc-uprobe", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_threadsafe_function(env, NULL, NULL, name, 0, 1, NULL, NULL, NULL, settle, &job->answer) != napi_ok)
    return throw_errno(env, ENOMEM, "cannot attach or detach a program");
  if (napi_create_promise(env, &job->deferred, &result) != napi_ok) {
    napi_release_threadsafe_function(job->answer, napi_tsfn_abort);
    return throw_errno(env, ENOMEM, "cannot attach or detach a program");
  }
  submit(job);
  return result;
}

static napi_value uprobe_attach(napi_env env, napi_callback_info info)
{
  napi_value argument[6];
  struct object *object;
  struct bpf_program *program;
  struct place place;
  size_t cookies;
  if (!read_arguments(env, info, 6, argument) || !(object = read_object(env, argument[0])) ||
      !(program = read_program(env, object, argument[1])) || !read_path(env, argument[2], place.path) ||
      !read_numbers(env, argument[3], "the offsets", place.offsets, &place.count) ||
      !read_numbers(env, argument[4], "the cookies", place.cookies, &cookies) ||
      !read_bool(env, argument[5], "whether it is at the return", &place.at_return))
    return NULL;
  if (cookies != place.count)
    return throw_misuse(env, "there must be as many cookies as offsets");
  const char *name = bpf_program__name(program);
  if (object->state != LOADED || bpf_program__fd(program) < 0)
    return throw_errno(env, EINVAL, "cannot attach program '%s' of BPF object '%s' (it is not loaded)", name,
                       object->name);
  struct job *job = calloc(1, sizeof *job);
  struct uprobe *uprobe = calloc(1, sizeof *uprobe);
  struct place *own = malloc(sizeof *own);
  /* The object may be closed before the thread runs. */
  int fd = fcntl(bpf_program__fd(program), F_DUPFD_CLOEXEC, 0);
  napi_value result = NULL;
  if (!job || !uprobe || !own || fd < 0) {
    throw_errno(env, fd < 0 ? errno : ENOMEM, "cannot attach program '%s'", name);
  } else {
    *own = place;
    *job = (struct job){ .uprobe = uprobe, .place = own, .program = fd };
    snprintf(job->name, sizeof job->name, "%s", name);
    result = promise(env, job);
  }
  if (result)
    return result;
  if (fd >= 0)
    close(fd);
  free(job);
  free(uprobe);
  free(own);
  return NULL;
}

static napi_value uprobe_detach(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  void *data;
  if (!read_arguments(env, info, 1, argument) || !read_handle(env, argument[0], &uprobe_tag, "a uprobe", &data))
    return NULL;
  struct uprobe *uprobe = data;
  struct job *job = calloc(1, sizeof *job);
  struct uprobe *taken = calloc(1, sizeof *taken);
  napi_value result = NULL;
  if (job && taken) {
    /* The job takes the attachment from the handle. */
    *taken = *uprobe;
    job->uprobe = taken;
    uprobe->count = 0;
    result = promise(env, job);
    if (!result)
      *uprobe = *taken;
  } else {
    throw_errno(env, ENOMEM, "cannot detach a program");
  }
  if (result)
    return result;
  free(job);
  free(taken);
  return NULL;
}

const struct function uprobe_functions[] = {
  { "uprobePrepare", uprobe_prepare },
  { "uprobeAttach", uprobe_attach },
  { "uprobeDetach", uprobe_detach },
  { NULL, NULL },
};
