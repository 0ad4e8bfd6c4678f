"""What is written takes the place of what was there whole or not at all, and nothing that is not ours is lost."""

import json
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from stitchwork import StitchedRegressor, load
from stitchwork.storage import whole
from stitchwork.storage.folder import COARSE, MANIFEST, part_name, replacing_model
from stitchwork.storage.whole import replacing, write_whole

TREE = [0, 0.5, 0, [0, 0.7, 1, 2]]


def write_folder(path, word, tree=TREE, parts=3):
    """Files of the names that a model in parts has."""
    with replacing_model(path) as folder:
        for name in (COARSE, *map(part_name, range(parts))):
            (folder / name).write_text(word)
        (folder / MANIFEST).write_text(json.dumps({"format": "stitchwork-parts", "boxes": tree, "word": word}))


def word_of(path):
    """Which of two models a folder holds, whole."""
    word = json.loads((path / MANIFEST).read_text())["word"]
    assert all((path / name).read_text() == word for name in (COARSE, *map(part_name, range(3))))
    return word


@pytest.fixture
def folder(tmp_path):
    write_folder(tmp_path / "model", "old")
    (tmp_path / "model" / "thesis.tex").write_text("three years")
    (tmp_path / "model" / "pictures").mkdir()
    (tmp_path / "model" / "pictures" / "a.png").write_text("a")
    return tmp_path / "model"


def check_foreign(folder):
    assert (folder / "thesis.tex").read_text() == "three years"
    assert (folder / "pictures" / "a.png").read_text() == "a"


@pytest.mark.parametrize("at_once", [True, False])
def test_a_model_that_is_replaced_keeps_what_else_lies_in_its_folder(folder, monkeypatch, at_once):
    if not at_once:
        monkeypatch.setattr(whole.sys, "platform", "other")
    write_folder(folder, "new", tree=0, parts=1)
    assert sorted(path.name for path in folder.iterdir()) == [COARSE, MANIFEST, part_name(0), "pictures", "thesis.tex"]
    assert (folder / COARSE).read_text() == "new"
    check_foreign(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


@pytest.mark.parametrize(
    "manifest",
    ['{"name": "an app"}', '{"format": "other", "boxes": 0}', "[]", "{", "[" * 100_000, "\udcff", None],
    ids=lambda text: str(text)[:20].encode("ascii", "replace").decode(),
)
def test_a_folder_that_is_not_ours_is_refused(tmp_path, manifest):
    place = tmp_path / "place"
    place.mkdir()
    (place / "thesis.tex").write_text("three years")
    (place / COARSE).write_text("mine")
    if manifest is not None:
        (place / MANIFEST).write_bytes(manifest.encode(errors="surrogateescape"))
    with pytest.raises(FileExistsError, match="not a model in parts"):
        write_folder(place, "new")
    assert sorted(path.name for path in place.iterdir()) == sorted({COARSE, "thesis.tex"} | ({MANIFEST} if manifest else set()))
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


def test_a_file_in_the_way_that_the_manifest_does_not_name_is_not_replaced(folder):
    (folder / part_name(3)).write_text("mine")
    with pytest.raises(FileExistsError, match="in the way"):
        write_folder(folder, "new", [0, 0.1, 3, TREE], 4)
    assert word_of(folder) == "old"
    assert (folder / part_name(3)).read_text() == "mine"
    check_foreign(folder)


class Stop(BaseException):
    """Stands for Ctrl+C."""


def stop_at(monkeypatch, count, late, stop):
    """Stop before or after the call of this number that changes the disk."""
    calls = [0]

    def wrap(call):
        def wrapped(*arguments, **named):
            calls[0] += 1
            here = calls[0] == count
            if here and not late:
                stop()
            result = call(*arguments, **named)
            if here:
                stop()
            return result

        return wrapped

    for name in ("rename", "unlink", "rmdir", "mkdir"):
        monkeypatch.setattr(os, name, wrap(getattr(os, name)))
    monkeypatch.setattr(whole, "exchange", wrap(whole.exchange))
    return calls


def interrupt():
    raise Stop


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("late", [True, False])
def test_an_interrupt_at_any_step_leaves_one_model_whole(tmp_path, at_once, late):
    found = set()
    for count in range(1, 40):
        place = tmp_path / str(count) / "model"
        place.parent.mkdir()
        write_folder(place, "old")
        (place / "thesis.tex").write_text("three years")
        (place / "pictures").mkdir()
        (place / "pictures" / "a.png").write_text("a")
        with pytest.MonkeyPatch.context() as patched:
            if not at_once:
                patched.setattr(whole.sys, "platform", "other")
            calls = stop_at(patched, count, late, interrupt)
            try:
                write_folder(place, "new")
                stopped = False
            except Stop:
                stopped = True
        found.add(word_of(place))
        check_foreign(place)
        if count > 1 or not late:  # a folder whose making was interrupted is empty
            assert [path.name for path in place.parent.iterdir()] == ["model"]
        if not stopped:
            assert calls[0] < count
            break
    assert found == {"old", "new"}


def kill_at_every_step(tmp_path):
    """Save in a process that is killed at one step after the other."""
    for count in range(1, 40):
        place = tmp_path / str(count) / "model"
        place.parent.mkdir()
        write_folder(place, "old")
        (place / "thesis.tex").write_text("three years")
        child = os.fork()
        if not child:
            stop_at(pytest.MonkeyPatch(), count, False, lambda: os._exit(9))
            write_folder(place, "new")
            os._exit(0)
        assert word_of(place) in ("old", "new") if os.waitpid(child, 0)[1] else word_of(place) == "new"
        assert [path.read_text() for path in place.parent.rglob("thesis.tex")] == ["three years"]
        if word_of(place) == "new" and (place / "thesis.tex").exists() and len(list(place.parent.iterdir())) == 1:
            break
    assert 1 < count < 39


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere two folders cannot be exchanged at once")
def test_a_process_that_is_killed_at_any_step_leaves_one_model_whole(tmp_path):
    """What else was in the folder is there or beside it. In a process of its own, which has no threads to fork."""
    code = f"from pathlib import Path; import test_whole; test_whole.kill_at_every_step(Path({str(tmp_path)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_pipe_stays_a_pipe(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"content")
    reader.join()
    assert got == [b"content"]
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.fixture
def full(tmp_path):
    """A device on which there is no space, of our own where we could replace that of the machine."""
    path = tmp_path / "full"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    except PermissionError:
        path = Path("/dev/full")
    if not path.is_char_device() or os.access(path.parent, os.W_OK) != (path.parent == tmp_path):
        pytest.skip("there is no such device that is safe to try")
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="the device is one of Linux")
def test_a_device_stays_a_device_and_a_full_one_is_an_error(tmp_path, full):
    (tmp_path / "link").symlink_to(full)
    for path in (full, tmp_path / "link"):
        with pytest.raises(OSError, match="No space left"):
            write_whole(path, b"content")
    assert full.is_char_device()
    with pytest.raises(IsADirectoryError, match="Name a file"):
        write_whole(tmp_path, b"content")


