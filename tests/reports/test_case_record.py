"""A case's record gives back the measurement that it was made of."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from json_values import TEXT, json_values

from pytest_tooleval.measures.measurement import Measurement
from pytest_tooleval.reports.case_record import case_record, measurement_of, whole_workload_record, workload_record

OWN = {
    "id",
    "target",
    "trial",
    "corpus",
    "file",
    "index",
    "nodeid",
    "tags",
    "verdict",
    "reason",
    "deferred",
    "worktree",
}
RECORDS = st.dictionaries(TEXT.filter(lambda name: name not in OWN), json_values(), max_size=4)
MEASUREMENTS = st.builds(
    Measurement,
    family=st.sampled_from(["tool_use", "discovery", "invocation", "ergonomics"]),
    nodeid=TEXT,
    corpus=TEXT,
    file=TEXT,
    index=st.integers(0, 99),
    id=TEXT,
    target=TEXT,
    trial=st.integers(1, 9),
    tags=st.lists(TEXT, max_size=3).map(tuple),
    verdict=st.sampled_from(["passed", "missed", "error", "skipped"]),
    reason=TEXT,
    deferred=st.booleans(),
    worktree=TEXT,
    record=RECORDS,
)


@given(MEASUREMENTS)
def test_nothing_is_lost(measurement):
    record = json.loads(json.dumps(case_record(measurement)))
    assert measurement_of(measurement.family, record) == measurement


def workload(corpus: str = "a", verdict="passed", **record) -> Measurement:
    return Measurement(
        "tokens", f"{corpus}::tokens", corpus, "f", 0, "tokens", "broker", verdict=verdict, record=record
    )


def rebuilt(measurement: Measurement, document: dict) -> Measurement:
    record = whole_workload_record(workload_record(measurement), document)
    return measurement_of(record.pop("family"), record)


def test_what_a_workload_measured_stands_in_its_section_alone():
    measurement = workload(**{"pass": True, "brokerCalls": 3})
    assert "brokerCalls" not in workload_record(measurement)
    assert rebuilt(measurement, {"tokenEconomy": {"brokerCalls": 3}}) == measurement


def test_of_several_corpora_each_has_its_own():
    section = {"byCorpus": {"a": {"brokerCalls": 3}, "b": {"brokerCalls": 4}}}
    for corpus, calls in (("a", 3), ("b", 4)):
        measurement = workload(corpus, **{"pass": True, "brokerCalls": calls})
        assert rebuilt(measurement, {"tokenEconomy": section}) == measurement


def test_a_workload_that_was_skipped_has_no_numbers():
    measurement = workload(verdict="skipped")
    assert rebuilt(measurement, {}) == measurement
    assert rebuilt(measurement, {"tokenEconomy": {"brokerCalls": 3}}) == measurement
