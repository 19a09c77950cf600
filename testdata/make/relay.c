/*
 * Carries Ethernet frames between namespaces with delay, a rate, a queue and loss.
 *
 * A user-space path emulator for kernels without netem. Each link is a pair of TAP devices,
 * one in each namespace. A frame read from one end passes, per direction:
 *
 *     loss (of data or of all, seeded; or exact data packets)
 *       -> drop-tail queue -> serialisation -> delay -> the other end
 *
 * A TAP device offers no offloads, so the kernel hands over frames of wire size, and what is
 * lost here is a wire packet. Every loss is counted: that is the truth about the path. Each
 * direction is a FIFO with a constant delay, so its frames leave in the order they came.
 *
 * `path.py` compiles and runs it, one argument per link end and direction:
 *     relay NAMESPACE DEVICE NAMESPACE DEVICE PATH PATH [more links]
 *     PATH = delay_us:ns_per_kbyte:queue_packets:loss_ppm:loss_of_all_ppm:seed:n,n,n
 * It prints "ready", ends on SIGTERM, and then prints one line of JSON per direction.
 * Run it under SCHED_FIFO: without it the scheduler adds jumps of 4 ms.
 * Left out: reordering, duplication, corruption.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_DIRECTIONS = 8,
    MAX_FRAME = 1600,
    HELD = 16384, /* frames in flight per direction; more than that is lost as by a full queue */
    MAX_DROPS = 64,
    LATE_BUCKETS = 1000, /* 10 us each */
    SPIN_NS = 20000, /* ppoll returns up to this late under SCHED_FIFO */
};

struct held_frame {
    int64_t leaves_queue_ns, due_ns;
    int length;
    uint8_t bytes[MAX_FRAME];
};

struct direction {
    int source, sink;
    int64_t delay_us, ns_per_kbyte, queue_packets, loss_ppm, loss_of_all_ppm;
    uint64_t random;
    int64_t drop_data[MAX_DROPS];
    int drops;
    int64_t free_at_ns, data_seen, carried, lost_data, lost_other;
    int64_t late[LATE_BUCKETS];
    struct held_frame *frames; /* a ring: [first, queued) has left the queue, [queued, next) waits in it */
    uint64_t first, queued, next;
};

static volatile sig_atomic_t ended;

static void end(int signal_number)
{
    (void)signal_number;
    ended = 1;
}

