"""What a release is made of: versions that agree, notes, a workflow and a recipe that are well formed, pages by version."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stitchwork

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tools import release  # noqa: E402


def test_versions_agree_and_another_tag_is_refused():
    assert release.version() == stitchwork.__version__
    release.check(None)
    release.check(f"v{stitchwork.__version__}")
    with pytest.raises(ValueError, match=r"The tag is v9.9.9, and the package has version"):
        release.check("v9.9.9")


def test_notes_are_those_of_one_version():
    found = release.notes("0.2.0")
    assert found.startswith("### ")
    assert not re.search(r"^## ", found, re.MULTILINE)
    assert found in (ROOT / "CHANGELOG.md").read_text()
    assert release.notes(stitchwork.__version__) != found
    with pytest.raises(ValueError, match="no section"):
        release.notes("0.0.1")


def test_requirements_follow_extras():
    found = release.requirements("test")
    assert any(line.startswith("numpy") for line in found)
    assert any(line.startswith("pytest>") for line in found)
    assert any(line.startswith("matplotlib") for line in found)  # by way of the extra `plot`
    assert not any(line.startswith("stitchwork") for line in found)
    assert len(found) == len(set(found))


def test_pages_have_a_folder_a_version_and_stable_is_the_newest(tmp_path):
    built, site = tmp_path / "built", tmp_path / "site"
    built.mkdir()
    site.mkdir()
    for version in ("0.9.0", "0.10.0", "0.9.1", "0.11.0.dev0"):
        (built / "index.html").write_text(version)
        release.add_pages(built, site, version)
    assert (site / "stable" / "index.html").read_text() == "0.10.0"
    assert (site / "0.9.1" / "index.html").read_text() == "0.9.1"
    listed = [entry["version"] for entry in json.loads((site / "versions.json").read_text())]
    assert listed == ["0.11.0.dev0", "0.10.0", "0.9.1", "0.9.0"]
    assert "url=stable/" in (site / "index.html").read_text()


def test_workflows_are_those_that_github_takes():
    if importlib.util.find_spec("check_jsonschema") is None:
        pytest.skip("needs check-jsonschema: pip install check-jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run([*command, *(ROOT / ".github" / "workflows").glob("*.yml")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_job_of_the_release_comes_after_the_tests():
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    assert jobs["publish"]["needs"] == "tests"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}  # trusted publishing, no token
    assert jobs["announce"]["needs"] == jobs["documentation"]["needs"] == "publish"
    assert {"3.11", "3.12", "3.13", "3.14"} <= set(jobs["tests"]["strategy"]["matrix"]["python"])
    called = re.findall(r"tools\.(\w+) ?(\w*)", (ROOT / ".github" / "workflows" / "release.yml").read_text())
    assert {name for name, _ in called} == {"release", "wheels"}
    assert {what for name, what in called if name == "release"} == {"check", "notes", "requirements", "pages"}


def plain(requirement):
    return re.sub(r"[\s'\"]", "", requirement.split("#")[0]).lower()


def test_the_recipe_needs_what_the_package_needs():
    yaml = pytest.importorskip("yaml")
    import tomllib

    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {plain(line) for line in project["dependencies"]} | {f"python{project['requires-python']}"}
    assert {plain(line) for line in recipe["requirements"]["run"]} == wanted
    assert recipe["context"]["version"] == re.sub(r"\.dev\d+$", "", stitchwork.__version__)


@pytest.mark.parametrize("platform", ["linux-64", "osx-arm64", "win-64"])
def test_the_recipe_renders(platform):
    rattler = pytest.importorskip("rattler_build", reason="needs rattler-build: pip install py-rattler-build")
    found = rattler.Stage0Recipe.from_file(ROOT / "recipe" / "recipe.yaml")
    config = rattler.RenderConfig(platform=rattler.PlatformConfig(target_platform=platform))
    variants = rattler.VariantConfig({"c_compiler": ["gcc"], "c_stdlib": ["sysroot"], "python": ["3.12.* *_cpython"]})
    (rendered,) = found.render(variants, config)
    recipe = rendered.recipe.to_dict()
    assert recipe["package"]["name"] == "stitchwork"
    assert any("gcc" in str(line) for line in recipe["requirements"]["build"])
