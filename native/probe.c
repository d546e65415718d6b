/* Features of this kernel, tested by trying. */
#include "addon.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each answers 1 (works), 0 (does not) or a negative errno (unknown). */
static napi_value answer(napi_env env, int result)
{
  return make_number(env, result);
}

static napi_value probe_program_type(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  uint64_t type;
  if (!read_arguments(env, info, 1, argument) || !read_uint(env, argument[0], "the program type", 1024, &type))
    return NULL;
  return answer(env, libbpf_probe_bpf_prog_type(type, NULL));
}

static napi_value probe_map_type(napi_env env, napi_callback_info info)
{
  napi_value argument[1];
  uint64_t type;
  if (!read_arguments(env, info, 1, argument) || !read_uint(env, argument[0], "the map type", 1024, &type))
    return NULL;
  return answer(env, libbpf_probe_bpf_map_type(type, NULL));
}

static napi_value probe_helper(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  uint64_t type, helper;
  if (!read_arguments(env, info, 2, argument) || !read_uint(env, argument[0], "the program type", 1024, &type) ||
      !read_uint(env, argument[1], "the helper's number", 65536, &helper))
    return NULL;
  return answer(env, libbpf_probe_bpf_helper(type, helper, NULL));
}

static napi_value try_load(napi_env env, napi_callback_info info)
{
  napi_value argument[2];
  uint64_t type;
  uint8_t *bytes;
  size_t length;
  if (!read_arguments(env, info, 2, argument) || !read_uint(env, argument[0], "the program type", 1024, &type) ||
      !read_bytes(env, argument[1], "the instructions", sizeof(struct bpf_insn), &bytes, &length))
    return NULL;
  if (length % sizeof(struct bpf_insn) || length > 4096 * sizeof(struct bpf_insn))
    return throw_misuse(env, "the instructions must be 8 bytes each, and 4096 at most");
  struct bpf_insn *instructions = malloc(length);
  if (!instructions)
    return throw_errno(env, ENOMEM, "cannot try a BPF program");
  memcpy(instructions, bytes, length);
  int fd = bpf_prog_load(type, "svc_try", "Dual BSD/GPL", instructions, length / sizeof *instructions, NULL);
  free(instructions);
  if (fd >= 0)
    close(fd);
  char code[32] = "";
  napi_value result = NULL;
  if (fd < 0)
    errno_name(-fd, code);
  napi_create_string_utf8(env, code, NAPI_AUTO_LENGTH, &result);
  return result;
}

static napi_value btf_has(napi_env env, napi_callback_info info)
{
  static const struct {
    const char *name;
    uint32_t kind;
  } kinds[] = { { "func", BTF_KIND_FUNC }, { "struct", BTF_KIND_STRUCT }, { "typedef", BTF_KIND_TYPEDEF }, { "enum", BTF_KIND_ENUM } };
  napi_value argument[2], list, item;
  char kind[MAX_NAME], name[MAX_NAME];
  uint32_t number = 0, count;
  bool is_array = false;
  if (!read_arguments(env, info, 2, argument) || !read_name(env, argument[0], "the kind", kind))
    return NULL;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kind, kinds[i].name) == 0)
      number = kinds[i].kind;
  if (!number)
    return throw_misuse(env, "the kind must be func, struct, typedef or enum");
  if (napi_is_array(env, argument[1], &is_array) != napi_ok || !is_array)
    return throw_misuse(env, "the names must be an array of strings");
  if (napi_get_array_length(env, argument[1], &count) != napi_ok || count > 4096)
    return throw_misuse(env, "the names must be 4096 at most");
  struct text text;
  char line[256];
  begin_capture(&text);
  /* Several megabytes, so it is not kept: pass all names at once. */
  struct btf *btf = btf__load_vmlinux_btf();
  int error = errno;
  end_capture();
  if (!btf) {
    throw_errno(env, error, "cannot read the kernel's types at /sys/kernel/btf/vmlinux%s", last_line(&text, line));
    free(text.bytes);
    return NULL;
  }
  free(text.bytes);
  bool good = napi_create_array_with_length(env, count, &list) == napi_ok;
  for (uint32_t i = 0; good && i < count; i++) {
    good = napi_get_element(env, argument[1], i, &item) == napi_ok && read_name(env, item, "the name", name) &&
           napi_set_element(env, list, i, make_bool(env, btf__find_by_name_kind(btf, name, number) > 0)) == napi_ok;
  }
  btf__free(btf);
  return good ? list : NULL;
}

const struct function probe_functions[] = {
  { "probeProgramType", probe_program_type },
  { "probeMapType", probe_map_type },
  { "probeHelper", probe_helper },
  { "tryLoad", try_load },
  { "btfHas", btf_has },
  { NULL, NULL },
};
