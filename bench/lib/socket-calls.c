/* Time of system calls in one thread: each round a request and an answer go over a TCP connection of the loopback, both
 * ends of which are here. Arguments: "http", "redis", "unknown" or "zero", and rounds. Prints nanoseconds of one write
 * and its read (of "zero": of one read of /dev/zero). */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void move(int from, int to, const char *text)
{
	static char bytes[4096];
	size_t length = strlen(text);
	if (write(from, text, length) != (ssize_t)length || read(to, bytes, sizeof bytes) != (ssize_t)length)
		fail("move");
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "http";
	long rounds = argc > 2 ? atol(argv[2]) : 100000;
	const char *ask = "\x01\x02 some bytes of no protocol that anybody knows", *answer = "\x03\x04 and an answer to them";
	if (!strcmp(kind, "http")) {
		ask = "GET /items/1 HTTP/1.1\r\nHost: shop\r\n\r\n";
		answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	} else if (!strcmp(kind, "redis")) {
		ask = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n";
		answer = "$1\r\nb\r\n";
	} else if (!strcmp(kind, "zero")) {
		static char bytes[64];
		int zero = open("/dev/zero", O_RDONLY);
		double start = now();
		for (long i = 0; i < rounds; i++)
			if (read(zero, bytes, sizeof bytes) != sizeof bytes)
				fail("read");
		printf("%.0f\n", (now() - start) / rounds);
		return 0;
	}
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &size) || connect(client, (struct sockaddr *)&address, size))
		fail("connect");
	int server = accept(listener, NULL, NULL);
	if (server < 0)
		fail("accept");
	for (long i = 0; i < rounds / 10; i++) { /* the caches are warm then */
		move(client, server, ask);
		move(server, client, answer);
	}
	double start = now();
	for (long i = 0; i < rounds; i++) {
		move(client, server, ask);
		move(server, client, answer);
	}
	printf("%.0f\n", (now() - start) / rounds / 2);
	return 0;
}
