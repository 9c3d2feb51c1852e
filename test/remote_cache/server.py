#!/usr/bin/env python3
"""A remote cache for Bazel on loopback: PUT and GET of /ac/* and /cas/* in a folder.

usage: server.py FOLDER PORT_FILE   (takes a free port and writes its number to PORT_FILE)
"""
import os
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER, PORT_FILE = sys.argv[1:]


class Cache(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def path_on_disk(self):
        m = re.fullmatch(r"/(ac|cas)/([0-9a-f]{64})", self.path)
        return os.path.join(FOLDER, m.group(1) + "-" + m.group(2)) if m else None

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path = self.path_on_disk()
        if path is None:
            return self.answer(400)
        try:
            with open(path, "rb") as f:
                self.answer(200, f.read())
        except FileNotFoundError:
            self.answer(404)

    do_HEAD = do_GET

    def do_PUT(self):
        path = self.path_on_disk()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if path is None:
            return self.answer(400)
        with open(path + ".%d" % id(self), "wb") as f:
            f.write(body)
        os.replace(f.name, path)
        self.answer(200)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Cache)
with open(PORT_FILE + ".new", "w") as f:
    f.write(str(server.server_address[1]))
os.replace(f.name, PORT_FILE)
server.serve_forever()
