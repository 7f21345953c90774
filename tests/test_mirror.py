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
    "scale/test_faults.py",  # a cluster that loses workers
    "scale/test_joblib.py",  # scikit-learn's tools on a cluster
    "training/test_distributed.py",  # torch's own training in several processes
}
# Modules without a file of tests, and the file that tests them.
TESTED_BY = {
    "certify/box": "certify/test_rounding",
    "certify/column_bounds": "estimators/test_base",
    "certify/combinations": "certify/test_rounding",
    "certify/global_bound": "certify/test_soundness",
    "certify/local_bound": "certify/test_soundness",
    "certify/methods": "certify/test_certifier",
    "cli/files": "cli/test_rows",
    "deploy/model_file": "estimators/test_loading",
    "estimators/architectures": "estimators/test_saving",
    "estimators/devices": "estimators/test_bad_inputs",
    "estimators/jobs": "scale/test_many",
    "estimators/parameters": "estimators/test_bad_inputs",
    "estimators/promises": "estimators/test_base",
    "estimators/shipping": "estimators/test_saving",
    "estimators/together": "scale/test_many",
    "functional/pieces": "functional/test_weight_norm",
    "nn/crelu": "nn/test_linear",
    "nn/init": "nn/test_linear",
    "nn/pieces": "nn/test_linear",
    "report/pictures": "report/test_page",
    "report/row_section": "report/test_page",
    "report/rows": "report/test_page",
    "report/sections": "report/test_page",
    "scale/block_output": "scale/test_scoring",
    "scale/blocks": "scale/test_scoring",
    "scale/digests": "scale/test_many",
    "scale/failures": "scale/test_many",
    "scale/group_task": "scale/test_many",
    "scale/keys": "scale/test_many",
    "scale/model_folder": "scale/test_many",
    "scale/predicting": "scale/test_many",
    "scale/results": "scale/test_cells",
    "scale/shipped": "scale/test_scoring",
    "tables/canonical": "tables/test_encoder",
    "tables/codes": "tables/test_encoder",
    "tables/quantiles": "tables/test_encoder",
}


@pytest.fixture(scope="module")
def modules(repo):
    """The modules and packages of all floors, as ``floor/name``."""
    source = repo / "src" / psilonnet.__name__
    return {
        f"{path.parent.relative_to(source)}/{path.stem}"
        for path in (*source.glob("*/*.py"), *source.glob("*/*/"))
        if not path.name.startswith("__")
    }


@pytest.fixture(scope="module")
def floors(repo):
    return [
        path for path in (repo / "tests").iterdir() if path.name not in ("paper", "experiments")
    ]


def is_tested_in(module, name):
    """Whether ``test_NAME`` is the module's own file, or one of several with its name in front."""
    return name == module or name.startswith(f"{module}_")


def test_every_file_of_tests_has_a_module(repo, modules, floors):
    files = {f"{path.parent.name}/{path.name}" for floor in floors for path in floor.glob("test_*")}
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
        if not (repo / "tests" / module.replace("/", "/test_")).with_suffix(".py").is_file()
    }
    assert without == set(TESTED_BY)
    for module, other in TESTED_BY.items():
        assert (repo / "tests" / other).with_suffix(".py").is_file(), module
