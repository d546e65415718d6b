// Accesses file systems that may hang, instead of the agent: a thread that waits for a dead server cannot be reclaimed,
// and in the agent it would block a thread of the runtime, or keep the process from exiting.
//
//     request  ID OPERATION LIMIT PATH \n          PATH in hexadecimal digits
//     answer   ID ERRNO LENGTH \n PAYLOAD          LENGTH bytes; none if ERRNO is not 0
//
//     S  statfs(2)           "bsize blocks bfree bavail files ffree"
//     R  content of a file   "seconds of its mtime\n", then the bytes: EFBIG if there are more than LIMIT
//     B  the same, truncated after LIMIT bytes
//     L  names in a directory, each followed by a zero byte: EFBIG if there are more than LIMIT bytes
//     P  strings of a process by its directory in /proc, LIMIT bytes of each file at most: "length of cmdline\n",
//        then the beginnings of cmdline and environ. Reading them takes a lock that the process may hold forever.
//     O  opens the memory of a process by its directory in /proc: "MEM PAGES", two descriptors of this program
//     M  memory: PATH is "MEM PAGES" and up to 16 addresses; for each 4,096 bytes after a 1, or a 0 if they are
//        unreadable or not resident. The server of such pages (FUSE, userfaultfd(2)) may block a reader forever.
//     C  closes the result of O: PATH is "MEM PAGES"
//
// With --ended it serves no requests: it records systemd's report of how the agent ended.
//
// Answers are sent as they become ready. The program ends with its standard input, whatever its threads wait for. Of
// the threads that wait for requests one reads, and serves its request itself: no other thread is woken in between.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MOST_THREADS 512
#define MOST_PATH 4096
// Maximum idle threads.
#define MOST_IDLE 4
#define MTIME_ROOM 24
#define FIRST_READ 4096
#define MOST_STRINGS (256 * 1024)
#define HEAD_ROOM 24
#define BLOCK 4096
#define MOST_BLOCKS 16
// Bits in a word of pagemap (admin-guide/mm/pagemap.rst): in memory, or in swap.
#define THERE (3ULL << 62)

struct request {
	unsigned long long id;
	size_t limit;
	char operation;
	char path[];
};

static pthread_mutex_t input = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
static pthread_attr_t attributes;
// Requests being served, and idle threads; the latter is protected by `input`.
static atomic_int busy;
static int idle;

static void put(const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(STDOUT_FILENO, bytes, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			_exit(1);
		bytes += written;
		length -= (size_t)written;
	}
}

// The only answer to a request. The agent may send another one as soon as it has this, so a slot must be free by then.
static void answer(unsigned long long id, int error, const char *payload, size_t length)
{
	char head[64];
	atomic_fetch_sub(&busy, 1);
	if (error != 0)
		length = 0;
	int n = snprintf(head, sizeof(head), "%llu %d %zu\n", id, error, length);
	pthread_mutex_lock(&output);
	put(head, (size_t)n);
	put(payload, length);
	pthread_mutex_unlock(&output);
}

static void serve_statfs(const struct request *request)
{
	struct statfs s;
	char text[160];
	if (statfs(request->path, &s) != 0) {
		answer(request->id, errno, NULL, 0);
		return;
	}
	int n = snprintf(text, sizeof(text), "%lld %llu %llu %llu %llu %llu", (long long)s.f_bsize,
			 (unsigned long long)s.f_blocks, (unsigned long long)s.f_bfree,
			 (unsigned long long)s.f_bavail, (unsigned long long)s.f_files,
			 (unsigned long long)s.f_ffree);
	answer(request->id, 0, text, (size_t)n);
}

