"""The XML API of Google Cloud Storage in front of a server that speaks S3 and keeps conditions.

It is not a store: objects, and who wins of two writes, are the other server's. What it translates is
where the two differ: a condition names the generation of an object instead of its ETag, 0 being none,
answers tell the generation, and a delete of nothing is 404. A generation is here the object's ETag as
a number, so nothing need be remembered.

gcs.py PORT PORT_OF_THE_OTHER [--slow] [--deaf]

With --slow an object takes one write a second, as there; with --deaf conditions are taken and not kept.
"""

import http.client
import http.server
import sys
import time
import urllib.parse

PORT, BACK = int(sys.argv[1]), int(sys.argv[2])
IS_SLOW, IS_DEAF = "--slow" in sys.argv, "--deaf" in sys.argv
KEPT = ("ETag", "Last-Modified", "Content-Type", "Content-Range")
PASSED = ("Range", "Content-Type")
# The other server wants to see that somebody signs, and does not look how.
SIGNED = "AWS4-HMAC-SHA256 Credential=id/20260101/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=0"


def generation(etag):
    return int(etag.strip('"').split("-")[0][:15], 16) + 1


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    written = {}

    def back(self, method, body=b"", **headers):
        path, _, query = self.path.partition("?")
        path = urllib.parse.quote(urllib.parse.unquote(path), safe="/")
        headers |= {name: self.headers[name] for name in PASSED if name in self.headers}
        headers["Authorization"] = SIGNED
        connection = http.client.HTTPConnection("127.0.0.1", BACK, timeout=60)
        connection.request(method, path + (query and "?" + query), body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, answer.headers, content

    def answer(self, status, headers=None, body=b""):
        headers = headers or {}
        self.send_response(status)
        for name in KEPT:
            if name in headers:
                self.send_header(name, headers[name])
        if status < 300 and "ETag" in headers:
            self.send_header("x-goog-generation", str(generation(headers["ETag"])))
        size = headers.get("Content-Length") if self.command == "HEAD" else str(len(body))
        if status != 204:
            self.send_header("Content-Length", size or "0")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code):
        self.answer(status, None, f"<Error><Code>{code}</Code></Error>".encode())

    def do_GET(self):
        self.answer(*self.back(self.command))

    do_HEAD = do_GET

    def do_DELETE(self):
        status, _, _ = self.back("HEAD")
        if status == 404:
            return self.refuse(404, "NoSuchKey")
        self.answer(*self.back("DELETE"))

    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if IS_SLOW and self.is_too_soon():
            return self.refuse(429, "SlowDown")
        wanted, condition = self.headers.get("x-goog-if-generation-match"), {}
        if IS_DEAF:
            wanted = None
        if wanted == "0":
            condition = {"If-None-Match": "*"}
        elif wanted is not None:
            status, headers, _ = self.back("HEAD")
            if status != 200 or str(generation(headers["ETag"])) != wanted:
                return self.refuse(412, "PreconditionFailed")
            condition = {"If-Match": headers["ETag"]}
        status, headers, content = self.back("PUT", body, **condition)
        if status == 200:
            self.written[self.path] = time.monotonic()
        self.answer(status, headers, content)

    def is_too_soon(self):
        return time.monotonic() - self.written.get(self.path, -1e9) < 1


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