static void fail(const char *what)
{
    fprintf(stderr, "relay: cannot %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* The descriptor stays bound to the namespace in which the device was made. */
static int open_tap(const char *namespace, const char *device)
{
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    int ns = open(path, O_RDONLY | O_CLOEXEC);
    if (ns < 0 || setns(ns, CLONE_NEWNET) < 0)
        fail(path);
    close(ns);
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", device);
    if (tap < 0 || ioctl(tap, TUNSETIFF, &request) < 0)
        fail("open a TAP device");
    return tap;
}

static void read_path(struct direction *d, const char *text)
{
    char list[512] = "";
    if (sscanf(text, "%ld:%ld:%ld:%ld:%ld:%lu:%511s", &d->delay_us, &d->ns_per_kbyte, &d->queue_packets,
               &d->loss_ppm, &d->loss_of_all_ppm, &d->random, list) < 6) {
        errno = EINVAL;
        fail(text);
    }
    for (char *one = strtok(list, ","); one && d->drops < MAX_DROPS; one = strtok(NULL, ","))
        d->drop_data[d->drops++] = atol(one);
    d->frames = malloc(sizeof *d->frames * HELD);
    if (!d->frames)
        fail("hold frames in memory");
}

/* splitmix64 (Steele, Lea, Flood 2014): small, seeded, good enough to lose packets by. */
static bool happens(struct direction *d, int64_t ppm)
{
    uint64_t z = (d->random += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (int64_t)((z ^ (z >> 31)) % 1000000) < ppm;
}

/* A TCP segment with payload, over IPv4 or over IPv6 without extension headers. */
static bool carries_data(const uint8_t *f, int length)
{
    int tcp, stop;
    if (length < 54)
        return false;
    if (f[12] == 0x08 && f[13] == 0x00 && f[23] == 6) {
        tcp = 14 + (f[14] & 15) * 4;
        stop = 14 + f[16] * 256 + f[17];
    } else if (f[12] == 0x86 && f[13] == 0xdd && f[20] == 6) {
        tcp = 54;
        stop = 54 + f[18] * 256 + f[19];
    } else {
        return false;
    }
    return tcp + 12 < length && stop > tcp + (f[tcp + 12] >> 4) * 4;
}

static bool is_lost(struct direction *d, bool data)
{
    bool lost = data && happens(d, d->loss_ppm);
    lost |= happens(d, d->loss_of_all_ppm);
    for (int i = 0; data && i < d->drops; i++)
        lost |= d->drop_data[i] == d->data_seen;
    return lost;
}

/* Reads one frame and either holds it until it is due or loses it; false if there was none. */
static bool take(struct direction *d)
{
    struct held_frame *f = &d->frames[d->next % HELD];
    f->length = (int)read(d->source, f->bytes, MAX_FRAME);
    if (f->length <= 0)
        return false;
    int64_t now = now_ns();
    while (d->queued < d->next && d->frames[d->queued % HELD].leaves_queue_ns <= now)
        d->queued++;
    bool data = carries_data(f->bytes, f->length);
    d->data_seen += data;
    bool full = (int64_t)(d->next - d->queued) >= d->queue_packets || d->next - d->first >= HELD - 1;
    if (is_lost(d, data) || full) {
        *(data ? &d->lost_data : &d->lost_other) += 1;
        return true;
    }
    if (d->free_at_ns < now)
        d->free_at_ns = now;
    d->free_at_ns += f->length * d->ns_per_kbyte / 1000;
    f->leaves_queue_ns = d->free_at_ns;
    f->due_ns = d->free_at_ns + d->delay_us * 1000;
    d->next++;
    return true;
}

/* Hands over one frame if it is due. */
static bool give(struct direction *d)
{
    if (d->first == d->next)
        return false;
    struct held_frame *f = &d->frames[d->first % HELD];
    int64_t late_ns = now_ns() - f->due_ns;
    if (late_ns < 0)
        return false;
    if (write(d->sink, f->bytes, f->length) < 0)
        d->lost_other++; /* the device is down: a frame lost like on an unplugged cable */
    int64_t bucket = late_ns / 10000;
    d->late[bucket < LATE_BUCKETS ? bucket : LATE_BUCKETS - 1]++;
    d->carried++;
    d->first++;
    if (d->queued < d->first)
        d->queued = d->first;
    return true;
}

static int late_us(const struct direction *d, int percent)
{
    int64_t left = d->carried * percent / 100;
    int bucket = 0;
    while (bucket < LATE_BUCKETS - 1 && (left -= d->late[bucket]) > 0)
        bucket++;
    return (bucket + 1) * 10;
}

/* Sleeps until the next frame is due or one comes; the rest of the way is spun. */
static void sleep_until_work(struct direction *ds, int count)
{
    int64_t next = INT64_MAX, now = now_ns();
    struct pollfd polled[MAX_DIRECTIONS];
    for (int i = 0; i < count; i++) {
        polled[i] = (struct pollfd){.fd = ds[i].source, .events = POLLIN};
        if (ds[i].first != ds[i].next && ds[i].frames[ds[i].first % HELD].due_ns < next)
            next = ds[i].frames[ds[i].first % HELD].due_ns;
    }
    int64_t sleep_ns = next == INT64_MAX ? 200000000 : next - now - SPIN_NS;
    if (sleep_ns <= 0)
        return;
    struct timespec t = {.tv_sec = sleep_ns / 1000000000, .tv_nsec = sleep_ns % 1000000000};
    ppoll(polled, count, &t, NULL);
}

int main(int argc, char **argv)
{
    static struct direction ds[MAX_DIRECTIONS];
    int count = 0;
    for (int i = 1; i + 5 < argc && count < MAX_DIRECTIONS; i += 6, count += 2) {
        int a = open_tap(argv[i], argv[i + 1]), b = open_tap(argv[i + 2], argv[i + 3]);
        ds[count].source = ds[count + 1].sink = a;
        ds[count].sink = ds[count + 1].source = b;
        read_path(&ds[count], argv[i + 4]);
        read_path(&ds[count + 1], argv[i + 5]);
    }
    struct sigaction action = {.sa_handler = end};
    sigaction(SIGTERM, &action, NULL);
    puts("ready");
    fflush(stdout);
    while (!ended) {
        bool worked = false;
        for (int i = 0; i < count; i++) {
            worked |= give(&ds[i]);
            worked |= take(&ds[i]);
        }
        if (!worked)
            sleep_until_work(ds, count);
    }
    for (int i = 0; i < count; i++)
        printf("{\"carried\": %ld, \"lost_data\": %ld, \"lost_other\": %ld, \"late_p50_us\": %d, "
               "\"late_p99_us\": %d}\n", ds[i].carried, ds[i].lost_data, ds[i].lost_other,
               late_us(&ds[i], 50), late_us(&ds[i], 99));
    return 0;
}
