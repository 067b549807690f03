#!/usr/bin/env python3
"""Load test of `etc serve`, with a client that uses only Python's standard library.

    bench/serve.py [--output results/serve.json] throughput [--layers 4] [--tokens 1024] [--records 48] [--rounds 3]
    bench/serve.py [...] many [--requests 100000] [--clients 8]
    bench/serve.py [...] connections [--connections 200]
    bench/serve.py [...] beside [--layers 12] [--hidden 768] [--tokens 16000] [--shorts 8]

throughput   `etc predict` and `etc serve` alternately on the same generated WikiHop records: records per second of wall
             time and of CPU time. Start-up and loading are excluded: for predict by subtracting a call with one record,
             for serve because the measurement starts when the server is ready. All answers must equal those of
             `etc predict --answers` byte for byte.
many         --requests requests to a tiny model: RSS after each tenth of them, and its growth from the second tenth to
             the last.
connections  --connections simultaneous connections; each sends one request after all are open.
beside       requests with short texts, one after another, alone and while a long text is computed: median wall time of
             the short requests, and how many of them were answered before the long one.
"""
import argparse
import json
import os
import pathlib
import re
import resource
import socket
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request

from machine import machine

ROOT = pathlib.Path(__file__).resolve().parents[1]
ETC = ROOT / "build/cpu/etc"
TICK = os.sysconf("SC_CLK_TCK")


