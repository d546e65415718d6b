// svc-decode: runs C decoding libraries for the agent, in a process without privileges. C++ names and compressed symbol
// tables come from programs of any user; these libraries have had faults, and will again.
//
// Exit statuses: 0 the input has ended, 2 the input is no request, 3 it could not drop its privileges.
#include "confine.h"
#include "decode.h"

#include <errno.h>
#include <sys/time.h>
#include <unistd.h>

bool take(void *bytes, size_t length)
{
	uint8_t *to = bytes;
	while (length > 0) {
		ssize_t got = read(STDIN_FILENO, to, length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		to += got;
		length -= (size_t)got;
	}
	return true;
}

void put(const void *bytes, size_t length)
{
	const uint8_t *from = bytes;
	while (length > 0) {
		ssize_t written = write(STDOUT_FILENO, from, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			_exit(0);
		from += written;
		length -= (size_t)written;
	}
}

// SIGPROF ends the program.
void allow_cpu(unsigned milliseconds)
{
	struct itimerval timer = { .it_value = { .tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000 } };
	setitimer(ITIMER_PROF, &timer, NULL);
}

int main(void)
{
	if (!confine())
		_exit(3);
	_exit(serve() ? 0 : 2);
}
