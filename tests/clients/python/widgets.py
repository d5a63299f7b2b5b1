"""Creates and lists widgets with the client that generate.sh made. Arguments: the generated client's folder, the kubeconfig."""

import json
import sys

from kubeconfig import configuration


def main():
    folder, kubeconfig = sys.argv[1:]
    sys.path.insert(0, folder)
    import widgets_client as client

    api = client.ExampleComV1Api(client.ApiClient(configuration(client, kubeconfig)))
    widget = client.ComExampleV1Widget.from_dict(
        {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "from-python"},
            "spec": {"sizeMillimeters": 9, "parts": [{"name": "tooth", "count": 2}]},
        }
    )
    made = api.create_example_com_v1_namespaced_widget("default", widget)
    assert made.spec.color == "Green", made
    assert made.metadata.uid, made
    names = [item.metadata.name for item in api.list_example_com_v1_namespaced_widget("default").items]
    assert "from-python" in names, names
    try:
        api.create_example_com_v1_namespaced_widget("default", widget)
        raise AssertionError("the second create succeeded")
    except client.ApiException as error:
        assert error.status == 409 and json.loads(error.body)["reason"] == "AlreadyExists", error
    api.delete_example_com_v1_namespaced_widget("from-python", "default")
    print("generated Python client: create, list and delete of widgets work")


if __name__ == "__main__":
    main()
