from __future__ import annotations

from fault_server import ANSWER, FILES, TOOL, Fault, every, serving_faults

LIMITS = ("--tooleval-request-timeout", "2")


def write_cases(suite, count):
    for number in range(count):
        suite.fixture(f"case-{number}", expected=[TOOL], files=FILES)
    return {f"case-{number}" for number in range(count)}


def target(server):
    return ["--provider", "openai:faulty", "--provider-url", server.url, *LIMITS]


def test_no_case_is_lost_when_one_request_in_five_fails(suite):
    names = write_cases(suite, 30)
    with serving_faults(every(5)) as server:
        cases = suite.result(*target(server), "--tooleval-retries", "12")["toolUse"]["cases"]
    assert sorted(case["id"] for case in cases) == sorted(names)
    assert {(case["verdict"], case["status"], case["answer"]) for case in cases} == {("passed", "ok", ANSWER)}
    assert sum(case["attempts"] for case in cases) == server.requests
    assert server.requests == 60 + sum(server.faults.values())
    assert set(server.faults) == set(Fault)


def test_what_fails_is_an_error_with_its_reason_and_no_failure_of_the_model(suite):
    names = write_cases(suite, 12)
    with serving_faults(every(2, (Fault.BAD_GATEWAY, Fault.RESET, Fault.HTML, Fault.ERROR_INSIDE))) as server:
        result = suite.result(*target(server), "--tooleval-retries", "0")["toolUse"]
    cases = result["cases"]
    failed = [case for case in cases if case["status"] == "error"]
    assert sorted(case["id"] for case in cases) == sorted(names)
    assert len(failed) == sum(server.faults.values())
    assert all(case["verdict"] == "error" and case["pass"] is None and case["detail"] for case in failed)
    assert all(case["verdict"] == "passed" for case in cases if case not in failed)
    assert sum(case["attempts"] for case in cases) == server.requests
    totals = result["byTarget"]["openai:faulty"]
    assert totals["measured"] == len(cases) - len(failed)
    assert totals["passRate"] in {1.0, None}
