"""A learner at a hub: logs in with a password, starts a server, and runs a notebook in it, cell by
cell, as the page does: over HTTP and a websocket."""

import asyncio
import json
import time
import uuid

from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect

PATIENCE = 600  # seconds for any one thing, on a machine that eight share


class HubUser:
    """One learner; `url` is the hub's address."""

    def __init__(self, url: str, name: str):
        self.url, self.name, self.token = url, name, ""

    async def ask(self, method: str, path: str, body=None):
        """(status, what the answer's JSON holds) of a request with this learner's token."""
        request = HTTPRequest(
            self.url + path,
            method=method,
            headers={"Authorization": f"token {self.token}"} if self.token else {},
            body=None if method == "GET" else json.dumps(body or {}),
            request_timeout=PATIENCE,
            connect_timeout=PATIENCE,
        )
        answer = await AsyncHTTPClient().fetch(request, raise_error=False)
        kind = answer.headers.get("Content-Type", "")
        return answer.code, json.loads(answer.body) if "json" in kind and answer.body else None

    async def log_in(self, password: str) -> int:
        """The hub's status; keeps the token that it gives for the password."""
        body = {"auth": {"username": self.name, "password": password}}
        status, answer = await self.ask("POST", f"/hub/api/users/{self.name}/tokens", body)
        self.token = (answer or {}).get("token", "")
        return status

    async def start_server(self) -> None:
        """Asks for the server, and waits until it is ready."""
        status, _ = await self.ask("POST", f"/hub/api/users/{self.name}/server")
        assert status in (201, 202), f"{self.name}: no server ({status})"
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            _, user = await self.ask("GET", f"/hub/api/users/{self.name}")
            server = user["servers"].get("", {})
            if server.get("ready"):
                return
            assert server.get("pending"), f"{self.name}: the server did not start: {user}"
            await asyncio.sleep(1)
        raise AssertionError(f"{self.name}: the server is not ready after {PATIENCE} s")

    async def read(self, path: str) -> dict:
        """The notebook at a path of the learner's home, as JSON."""
        status, answer = await self.ask("GET", f"/user/{self.name}/api/contents/{path}")
        assert status == 200, f"{self.name}: {path} ({status})"
        return answer["content"]

    async def run(self, path: str) -> dict[str, list]:
        """Runs all code cells of a notebook in a kernel of its own: the outputs by cell id."""
        notebook = await self.read(path)
        body = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        status, session = await self.ask("POST", f"/user/{self.name}/api/sessions", body)
        assert status == 201, f"{self.name}: no kernel ({status})"
        address = f"/user/{self.name}/api/kernels/{session['kernel']['id']}/channels"
        request = HTTPRequest(
            self.url.replace("http", "ws", 1) + address,
            headers={"Authorization": f"token {self.token}"},
            connect_timeout=PATIENCE,
        )
        socket = await websocket_connect(request, max_message_size=100 << 20)
        found = {}
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                code = "".join(cell["source"])
                found[cell["id"]] = await asyncio.wait_for(execute(socket, code), PATIENCE)
        socket.close()
        return found


async def execute(socket, code: str) -> list[dict]:
    """The outputs of one cell, as a notebook stores them."""
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "",
              "session": uuid.uuid4().hex, "version": "5.3"}  # fmt: skip
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
    await socket.write_message(json.dumps({
        "header": header, "parent_header": {}, "metadata": {}, "content": content,
        "channel": "shell", "buffers": [],
    }))  # fmt: skip
    outputs, waiting = [], {"execute_reply", "idle"}
    while waiting:
        text = await socket.read_message()
        assert text is not None, "the kernel's line was cut"
        if isinstance(text, bytes):  # with buffers: a widget's picture, which nobody compares
            continue
        message = json.loads(text)
        if message["parent_header"].get("msg_id") != header["msg_id"]:
            continue
        kind, said = message["msg_type"], message["content"]
        if kind == "status":
            waiting.discard(said["execution_state"])
        waiting.discard(kind)
        if kind == "clear_output":
            outputs.clear()
        elif kind in ("stream", "display_data", "execute_result", "error"):
            outputs.append({"output_type": kind, **said})
    return outputs
