// Waits in two functions as 2:1 and does nothing else.
#include <time.h>
#define OWN_FRAME __attribute__((noinline, noclone))

volatile int sink;

OWN_FRAME void nap(long milliseconds)
{
	struct timespec time = {0, milliseconds * 1000000};
	nanosleep(&time, 0);
	sink++;
}

OWN_FRAME void nap_long(void) { nap(60); sink++; }
OWN_FRAME void nap_short(void) { nap(30); sink++; }

int main(void)
{
	for (;;) {
		nap_long();
		nap_short();
	}
}
