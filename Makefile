# Every command that a person or CI needs. `make help` lists them.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# The one list of system packages (Debian names) that the tests use beside Python and make: a broker,
# certificates, a real RTSP server (GStreamer and its Python binding), a browser, Prometheus with its
# promtool, systemd-analyze.
SYSTEM_PACKAGES := mosquitto openssl python3-gi gir1.2-gst-rtsp-server-1.0 \
	gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad \
	gstreamer1.0-plugins-ugly chromium prometheus systemd

.PHONY: help demo env system test lint types imports unit bench clean

help: ## list the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: env ## watch the bundled clips in real time: a robot stopped in time
	$(BIN)/hdguard demo

env: $(READY) ## make the virtual environment in .venv

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hdguard needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,mcap,models,report,server,webrtc]'
	touch $@

system: ## install the system packages, where this is root on a Debian system
	@missing=""; for p in $(SYSTEM_PACKAGES); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
	if [ -z "$$missing" ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
	else echo "the tests need these system packages:$$missing"; fi

test: env system lint types imports unit ## everything that CI checks

lint: env
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: env
	$(BIN)/mypy

imports: env
	$(BIN)/lint-imports

unit: env
	$(BIN)/pytest -q tests/core -m "not exhaustive" --cov --cov-fail-under=100
	$(BIN)/pytest -q

bench: env ## ratios against bare libraries, side by side in one run; writes bench.json
	$(BIN)/python -m benchmarks

clean: ## remove what the commands made
	rm -rf $(VENV) build dist bench.json .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
