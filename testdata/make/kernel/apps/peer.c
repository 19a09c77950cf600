/*
 * peer: one end of a scripted TCP conversation.
 *
 * Question: what exactly did the application do, and when? Each step of a small script is carried out on one
 * socket, and each read and write is logged with its start, its end and the socket's unsent bytes.
 * Simulated processes take no time, so application speed is modelled by explicit sleeps only.
 *
 *   peer server NAME ADDR PORT OPTIONS SCRIPT      accepts conns=N connections, one after the other (fork=1: at once)
 *   peer client NAME ADDR PORT OPTIONS SCRIPT      opens conns=N connections, gap=MS apart
 *
 * Writes NAME.log (one line an event: CLOCK_REALTIME start and end in ns, event, detail) and NAME.info (JSON lines of TCP_INFO).
 * OPTIONS (comma separated, or "-"): sndbuf= rcvbuf= nodelay=1 cc= lowat= pacing= (bytes/s) clamp= (TCP_WINDOW_CLAMP) quickack=0|1 conns= fork=1 gap= bind= rchunk=
 * SCRIPT steps, separated by spaces (MS may have a fraction):
 *   req            write a 78-byte request ending in an empty line      hdr:N  write an N-byte header ending in an empty line
 *   h              read to an empty line (\r\n\r\n)                     w:N[/CHUNK[@MS]]  write N bytes, CHUNK at a time, MS pause after each
 *   r:N[/CHUNK[@MS]] read exactly N bytes                               eof[/CHUNK[@MS]]  read to the end of the stream
 *   s:MS sleep     fin shutdown(WR)   drain wait until all is acknowledged   info dump TCP_INFO   nd:0|1   qa:0|1   cork:0|1
 *   xK( ... )      repeat K times (no nesting)                          rst  close by reset
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CHUNK (8 << 20)

struct options { char text[512]; };

static const char *name;
static FILE *log_file, *info_file;
static char *buffer;
static char carry[65536];          /* bytes read past a header */
static size_t carried;
static int conn_number;

static long long now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Logs an event without duration. */
static void note(const char *event, size_t detail)
{
	long long t = now_ns();
	fprintf(log_file, "%lld %lld %s#%d %s %zu\n", t, t, name, conn_number, event, detail);
}

static void sleep_ms(double ms)
{
	struct timespec t = { (time_t)(ms / 1e3), 0 };
	t.tv_nsec = (long)((ms - t.tv_sec * 1e3) * 1e6);
	nanosleep(&t, NULL);
}

static void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", name, what, strerror(errno));
	fprintf(log_file, "%lld %lld %s#%d error %s: %s\n", now_ns(), now_ns(), name, conn_number, what, strerror(errno));
	fflush(log_file);
	_exit(1);
}

static const char *option(const struct options *o, const char *key)
{
	static char value[64];
	size_t n = strlen(key);
	for (const char *p = o->text; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (!strncmp(p, key, n) && p[n] == '=') {
			snprintf(value, sizeof value, "%.*s", (int)strcspn(p + n + 1, ","), p + n + 1);
			return value;
		}
	return NULL;
}

static long number(const struct options *o, const char *key, long otherwise)
{
	const char *v = option(o, key);
	return v ? atol(v) : otherwise;
}

static void set_int(int fd, int level, int which, int value, const char *what)
{
	if (setsockopt(fd, level, which, &value, sizeof value) < 0)
		die(what);
}

static void configure(int fd, const struct options *o)
{
	const char *v;
	if ((v = option(o, "sndbuf"))) set_int(fd, SOL_SOCKET, SO_SNDBUF, atoi(v), "SO_SNDBUF");
	if ((v = option(o, "rcvbuf"))) set_int(fd, SOL_SOCKET, SO_RCVBUF, atoi(v), "SO_RCVBUF");
	if ((v = option(o, "nodelay"))) set_int(fd, IPPROTO_TCP, TCP_NODELAY, atoi(v), "TCP_NODELAY");
	if ((v = option(o, "lowat"))) set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, atoi(v), "TCP_NOTSENT_LOWAT");
	if ((v = option(o, "clamp"))) set_int(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, atoi(v), "TCP_WINDOW_CLAMP");
	if ((v = option(o, "pacing"))) set_int(fd, SOL_SOCKET, SO_MAX_PACING_RATE, atoi(v), "SO_MAX_PACING_RATE");
	if ((v = option(o, "quickack"))) set_int(fd, IPPROTO_TCP, TCP_QUICKACK, atoi(v), "TCP_QUICKACK");
	if ((v = option(o, "cc")) && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, v, strlen(v)) < 0)
		die("TCP_CONGESTION");
}

