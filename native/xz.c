/* What is compressed by xz, by the system's liblzma. The library is loaded when it is first asked for: few systems have
 * anything that needs it, and the addon must load on those that lack it. */
#define _GNU_SOURCE
#include "addon.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_SIZE (64.0 * 1024 * 1024)
/* What xz of the usual settings needs is 9 MiB. */
#define MAX_MEMORY (32 * 1024 * 1024)

/* lzma_stream_buffer_decode of <lzma/container.h>; the ABI of liblzma.so.5 is frozen since 5.0. */
typedef int stream_buffer_decode(uint64_t *memory_limit, uint32_t flags, const void *allocator, const uint8_t *in,
                                 size_t *in_at, size_t in_size, uint8_t *out, size_t *out_at, size_t out_size);
enum { LZMA_OK = 0, LZMA_MEMLIMIT_ERROR = 6, LZMA_BUF_ERROR = 10 };

static stream_buffer_decode *decoder(void)
{
  static stream_buffer_decode *found; /* the same for every thread that looks */
  if (!found) {
    void *library = dlopen("liblzma.so.5", RTLD_NOW | RTLD_LOCAL);
    if (library)
      found = (stream_buffer_decode *)dlsym(library, "lzma_stream_buffer_decode");
  }
  return found;
}

static int decode(stream_buffer_decode *run, const uint8_t *bytes, size_t length, int fd, size_t most)
{
  if (ftruncate(fd, most) != 0)
    return errno;
  /* Pages that are not written to take no memory. */
  uint8_t *out = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (out == MAP_FAILED)
    return errno;
  uint64_t memory = MAX_MEMORY;
  size_t in_at = 0, out_at = 0;
  int status = run(&memory, 0, NULL, bytes, &in_at, length, out, &out_at, most);
  munmap(out, most);
  if (status == LZMA_MEMLIMIT_ERROR)
    return ENOMEM;
  if (status == LZMA_BUF_ERROR)
    return EFBIG;
  if (status != LZMA_OK)
    return EBADMSG;
  return ftruncate(fd, out_at) == 0 ? 0 : errno;
}

static napi_value xz_unpack(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  uint8_t *bytes;
  size_t length;
  uint64_t most;
  if (!read_arguments(env, info, 2, argument) || !read_bytes(env, argument[0], "the input", 0, &bytes, &length) ||
      !read_uint(env, argument[1], "the limit", MAX_SIZE, &most))
    return NULL;
  stream_buffer_decode *run = decoder();
  if (!run)
    return throw_errno(env, ENOSYS, "cannot load liblzma.so.5");
  int fd = memfd_create("svc-xz", MFD_CLOEXEC);
  if (fd < 0)
    return throw_errno(env, errno, "cannot create a file in memory");
  int error = decode(run, bytes, length, fd, most ? most : 1);
  if (!error)
    return make_number(env, fd);
  close(fd);
  return throw_errno(env, error, "cannot unpack what xz compressed");
}

const struct function xz_functions[] = { { "xzUnpack", xz_unpack }, { 0 } };