// Reads to the file's end, which may differ from its size in stat. Returns 0 or an errno.
static int read_all(int fd, char **buffer, size_t *length, size_t size, size_t limit)
{
	for (;;) {
		if (*length == size) {
			if (size > limit)
				return EFBIG;
			size = size * 2 <= limit ? size * 2 : limit + 1;
			char *longer = realloc(*buffer, MTIME_ROOM + size);
			if (longer == NULL)
				return ENOMEM;
			*buffer = longer;
		}
		ssize_t got = read(fd, *buffer + MTIME_ROOM + *length, size - *length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno;
		if (got == 0)
			return *length > limit ? EFBIG : 0;
		*length += (size_t)got;
	}
}

static void serve_read(const struct request *request)
{
	struct stat s;
	char *buffer = NULL;
	char *start = NULL;
	size_t length = 0, size = 0;
	bool whole = request->operation == 'R';
	int error = 0;
	// Without O_NONBLOCK a named pipe would wait for a writer.
	int fd = open(request->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &s) != 0)
		error = errno;
	else if (!S_ISREG(s.st_mode))
		error = S_ISDIR(s.st_mode) ? EISDIR : EINVAL;
	else if (whole && (unsigned long long)s.st_size > request->limit)
		error = EFBIG;
	else {
		// Files in /proc have size 0.
		size = s.st_size < FIRST_READ ? FIRST_READ : (size_t)s.st_size + 1;
		if (size > request->limit)
			size = request->limit + 1;
		buffer = malloc(MTIME_ROOM + size);
		error = buffer == NULL ? ENOMEM : read_all(fd, &buffer, &length, size, request->limit);
	}
	if (error == EFBIG && !whole && buffer != NULL && length > request->limit) {
		error = 0;
		length = request->limit;
	}
	if (error == 0) {
		char mtime[MTIME_ROOM];
		int n = snprintf(mtime, sizeof(mtime), "%lld\n", (long long)s.st_mtim.tv_sec);
		start = buffer + MTIME_ROOM - n;
		memcpy(start, mtime, (size_t)n);
		length += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	answer(request->id, error, start, length);
	free(buffer);
}

static void serve_list(const struct request *request)
{
	char *names = NULL;
	size_t length = 0, size = 0;
	int error = 0;
	int fd = open(request->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (directory == NULL)
		error = errno;
	while (error == 0) {
		errno = 0;
		struct dirent *entry = readdir(directory);
		if (entry == NULL) {
			error = errno;
			break;
		}
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		size_t more = strlen(entry->d_name) + 1;
		if (length + more > request->limit) {
			error = EFBIG;
		} else if (length + more > size) {
			size = (length + more) * 2;
			char *longer = realloc(names, size);
			if (longer == NULL)
				error = ENOMEM;
			else
				names = longer;
		}
		if (error == 0) {
			memcpy(names + length, entry->d_name, more);
			length += more;
		}
	}
	if (directory != NULL)
		closedir(directory);
	else if (fd >= 0)
		close(fd);
	answer(request->id, error, names, length);
	free(names);
}

// The beginning of a file, up to the buffer's size; empty if it is unreadable.
static size_t read_beginning(int directory, const char *name, char *buffer, size_t room)
{
	size_t length = 0;
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while (length < room) {
		ssize_t got = read(fd, buffer + length, room - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	close(fd);
	return length;
}

static void serve_strings(const struct request *request)
{
	char head[HEAD_ROOM];
	size_t room = request->limit <= MOST_STRINGS ? request->limit : MOST_STRINGS;
	int directory = open(request->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	// Of both, only written pages take memory.
	char *buffer = directory < 0 ? NULL : malloc(HEAD_ROOM + 2 * room);
	if (buffer == NULL) {
		answer(request->id, directory < 0 ? errno : ENOMEM, NULL, 0);
	} else {
		size_t command = read_beginning(directory, "cmdline", buffer + HEAD_ROOM, room);
		size_t length = command + read_beginning(directory, "environ", buffer + HEAD_ROOM + command, room);
		int n = snprintf(head, sizeof(head), "%zu\n", command);
		char *start = buffer + HEAD_ROOM - n;
		memcpy(start, head, (size_t)n);
		answer(request->id, 0, start, (size_t)n + length);
	}
	free(buffer);
	if (directory >= 0)
		close(directory);
}

static void serve_open(const struct request *request)
{
	char text[32];
	int error = 0, n = 0;
	int directory = open(request->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int memory = directory < 0 ? -1 : openat(directory, "mem", O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		error = errno;
	else
		n = snprintf(text, sizeof(text), "%d %d", memory, openat(directory, "pagemap", O_RDONLY | O_CLOEXEC));
	if (directory >= 0)
		close(directory);
	answer(request->id, error, text, (size_t)n);
}

// Untouched pages of a mapped file are not resident. `pages`: -1 if unknown.
static bool is_there(int pages, unsigned long long address, size_t page_size)
{
	unsigned long long word = 0;
	return pages < 0 || (pread(pages, &word, sizeof(word), (off_t)(address / page_size * sizeof(word))) ==
				     (ssize_t)sizeof(word) &&
			     (word & THERE) != 0);
}

static void serve_memory(const struct request *request)
{
	int memory = -1, pages = -1, used = 0;
	size_t length = 0, page_size = (size_t)sysconf(_SC_PAGESIZE);
	const char *text = request->path;
	char *buffer = sscanf(text, "%d %d%n", &memory, &pages, &used) == 2 ? malloc(MOST_BLOCKS * (1 + BLOCK)) : NULL;
	if (buffer == NULL) {
		answer(request->id, EINVAL, NULL, 0);
		return;
	}
	text += used;
	unsigned long long address;
	for (int i = 0; i < MOST_BLOCKS && sscanf(text, "%llu%n", &address, &used) == 1; i++) {
		text += used;
		char *block = buffer + length;
		*block = is_there(pages, address, page_size) && pread(memory, block + 1, BLOCK, (off_t)address) == BLOCK;
		length += *block ? 1 + BLOCK : 1;
	}
	answer(request->id, 0, buffer, length);
	free(buffer);
}

static void serve_close(const struct request *request)
{
	int memory = -1, pages = -1;
	if (sscanf(request->path, "%d %d", &memory, &pages) == 2) {
		close(memory);
		if (pages >= 0)
			close(pages);
	}
	answer(request->id, 0, NULL, 0);
}

static void serve(const struct request *request)
{
	if (request->operation == 'P')
		serve_strings(request);
	else if (request->operation == 'M')
		serve_memory(request);
	else if (request->operation == 'O')
		serve_open(request);
	else if (request->operation == 'C')
		serve_close(request);
	else if (request->operation == 'S')
		serve_statfs(request);
	else if (request->operation == 'R' || request->operation == 'B')
		serve_read(request);
	else if (request->operation == 'L')
		serve_list(request);
	else
		answer(request->id, EINVAL, NULL, 0);
}

static int digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

// NULL: no request, or no memory for it.
static struct request *parse(const char *line)
{
	unsigned long long id;
	size_t limit;
	char operation;
	char hex[MOST_PATH * 2 + 1] = "";
	if (sscanf(line, "%llu %c %zu %8192[0-9a-f]", &id, &operation, &limit, hex) != 4)
		return NULL;
	size_t length = strlen(hex) / 2;
	struct request *request = malloc(sizeof(*request) + length + 1);
	if (request == NULL)
		return NULL;
	request->id = id;
	request->limit = limit;
	request->operation = operation;
	for (size_t i = 0; i < length; i++)
		request->path[i] = (char)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
	request->path[length] = '\0';
	return request;
}

static void *work(void *unused)
{
	static char line[MOST_PATH * 2 + 64]; // protected by `input`
	pthread_t thread;
	for (;;) {
		pthread_mutex_lock(&input);
		if (fgets(line, sizeof(line), stdin) == NULL)
			_exit(0);
		struct request *request = parse(line);
		if (request == NULL)
			_exit(2);
		// Another thread must read on, whatever this one waits for.
		bool others = idle > 1 || (atomic_load(&busy) < MOST_THREADS - 1 &&
					   pthread_create(&thread, &attributes, work, NULL) == 0 && ++idle > 1);
		atomic_fetch_add(&busy, 1);
		if (others)
			idle--;
		pthread_mutex_unlock(&input);
		if (others)
			serve(request);
		else
			answer(request->id, EAGAIN, NULL, 0);
		free(request);
		if (!others)
			continue;
		pthread_mutex_lock(&input);
		bool enough = idle >= MOST_IDLE;
		if (!enough)
			idle++;
		pthread_mutex_unlock(&input);
		if (enough)
			return unused;
	}
}

// Records systemd's report of how the agent ended (ExecStopPost=), for its next start.
static int ended(void)
{
	const char *at = getenv("STATE_DIRECTORY"), *result = getenv("SERVICE_RESULT");
	const char *code = getenv("EXIT_CODE"), *status = getenv("EXIT_STATUS");
	if (at == NULL || result == NULL || code == NULL || status == NULL)
		return 1;
	int directory = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int file = directory < 0 ? -1
				 : openat(directory, "ended",
					  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	return file >= 0 && dprintf(file, "%s %s %s\n", result, code, status) > 0 ? 0 : 1;
}

int main(int count, char **arguments)
{
	if (count == 2 && strcmp(arguments[1], "--ended") == 0)
		return ended();
	// If the agent is killed, its end of the pipe closes, too, but this works even if no thread can run.
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	// One heap for all threads: they are many and allocate little.
	mallopt(M_ARENA_MAX, 1);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, 64 * 1024);
	idle = 1;
	pthread_t thread;
	if (pthread_create(&thread, &attributes, work, NULL) != 0)
		_exit(3);
	for (;;)
		pause();
}