@pytest.mark.skipif(sys.platform != "linux", reason="the device is one of Linux")
def test_commands_write_to_pipes_and_fail_on_a_full_device(tmp_path, full):
    data, model = tmp_path / "data.csv", tmp_path / "m.stitch"
    data.write_text("a,y\n" + "".join(f"{k},{k * k}\n" for k in range(30)))
    run = [sys.executable, "-c", "from stitchwork.cli import main; main()"]
    failed = subprocess.run([*run, "fit", data, "-t", "y", "-o", full], capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert "No space left" in failed.stderr
    assert full.is_char_device()
    subprocess.run([*run, "fit", data, "-t", "y", "-o", model], capture_output=True, check=True)
    pipe = tmp_path / "out.csv"
    os.mkfifo(pipe)
    with subprocess.Popen([*run, "predict", model, data, "-o", pipe], stdout=subprocess.DEVNULL) as command:
        assert pipe.read_text().startswith("a,y_given,y\n")
    assert command.returncode == 0
    assert pipe.is_fifo()


def test_a_link_to_a_pipe_is_written_to(tmp_path):
    """As /dev/stdout and the shell's >(command) are."""
    read, write = os.pipe()
    with replacing(Path(f"/dev/fd/{write}")) as temporary:
        temporary.write_bytes(b"content")
    os.close(write)
    with open(read, "rb") as file:
        assert file.read() == b"content"


def test_a_model_that_is_read_while_another_is_saved_is_one_of_the_two(tmp_path):
    """Whoever reads has opened one file, whatever takes its place meanwhile."""
    X = np.linspace(0.0, 1.0, 200)[:, None]
    models = [StitchedRegressor(kernel="gaussian", region_size=20).fit(X, level + X[:, 0]) for level in (1.0, 2.0)]
    path, stop, values = tmp_path / "m.stitch", time.monotonic() + 4.0, [model.predict([[0.5]])[0] for model in models]
    models[0].save(path)

    def save():
        while time.monotonic() < stop:
            for model in models:
                model.save(path)

    writer = threading.Thread(target=save)
    writer.start()
    count = 0
    while time.monotonic() < stop:
        assert load(path).predict([[0.5]])[0] in values
        count += 1
    writer.join()
    assert count > 10
