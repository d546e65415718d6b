/* C++ names as people write them (Itanium C++ ABI 5.1), by libiberty. */
#include "addon.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#define MAX_MANGLED 4096
#define MAX_DEMANGLED 4096
/* Of the tree of a name, in which a part stands as often as it is used: few nodes write less than a byte. */
#define MAX_NODES (2 * MAX_DEMANGLED)
#define STYLE (DMGL_PARAMS | DMGL_ANSI)

struct demangled {
  jmp_buf too_long;
  size_t length;
  char text[MAX_DEMANGLED];
};

/* A few bytes of a hostile name can stand for terabytes. The library holds no memory of its own while it writes. */
static void on_text(const char *text, size_t length, void *data)
{
  struct demangled *name = data;
  if (length > sizeof name->text - name->length)
    longjmp(name->too_long, 1);
  memcpy(name->text + name->length, text, length);
  name->length += length;
}

/* How many of `room` nodes are left after those of a tree, each counted as often as it is used; -1: it has more. The
 * library walks all of them, without writing, for each expansion of a parameter pack. */
static int room_after(const struct demangle_component *node, int room)
{
  if (!node || room <= 0)
    return node ? -1 : room;
  room--;
  switch (node->type) {
  case DEMANGLE_COMPONENT_NAME:
  case DEMANGLE_COMPONENT_OPERATOR:
  case DEMANGLE_COMPONENT_BUILTIN_TYPE:
  case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
  case DEMANGLE_COMPONENT_SUB_STD:
  case DEMANGLE_COMPONENT_CHARACTER:
  case DEMANGLE_COMPONENT_NUMBER:
  case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
  case DEMANGLE_COMPONENT_FUNCTION_PARAM:
    return room;
  case DEMANGLE_COMPONENT_CTOR:
    return room_after(node->u.s_ctor.name, room);
  case DEMANGLE_COMPONENT_DTOR:
    return room_after(node->u.s_dtor.name, room);
  case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
    return room_after(node->u.s_extended_operator.name, room);
  case DEMANGLE_COMPONENT_FIXED_TYPE:
    return room_after(node->u.s_fixed.length, room);
  case DEMANGLE_COMPONENT_LAMBDA:
  case DEMANGLE_COMPONENT_DEFAULT_ARG:
  case DEMANGLE_COMPONENT_UNNAMED_TYPE:
    return room_after(node->u.s_unary_num.sub, room);
  default:
    room = room_after(node->u.s_binary.left, room);
    return room < 0 ? room : room_after(node->u.s_binary.right, room);
  }
}

static bool demangle(const char *mangled, struct demangled *name)
{
  void *memory = NULL;
  struct demangle_component *tree = cplus_demangle_v3_components(mangled, STYLE, &memory);
  volatile bool written = false;
  name->length = 0;
  if (tree && room_after(tree, MAX_NODES) >= 0 && setjmp(name->too_long) == 0)
    written = cplus_demangle_print_callback(STYLE, tree, on_text, name) != 0;
  if (tree)
    free(memory);
  return written && name->length > 0;
}

static napi_value name_demangle(napi_env env, napi_callback_info info)
{
  napi_value argument[1], text = NULL;
  char mangled[MAX_MANGLED + 1];
  struct demangled name;
  size_t length;
  if (!read_arguments(env, info, 1, argument))
    return NULL;
  /* A name that fills the room was cut. */
  if (napi_get_value_string_utf8(env, argument[0], mangled, sizeof mangled, &length) != napi_ok)
    return throw_misuse(env, "the name must be a string");
  bool whole = length < MAX_MANGLED && strlen(mangled) == length;
  if (!whole || !demangle(mangled, &name))
    return argument[0];
  napi_create_string_utf8(env, name.text, name.length, &text);
  return text;
}

const struct function demangle_functions[] = { { "demangle", name_demangle }, { 0 } };