static void queues(int fd, int *unacked, int *unsent)
{
	*unacked = *unsent = -1;
	ioctl(fd, SIOCOUTQ, unacked);
	ioctl(fd, SIOCOUTQNSD, unsent);
}

static void dump_info(int fd, const char *label)
{
	struct tcp_info t;
	socklen_t n = sizeof t;
	char cc[32] = "";
	int sndbuf = 0, rcvbuf = 0;
	memset(&t, 0, sizeof t);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &t, &n) < 0)
		return;
	n = sizeof cc;
	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, &n);
	n = sizeof sndbuf;
	getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, &n);
	n = sizeof rcvbuf;
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, &n);
	fprintf(info_file,
		"{\"name\":\"%s\",\"conn\":%d,\"label\":\"%s\",\"time_ns\":%lld,\"state\":%u,\"ca_state\":%u,\"options\":%u,\"snd_wscale\":%u,\"rcv_wscale\":%u,"
		"\"rto_us\":%u,\"snd_mss\":%u,\"rcv_mss\":%u,\"rtt_us\":%u,\"rttvar_us\":%u,\"min_rtt_us\":%u,\"snd_ssthresh\":%u,\"snd_cwnd\":%u,"
		"\"rcv_ssthresh\":%u,\"rcv_rtt_us\":%u,\"rcv_space\":%u,\"total_retrans\":%u,\"lost\":%u,\"bytes_acked\":%llu,\"bytes_received\":%llu,"
		"\"bytes_sent\":%llu,\"bytes_retrans\":%llu,\"segs_out\":%u,\"segs_in\":%u,\"data_segs_out\":%u,\"data_segs_in\":%u,"
		"\"delivery_rate_Bps\":%llu,\"pacing_rate_Bps\":%llu,\"busy_us\":%llu,\"rwnd_limited_us\":%llu,\"sndbuf_limited_us\":%llu,"
		"\"delivered\":%u,\"delivered_ce\":%u,\"dsack_dups\":%u,\"reord_seen\":%u,\"reordering\":%u,\"advmss\":%u,\"pmtu\":%u,\"cc\":\"%s\",\"sndbuf\":%d,\"rcvbuf\":%d}\n",
		name, conn_number, label, now_ns(), t.tcpi_state, t.tcpi_ca_state, t.tcpi_options, t.tcpi_snd_wscale, t.tcpi_rcv_wscale,
		t.tcpi_rto, t.tcpi_snd_mss, t.tcpi_rcv_mss, t.tcpi_rtt, t.tcpi_rttvar, t.tcpi_min_rtt, t.tcpi_snd_ssthresh, t.tcpi_snd_cwnd,
		t.tcpi_rcv_ssthresh, t.tcpi_rcv_rtt, t.tcpi_rcv_space, t.tcpi_total_retrans, t.tcpi_lost,
		(unsigned long long)t.tcpi_bytes_acked, (unsigned long long)t.tcpi_bytes_received, (unsigned long long)t.tcpi_bytes_sent,
		(unsigned long long)t.tcpi_bytes_retrans, t.tcpi_segs_out, t.tcpi_segs_in, t.tcpi_data_segs_out, t.tcpi_data_segs_in,
		(unsigned long long)t.tcpi_delivery_rate, (unsigned long long)t.tcpi_pacing_rate, (unsigned long long)t.tcpi_busy_time,
		(unsigned long long)t.tcpi_rwnd_limited, (unsigned long long)t.tcpi_sndbuf_limited, t.tcpi_delivered, t.tcpi_delivered_ce,
		t.tcpi_dsack_dups, t.tcpi_reord_seen, t.tcpi_reordering, t.tcpi_advmss, t.tcpi_pmtu, cc, sndbuf, rcvbuf);
	fflush(info_file);
}

static void put(int fd, const char *data, size_t n, const char *event)
{
	long long t0 = now_ns();
	size_t done = 0;
	while (done < n) {
		ssize_t r = send(fd, data + done, n - done, MSG_NOSIGNAL);
		if (r < 0) die("send");
		done += r;
	}
	long long t1 = now_ns();
	int unacked, unsent;
	queues(fd, &unacked, &unsent);
	fprintf(log_file, "%lld %lld %s#%d %s %zu unacked=%d unsent=%d\n", t0, t1, name, conn_number, event, n, unacked, unsent);
}

/* Reads up to n bytes; 0 at the end of the stream. */
static size_t take(int fd, char *to, size_t n, const char *event)
{
	if (carried) {
		size_t k = n < carried ? n : carried;
		memcpy(to, carry, k);
		carried -= k;
		memmove(carry, carry + k, carried);
		return k;
	}
	long long t0 = now_ns();
	ssize_t r = recv(fd, to, n, 0);
	if (r < 0) die("recv");
	long long t1 = now_ns();
	fprintf(log_file, "%lld %lld %s#%d %s %zd\n", t0, t1, name, conn_number, event, r);
	return r;
}

