"""The two ends of a transfer, with the kernel's own account of it (TCP_INFO).

    transfer.py serve [--congestion cubic] [--sndbuf N]    answers "GET /BYTES" with that many
    transfer.py fetch ADDRESS BYTES [--rcvbuf N] [--times N] [--pause S]   on one connection
    transfer.py fetch ADDRESS BYTES --post                 sends that many instead

The server writes one line of JSON per connection: TCP_INFO when everything was
acknowledged. The client reads as fast as it can. Both speak enough HTTP for curl.
"""

import argparse
import fcntl
import json
import socket
import struct
import time

PORT = 80
SIOCOUTQ = 0x5411  # linux/sockios.h: bytes not yet acknowledged
BODY = b"The quick brown fox jumps over the lazy dog 0123456789. " * 1200

# linux/tcp.h, struct tcp_info up to tcpi_snd_wnd (5.4 and later).
INFO = struct.Struct("=8B24I4Q6I4Q2I2Q4I")
NAMES = ("state ca_state retransmits probes backoff options wscale app_limited "
         "rto ato snd_mss rcv_mss unacked sacked lost retrans fackets last_data_sent last_ack_sent "
         "last_data_recv last_ack_recv pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss "
         "reordering rcv_rtt rcv_space total_retrans pacing_rate max_pacing_rate bytes_acked "
         "bytes_received segs_out segs_in notsent_bytes min_rtt data_segs_in data_segs_out "
         "delivery_rate busy_time rwnd_limited sndbuf_limited delivered delivered_ce bytes_sent "
         "bytes_retrans dsack_dups reord_seen rcv_ooopack snd_wnd").split()
KEPT = ("total_retrans bytes_acked bytes_sent bytes_retrans data_segs_out segs_out segs_in snd_mss "
        "min_rtt rtt dsack_dups reord_seen busy_time rwnd_limited sndbuf_limited").split()


def tcp_info(connection):
    """The fields worth keeping of a socket's TCP_INFO."""
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO.size)
    every = dict(zip(NAMES, INFO.unpack(raw.ljust(INFO.size, b"\0"))))
    return {name: every[name] for name in KEPT}


def wait_for_acks(connection):
    """Waits until everything written is acknowledged, at most 30 s."""
    for _ in range(3000):
        left = struct.unpack("i", fcntl.ioctl(connection, SIOCOUTQ, b"\0" * 4))[0]
        if left == 0:
            return
        time.sleep(0.01)


def answer(connection):
    """Answers requests on one connection until the client closes it."""
    pending = b""
    while True:
        while b"\r\n\r\n" not in pending:
            more = connection.recv(4096)
            if not more:
                return
            pending += more
        request, pending = pending.split(b"\r\n\r\n", 1)
        size = int(request.split()[1].lstrip(b"/"))
        if request.startswith(b"POST"):
            while len(pending) < size:
                pending += connection.recv(65536)
            pending, size = pending[size:], 2
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode()
        connection.sendall(head + (BODY * (size // len(BODY) + 1))[:size])
        wait_for_acks(connection)


def serve(options):
    """Serves one connection after the other until ended."""
    family = socket.AF_INET6 if socket.has_ipv6 else socket.AF_INET
    with socket.create_server(("::", PORT), family=family, dualstack_ipv6=True) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options.congestion.encode())
        if options.sndbuf:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.sndbuf)
        print(json.dumps({"listening": PORT}), flush=True)
        while True:
            connection, _ = listener.accept()
            with connection:
                answer(connection)
                print(json.dumps(tcp_info(connection)), flush=True)


def read_answer(connection):
    """Reads one answer; returns the length of its body."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(65536)
    head, body = head.split(b"\r\n\r\n", 1)
    size = int(head.rsplit(b":", 1)[1])
    left = size - len(body)
    while left > 0:
        left -= len(connection.recv(1 << 20))
    return size


def fetch(options):
    """Fetches over one connection and prints the time of each answer."""
    info = socket.getaddrinfo(options.address, PORT, type=socket.SOCK_STREAM)[0]
    with socket.socket(info[0], info[1]) as connection:
        if options.rcvbuf:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.rcvbuf)
        connection.connect(info[4])
        connection.settimeout(options.patience)
        for i in range(options.times):
            if i:
                time.sleep(options.pause)
            begun = time.monotonic()
            verb, body = ("POST", options.size) if options.post else ("GET", 0)
            head = f"{verb} /{options.size} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
            connection.sendall(head + (BODY * (body // len(BODY) + 1))[:body])
            read_answer(connection)
            print(f"{(time.monotonic() - begun) * 1e3:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    roles = parser.add_subparsers(required=True)
    server = roles.add_parser("serve")
    server.add_argument("--congestion", default="cubic")
    server.add_argument("--sndbuf", type=int)
    server.set_defaults(act=serve)
    client = roles.add_parser("fetch")
    client.add_argument("address")
    client.add_argument("size", type=int)
    client.add_argument("--rcvbuf", type=int)
    client.add_argument("--times", type=int, default=1)
    client.add_argument("--pause", type=float, default=0)
    client.add_argument("--post", action="store_true")
    client.add_argument("--patience", type=float, help="seconds of silence after which the client gives up")
    client.set_defaults(act=fetch)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
