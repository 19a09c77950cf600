"""A load of short connections: one small request and one small answer on each.

Used by `make-captures`. `serve` answers and closes first, so that TIME_WAIT stays with
the server and the client can use a port again at once. `load` opens the connections,
`--at-once` at a time. One process each, epoll by way of asyncio, standard library only.
"""

import argparse
import asyncio

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\nConnection: close\r\n\r\n" + b"x" * 200
QUESTION = b"GET /small HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"


async def answer(reader, writer):
    """One connection at the server: await the request, answer, close."""
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    writer.close()


async def serve(ports):
    """Serves on all the ports until it is ended."""
    servers = [await asyncio.start_server(answer, "0.0.0.0", port, backlog=4096) for port in ports]
    await asyncio.gather(*(server.serve_forever() for server in servers))


async def client(address, tickets, failed):
    """One of the clients that run at the same time: a connection per ticket."""
    for port in tickets:
        try:
            reader, writer = await asyncio.open_connection(address, port)
            writer.write(QUESTION)
            await reader.read()
            writer.close()
        except OSError:
            failed.append(port)


async def load(address, ports, connections, at_once):
    """Opens `connections` connections and prints how many failed."""
    tickets = iter(ports[i % len(ports)] for i in range(connections))
    failed = []
    await asyncio.gather(*(client(address, tickets, failed) for _ in range(at_once)))
    print(f"{connections} connections, {len(failed)} failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["serve", "load"])
    parser.add_argument("--address", default="192.0.2.2")
    parser.add_argument("--ports", type=int, nargs="+", default=[8001, 8002, 8003, 8004])
    parser.add_argument("--connections", type=int, default=100_000)
    parser.add_argument("--at-once", type=int, default=50)
    options = parser.parse_args()
    if options.what == "serve":
        asyncio.run(serve(options.ports))
    else:
        asyncio.run(load(options.address, options.ports, options.connections, options.at_once))


if __name__ == "__main__":
    main()
