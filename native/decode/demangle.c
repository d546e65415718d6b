// Demangles C++ names (Itanium C++ ABI 5.1) with libiberty.
#include "decode.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

// Limit of a name's tree, with shared parts counted at each use: few nodes produce less than a byte.
#define MAX_NODES (2 * MAX_DEMANGLED)
// The library takes 16 bytes of stack for each template in each scope of a name: this limit is 4 MiB. Names in real
// code have some thousand.
#define MAX_SCOPED_TEMPLATES (256 * 1024)
#define STYLE (DMGL_PARAMS | DMGL_ANSI)

struct written {
	jmp_buf too_long;
	size_t length;
	char *text;
};

struct measure {
	// Remaining nodes.
	int room;
	int templates;
	int scopes;
};

// A few bytes of a hostile name can expand to terabytes. The library holds no memory of its own while it writes.
static void on_text(const char *text, size_t length, void *data)
{
	struct written *name = data;
	if (length > MAX_DEMANGLED - name->length)
		longjmp(name->too_long, 1);
	memcpy(name->text + name->length, text, length);
	name->length += length;
}

// Counts nodes at each use: at least as many as the library counts before it allocates stack. False: above the limit.
// The library walks all of them, without writing, for each expansion of a parameter pack.
static bool measured(const struct demangle_component *node, struct measure *measure)
{
	if (node == NULL)
		return true;
	if (--measure->room < 0)
		return false;
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
	case DEMANGLE_COMPONENT_UNNAMED_TYPE:
		return true;
	case DEMANGLE_COMPONENT_CTOR:
		return measured(node->u.s_ctor.name, measure);
	case DEMANGLE_COMPONENT_DTOR:
		return measured(node->u.s_dtor.name, measure);
	case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
		return measured(node->u.s_extended_operator.name, measure);
	case DEMANGLE_COMPONENT_FIXED_TYPE:
		return measured(node->u.s_fixed.length, measure);
	case DEMANGLE_COMPONENT_LAMBDA:
	case DEMANGLE_COMPONENT_DEFAULT_ARG:
		return measured(node->u.s_unary_num.sub, measure);
	case DEMANGLE_COMPONENT_TEMPLATE:
		measure->templates++;
		break;
	case DEMANGLE_COMPONENT_REFERENCE:
	case DEMANGLE_COMPONENT_RVALUE_REFERENCE:
		measure->scopes++;
		break;
	default:
		break;
	}
	return measured(node->u.s_binary.left, measure) && measured(node->u.s_binary.right, measure);
}

static bool bounded(const struct demangle_component *tree)
{
	struct measure measure = { .room = MAX_NODES };
	return measured(tree, &measure) && (long)measure.templates * measure.scopes <= MAX_SCOPED_TEMPLATES;
}

size_t demangle(const char *mangled, size_t length, char text[MAX_DEMANGLED])
{
	struct written name = { .text = text };
	void *memory = NULL;
	volatile bool written = false;
	// The library does not limit its own recursion when building the tree; the name's length does.
	if (length >= MAX_MANGLED)
		return 0;
	struct demangle_component *tree = cplus_demangle_v3_components(mangled, STYLE, &memory);
	if (tree != NULL && bounded(tree) && setjmp(name.too_long) == 0)
		written = cplus_demangle_print_callback(STYLE, tree, on_text, &name) != 0;
	if (tree != NULL)
		free(memory);
	return written ? name.length : 0;
}
