"""A package mirror on loopback that misbehaves on request; used by fetcher_test.sh.

Serves the folder `pool` under the given folder. A file `faults/<name>` there says how the
file of that name is served, as words:

  missing          not found
  corrupt          one byte is wrong
  short N          the file claims to be N bytes long
  cut N            the connection ends after N bytes of the answer
  stall N          nothing comes after byte N of the file, the connection stays open
  norange          a request for the rest of a file gets the whole file
  pace N           N bytes a tick, a tick is 10 ms
  once             as last word: the fault goes away after one request

Writes its port to `port` and one line per request, `<status> <first byte> <path>`, to `log`.
"""

import http.server
import os
import re
import sys
import time

ROOT = sys.argv[1]
BLOCK = 16384


class Mirror(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.lstrip("/")
        name = os.path.basename(path)
        fault = self.take_fault(name)
        kind = fault[0] if fault else ""
        number = int(fault[1]) if len(fault) > 1 and fault[1].isdigit() else 0
        try:
            with open(os.path.join(ROOT, path), "rb") as f:
                data = f.read()
        except OSError:
            kind = "missing"
        if kind == "missing":
            return self.answer(404, 0, b"", path)
        if kind == "corrupt":
            data = data[:10] + bytes([data[10] ^ 1]) + data[11:]
        if kind == "short":
            data = data[:number]
        start = 0
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if asked and kind != "norange":
            start = int(asked.group(1))
            if start >= len(data):
                return self.answer(416, start, b"", path)
        self.answer(206 if asked and kind != "norange" else 200, start, data, path, kind, number)

    def take_fault(self, name):
        file = os.path.join(ROOT, "faults", name)
        try:
            with open(file) as f:
                fault = f.read().split()
        except OSError:
            return []
        if fault and fault[-1] == "once":
            os.remove(file)
            fault.pop()
        return fault

    def answer(self, status, start, data, path, kind="", number=0):
        with open(os.path.join(ROOT, "log"), "a") as log:
            log.write("%d %d %s\n" % (status, start, path))
        self.send_response(status)
        self.send_header("Content-Length", str(len(data) - start))
        if status == 206:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (start, len(data) - 1, len(data)))
        self.end_headers()
        if self.command == "HEAD":
            return
        end = len(data)
        if kind == "cut":
            end = min(end, start + number)
        if kind == "stall":
            end = min(end, max(start, number))
        step = number if kind == "pace" else BLOCK
        for at in range(start, end, step):
            self.wfile.write(data[at : min(at + step, end)])
            if kind == "pace":
                time.sleep(0.01)
        self.wfile.flush()
        if kind == "stall" and end < len(data):
            # Ends when the client gives up: nothing else is ever sent to us.
            self.connection.recv(1)
        if end < len(data):
            self.close_connection = True

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that was killed is part of the test


server = Server(("127.0.0.1", 0), Mirror)
with open(os.path.join(ROOT, "port.new"), "w") as port:
    port.write("%d\n" % server.server_address[1])
os.rename(os.path.join(ROOT, "port.new"), os.path.join(ROOT, "port"))
server.serve_forever()
