"""New keys work at their first call; known and wrong keys do not cost a reading each."""

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from gradeq.service.auth import SCOPES, add_key, new_key, read_keys, revoke_key
from service.running import running


def counted(own):
    """How often the keys were read from the store, from now on."""
    reads, read = [], own.service.ring._keys

    def keys():
        reads.append(time.monotonic())
        return read()

    own.service.ring._keys = keys
    return reads


def test_a_key_works_at_its_first_call_and_no_later(tmp_path):
    with running(str(tmp_path / "store.db")) as own:
        own.service.ring._stale = 3600.0
        for _ in range(10):
            text, key = new_key("default", "new", SCOPES)
            add_key(own.service.store, key)
            began = time.monotonic()
            assert own.as_key(text).get("/v1/layers").status_code == 200
            assert time.monotonic() - began < 1.0


def test_wrong_keys_do_not_cost_a_reading_each_and_do_not_keep_a_new_one_out(tmp_path):
    with running(str(tmp_path / "store.db")) as own:
        own.service.ring._stale = 3600.0
        reads = counted(own)
        wrong = [own.as_key(new_key("default", "", SCOPES)[0]) for _ in range(8)]
        began = time.monotonic()

        def ask(client):
            return [client.get("/v1/layers").status_code for _ in range(10)]

        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(ask, client) for client in wrong]
            text, key = new_key("default", "new", SCOPES)
            add_key(own.service.store, key)
            assert own.as_key(text).get("/v1/layers").status_code == 200
            assert {status for one in asked for status in one.result()} == {401}
        assert len(reads) <= 20.0 * (time.monotonic() - began) + 2
        assert all(b - a > 0.04 for a, b in pairwise(reads))
        reads.clear()
        for _ in range(30):  # keys that are known, or that are none, need no reading
            assert own.client.get("/v1/layers").status_code == 200
            assert own.as_key("gq_wrong").get("/v1/layers").status_code == 401
            assert (
                own.as_key(own.key[:-1] + ("a" if own.key[-1] != "a" else "b")).get("/v1/layers").status_code == 401
            )
        assert reads == []


def test_a_key_that_was_revoked_ends_within_seconds(tmp_path):
    with running(str(tmp_path / "store.db")) as own:
        own.service.ring._stale = 0.05
        (key,) = read_keys(own.service.store)
        assert own.client.get("/v1/layers").status_code == 200
        revoke_key(own.service.store, key.number, time.time())
        time.sleep(0.1)
        own.client.get("/v1/layers")
        assert own.client.get("/v1/layers").status_code == 401
