/* What bench/scale.ts loads a host with, until its standard input ends. Arguments: what, how many, and how many a second
 * of what each does; "client" is for itself. Prints a line when all are there.
 *   processes N          N processes that sleep
 *   short N              N processes a second that end at once; prints how many it came to
 *   connections N        N connections of HTTP, idle after one request each
 *   services N RATE      N programs, each its own service, which make RATE requests a second together
 *   routes N RATE        requests of N paths, RATE a second
 * The server of them all is a process of this program. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The kernel gives a client some 28,000 ports towards each port of a server. */
#define CONNECTIONS_EACH 10000

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void wait_us(long us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };
	nanosleep(&t, NULL);
}

static pid_t child(void)
{
	pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void serve(int listener)
{
	static char bytes[65536];
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	struct epoll_event event = { .events = EPOLLIN, .data.fd = listener }, ready[64];
	int poll = epoll_create1(0);
	epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		int count = epoll_wait(poll, ready, 64, -1);
		for (int i = 0; i < count; i++) {
			int at = ready[i].data.fd;
			if (at == listener) {
				event.data.fd = accept(listener, NULL, NULL);
				if (event.data.fd >= 0)
					epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event);
			} else if (read(at, bytes, sizeof bytes) <= 0 || write(at, ok, sizeof ok - 1) < 0) {
				close(at);
			}
		}
	}
}

/* A server in a process of its own. Returns its port. */
static int server(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (void *)&address, size) || listen(listener, 4096))
		fail("listen");
	getsockname(listener, (void *)&address, &size);
	if (child() == 0)
		serve(listener);
	close(listener);
	return ntohs(address.sin_port);
}

static int connected(int port)
{
	struct sockaddr_in address = { AF_INET, htons(port), { htonl(INADDR_LOOPBACK) }, { 0 } };
	int to = socket(AF_INET, SOCK_STREAM, 0);
	if (to < 0 || connect(to, (void *)&address, sizeof address))
		fail("connect");
	return to;
}

static void ask(int to, long number)
{
	char text[200];
	int size = snprintf(text, sizeof text, "GET /route-%ld HTTP/1.1\r\nHost: scale\r\n\r\n", number);
	if (write(to, text, size) != size || read(to, text, sizeof text) <= 0)
		fail("ask");
}

/* Requests of `paths` paths in turn, each `us` after the one before. */
static void client(int port, long paths, long us, long first)
{
	int to = connected(port);
	wait_us(first);
	for (long i = 0;; i++) {
		ask(to, i % paths);
		wait_us(us);
	}
}

static void services(char *self, long count, long rate)
{
	int port = server();
	for (long i = 0; i < count; i++) {
		char name[40], at[24], us[24], first[24];
		snprintf(name, sizeof name, "OTEL_SERVICE_NAME=scale-%ld", i);
		snprintf(at, sizeof at, "%d", port);
		snprintf(us, sizeof us, "%ld", count * 1000000 / rate);
		snprintf(first, sizeof first, "%ld", i * 1000000 / rate);
		char *arguments[] = { self, "client", at, us, first, NULL }, *environment[] = { name, NULL };
		if (child() == 0) {
			execve(self, arguments, environment);
			fail("execve");
		}
	}
}

static void connections(long count)
{
	for (long done = 0; done < count; done += CONNECTIONS_EACH) {
		int port = server(), ready[2];
		char byte;
		if (pipe(ready))
			fail("pipe");
		if (child() == 0) {
			for (long i = done; i < count && i < done + CONNECTIONS_EACH; i++)
				ask(connected(port), 0);
			if (write(ready[1], "", 1) != 1)
				fail("write");
			pause();
		}
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 1)
			fail("a client");
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	long count = argc > 2 ? atol(argv[2]) : 0, rate = argc > 3 ? atol(argv[3]) : 1;
	struct rlimit files = { 4 * CONNECTIONS_EACH, 4 * CONNECTIONS_EACH };
	struct pollfd input = { .fd = 0, .events = POLLIN };
	if (!strcmp(what, "client"))
		client(count, 1, rate, argc > 4 ? atol(argv[4]) : 0);
	setrlimit(RLIMIT_NOFILE, &files);
	if (!strcmp(what, "processes")) {
		for (long i = 0; i < count; i++)
			if (child() == 0)
				for (;;)
					pause();
	} else if (!strcmp(what, "connections")) {
		connections(count);
	} else if (!strcmp(what, "services")) {
		services(argv[0], count, rate);
	} else if (!strcmp(what, "routes")) {
		int port = server();
		if (child() == 0)
			client(port, count, 1000000 / rate, 0);
	}
	puts("ready");
	fflush(stdout);
	/* Behind the last one started, so that a pause of the host is made up for. */
	struct timespec began, now;
	double passed = 0;
	long started = 0;
	clock_gettime(CLOCK_MONOTONIC, &began);
	while (poll(&input, 1, strcmp(what, "short") ? -1 : 1) == 0) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		passed = now.tv_sec - began.tv_sec + (now.tv_nsec - began.tv_nsec) / 1e9;
		for (; started < passed * count; started++) {
			pid_t pid = child();
			if (pid == 0) {
				execl("/bin/true", "true", NULL);
				_exit(1);
			}
			waitpid(pid, NULL, 0);
		}
	}
	if (started > 0)
		printf("%.0f\n", started / passed);
	fflush(stdout);
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM); /* its children, for it leads its group */
	return 0;
}
