"""Reads settings.ini, the one place where name, version and requirements stand."""
from configparser import ConfigParser
from pathlib import Path
from setuptools import find_packages, setup

here = Path(__file__).parent
parser = ConfigParser(delimiters=["="])
parser.read(here / "settings.ini", encoding="utf-8")
cfg = parser["DEFAULT"]

extras = {key.removeprefix("extra_"): cfg[key].split() for key in cfg if key.startswith("extra_")}
extras["all"] = sum(extras.values(), [])
extras["dev"] = cfg["dev_requirements"].split() + extras["all"]

setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=(here / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author=cfg["author"],
    license="Apache-2.0",
    keywords=cfg["keywords"],
    packages=find_packages(include=["logsig_fraud", "logsig_fraud.*"]),
    package_data={"logsig_fraud": ["paper.csv"]},
    python_requires=">=" + cfg["min_python"],
    install_requires=cfg["requirements"].split(),
    extras_require=extras,
)
