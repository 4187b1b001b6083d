from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_tooleval.agent.worktree import WorktreeRoot
from pytest_tooleval.cases.case import Source, ToolUseCase
from pytest_tooleval.errors import ConfigError
from pytest_tooleval.families.fingerprints import ToolUseFingerprints
from pytest_tooleval.families.tool_sets import ToolSet, ToolSetVariant, load_pool, open_tool_sets, variants_of
from pytest_tooleval.families.tool_use import ToolUseRunner
from pytest_tooleval.measures.fingerprint import what_changed
from pytest_tooleval.providers.mock import MockProvider
from pytest_tooleval.providers.provider import ProviderSettings
from pytest_tooleval.providers.target import Target
from pytest_tooleval.tools.registry import Offer, ToolRegistry
from pytest_tooleval.tools.tool import Tool

OWN = {"grep": Tool("grep", "Search.", {"type": "object"}, "read", lambda _arguments, _context: "")}


@pytest.fixture
def tools_list(tmp_path: Path) -> Path:
    path = tmp_path / "office.json"
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("send_fax", "print_page", "grep")]
    path.write_text(json.dumps({"tools": tools}))
    return path


def test_each_way_is_measured_alone_and_with_every_number_of_distractors():
    names = [variant.suffix for variant in variants_of(("direct", "broker"), (10, 100))]
    assert names == ["", "+10", "+100", "+broker", "+10+broker", "+100+broker"]
    assert [variant.suffix for variant in variants_of(("broker",), ())] == ["+broker"]


def test_a_pool_comes_from_a_file_or_a_folder_of_files(tools_list, tmp_path):
    assert load_pool(tools_list, Path("office.json"), OWN, 2).count_beside(Offer(OWN, {})) == 2
    (tmp_path / "more.json").write_text(json.dumps({"tools": [{"name": "bake", "inputSchema": {}}]}))
    assert load_pool(tmp_path, Path(), OWN, 3).count_beside(Offer(OWN, {})) == 3


def test_a_pool_that_is_too_small_or_wrong_is_a_configuration_error(tools_list, tmp_path):
    with pytest.raises(ConfigError, match=r"office.json has 2 tools that can stand beside .* asks for 3"):
        load_pool(tools_list, Path("office.json"), OWN, 3)
    broken = tmp_path / "broken.json"
    broken.write_text('{"tools": [{"title": "x"}]}')
    with pytest.raises(ConfigError, match=r"broken.json:1 at /tools/0"):
        load_pool(broken, Path("broken.json"), OWN, 1)


def test_only_targets_with_distractors_get_some_and_only_brokered_ones_a_broker(tools_list):
    pool = load_pool(tools_list, tools_list, OWN, 2)
    variants = variants_of(("direct", "broker"), (2,))
    sets = open_tool_sets(variants, pool)
    own = Offer(OWN, {})
    assert {v.suffix: len(sets[v].of_case(own).offered) for v in variants} == {
        "": 1,
        "+2": 3,
        "+broker": 1,
        "+2+broker": 3,
    }
    brokered = [sets[variant].catalogs for variant in variants if variant.is_brokered]
    assert brokered[0] is brokered[1] is not None
    assert [sets[variant].catalogs for variant in variants if not variant.is_brokered] == [None, None]


def test_a_script_is_played_through_the_broker_and_a_model_is_left_alone():
    own, script, model = Offer(OWN, {}), MockProvider(), object()
    brokered = open_tool_sets([ToolSetVariant("broker")], None)[ToolSetVariant("broker")]
    assert ToolSet().played(script, own) is script
    assert brokered.played(model, own) is model  # type: ignore[arg-type]
    assert brokered.played(script, own) is not script


def test_the_broker_is_loaded_only_where_it_is_used():
    code = (
        "import sys, pytest_tooleval.environment as e; "
        "from pytest_tooleval.families.tool_sets import open_tool_sets, variants_of; "
        "open_tool_sets(variants_of(('direct',), ()), None); "
        "print('pytest_tooleval.broker.broker' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_distractors_count_in_the_fingerprint_of_a_case(tools_list):
    registry = ToolRegistry()
    registry.add_built_in()
    plain, more = open_tool_sets(variants_of(("direct",), (2,)), load_pool(tools_list, tools_list, {}, 2)).values()
    case = ToolUseCase("c", "t", Source(Path("c.json")), expected=(("grep",),))

    def parts(tool_set: ToolSet) -> dict[str, str]:
        runner = ToolUseRunner(registry, WorktreeRoot(), tool_set=tool_set)
        return ToolUseFingerprints(Target("openai", ProviderSettings("gpt")), runner).of(case).parts

    assert "tool send_fax is new" in what_changed(parts(plain), parts(more))
