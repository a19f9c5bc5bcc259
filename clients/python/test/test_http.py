"""How the client handles addresses, answers and credentials."""

from __future__ import annotations

import json
import pickle
import threading
import time

import pytest
from service import Service, problem

import holdfast
from holdfast import Holdfast


@pytest.mark.parametrize("endpoint", ["127.0.0.1:3000", "ftp://a", "", "http://", "http://ada:pw@127.0.0.1:1"])
def test_an_endpoint_that_is_not_a_url_is_refused_without_its_password(endpoint: str) -> None:
    with pytest.raises(ValueError, match="endpoint must be a URL such as") as refused:
        Holdfast(endpoint)
    assert "pw" not in str(refused.value)


def test_a_token_never_goes_over_http_to_another_machine() -> None:
    with pytest.raises(ValueError, match="endpoint must be https"):
        Holdfast("http://example.com", token="t")
    Holdfast("http://127.0.0.1:1", token="t")


@pytest.mark.parametrize("token", ["a b", "a\nb", ""])
def test_a_token_with_blanks_is_refused_without_its_text(token: str, service: Service) -> None:
    with pytest.raises(ValueError, match="token must have no blanks") as refused:
        Holdfast(service.url, token=lambda: token).read_leases(key="k")
    assert "a b" not in str(refused.value)


@pytest.mark.parametrize("namespace", ["", "A", "a/b", "-a", "a" * 33, ".."])
def test_a_namespace_that_could_name_another_path_is_refused(namespace: str) -> None:
    with pytest.raises(ValueError, match="the namespace must match"):
        Holdfast("http://127.0.0.1:1", namespace=namespace)


def test_the_namespace_and_the_token_go_with_each_call(service: Service) -> None:
    client = Holdfast(service.url, namespace="team-a", token="secret", holder="me")
    client.acquire("ü/ä b").release()
    client.read_leases(key="ü/ä b", waiters=True)
    assert [one["authorization"] for one in service.headers] == ["Bearer secret"] * 3
    paths = [one["path"] for one in service.headers]
    assert paths[0] == "/v1/ns/team-a/leases/acquire"
    assert paths[2] == "/v1/ns/team-a/leases?key=%C3%BC%2F%C3%A4%20b&waiters=true"


@pytest.mark.parametrize(
    ("status", "answer", "code"),
    [
        (200, b"<html>", "Unreachable"),
        (200, b'{"key": "k", "lea', "Unreachable"),
        (200, b"[]", "Unreachable"),
        (200, b'{"message": "ok"}', "Unreachable"),
        (302, b"", "Refused"),
        (403, b'{"message": "Missing Authentication Token"}', "Refused"),
        (404, b"not here", "Refused"),
        (429, b'{"message": "Too Many Requests"}', "Throttled"),
        (502, b"<html>", "Unreachable"),
        (504, b'{"message": "Endpoint request timed out"}', "Unreachable"),
    ],
)
def test_an_answer_of_a_gateway_has_a_code(status: int, answer: bytes, code: str, service: Service) -> None:
    service.answers["acquire"] = lambda _: (status, answer)
    with pytest.raises(holdfast.HoldfastError) as refused:
        Holdfast(service.url, holder="me").acquire("k", timeout=0.05)
    assert refused.value.code == code
    if b'"message": "ok"' not in answer:
        assert "/v1/leases/acquire" in refused.value.detail


def test_a_refusal_says_how_to_sign_and_that_an_endpoint_has_no_path(service: Service) -> None:
    service.answers["acquire"] = lambda _: (403, b'{"message": "Forbidden"}')
    with pytest.raises(holdfast.Refused, match=r"HOLDFAST_TOKEN, or pip install 'holdfast-client\[aws\]'"):
        Holdfast(service.url).acquire("k")
    service.answers["acquire"] = lambda _: (404, b"{}")
    with pytest.raises(holdfast.Refused, match="endpoint must have no path"):
        Holdfast(service.url + "/v1").acquire("k")


