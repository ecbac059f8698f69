"""See all pages of target/site in Chromium, as wide as a phone and as a desktop: `make site` first.

Says which pages scroll sideways, show no picture where one is, have an error in a script, or ask
for what is not there. Needs Chromium or Chrome on PATH, or CHROME with the path of one.
"""

from __future__ import annotations

import http.server
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

SITE = Path(__file__).resolve().parents[2] / "target" / "site"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_WIDTHS = (390, 1440)
_PATIENCE_S = 600
#: Goes through all pages in a frame, and sends what it has seen.
_LOOK = """<!doctype html><iframe id="frame" height="900"></iframe><script>
(async () => {
  const frame = document.getElementById("frame"), found = [];
  for (const width of WIDTHS) for (const page of PAGES) {
    frame.width = width;
    const told = window.told = text => found.push(`${page} at ${width} pixels: ${text}`);
    await new Promise(done => { frame.onload = done; frame.src = "/" + page; });
    const inside = frame.contentWindow, root = inside.document.documentElement;
    for (const image of inside.document.images) image.loading = "eager";
    await new Promise(done => setTimeout(done, 200));
    if (root.scrollWidth > root.clientWidth) told(`scrolls sideways, ${root.scrollWidth} wide`);
    for (const image of inside.document.images)
      if (image.complete && !image.naturalWidth) told("no picture: " + image.src);
  }
  fetch("/found", {method: "POST", body: JSON.stringify(found)});
})();
</script>"""
#: Stands in each page before its own scripts.
_LISTEN = b"""<head><script>onerror = message => { parent.told(message); };</script>"""


def _look(browser: str) -> list[str]:
    pages = sorted(str(page.relative_to(SITE)) for page in SITE.rglob("*.html"))
    script = _LOOK.replace("WIDTHS", json.dumps(_WIDTHS)).replace("PAGES", json.dumps(pages))
    found: queue.Queue[list[str]] = queue.Queue()
    missing: set[str] = set()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, directory=str(SITE))

        def do_GET(self) -> None:
            page = SITE / self.path.lstrip("/")
            if self.path != "/look" and page.suffix != ".html":
                super().do_GET()
                return
            text = script.encode()
            if self.path != "/look":
                text = page.read_bytes().replace(b"<head>", _LISTEN, 1)
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()
            found.put(json.loads(body))

        def send_error(self, code: int, *given: Any) -> None:
            missing.add(f"{code} for {self.path}")
            super().send_error(code, *given)

        def log_message(self, *_: Any) -> None:
            pass

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/look"
        # The pages are ours: in a container, where one is root, there is no sandbox.
        options = ["--headless=new", "--no-sandbox", f"--user-data-dir={profile}"]
        started = subprocess.Popen(
            [browser, *options, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            seen = found.get(timeout=_PATIENCE_S)
        finally:
            started.terminate()
            started.wait()
            server.shutdown()
    print(f"{len(pages)} pages seen, {' and '.join(map(str, _WIDTHS))} pixels wide")
    return seen + sorted(missing - {"404 for /favicon.ico"})


def browser() -> str:
    """The path of Chromium or Chrome."""
    found = os.environ.get("CHROME") or next(filter(None, map(shutil.which, _BROWSERS)), None)
    if not found:
        sys.exit("This needs Chromium or Chrome on PATH, or CHROME with the path of one.")
    return found


def main() -> int:
    """Look, and tell."""
    if not SITE.is_dir():
        sys.exit("This needs the site: make site")
    found = _look(browser())
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
