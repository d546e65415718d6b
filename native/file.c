/* File operations that the runtime lacks. */
#define _GNU_SOURCE
#include "addon.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Moves the descriptor's position, which does not matter to positional reads. */
static napi_value next_data(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  uint64_t fd, offset;
  if (!read_arguments(env, info, 2, argument) || !read_uint(env, argument[0], "the descriptor", INT32_MAX, &fd) ||
      !read_uint(env, argument[1], "the offset", 0x1p53, &offset))
    return NULL;
  off_t found = lseek((int)fd, (off_t)offset, SEEK_DATA);
  if (found >= 0)
    return make_number(env, (double)found);
  /* After the last data, or beyond the end. */
  return errno == ENXIO ? make_number(env, -1) : throw_errno(env, errno, "cannot look for data in descriptor %d", (int)fd);
}

static napi_value duplicate(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  uint64_t fd;
  if (!read_arguments(env, info, 1, argument) || !read_uint(env, argument[0], "the descriptor", INT32_MAX, &fd))
    return NULL;
  int copy = fcntl((int)fd, F_DUPFD_CLOEXEC, 3);
  return copy >= 0 ? make_number(env, copy) : throw_errno(env, errno, "cannot duplicate descriptor %d", (int)fd);
}

const struct function file_functions[] = {
  { "duplicate", duplicate },
  { "nextData", next_data },
  { NULL, NULL },
};