static void read_header(int fd)
{
	size_t have = 0;
	for (;;) {
		size_t k = take(fd, buffer + have, 4096, "read");
		if (!k) { note("eof", 0); return; }
		have += k;
		char *end = memmem(buffer, have, "\r\n\r\n", 4);
		if (!end) continue;
		size_t used = end + 4 - buffer;
		if (have - used > sizeof carry) die("header too long");
		memcpy(carry, buffer + used, have - used);
		carried = have - used;
		note("header", used);
		return;
	}
}

static void put_header(int fd, size_t n, const char *first)
{
	char text[4096];
	if (n > sizeof text) die("header too long");
	memset(text, 'x', n);
	memcpy(text, first, strlen(first) < n ? strlen(first) : n);
	memcpy(text + n - 4, "\r\n\r\n", 4);
	put(fd, text, n, "write");
}

struct amount { size_t total, chunk; double pause_ms; };

static struct amount parse_amount(const char *text, size_t default_chunk)
{
	struct amount a = { strtoull(text, NULL, 10), 0, 0 };
	const char *slash = strchr(text, '/'), *at = strchr(text, '@');
	a.chunk = slash ? strtoull(slash + 1, NULL, 10) : default_chunk;
	if (!a.chunk) a.chunk = a.total;
	if (a.chunk > MAX_CHUNK) a.chunk = MAX_CHUNK;
	a.pause_ms = at ? atof(at + 1) : 0;
	return a;
}

static void write_amount(int fd, struct amount a)
{
	for (size_t left = a.total; left;) {
		size_t k = left < a.chunk ? left : a.chunk;
		put(fd, buffer, k, "write");
		left -= k;
		if (a.pause_ms > 0) sleep_ms(a.pause_ms);
	}
}

static void read_amount(int fd, struct amount a)
{
	for (size_t left = a.total; left;) {
		size_t k = take(fd, buffer, left < a.chunk ? left : a.chunk, "read");
		if (!k) { note("eof", 0); return; }
		left -= k;
		if (a.pause_ms > 0) sleep_ms(a.pause_ms);
	}
}

static void drain(int fd)
{
	int unacked, unsent;
	do {
		queues(fd, &unacked, &unsent);
		if (unacked > 0) sleep_ms(1);
	} while (unacked > 0);
	note("drained", 0);
}

/* Carries out one step; 1 when the socket was closed by it. */
static int step(int fd, const char *s, size_t rchunk)
{
	if (!strcmp(s, "req")) put_header(fd, 78, "GET /file HTTP/1.1\r\nHost: server\r\nUser-Agent: peer\r\nX: ");
	else if (!strncmp(s, "post:", 5)) put_header(fd, 140, "POST /file HTTP/1.1\r\nHost: server\r\nUser-Agent: peer\r\nX: ");
	else if (!strncmp(s, "hdr:", 4)) put_header(fd, atol(s + 4), "HTTP/1.1 200 OK\r\nServer: peer\r\nX: ");
	else if (!strcmp(s, "h")) read_header(fd);
	else if (!strncmp(s, "w:", 2)) write_amount(fd, parse_amount(s + 2, 0));
	else if (!strncmp(s, "r:", 2)) read_amount(fd, parse_amount(s + 2, rchunk));
	else if (!strncmp(s, "eof", 3)) {
		struct amount a = parse_amount("0", rchunk);
		if (s[3] == '/') { a = parse_amount(s + 3, rchunk); }
		a.total = SIZE_MAX;
		if (!a.chunk || a.chunk > MAX_CHUNK) a.chunk = rchunk;
		read_amount(fd, a);
	}
	else if (!strncmp(s, "s:", 2)) {
		note("sleep_us", (size_t)(atof(s + 2) * 1000));
		sleep_ms(atof(s + 2));
	}
	else if (!strcmp(s, "fin")) {
		note("shutdown", 0);
		shutdown(fd, SHUT_WR);
	}
	else if (!strcmp(s, "drain")) drain(fd);
	else if (!strcmp(s, "info")) dump_info(fd, "step");
	else if (!strncmp(s, "nd:", 3)) set_int(fd, IPPROTO_TCP, TCP_NODELAY, atoi(s + 3), "TCP_NODELAY");
	else if (!strncmp(s, "qa:", 3)) set_int(fd, IPPROTO_TCP, TCP_QUICKACK, atoi(s + 3), "TCP_QUICKACK");
	else if (!strncmp(s, "cork:", 5)) set_int(fd, IPPROTO_TCP, TCP_CORK, atoi(s + 5), "TCP_CORK");
	else if (!strcmp(s, "rst")) {
		struct linger l = { 1, 0 };
		dump_info(fd, "end");
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
		close(fd);
		return 1;
	}
	else die("unknown step");
	return 0;
}

