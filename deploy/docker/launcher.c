// bin/svc for an image without a shell: the same runtime, bundle, flags and environment. The last two are defined when it
// is built, from bin/svc itself (tools/package/image-launcher.ts).
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *environment[] = { SVC_ENVIRONMENT };
static char *flags[] = { SVC_FLAGS };

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

int main(int argc, char **argv)
{
	static const char own[] = "/bin/svc";
	static char root[PATH_MAX], node[2 * PATH_MAX], script[2 * PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", root, sizeof(root) - 1);
	size_t tail = sizeof(own) - 1;
	if (length < (ssize_t)tail || strcmp(root + length - tail, own) != 0) {
		fprintf(stderr, "svc: cannot find its directory: /proc/self/exe is not .../bin/svc; is /proc mounted?\n");
		return 1;
	}
	root[length - tail] = 0;
	snprintf(node, sizeof(node), "%s/runtime/bin/node", root);
	snprintf(script, sizeof(script), "%s/dist/svc.cjs", root);

	for (size_t i = 0; i < COUNT(environment); i++)
		putenv(environment[i]);
	char **args = calloc(COUNT(flags) + argc + 3, sizeof(*args));
	if (!args) {
		fprintf(stderr, "svc: out of memory\n");
		return 1;
	}
	size_t n = 0;
	args[n++] = node;
	for (size_t i = 0; i < COUNT(flags); i++)
		args[n++] = flags[i];
	args[n++] = script;
	for (int i = 1; i < argc; i++)
		args[n++] = argv[i];
	execv(node, args);
	fprintf(stderr, "svc: cannot start %s: %m\n", node);
	return 1;
}
