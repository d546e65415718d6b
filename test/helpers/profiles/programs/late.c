// Spins, and after SIGUSR1 spins in a library that it opens then. Argument: the library.
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#define OWN_FRAME __attribute__((noinline, noclone))

volatile uint64_t sink;
volatile sig_atomic_t asked;

static void ask(int number) { asked = number; }

OWN_FRAME uint64_t spin_before(uint64_t rounds)
{
	uint64_t x = 88172645463325252ull;
	for (uint64_t i = 0; i < rounds; i++) {
		x ^= x << 13;
		x ^= x >> 7;
	}
	sink += x;
	return x;
}

OWN_FRAME uint64_t call_library(uint64_t (*function)(uint64_t)) { return function(100000) + 1; }

int main(int count, char **arguments)
{
	signal(SIGUSR1, ask);
	while (!asked)
		sink += spin_before(100000);
	void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : 0;
	uint64_t (*function)(uint64_t) = library ? dlsym(library, "library_work") : 0;
	if (!function)
		return 1;
	for (;;)
		sink += call_library(function);
}
