"""Settings of a generated client."""

import base64
import json
import os
import tempfile


def configuration(client, kubeconfig):
    """The client's settings from a kubeconfig with everything embedded."""
    with open(kubeconfig) as file:
        config = json.load(file)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    folder = tempfile.mkdtemp()

    def data(name, text):
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(base64.b64decode(text))
        return path

    settings = client.Configuration(host=cluster["server"])
    settings.ssl_ca_cert = data("ca.crt", cluster["certificate-authority-data"])
    settings.cert_file = data("client.crt", user["client-certificate-data"])
    settings.key_file = data("client.key", user["client-key-data"])
    return settings
