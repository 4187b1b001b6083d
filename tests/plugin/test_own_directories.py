from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from obedient_model import obedient_model
from own_directories import NAMES, run_many

CASES = 60


@pytest.mark.parametrize(("at_a_time", "workers"), [(32, []), (8, ["-n2"])], ids=["threads", "threads of workers"])
def test_no_case_sees_the_folder_of_another(tmp_path: Path, at_a_time: int, workers: list[str]) -> None:
    with obedient_model() as model:
        seen = run_many(tmp_path, model, CASES, at_a_time, *workers)
        assert model.most_at_once > 4
    expected = Counter({f"{name} ok": CASES * count for name, count in Counter(NAMES).items()})
    assert seen == expected + Counter(passed=CASES)
