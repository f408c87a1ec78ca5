# The workbook in a container, with PoCL on the processor:
#
#   docker build --tag llmcl .
#   docker run --rm --publish 127.0.0.1:8888:8888 llmcl
#
# Then open the address with the token that it prints. What is written in the container is gone
# with it; `--volume` keeps a folder.

FROM python:3.12-slim AS base
# PoCL comes as a wheel for x86-64; elsewhere Debian has it.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git make \
        $(test "$(uname -m)" = x86_64 || echo pocl-opencl-icd) \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --shell /bin/bash learner \
    && install --directory --owner=learner --group=learner /workbook
USER learner
WORKDIR /workbook

FROM base
COPY --chown=learner:learner . .
RUN python3 -m venv .venv && .venv/bin/python -m pip install --no-cache-dir -e '.[lab,verify,linker]'
RUN .venv/bin/llmcl doctor --class
EXPOSE 8888
CMD [".venv/bin/python", "-m", "jupyterlab", "--ip=0.0.0.0", "--no-browser", \
     "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb"]