def quiet(*words):
    subprocess.run([ETC, *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def model_and_records(folder, layers, hidden, tokens, records):
    """A WikiHop model trained for one step, and generated records as lines of JSON; writes records.jsonl and
    one.jsonl."""
    sample, data, run = folder / "sample", folder / "train.h5", folder / "run"
    quiet("sample", "--task", "wikihop", "--records", 10 * records, "--seed", 1, "--hops", 1, "--long-tokens", tokens, "--output", sample)
    quiet("prepare", "--task", "wikihop", "--split", "train", "--input", sample / "dev.json", "--vocab", sample / "vocab.txt",
          "--splitter", "icu", "--long-seq-len", tokens, "--output", data)
    quiet("train", "--task", "wikihop", "--data", data, "--vocab", sample / "vocab.txt", "--output", run, "--steps", 1,
          "--batch-size", 1, "--hidden-size", hidden, "--num-hidden-layers", layers, "--num-attention-heads", max(1, hidden // 64),
          "--intermediate-size", 4 * hidden)
    lines = [json.dumps(record) for record in json.loads((sample / "dev.json").read_text())][:records]
    (folder / "records.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "one.jsonl").write_text(lines[0] + "\n")
    return run, lines


class Server:
    """A running `etc serve` process."""

    def __init__(self, model, folder, *options):
        self.log = folder / "serve.err"
        with open(self.log, "w") as err:
            self.process = subprocess.Popen([ETC, "serve", "--model", model, "--port", "0", *options], stderr=err)
        found = None
        while found is None:
            time.sleep(0.05)
            if self.process.poll() is not None:
                raise SystemExit(self.log.read_text())
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.log.read_text())
        self.port = int(found[1])

    def resident_kb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            return answer.read().decode()

    def stop(self):
        self.process.terminate()
        if self.process.wait() != 0:
            raise SystemExit(f"etc serve ended with {self.process.returncode}")


class Client:
    """A persistent HTTP connection."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def ask(self, path, body):
        self.send(path, body)
        return self.receive()

    def send(self, path, body):
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.socket.sendall(head.encode() + body)

    def receive(self):
        while b"\r\n\r\n" not in self.rest:
            self.more()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        length = int(re.search(rb"Content-Length: (\d+)", head)[1])
        while len(self.rest) < length:
            self.more()
        body, self.rest = self.rest[:length], self.rest[length:]
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"{head.decode()}\n{body.decode()}")
        return body

    def more(self):
        got = self.socket.recv(65536)
        if not got:
            raise SystemExit("the server closed the connection")
        self.rest += got


def by_clients(count, port, work):
    """Runs work(client, number) in `count` threads; raises the first exception of any of them."""
    failed = []

    def run(number):
        try:
            work(Client(port), number)
        except BaseException as error:  # raised again in the main thread
            failed.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def predicted(model, folder, name):
    """(wall time, CPU time) of one `etc predict` that writes a prediction file."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    quiet("predict", "--model", model, "--input", folder / name, "--output", folder / "p.json")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def throughput(options, folder):
    model, lines = model_and_records(folder, options.layers, options.hidden, options.tokens, options.records)
    out = subprocess.run([ETC, "predict", "--model", model, "--input", folder / "records.jsonl", "--answers", "-"], check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    expected = out.splitlines(keepends=True)
    bodies = [line.encode() for line in lines]
    server = Server(model, folder)
    rounds = []
    for turn in range(options.rounds + 1):  # the first is a warm-up
        whole, one = predicted(model, folder, "records.jsonl"), predicted(model, folder, "one.jsonl")
        predict = [(len(lines) - 1) / max(a - b, 1e-9) for a, b in zip(whole, one)]
        cpu, begin = server.cpu_seconds(), time.monotonic()

        def work(client, number):
            for n in range(number, len(bodies), options.clients):
                if client.ask("/predict", bodies[n]) != expected[n]:
                    raise SystemExit(f"record {n}: another answer than etc predict's")

        by_clients(options.clients, server.port, work)
        serve = [len(lines) / (time.monotonic() - begin), len(lines) / (server.cpu_seconds() - cpu)]
        if turn > 0:
            rounds.append({"predict": predict, "serve": serve, "share": [s / p for s, p in zip(serve, predict)]})
    server.stop()
    share = [statistics.median(r["share"][i] for r in rounds) for i in range(2)]
    return {"layers": options.layers, "hidden": options.hidden, "tokens": options.tokens, "records": len(lines),
            "clients": options.clients, "rounds": rounds, "share_by_clock": share[0], "share_by_cpu_time": share[1]}


def many(options, folder):
    model, lines = model_and_records(folder, 1, 8, 64, 20)
    bodies = [line.encode() for line in lines]
    server = Server(model, folder)
    resident, begin = [], time.monotonic()
    part = options.requests // 10 // options.clients

    def work(client, number):
        for n in range(part):
            client.ask("/predict", bodies[(number + n) % len(bodies)])

    for _ in range(10):
        by_clients(options.clients, server.port, work)
        resident.append(server.resident_kb())
    seconds = time.monotonic() - begin
    server.stop()
    count = 10 * part * options.clients
    return {"requests": count, "clients": options.clients, "seconds": seconds, "resident_kb": resident,
            "growth": resident[-1] / resident[1] - 1, "requests_per_second": count / seconds}


def connections(options, folder):
    model, lines = model_and_records(folder, 1, 8, 64, 20)
    server = Server(model, folder)
    clients = [Client(server.port) for _ in range(options.connections)]
    begin = time.monotonic()
    for n, client in enumerate(clients):
        client.send("/predict", lines[n % len(lines)].encode())
    first = {}
    for n, client in enumerate(clients):
        if first.setdefault(n % len(lines), answer := client.receive()) != answer:
            raise SystemExit(f"connection {n}: another answer to the same record")
    seconds = time.monotonic() - begin
    resident = server.resident_kb()
    server.stop()
    return {"connections": len(clients), "seconds": seconds, "resident_kb": resident}


def beside(options, folder):
    model, _ = model_and_records(folder, options.layers, options.hidden, 256, 2)
    server = Server(model, folder, "--max-long-tokens", str(options.tokens))
    words = (ROOT / "LICENSE").read_text().split()
    texts = {name: " ".join((words * (1 + count // len(words)))[:count]) for name, count in
             {"short": options.short_words, "long": options.tokens}.items()}
    bodies = {name: json.dumps({"text": text}).encode() for name, text in texts.items()}
    client, patient = Client(server.port), Client(server.port)

    def timed(asked, name):
        begin = time.monotonic()
        read = json.loads(asked.ask("/encode", bodies[name]))["tokens"]["read"]
        return time.monotonic() - begin, read

    timed(client, "short")  # warm-up
    alone = [timed(client, "short")[0] for _ in range(options.shorts)]
    long = []
    thread = threading.Thread(target=lambda: long.append(timed(patient, "long")))
    thread.start()
    while not long and "\netc_computing 1" not in server.metrics():
        time.sleep(0.01)
    among = []
    while len(among) < options.shorts and not long:
        among.append(timed(client, "short")[0])
    before = len(among) - (1 if long else 0)
    thread.join()
    server.stop()
    if not among:
        raise SystemExit("the long text was answered before a short one could be asked: expected a larger model")
    return {"layers": options.layers, "hidden": options.hidden, "tokens": long[0][1], "long_seconds": long[0][0],
            "short_seconds_alone": statistics.median(alone), "short_seconds_beside": statistics.median(among),
            "answered_before_the_long_one": before, "asked": len(among)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("what", choices=["throughput", "many", "connections", "beside"])
    parser.add_argument("--layers", type=int, help="layers of the model (default 4; `beside`: 12)")
    parser.add_argument("--hidden", type=int, help="hidden size of the model (default 256; `beside`: 768)")
    parser.add_argument("--tokens", type=int, help="long tokens per text (default 1024; `beside`: 16000)")
    parser.add_argument("--records", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--requests", type=int, default=100000)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--shorts", type=int, default=8)
    parser.add_argument("--short-words", type=int, default=100)
    options = parser.parse_args()
    for name, value in zip(("layers", "hidden", "tokens"), (12, 768, 16000) if options.what == "beside" else (4, 256, 1024)):
        setattr(options, name, getattr(options, name) or value)
    with tempfile.TemporaryDirectory() as folder:
        result = globals()[options.what](options, pathlib.Path(folder))
    result = {"what": options.what, "machine": machine(), "processors": os.cpu_count(), "load": os.getloadavg()[0], **result}
    text = json.dumps(result, indent=1) + "\n"
    print(text, end="")
    if options.output:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
