"""The objects of the cluster: 2 000 pods of all workloads, with services, autoscalers, budgets and quotas."""

import os

NODES = 100
# Each has 500 pods; fewer namespaces are for a short run.
NAMESPACES = [f"load-{n}" for n in range(int(os.environ.get("NAMESPACES", "4")))]
IMAGES = ("registry.example/app:1", "registry.example/app:2")


def _meta(name, labels=None, **more):
    return {"name": name, **({"labels": labels} if labels else {}), **more}


def _template(labels, image=IMAGES[0], **spec):
    container = {"name": "app", "image": image, "resources": {"requests": {"cpu": "10m", "memory": "8Mi"}}}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}


def _workload(kind, name, spec, labels):
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": _meta(name, labels),
        "spec": {"selector": {"matchLabels": labels}, "template": _template(labels), **spec},
    }


def node(number):
    """A node of kwok's, with room for all of it."""
    room = {"cpu": "16", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _meta(
            f"node-{number:03}",
            {"type": "kwok", "kubernetes.io/hostname": f"node-{number:03}", "zone": f"zone-{number % 3}"},
            annotations={"kwok.x-k8s.io/node": "fake"},
        ),
        "spec": {},
        "status": {"capacity": room, "allocatable": room},
    }


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": _meta(name)}


def _deployments():
    for n in range(3):
        labels = {"app": f"web-{n}"}
        yield _workload("Deployment", f"web-{n}", {"replicas": 100}, labels)
        port = {"port": 80, "targetPort": 8080}
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": _meta(f"web-{n}"),
            "spec": {"selector": labels, "ports": [port]},
        }
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": _meta(f"web-{n}"),
            "spec": {"maxUnavailable": "10%", "selector": {"matchLabels": labels}},
        }
        yield {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": _meta(f"web-{n}"),
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"web-{n}"},
                "minReplicas": 50,
                "maxReplicas": 200,
            },
        }


def _others():
    labels = {"app": "db"}
    headless = {"clusterIP": "None", "selector": labels, "ports": [{"port": 5432}]}
    yield {"apiVersion": "v1", "kind": "Service", "metadata": _meta("db"), "spec": headless}
    spec = {"replicas": 40, "serviceName": "db", "podManagementPolicy": "Parallel"}
    yield _workload("StatefulSet", "db", spec, labels)
    yield _workload("DaemonSet", "agent", {}, {"app": "agent"})
    for n in range(6):
        spec = {"completions": 10, "parallelism": 5, "template": _template({"job": f"once-{n}"}, restartPolicy="Never")}
        yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": _meta(f"once-{n}"), "spec": spec}
    hard = {"pods": "600", "requests.cpu": "6", "count/services": "20", "count/jobs.batch": "20"}
    yield {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": _meta("all"), "spec": {"hard": hard}}


def objects():
    """The objects of one namespace; 500 pods: 300 + 40 + 100 + 60."""
    return [*_others(), *_deployments()]