static void play(int fd, const char *script, size_t rchunk)
{
	char *text = strdup(script), *words[512], *loop_save;
	int count = 0, loop_from = -1, loop_left = 0;
	for (char *w = strtok_r(text, " ", &loop_save); w && count < 512; w = strtok_r(NULL, " ", &loop_save))
		words[count++] = w;
	for (int i = 0; i < count; i++) {
		char *w = words[i];
		if (w[0] == 'x' && w[strlen(w) - 1] == '(') { loop_left = atoi(w + 1); loop_from = i; continue; }
		if (!strcmp(w, ")")) { if (--loop_left > 0) i = loop_from; continue; }
		if (step(fd, w, rchunk)) { free(text); return; }
	}
	dump_info(fd, "end");
	note("close", 0);
	close(fd);
	free(text);
}

static socklen_t address(struct sockaddr_storage *s, const char *addr, int port)
{
	memset(s, 0, sizeof *s);
	if (strchr(addr, ':')) {
		struct sockaddr_in6 *a = (void *)s;
		a->sin6_family = AF_INET6;
		a->sin6_port = htons(port);
		inet_pton(AF_INET6, addr, &a->sin6_addr);
		return sizeof *a;
	}
	struct sockaddr_in *a = (void *)s;
	a->sin_family = AF_INET;
	a->sin_port = htons(port);
	inet_pton(AF_INET, addr, &a->sin_addr);
	return sizeof *a;
}

static void serve(struct sockaddr_storage *at, socklen_t n, const struct options *o, const char *script)
{
	int listener = socket(at->ss_family, SOCK_STREAM, 0), conns = number(o, "conns", 1), children = 0;
	set_int(listener, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
	configure(listener, o);
	if (bind(listener, (void *)at, n) < 0) die("bind");
	if (listen(listener, number(o, "backlog", 128)) < 0) die("listen");
	for (conn_number = 1; conn_number <= conns; conn_number++) {
		long long t0 = now_ns();
		int fd = accept(listener, NULL, NULL);
		if (fd < 0) die("accept");
		configure(fd, o);
		fprintf(log_file, "%lld %lld %s#%d accept 0\n", t0, now_ns(), name, conn_number);
		fflush(log_file);
		carried = 0;
		if (number(o, "fork", 0)) {
			if (fork() == 0) { play(fd, script, number(o, "rchunk", 65536)); fflush(log_file); _exit(0); }
			close(fd);
			children++;
		} else
			play(fd, script, number(o, "rchunk", 65536));
	}
	while (children-- > 0) wait(NULL);
}

static void visit(struct sockaddr_storage *at, socklen_t n, const struct options *o, const char *script)
{
	int conns = number(o, "conns", 1);
	for (conn_number = 1; conn_number <= conns; conn_number++) {
		int fd = socket(at->ss_family, SOCK_STREAM, 0);
		configure(fd, o);
		long long t0 = now_ns();
		if (connect(fd, (void *)at, n) < 0) die("connect");
		fprintf(log_file, "%lld %lld %s#%d connect 0\n", t0, now_ns(), name, conn_number);
		carried = 0;
		play(fd, script, number(o, "rchunk", 65536));
		if (conn_number < conns) sleep_ms(number(o, "gap", 100));
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_storage at;
	struct options o = { "" };
	char path[512];
	if (argc != 7) { fprintf(stderr, "usage: peer server|client NAME ADDR PORT OPTIONS SCRIPT\n"); return 2; }
	name = argv[2];
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_TIMERSLACK, 1UL);
	snprintf(path, sizeof path, "%s.log", name);
	log_file = fopen(path, "a");
	snprintf(path, sizeof path, "%s.info", name);
	info_file = fopen(path, "a");
	buffer = calloc(1, MAX_CHUNK + 4096);
	if (!log_file || !info_file || !buffer) { perror(name); return 1; }
	setvbuf(log_file, NULL, _IOFBF, 1 << 20);
	snprintf(o.text, sizeof o.text, "%s", argv[5]);
	memset(buffer, 'd', MAX_CHUNK);
	socklen_t n = address(&at, argv[3], atoi(argv[4]));
	if (!strcmp(argv[1], "server")) serve(&at, n, &o, argv[6]);
	else visit(&at, n, &o, argv[6]);
	fclose(log_file);
	fclose(info_file);
	return 0;
}