def test_an_error_has_its_fields_and_survives_a_pickle(service: Service) -> None:
    held = problem("LeaseHeld", key="k", holder="ada", expiresAt="2026-01-01T00:00:00Z", retryAfterMs=5, traceId="t-1")
    service.answers["acquire"] = lambda _: (409, held)
    with pytest.raises(holdfast.LeaseHeld) as refused:
        Holdfast(service.url).acquire("k")
    for error in (refused.value, pickle.loads(pickle.dumps(refused.value))):
        assert (error.holder, error.expires_at, error.retry_after_ms, error.trace_id) == (
            "ada",
            held["expiresAt"],
            5,
            "t-1",
        )
        assert (str(error), error.fields["key"]) == ("LeaseHeld in a test", "k")


def test_an_error_with_an_unknown_code_is_a_holdfast_error(service: Service) -> None:
    service.answers["acquire"] = lambda _: (418, problem("Teapot", key="k"))
    with pytest.raises(holdfast.HoldfastError) as refused:
        Holdfast(service.url).acquire("k")
    assert (refused.value.code, type(refused.value)) == ("Teapot", holdfast.HoldfastError)


def test_a_server_that_answers_byte_by_byte_cannot_block_the_caller() -> None:
    import socket

    listener = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n")
        while not stopped.wait(0.05):
            connection.sendall(b" ")
        connection.close()

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    from holdfast.attempt import attempt
    from holdfast.steps import play

    client = Holdfast(f"http://127.0.0.1:{listener.getsockname()[1]}")
    began = time.monotonic()
    with pytest.raises(holdfast.Unreachable, match=r"no answer to whoami in 0.4 s"):
        play(client.core, attempt("whoami", {}, 0.4))
    assert time.monotonic() - began < 2
    stopped.set()
    thread.join()
    listener.close()


def test_a_client_gives_up_soon_after_the_wait_if_the_service_is_down() -> None:
    began = time.monotonic()
    with pytest.raises(holdfast.Unreachable, match=r"connection to http://127.0.0.1:9 failed: Connection refused"):
        Holdfast("http://127.0.0.1:9").acquire("k", wait=0.2, timeout=0.5)
    # 0.7 s of tries, and at most 2.5 s for the withdrawal of a request that may have arrived.
    assert time.monotonic() - began < 6


def test_the_signature_covers_the_headers_that_arrive(service: Service) -> None:
    botocore = pytest.importorskip("botocore.credentials")
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    credentials = botocore.Credentials("AKIDEXAMPLE", "secret", "session")
    Holdfast(service.url, credentials=credentials, region="eu-west-1").acquire("k", data={"a": "ü"})
    (headers,), ((_, request),) = service.headers, service.received
    signed = headers["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    again = AWSRequest(
        "POST", service.url + headers["path"], {name: headers[name] for name in signed if name != "host"}
    )
    again.data = json.dumps(request).encode()
    again.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(credentials, "execute-api", "eu-west-1")
    signature = signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)
    assert headers["authorization"].endswith(f"Signature={signature}")
    assert headers["host"] in service.url
    assert headers["x-amz-security-token"] == "session"


def test_the_environment_makes_a_client(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_ENDPOINT", service.url)
    monkeypatch.setenv("HOLDFAST_NAMESPACE", "team-b")
    monkeypatch.setenv("HOLDFAST_TOKEN", "t-2")
    monkeypatch.setenv("HOLDFAST_HOLDER", "from-env")
    Holdfast.from_env(holder="given").acquire("k")
    Holdfast.from_env().acquire("k")
    assert [request["holder"] for request in service.calls("acquire")] == ["given", "from-env"]
    assert service.headers[0]["path"].startswith("/v1/ns/team-b/")
    monkeypatch.delenv("HOLDFAST_ENDPOINT")
    with pytest.raises(ValueError, match="HOLDFAST_ENDPOINT is not set"):
        Holdfast.from_env()


def test_an_unknown_option_suggests_the_one_that_was_meant() -> None:
    client = Holdfast("http://127.0.0.1:1")
    with pytest.raises(TypeError, match="there is no option 'wiat'; did you mean 'wait'"):
        client.acquire("k", wiat=1)  # type: ignore[call-arg]
    for wrong in (-1, float("nan"), "5", True):
        with pytest.raises(ValueError, match="wait must be a number of seconds from 0"):
            client.acquire("k", wait=wrong)  # type: ignore[arg-type]
