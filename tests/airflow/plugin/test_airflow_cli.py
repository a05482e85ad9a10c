"""`airflow pgtrickle …` is `pgtrickle …` on an Airflow connection."""

import pytest
from airflow.cli import cli_parser

from airflow_provider_pgtrickle.airflow_cli import get_pgtrickle_cli_commands
from airflow_provider_pgtrickle.cli import commands


def run(*words: str) -> None:
    arguments = cli_parser.get_parser().parse_args(["pgtrickle", *words])
    arguments.func(arguments)


def test_every_command_of_pgtrickle_is_there_with_its_arguments() -> None:
    (group,) = get_pgtrickle_cli_commands()
    ours = {command.name: command for command in group.subcommands}  # type: ignore[union-attr]
    # The others need no database, and so no connection: they are only for the shell.
    assert list(ours) == [command.name for command in commands() if command.needs_database]
    for command in filter(lambda command: command.needs_database, commands()):
        flags = [argument.flags for argument in ours[command.name].args]
        assert flags == [*(given.flags for given in command.arguments), ("--conn-id",), ("--json",)]


def test_airflow_finds_the_group_through_the_provider() -> None:
    assert "pgtrickle" in cli_parser.ALL_COMMANDS_DICT


def test_a_missing_connection_is_one_sentence_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        run("status", "--conn-id", "nowhere")
    assert left.value.code == 2
    assert "There is no Airflow connection 'nowhere'" in capsys.readouterr().err


def test_an_unreachable_database_is_exit_code_1_without_its_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DOWN", "postgresql://me:s3cret@127.0.0.1:1/shop")
    with pytest.raises(SystemExit) as left:
        run("status", "--conn-id", "down")
    assert left.value.code == 1
    assert "s3cret" not in "".join(capsys.readouterr())


def test_a_command_answers_from_the_connections_database(catalog: object, capsys: pytest.CaptureFixture[str]) -> None:
    run("status", "--conn-id", "pgtrickle_test", "--json")
    assert capsys.readouterr().out == "[]\n"
