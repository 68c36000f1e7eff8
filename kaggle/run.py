"""Runs the results notebook on Kaggle: from the attached wheels where there are any, else from GitHub, which needs the internet switched on."""
import subprocess, sys
from pathlib import Path

PARAMETERS = dict(nl=2595, preset="default") # of the notebook; what is not named here has its default
REPOSITORY = "https://github.com/logsig-fraud/logsig_fraud"
INPUT, WORKING = Path("/kaggle/input"), Path("/kaggle/working")


def sh(*words): subprocess.run([*map(str, words)], check=True)
def pip(*words): sh(sys.executable, "-m", "pip", "install", "--quiet", *words)


def install():
    "Installs the library beside Kaggle's own torch -> the notebook."
    wheel = next(INPUT.glob("**/logsig_fraud-*.whl"), None)
    if wheel:
        pip("--no-index", "--no-deps", *wheel.parent.glob("*.whl")) # the image has the rest
        return wheel.parent / "10_results.ipynb"
    sh("git", "clone", "--depth", 1, REPOSITORY, "/tmp/logsig_fraud")
    pip("-e", "/tmp/logsig_fraud", "papermill") # where it was cloned, so that every row knows its commit
    return Path("/tmp/logsig_fraud/nbs/10_results.ipynb")


def main():
    given = [word for name, value in PARAMETERS.items() for word in ("-p", name, value)]
    sh("papermill", "--log-output", install(), WORKING / f"nl{PARAMETERS['nl']}.ipynb", *given, "-p", "out", WORKING)


if __name__ == "__main__": main()
