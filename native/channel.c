/* A channel to a child that answers requests one at a time: the caller waits, but only up to its timeout. */
#define _GNU_SOURCE
#include "addon.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_TIMEOUT_MS 60000
#define MAX_PID 4194304
/* A killed child exits within moments; otherwise it is reaped when this process ends. */
#define REAP_ROUNDS 100

struct channel {
  int near, far; /* -1: closed */
  pid_t child;   /* 0: none */
};

static void close_end(int *fd)
{
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
}

/* If a thread is terminated from outside, its child is orphaned: the runtime only reaps children while its loop runs.
 * Until the child is reaped, its pid cannot be reused. */
static void end_child(pid_t child)
{
  siginfo_t state = { 0 };
  if (child <= 0 || waitid(P_PID, (id_t)child, &state, WEXITED | WNOHANG | WNOWAIT) != 0)
    return;
  kill(child, SIGKILL);
  for (int i = 0; i < REAP_ROUNDS && waitpid(child, NULL, WNOHANG) == 0; i++)
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static void channel_release(void *data)
{
  struct channel *channel = data;
  close_end(&channel->near);
  close_end(&channel->far);
  end_child(channel->child);
  free(channel);
}

static napi_value channel_open(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  uint64_t timeout_ms;
  int ends[2];
  if (!read_arguments(env, info, 1, argument) ||
      !read_uint(env, argument[0], "the timeout", MAX_TIMEOUT_MS, &timeout_ms))
    return NULL;
  struct channel *channel = calloc(1, sizeof *channel);
  if (!channel)
    return throw_errno(env, ENOMEM, "cannot open a channel");
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    int error = errno;
    free(channel);
    return throw_errno(env, error, "cannot open a channel");
  }
  channel->near = ends[0];
  channel->far = ends[1];
  struct timeval timeout = { .tv_sec = (time_t)(timeout_ms / 1000),
                             .tv_usec = (suseconds_t)(timeout_ms % 1000 * 1000) };
  setsockopt(channel->near, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt(channel->near, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  return new_handle(env, &channel_tag, channel, channel_release);
}

static struct channel *read_channel(napi_env env, napi_value value)
{
  void *channel = NULL;
  return read_handle(env, value, &channel_tag, "a channel", &channel) ? channel : NULL;
}

static napi_value channel_ends(napi_env env, napi_callback_info info)
{
  napi_value argument[1], ends;
  struct channel *channel;
  if (!read_arguments(env, info, 1, argument) || !(channel = read_channel(env, argument[0])))
    return NULL;
  if (channel->near < 0 || napi_create_object(env, &ends) != napi_ok)
    return throw_errno(env, EBADF, "cannot use a channel that is closed");
  set_number(env, ends, "near", channel->near);
  set_number(env, ends, "far", channel->far);
  return ends;
}

static napi_value channel_belongs(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  uint64_t child;
  struct channel *channel;
  if (!read_arguments(env, info, 2, argument) || !(channel = read_channel(env, argument[0])) ||
      !read_uint(env, argument[1], "the child", MAX_PID, &child))
    return NULL;
  close_end(&channel->far);
  channel->child = (pid_t)child;
  return make_undefined(env);
}

static napi_value channel_close(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  struct channel *channel;
  if (!read_arguments(env, info, 1, argument) || !(channel = read_channel(env, argument[0])))
    return NULL;
  close_end(&channel->near);
  close_end(&channel->far);
  return make_undefined(env);
}

static napi_value memory_file(napi_env env, napi_callback_info info)
{
  int fd = memfd_create("svc", MFD_CLOEXEC);
  return fd < 0 ? throw_errno(env, errno, "cannot create a file in memory") : make_number(env, fd);
}

const struct function channel_functions[] = { { "channelOpen", channel_open },       { "channelEnds", channel_ends },
                                              { "channelBelongs", channel_belongs }, { "channelClose", channel_close },
                                              { "memoryFile", memory_file },         { 0 } };
