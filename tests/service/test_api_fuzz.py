"""Generated calls against a running service: never a 5xx, never an answer that the document does not have."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gradeq.service.app import ENDPOINTS
from service.running import Running, running

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
LAYERS: dict[str, dict[str, Any]] = {
    "plain": {"kind": "debias"},
    "grouped": {"kind": "debias", "eta": 0.1, "groups": ["g"], "tickets": "signed"},
    "featured": {"kind": "debias", "eta": 0.1, "features": ["x"]},
    "keyed": {"kind": "quantile", "level": 0.9, "keyed": True},
    "levels": {"kind": "quantiles", "levels": [0.1, 0.9]},
    "games": {"kind": "elo"},
}
EXAMPLES = int(os.environ.get("GRADEQ_FUZZ", 40))  # for each operation and way to generate
CASES = [
    (endpoint, mode)
    for endpoint in ENDPOINTS
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    if endpoint.documented and (mode.is_positive or endpoint.request or endpoint.parameters)
]
STREAM = "text/event-stream"  # it ends when nothing came for a while
NAMES = ["new", "other-new"]  # that may be made and removed


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("fuzz") / "store.db") as made:
        for name, spec in LAYERS.items():
            made.layer(name, **spec)
        yield made


@pytest.fixture(scope="module")
def schema(server: Running) -> Any:
    return schemathesis.openapi.from_url(f"{server.address}/openapi.json")


@pytest.mark.parametrize(
    ("endpoint", "mode"), CASES, ids=lambda x: getattr(x, "value", None) or f"{x.method} {x.path}"
)
def test_generated_calls_get_documented_answers(server: Running, schema: Any, endpoint: Any, mode: Any) -> None:
    operation = schema[endpoint.path][endpoint.method]
    changing = endpoint.method in ("PUT", "DELETE")
    seen: Counter[int] = Counter()

    @settings(
        max_examples=2 if endpoint.media == STREAM else EXAMPLES if endpoint.request else EXAMPLES // 4,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=operation.as_strategy(generation_mode=mode),
        name=st.sampled_from([*NAMES, None] if changing else [*LAYERS, *LAYERS, None]),
    )
    def call(case: Any, name: str | None) -> None:
        if name is not None and "{name}" in endpoint.path:
            case.path_parameters["name"] = name
            if endpoint.path.endswith("/undo") and mode.is_positive and isinstance(case.body, dict):
                case.body["key"] = server.key.split("_")[1]
        headers = {} if endpoint.scope is None else {"Authorization": f"Bearer {server.key}"}
        wait = 1.0 if endpoint.media == STREAM else 30.0
        answer = case.call(base_url=server.address, headers=headers, timeout=wait)
        seen[answer.status_code] += 1
        case.validate_response(answer, checks=CHECKS)

    call()
    if mode.is_positive and not changing and endpoint.path != "/session":
        assert any(status < 400 for status in seen), seen


def test_the_harness_sees_what_is_not_documented(tmp_path: Path) -> None:
    """A service that answers with another status or type is caught."""
    with running(tmp_path / "store.db") as made:
        document = made.client.get("/openapi.json").json()
        del document["paths"]["/healthz"]["get"]["responses"]["200"]
        document["components"]["schemas"]["ReadyAnswer"]["properties"]["waiting"]["type"] = "string"
        bent = schemathesis.openapi.from_dict(document)
        for path in ("/healthz", "/readyz"):
            case = bent[path]["GET"].Case()
            with pytest.raises(FailureGroup):
                case.validate_response(case.call(base_url=made.address), checks=CHECKS)
