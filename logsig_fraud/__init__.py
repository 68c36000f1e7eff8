"""Fraud detection from few labels: log-signatures of customer histories, Bayesian GANs, honest evaluation.

Written by hand; nbdev_export changes only the version."""
import os, sys
from importlib import import_module

__version__ = "0.2.0"
__all__ = ["FraudDetector", "OnlineScorer", "Columns", "preset", "load_dataset"]

_MODULES = dict(FraudDetector="detector.guarantee", OnlineScorer="detector.online", Columns="columns", preset="core",
                load_dataset="data")


def __getattr__(name):
    "Imports a name when it is first used, so that `import logsig_fraud` does not wait for torch and pandas."
    if name not in _MODULES: raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return globals()[name]


def __dir__(): return sorted({*globals(), *__all__})


def _one_thread():
    "One thread for every numerical library: the variables hold for those that come later, the calls for those that are loaded."
    from threadpoolctl import threadpool_limits
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"): os.environ[name] = "1"
    threadpool_limits(1) # numpy is loaded before a notebook's first cell, for its figures
    if "torch" in sys.modules: sys.modules["torch"].set_num_threads(1)


# nbdev_test sets this variable and runs as many notebooks at a time as there are cores; with more threads they would
# wait for each other most of the time.
if os.environ.get("IN_TEST"): _one_thread()
