"""A program under `claudeless debug` that speaks the older breakpoint protocol
as the Python client does: values are dill pickles, protocol 4, named by the
SHA-512 of their bytes; new arguments are read with dill.loads, whatever else an
answer says; a status of 400 or more ends everything, unless values are missing.

CLAUDELESS is the binary. What is checked is that dill reads all that the debugger writes, and that the
debugger shows what dill writes as Python's repr does."""

import base64
import builtins
import contextlib
import datetime
import hashlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request

import dill

dill.settings["recurse"] = True


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status} {body}")
        self.status, self.body = status, body


def http(url, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, method=method, data=data, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise Refused(error.code, json.load(error)) from None


@contextlib.contextmanager
def debugger():
    """A claudeless debug process, which ends with this one."""
    with tempfile.TemporaryDirectory() as home:
        port = os.path.join(home, "port")
        with subprocess.Popen(
            [os.environ["CLAUDELESS"], "debug", "--port", "0", "--port-file", port],
            stderr=subprocess.PIPE, text=True, env={"HOME": home, "PATH": os.environ["PATH"]},
        ) as process:
            try:
                while not os.path.exists(port):
                    if process.poll() is not None:
                        sys.exit(process.stderr.read())
                    time.sleep(0.01)
                yield "http://127.0.0.1:" + open(port).read().strip()
            finally:
                process.terminate()


def pickled(value):
    raw = dill.dumps(value, protocol=4)
    return hashlib.sha512(raw).hexdigest(), base64.b64encode(raw).decode()


class Client:
    """One process under debug."""

    def __init__(self, url):
        self.url, self.sent, self.refs, self.functions = url, {}, 0, {}
        self.who = {"process_pid": os.getpid(), "process_start_time": 1700000000.25}

    def post(self, path, **body):
        return http(self.url, "POST", path, body | self.who)

    def item(self, value, full):
        cid, data = pickled(value)
        self.refs += 1
        item = {"cid": cid, "client_ref": self.refs}
        if full or cid not in self.sent:
            item["data"] = data
        self.sent[cid] = value
        return item

    def value(self, item):
        if "data" in item:
            return dill.loads(base64.b64decode(item["data"]))
        return self.sent[item["cid"]]

    def register(self, f):
        self.functions[f.__name__] = f
        assert self.post("/api/breakpoints", function_name=f.__name__, timestamp=time.time(), signature="(*args, **kwargs)")["status"] == "ok"
        self.post("/api/functions", function_name=f.__name__, signature="(*args, **kwargs)", function_client_ref=1)
        self.post("/api/call/event", method_name="with_debug.register", status="registered", timestamp=time.time(), call_site={}, pretty_args=[], pretty_kwargs={})

    def call(self, f, *args, **kwargs):
        try:
            begun = self.start(f, args, kwargs, full=False)
        except Refused as refused:
            if refused.body["error"] != "cid_not_found":
                raise
            begun = self.start(f, args, kwargs, full=True)
        action = self.decision(begun, args, kwargs)
        try:
            result = self.perform(action, f, args, kwargs)
        except Exception as error:
            cid, data = pickled(error)
            # The answer may be another pause; the client ignores it.
            self.post("/api/call/complete", call_id=begun["call_id"], timestamp=time.time(), status="exception", exception_type=type(error).__name__,
                      exception_message=str(error), exception_traceback=traceback.format_exc(), exception_cid=cid, exception_data=data,
                      exception_client_ref=1, exception_serialization_format="dill")
            raise
        cid, data = pickled(result)
        after = self.post("/api/call/complete", call_id=begun["call_id"], timestamp=time.time(), status="success", result_cid=cid, result_data=data,
                          result_client_ref=2, result_serialization_format="dill")
        if after.get("action") == "poll":
            assert self.decision(after, args, kwargs) == {"action": "continue"}
        return result

    def start(self, f, args, kwargs, full):
        frame = {"filename": __file__, "lineno": 1, "function": "main", "code_context": None}
        return self.post("/api/call/start", method_name=f.__name__, target=self.item(f.__name__, full), args=[self.item(a, full) for a in args],
                         kwargs={k: self.item(v, full) for k, v in kwargs.items()}, call_type="proxy", signature="(*args, **kwargs)", preferred_format="dill",
                         call_site={"timestamp": time.time(), "stack_trace": [frame]})

    def decision(self, action, args, kwargs):
        while action["action"] == "poll":
            answer = http(self.url, "GET", action["poll_url"])
            if answer["status"] == "ready":
                action = answer["action"]
                continue
            pause = action["poll_url"].rsplit("/", 1)[1]
            question = http(self.url, "GET", f"/api/poll-repl/{pause}")
            if question["eval_id"]:
                self.answer(question, {"args": args, "kwargs": kwargs})
            time.sleep(action["poll_interval_ms"] / 5000)
        return action

    def answer(self, question, scope):
        out, body = io.StringIO(), {"result": "", "error": None}
        try:
            with contextlib.redirect_stdout(out):
                value = eval(question["expr"], scope)
            cid, data = pickled(value)
            body = {"result": repr(value), "error": None, "result_cid": cid, "result_data": data, "result_serialization_format": "dill"}
        except Exception as error:
            body["error"] = f"{type(error).__name__}: {error}"
        with contextlib.suppress(Refused):
            self.post("/api/call/repl-result", eval_id=question["eval_id"], session_id=question["session_id"], pause_id=question["pause_id"], stdout=out.getvalue(), **body)

    def perform(self, action, f, args, kwargs):
        match action["action"]:
            case "continue":
                return f(*args, **kwargs)
            case "modify":
                return f(*[self.value(i) for i in action.get("modified_args", [])], **{k: self.value(i) for k, i in action.get("modified_kwargs", {}).items()})
            case "skip":
                if "fake_result_data" in action:
                    return dill.loads(base64.b64decode(action["fake_result_data"]))
                return action["fake_result"]
            case "raise":
                raise getattr(builtins, action["exception_type"], Exception)(action["exception_message"])
            case "replace":
                return self.functions[action["function_name"]](*args, **kwargs)
        raise AssertionError(f"unknown action {action}")


class Person:
    """The user who decides about pauses."""

    def __init__(self, url):
        self.url = url

    def pause(self):
        for _ in range(2000):
            if paused := http(self.url, "GET", "/api/paused")["paused"]:
                return paused[0]
            time.sleep(0.005)
        raise AssertionError("no call is paused")

    def decide(self, **decision):
        pause = self.pause()
        http(self.url, "POST", f"/api/paused/{pause['id']}/continue", decision)
        return pause["call_data"]

    def while_calling(self, act, f, *args, **kwargs):
        """Returns the result of a call, and the result of act, which runs during the call."""
        done = []
        def run():
            try:
                done.append((f(*args, **kwargs), None))
            except Exception as error:
                done.append((None, error))
        thread = threading.Thread(target=run)
        thread.start()
        seen = act()
        thread.join(30)
        assert done, "the call did not end"
        return done[0], seen

    def last(self, name):
        return http(self.url, "GET", "/api/calls?limit=1&function_name=" + urllib.parse.quote(name))["calls"][0]


def echo(*args, **kwargs):
    return args, kwargs


def other(*args, **kwargs):
    return "other", args


def fails(*args):
    raise KeyError(*args)


class Thing:
    def __init__(self):
        self.size, self.inner = 3, [1, {"k": (None,)}]


def json_like(dice, depth=0):
    kind = dice.randrange(6 if depth > 2 else 8)
    match kind:
        case 0: return dice.choice([None, True, False])
        case 1: return dice.choice([1, -1]) * dice.getrandbits(dice.choice([1, 7, 8, 16, 31, 32, 63, 64, 200]))
        case 2: return dice.choice([0.0, -0.0, 1.5, 1e16, 1e-5, 0.1, 123456789.123, 5e-324, 1.7976931348623157e308])
        case 3 | 4 | 5: return "".join(dice.choice(["a", "'", '"', "\\", "\n", "\x00", "\x7f", "ü", "\u2028", "\U0001f600", " "]) for _ in range(dice.randrange(6)))
        case 6: return [json_like(dice, depth + 1) for _ in range(dice.randrange(4))]
        case _: return {f"k{n}": json_like(dice, depth + 1) for n in range(dice.randrange(4))}


def same(a, b):
    """Reports whether two values are equal and have the same types at every level."""
    return repr(a) == repr(b) and type(a) is type(b)


def main(url, fresh):
    client, person = Client(url), Person(url)
    http(url, "GET", "/api/breakpoints")
    for f in (echo, other, fails):
        client.register(f)
    http(url, "POST", "/api/breakpoints/echo/after_behavior", {"behavior": "go"})
    http(url, "POST", "/api/breakpoints/other/behavior", {"behavior": "go"})
    http(url, "POST", "/api/breakpoints/fails/behavior", {"behavior": "go"})

    # How values of Python are shown.
    dice = random.Random(7)
    shown = [
        (), (1,), (1, "a"), {2}, set(), frozenset({1}), b"a'\x00\xff", [[]], {}, {1: 2, (1, 2): None}, 10**30, "it's", 'a "quote"', "both ' and \"", "\ud800".encode("utf-8", "surrogatepass"),
    ] + [v for v in (json_like(dice) for _ in range(300)) if len(repr(v)) < 400]
    ((args, _), error), data = person.while_calling(person.decide, client.call, echo, *shown, key=shown)
    assert error is None and same(list(args), shown), error
    for value, pretty in zip(shown, data["pretty_args"]):
        assert pretty == repr(value), (pretty, repr(value))
    assert data["pretty_target"] == "'echo'"
    # Other values are described and never executed.
    odd = [datetime.date(2026, 1, 2), Thing(), lambda x: x + 1, Thing, range(3), KeyError("k"), os.system, 1j, "x" * 2000, b"\x80" * (10 << 20)]
    ((args, _), error), data = person.while_calling(person.decide, client.call, echo, *odd)
    assert error is None
    texts = [p if isinstance(p, str) else p["summary"] for p in data["pretty_args"]]
    for text, want in zip(texts, ["datetime.date(", "Thing", "", "Thing", "range(0, 3)", "KeyError: k", "posix.system", "complex(", "'xxx", "b'\\x80"]):
        assert want in text, (want, text[:200])
    assert max(map(len, texts)) < 600, [len(t) for t in texts]

    # How dill reads values of the debugger.
    new = [json_like(dice) for _ in range(300)] + [2**63, -(2**63), 2**64, -(2**2000), 1e300, "", "x" * (10 << 20), [[[[]]]], {"": {"": []}}]
    ((args, kwargs), error), _ = person.while_calling(lambda: person.decide(modified_args=new, modified_kwargs={"b": new[:50], "ü": None}), client.call, echo, 1, b=2)
    assert error is None and len(args) == len(new)
    for value, want in zip(args, new):
        assert same(value, want), (value, want)
    assert same(kwargs, {"b": new[:50], "ü": None})
    # A value that is sent by its name is the live object of this process.
    thing = Thing()
    def swap():
        pause = person.pause()
        first, second = pause["call_data"]["args"]
        return http(url, "POST", f"/api/paused/{pause['id']}/continue", {"action": "modify", "modified_args": [{"cid": second["cid"]}, {"cid": first["cid"]}]})
    ((args, _), error), _ = person.while_calling(swap, client.call, echo, thing, 2)
    assert error is None and args[0] == 2 and args[1] is thing

    # Skip, raise, replace.
    for decision, want in [
        ({"fake_result": {"a": [1, None, 2.5]}}, {"a": [1, None, 2.5]}),
        ({"fake_result_data": pickled((1, {2}))[1]}, (1, {2})),
        ({}, None),
    ]:
        (got, error), _ = person.while_calling(lambda: person.decide(action="skip", **decision), client.call, echo, 1)
        assert error is None and same(got, want), (got, error)
        assert person.last("echo")["pretty_result"] == repr(want)
    for kind, want in [("ValueError", ValueError), ("NoSuchError", Exception), (None, Exception)]:
        (_, error), _ = person.while_calling(lambda: person.decide(action="raise", exception_type=kind, exception_message="no"), client.call, echo, 1)
        assert type(error) is want and str(error) == "no", repr(error)
        record = person.last("echo")
        assert record["status"] == "exception" and record["exception"]["type_name"] == want.__name__ and record["exception"]["message"] == "no", record["exception"]
    (got, error), _ = person.while_calling(lambda: person.decide(replacement_function="other"), client.call, echo, 1)
    assert got == ("other", (1,)) and error is None

    # An exception of the function itself, and the pause after it, which the client ignores.
    http(url, "POST", "/api/breakpoints/fails/after_behavior", {"behavior": "exception"})
    try:
        client.call(fails, "k", 2)
        raise AssertionError("it did not fail")
    except KeyError:
        pass
    pause = person.pause()["call_data"]
    assert pause["pause_reason"] == "exception" and pause["exception"]["summary"] == "KeyError: ('k', 2)", pause["exception"]
    person.decide()
    assert "raise KeyError(*args)" in person.last("fails")["exception_traceback"]

    # After a success; expressions at a pause.
    http(url, "POST", "/api/breakpoints/echo/after_behavior", {"behavior": "stop"})
    def look():
        pause = person.pause()
        session = http(url, "POST", "/api/repl/start", {"pause_id": pause["id"]})["session_id"]
        assert session.startswith(f"{os.getpid()}-")
        answers = [http(url, "POST", f"/api/repl/{session}/eval", {"expr": e}) for e in ("args[0].size * 2", "print('seen') or {1: args[0].inner}", "nosuch", "1 +")]
        person.decide()
        after = person.decide()
        return answers, after
    (_, error), (answers, after) = person.while_calling(look, client.call, echo, thing)
    assert error is None
    assert [a["output"] for a in answers[:2]] == ["6", "{1: [1, {'k': (None,)}]}"] and answers[1]["stdout"] == "seen\n", answers
    assert "NameError" in answers[2]["output"] and "SyntaxError" in answers[3]["output"] and answers[2]["is_error"]
    kept = urllib.request.urlopen(f"{url}/api/cid/{answers[1]['result_cid']}").read()
    assert dill.loads(kept) == {1: [1, {"k": (None,)}]}
    assert after["phase"] == "after" and "Thing" in after["pretty_result"]

    # The client sends all values again to a debugger that has lost them.
    client.url, person.url = fresh, fresh
    assert client.call(echo, *shown) == (tuple(shown), {})
    assert person.last("echo")["pretty_args"] == [repr(v) for v in shown]

    # Many at once.
    http(fresh, "POST", "/api/breakpoints", {"function_name": "echo", "after_behavior": "go"})
    results = {}
    threads = [threading.Thread(target=lambda n=n: results.update({n: client.call(echo, n)})) for n in range(20)]
    for thread in threads:
        thread.start()
    for _ in threads:
        pause = person.pause()
        http(fresh, "POST", f"/api/paused/{pause['id']}/continue", {"modified_args": [int(pause["call_data"]["pretty_args"][0]) * 10]})
    for thread in threads:
        thread.join(30)
    assert results == {n: ((n * 10,), {}) for n in range(20)}, results

    http(fresh, "POST", "/api/report-com-error", client.who | {"summary": "timeout", "timestamp": time.time(), "method": "GET", "path": "/api/poll/x"})
    assert http(fresh, "GET", "/api/com-errors")["errors"][0]["summary"] == "timeout"


with debugger() as first, debugger() as second:
    main(first, second)
print("ok: dill and the debugger read each other")
