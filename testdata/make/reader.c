/* A reader with known waits, for traces of its system calls.
 *
 *     reader ADDRESS BYTES FILE    asks a server on port 80 for so many bytes and writes them to FILE
 *
 * After a quarter of them it sleeps 80 ms, after a half it computes for 80 ms without a system call, after
 * three quarters it makes the file durable. In between it reads and writes as fast as it can. Nothing
 * is left out of what it does: a trace of it has one thread and one socket.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static long now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int count, char **words)
{
	static char buffer[16384];
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(80) };
	char request[64];
	int window = 65536, met = 0;
	long total, got = 0;

	if (count != 4 || inet_pton(AF_INET, words[1], &to.sin_addr) != 1)
		return 2;
	total = atol(words[2]);
	int file = open(words[3], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int from = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(from, SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
	if (file < 0 || connect(from, (struct sockaddr *)&to, sizeof to) != 0)
		return 1;
	snprintf(request, sizeof request, "GET /%ld HTTP/1.1\r\nHost: x\r\n\r\n", total);
	if (send(from, request, strlen(request), 0) < 0)
		return 1;
	while (got < total) {
		ssize_t some = recv(from, buffer, sizeof buffer, 0);
		if (some <= 0)
			break;
		got += some;
		if (write(file, buffer, some) != some)
			return 1;
		if (met == 0 && got > total / 4) {
			struct timespec nap = { .tv_nsec = 80000000 };
			nanosleep(&nap, NULL);
			met = 1;
		} else if (met == 1 && got > total / 2) {
			for (long until = now_ms() + 80; now_ms() < until;)
				;
			met = 2;
		} else if (met == 2 && got > total / 4 * 3) {
			fsync(file);
			met = 3;
		}
	}
	close(from);
	close(file);
	return 0;
}
