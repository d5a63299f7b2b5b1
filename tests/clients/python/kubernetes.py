"""Makes and lists pods and deployments with a client generated from the main server's whole /openapi/v2. Arguments: the generated client's folder, the kubeconfig."""

import sys

from kubeconfig import configuration

POD = {"containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]}]}


def main():
    folder, kubeconfig = sys.argv[1:]
    sys.path.insert(0, folder)
    import kubernetes_client as client

    connection = client.ApiClient(configuration(client, kubeconfig))
    core, apps = client.CoreV1Api(connection), client.AppsV1Api(connection)

    # Every pod has a service account, which a controller makes where one runs.
    account = client.IoK8sApiCoreV1ServiceAccount.from_dict({"metadata": {"name": "default"}})
    core.create_core_v1_namespaced_service_account("default", account)

    pod = client.IoK8sApiCoreV1Pod.from_dict({"metadata": {"name": "from-python"}, "spec": POD})
    made = core.create_core_v1_namespaced_pod("default", pod)
    assert made.spec.restart_policy == "Always", made
    assert made.spec.containers[0].ports[0].container_port == 80, made
    names = [pod.metadata.name for pod in core.list_core_v1_pod_for_all_namespaces().items]
    assert names == ["from-python"], names

    deployment = client.IoK8sApiAppsV1Deployment.from_dict(
        {
            "metadata": {"name": "from-python"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD},
            },
        }
    )
    made = apps.create_apps_v1_namespaced_deployment("default", deployment)
    assert made.spec.replicas == 1 and made.spec.strategy.type == "RollingUpdate", made
    print("generated Python client of everything: pods and deployments are made and listed")


if __name__ == "__main__":
    main()
