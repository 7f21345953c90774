"""The tests mirror the source: a stranger who has one of the two files finds the other."""

import pytest

import psilonnet

# Tests of something that is no single file of the source.
OF_A_FLOOR = {
    "certify/test_soundness.py",  # all methods of proof, under attack
    "cli/test_terminal.py",  # the commands in a real terminal
    "estimators/test_bad_inputs.py",  # one table of mistakes and what is said about them
    "estimators/test_contract.py",  # scikit-learn's own checks
    "functional/test_transforms.py",  # every function under torch's transforms
    "scale/test_joblib.py",  # scikit-learn's tools on a cluster
    "training/test_distributed.py",  # torch's own training in several processes
}
# Modules without a file of tests, and the file that tests them.
TESTED_BY = {
    "certify/amounts": "certify/test_perturbation",
    "certify/box": "certify/test_rounding",
    "certify/combinations": "certify/test_rounding",
    "certify/counterexamples": "estimators/test_counterexamples",
    "certify/forward_error": "certify/test_rounding",
    "certify/column_sums": "certify/test_linear_bound",
    "certify/global_bound": "certify/test_soundness",
    "certify/lines": "certify/test_linear_bound",
    "certify/local_bound": "certify/test_soundness",
    "certify/methods": "certify/test_certifier",
    "certify/proof": "certify/test_certifier",
    "certify/radius": "certify/test_certifier",
    "certify/ranges": "certify/test_linear_bound",
    "cli/stopping": "cli/test_terminal",
    "cli/files": "cli/test_rows",
    "cli/options": "cli/test_commands",
    "deploy/model_file": "estimators/test_loading",
    "deploy/net_arrays": "estimators/test_loading",
    "estimators/class_certificates": "estimators/test_counterexamples",
    "estimators/devices": "estimators/test_bad_inputs",
    "estimators/fitted": "estimators/test_base",
    "estimators/parameters": "estimators/test_bad_inputs",
    "estimators/exports": "estimators/test_saving",
    "estimators/number_targets": "estimators/test_objectives",
    "estimators/range_certificates": "estimators/test_counterexamples",
    "functional/pieces": "functional/test_weight_norm",
    "nn/crelu": "nn/test_linear",
    "nn/init": "nn/test_linear",
    "nn/pieces": "nn/test_linear",
    "report/pictures": "report/test_page",
    "report/row_section": "report/test_page",
    "report/rows": "report/test_page",
    "report/sections": "report/test_page",
    "report/writing": "report/test_card",
    "scale/failures": "scale/many/test_fit",
    "scale/many/groups": "scale/many/test_keys",
    "scale/many/hashed": "scale/many/test_keys",
    "scale/many/table_rows": "scale/many/test_fit",
    "scale/many/spill": "scale/many/test_file_rows",
    "scale/many/task": "scale/many/test_fit",
    "scale/results": "scale/test_cells",
    "tables/codes": "tables/test_encoder",
    "tables/quantiles": "tables/test_encoder",
    "training/flat": "training/test_explicit",
    "training/gradients": "training/test_explicit",
    "training/products": "training/test_explicit",
    "training/projected_rows": "training/test_explicit",
    "training/state": "training/test_callbacks",
    "training/weight_rows": "training/test_explicit",
    "training/weights": "training/test_explicit",
}


PACKAGES = {"deploy/onnx"}  # whose modules are tested in one file


@pytest.fixture(scope="module")
def modules(repo):
    """The modules of all floors, as ``floor/name``."""
    source = repo / "src" / psilonnet.__name__
    files = (path.relative_to(source) for path in source.glob("*/**/*.py"))
    named = {file.with_suffix("").as_posix() for file in files if not file.name.startswith("__")}
    return {name for name in named if name.rpartition("/")[0] not in PACKAGES} | PACKAGES


def is_tested_in(module, name):
    """Whether ``test_NAME`` is the module's own file, or one of several with its name in front."""
    return name == module or name.startswith(f"{module}_")


def test_every_file_of_tests_has_a_module(repo, modules):
    tests = repo / "tests"
    files = {path.relative_to(tests).as_posix() for path in tests.glob("*/**/test_*.py")}
    files = {file for file in files if file.split("/")[0] not in ("paper", "experiments")}
    named = {file: file.replace("/test_", "/").removesuffix(".py") for file in files}
    strangers = {
        file
        for file, name in named.items()
        if not any(is_tested_in(module, name) for module in modules)
    }
    assert strangers == OF_A_FLOOR


def test_every_module_has_tests(repo, modules):
    without = {
        module
        for module in modules
        if not (repo / "tests" / "/test_".join(module.rsplit("/", 1))).with_suffix(".py").is_file()
    }
    assert without == set(TESTED_BY)
    for module, other in TESTED_BY.items():
        assert (repo / "tests" / other).with_suffix(".py").is_file(), module
