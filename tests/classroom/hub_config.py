"""The hub of the test: the real configuration, with accounts and folders of the test's own."""

import os

load_subconfig(os.environ["HUB_REAL_CONFIG"])  # noqa: F821  (JupyterHub gives both to this file)
c = get_config()  # noqa: F821

c.JupyterHub.bind_url = os.environ["HUB_URL"]
c.JupyterHub.hub_port = int(os.environ["HUB_PORT"])
c.ConfigurableHTTPProxy.api_url = os.environ["HUB_PROXY_URL"]
c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = os.environ["HUB_PASSWORD"]
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = os.environ["HUB_HOMES"] + "/{username}"
if os.getuid() == 0:
    c.Spawner.args = [*c.Spawner.args, "--allow-root"]
