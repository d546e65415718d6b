/* Watches a file descriptor on the event loop. */
#include "addon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

struct poll {
  uv_poll_t uv;
  napi_env env;
  napi_ref callback;
  napi_async_cleanup_hook_handle hook;
  int fd; /* a duplicate: the caller may close its own, and the number may be reused, while the loop still has it */
  bool has_handle, closing, closed;
};

static void poll_release(void *data)
{
  struct poll *poll = data;
  poll->has_handle = false; /* continues without its handle until the environment ends */
  if (poll->closed)
    free(poll);
}

static void on_closed(uv_handle_t *uv)
{
  struct poll *poll = uv->data;
  close(poll->fd);
  napi_delete_reference(poll->env, poll->callback);
  napi_remove_async_cleanup_hook(poll->hook);
  poll->closed = true;
  if (!poll->has_handle)
    free(poll);
}

static void stop(struct poll *poll)
{
  if (poll->closing)
    return;
  poll->closing = true;
  uv_close((uv_handle_t *)&poll->uv, on_closed);
}

static void on_environment_end(napi_async_cleanup_hook_handle hook, void *data)
{
  stop(data);
}

static void on_ready(uv_poll_t *uv, int status, int events)
{
  struct poll *poll = uv->data;
  napi_handle_scope scope;
  napi_value callback, receiver, argument, error;
  if (napi_open_handle_scope(poll->env, &scope) != napi_ok)
    return;
  if (status < 0)
    stop(poll); /* it would only fail again, immediately */
  if (napi_get_reference_value(poll->env, poll->callback, &callback) == napi_ok && callback &&
      napi_get_global(poll->env, &receiver) == napi_ok && napi_get_undefined(poll->env, &argument) == napi_ok) {
    if (status < 0)
      napi_create_string_utf8(poll->env, uv_err_name(status), NAPI_AUTO_LENGTH, &argument);
    if (napi_make_callback(poll->env, NULL, receiver, callback, 1, &argument, NULL) == napi_pending_exception &&
        napi_get_and_clear_last_exception(poll->env, &error) == napi_ok)
      napi_fatal_exception(poll->env, error);
  }
  napi_close_handle_scope(poll->env, scope);
}

static napi_value poll_start(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  uint64_t fd;
  napi_valuetype type;
  uv_loop_t *loop;
  if (!read_arguments(env, info, 2, argument) || !read_uint(env, argument[0], "the file descriptor", INT32_MAX, &fd))
    return NULL;
  if (napi_typeof(env, argument[1], &type) != napi_ok || type != napi_function)
    return throw_misuse(env, "the callback must be a function");
  if (napi_get_uv_event_loop(env, &loop) != napi_ok)
    return throw_errno(env, ENOSYS, "cannot watch file descriptor %d", (int)fd);
  struct poll *poll = calloc(1, sizeof *poll);
  if (!poll)
    return throw_errno(env, ENOMEM, "cannot watch file descriptor %d", (int)fd);
  poll->env = env;
  poll->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  int error = poll->fd < 0 ? -errno : uv_poll_init(loop, &poll->uv, poll->fd);
  if (error) {
    if (poll->fd >= 0)
      close(poll->fd);
    free(poll);
    return throw_errno(env, error, "cannot watch file descriptor %d", (int)fd);
  }
  poll->uv.data = poll;
  poll->has_handle = true;
  /* From here on the loop owns the structure, and only on_closed frees it. */
  napi_create_reference(env, argument[1], 1, &poll->callback);
  napi_add_async_cleanup_hook(env, on_environment_end, poll, &poll->hook);
  uv_unref((uv_handle_t *)&poll->uv);
  error = uv_poll_start(&poll->uv, UV_READABLE, on_ready);
  napi_value handle = new_handle(env, &poll_tag, poll, poll_release);
  if (error || !handle)
    stop(poll);
  return error ? throw_errno(env, error, "cannot watch file descriptor %d", (int)fd) : handle;
}

static napi_value poll_stop(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  void *data;
  if (!read_arguments(env, info, 1, argument) || !read_handle(env, argument[0], &poll_tag, "a watch", &data))
    return NULL;
  stop(data);
  return make_undefined(env);
}

const struct function poll_functions[] = {
  { "pollStart", poll_start },
  { "pollStop", poll_stop },
  { NULL, NULL },
};
