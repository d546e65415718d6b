// Spends about half of its time in a signal handler that interrupts it.
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#define OWN_FRAME __attribute__((noinline, noclone))

volatile uint64_t sink;

OWN_FRAME uint64_t spin_interrupted(uint64_t rounds)
{
	uint64_t x = 88172645463325252ull;
	for (uint64_t i = 0; i < rounds; i++) {
		x ^= x << 13;
		x ^= x >> 7;
	}
	sink += x;
	return x;
}

OWN_FRAME uint64_t spin_in_handler(uint64_t rounds)
{
	uint64_t x = 88172645463325252ull;
	for (uint64_t i = 0; i < rounds; i++) {
		x ^= x << 13;
		x ^= x >> 7;
	}
	sink += x;
	return x;
}

OWN_FRAME void on_alarm(int number)
{
	(void)number;
	sink += spin_in_handler(800000);
}

OWN_FRAME void work(void)
{
	for (;;)
		sink += spin_interrupted(100000);
}

int main(void)
{
	struct sigaction action;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_alarm;
	sigaction(SIGALRM, &action, 0);
	struct itimerval every = {{0, 5000}, {0, 5000}};
	setitimer(ITIMER_REAL, &every, 0);
	work();
}
