#!/usr/bin/env python3
"""A cluster with the real controllers: 100 nodes of kwok, 2 000 pods, once on each API server.

    tests/cluster/cluster.py keelson PROGRAM FOLDER           writes FOLDER/states.json and prints what it cost
    tests/cluster/cluster.py kube-apiserver PROGRAM FOLDER    the same on the original; ETCD_BIN names its etcd
    tests/cluster/cluster.py compare FOLDER FOLDER            1 where a state is different

KCM_BIN, SCHEDULER_BIN and KWOK_BIN name kube-controller-manager, kube-scheduler and kwok; kubectl is in PATH. The
phases are: brought up, rolled to another image, five nodes drained, scaled up past a quota and down, torn down. After
each, when nothing changes any more, the objects of each resource are counted and the statuses of workloads written
down.
"""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import workload

TICKS = os.sysconf("SC_CLK_TCK")
# What says more of the moment than of the server; and what only the aggregator makes.
UNCOUNTED = {"events", "events.events.k8s.io", "componentstatuses", "apiservices.apiregistration.k8s.io"}
PATIENCE = 900


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Cluster:
    """The programs of a cluster, in a folder of their own."""

    def __init__(self, kind, program, folder):
        self.folder = Path(folder).resolve()
        self.folder.mkdir(parents=True)
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.programs = {}
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps(self._kubeconfig()))
        (self.folder / "tokens.csv").write_text('admintoken,admin,uid-admin,"system:masters"\n')
        self._server(kind, program)

    def _kubeconfig(self):
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": self.url, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "u", "user": {"token": "admintoken"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }

    def start(self, name, *command):
        log = open(self.folder / f"{name}.log", "wb")
        self.programs[name] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)

    def _server(self, kind, program):
        key, ca = self.folder / "sa.key", self.folder / "ca.crt"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        request = ["openssl", "req", "-x509", "-key", key, "-subj", "/CN=clients", "-out", ca]
        subprocess.run(request, check=True, capture_output=True)
        flags = [
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--client-ca-file={ca}",
            "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--allow-privileged=true",
        ]
        if kind == "keelson":
            self.start("server", program, f"--data-dir={self.folder / 'data'}", *flags)
        else:
            etcd, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
            self.start(
                "etcd",
                os.environ["ETCD_BIN"],
                f"--data-dir={self.folder / 'etcd'}",
                f"--listen-client-urls={etcd}",
                f"--advertise-client-urls={etcd}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
            )
            self.start("server", program, f"--etcd-servers={etcd}", f"--cert-dir={self.folder / 'certs'}", *flags)
        until("the server is ready", lambda: self.alive() and self.get("/readyz", text=True) == "ok")

    def controllers(self):
        """Starts what makes a cluster of an API server."""
        config = f"--kubeconfig={self.kubeconfig}"
        rates = ["--kube-api-qps=2000", "--kube-api-burst=4000", "--leader-elect=false", "--secure-port=0"]
        key = f"--service-account-private-key-file={self.folder / 'sa.key'}"
        self.start("kcm", os.environ["KCM_BIN"], config, key, *rates)
        scheduler = self.folder / "scheduler.yaml"
        scheduler.write_text(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
            f"clientConnection: {{kubeconfig: {self.kubeconfig}, qps: 2000, burst: 4000}}\n"
            "leaderElection: {leaderElect: false}\n"
        )
        self.start("scheduler", os.environ["SCHEDULER_BIN"], f"--config={scheduler}", "--secure-port=0")
        fake = ["--manage-all-nodes=true", "--node-ip=10.9.9.9", "--node-lease-duration-seconds=40"]
        self.start("kwok", os.environ["KWOK_BIN"], config, *fake)

    def alive(self):
        for name, program in self.programs.items():
            if program.poll() is not None:
                raise SystemExit(f"{name} ended: see {self.folder / name}.log")
        return True

    def get(self, path, text=False):
        request = urllib.request.Request(self.url + path, headers={"Authorization": "Bearer admintoken"})
        try:
            with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=60) as answer:
                body = answer.read()
        except OSError:
            return None
        return body.decode() if text else json.loads(body)

    def kubectl(self, *args, stdin=None, check=True):
        command = ["kubectl", f"--kubeconfig={self.kubeconfig}", *args]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=PATIENCE)
        if check and done.returncode != 0:
            raise SystemExit(f"{' '.join(args)}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def create(self, objects, *where):
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.kubectl("create", "-f", "-", *where, stdin=json.dumps(listed))

    def resources(self):
        """Path of the list and name of each resource that can be listed, in the version that is preferred."""
        found = {}
        groups = [("/api/v1", "")]
        groups += [(f"/apis/{g['preferredVersion']['groupVersion']}", g["name"]) for g in self.get("/apis")["groups"]]
        for path, group in groups:
            for resource in self.get(path)["resources"]:
                name = resource["name"]
                if "list" in resource["verbs"] and "/" not in name and name not in UNCOUNTED:
                    found[f"{name}.{group}".rstrip(".")] = f"{path}/{name}"
        return found

    def cost(self):
        """CPU seconds and MiB of each program so far."""
        costs = {}
        self.alive()
        for name, program in self.programs.items():
            stat = Path(f"/proc/{program.pid}/stat").read_text().rsplit(") ", 1)[1].split()
            status = Path(f"/proc/{program.pid}/status").read_text()
            memory = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
            costs[name] = ((int(stat[11]) + int(stat[12])) / TICKS, int(memory.split()[1]) // 1024)
        return costs

    def stop(self):
        for program in reversed(self.programs.values()):
            program.send_signal(signal.SIGTERM)
        for program in self.programs.values():
            try:
                program.wait(30)
            except subprocess.TimeoutExpired:
                program.kill()


def until(what, holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"not within {PATIENCE} s: {what}")
        time.sleep(0.5)


def counts(cluster, resources):
    """How many objects there are of each resource.

    Slices of endpoints are packed by chance: their endpoints count. Pods that have ended are left out: whether they go
    with a drained node is up to where they were.
    """
    found = {}
    for name, path in resources.items():
        items = cluster.get(path)["items"]
        found[name] = len(items)
        if name == "endpointslices.discovery.k8s.io":
            found[name] = sum(len(item["endpoints"] or []) for item in items)
        elif name == "pods":
            found[name] = sum(item["status"].get("phase") != "Succeeded" for item in items)
    return found


def statuses(cluster):
    """What the statuses of workloads say that is not of the moment."""
    kept = {
        "deployments": ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "observedGeneration"),
        "statefulsets": ("replicas", "readyReplicas", "updatedReplicas", "observedGeneration"),
        "daemonsets": ("desiredNumberScheduled", "numberReady", "updatedNumberScheduled", "observedGeneration"),
    }
    found = {}
    for plural, fields in kept.items():
        for item in cluster.get(f"/apis/apps/v1/{plural}")["items"]:
            status = {field: item["status"].get(field) for field in fields}
            conditions = item["status"].get("conditions") or []
            status["conditions"] = sorted(f"{c['type']}={c['status']}:{c.get('reason')}" for c in conditions)
            found[f"{plural} {item['metadata']['namespace']}/{item['metadata']['name']}"] = status
    for item in cluster.get("/apis/batch/v1/jobs")["items"]:
        found[f"jobs {item['metadata']['namespace']}/{item['metadata']['name']}"] = item["status"].get("succeeded")
    for item in cluster.get("/apis/policy/v1/poddisruptionbudgets")["items"]:
        fields = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
        status = {field: item["status"].get(field) for field in fields}
        found[f"budgets {item['metadata']['namespace']}/{item['metadata']['name']}"] = status
    for item in cluster.get("/api/v1/resourcequotas")["items"]:
        found[f"quotas {item['metadata']['namespace']}"] = item["status"].get("used")
    return found


def settled(cluster, resources):
    """The state when three looks in a row, five seconds apart, are alike."""
    alike, last = 0, None
    end = time.monotonic() + PATIENCE
    while alike < 2:
        time.sleep(5)
        now = {"counts": counts(cluster, resources), "statuses": statuses(cluster)}
        alike = alike + 1 if now == last else 0
        last = now
        if time.monotonic() > end:
            raise SystemExit(f"not settled within {PATIENCE} s")
    return last


def bring_up(cluster):
    cluster.create([workload.node(n) for n in range(workload.NODES)])
    cluster.create([workload.namespace(name) for name in workload.NAMESPACES])
    for name in workload.NAMESPACES:
        until(f"service account of {name}", lambda: cluster.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"))
        cluster.create(workload.objects(), "-n", name)
    wait_for_workloads(cluster)


def wait_for_workloads(cluster):
    for name in workload.NAMESPACES:
        for kind in ("deployment/web-0", "deployment/web-1", "deployment/web-2", "statefulset/db", "daemonset/agent"):
            cluster.kubectl("rollout", "status", kind, "-n", name, f"--timeout={PATIENCE}s")


def roll(cluster):
    for name in workload.NAMESPACES:
        for kind in ("deployment/web-0", "deployment/web-1", "statefulset/db", "daemonset/agent"):
            cluster.kubectl("set", "image", kind, f"app={workload.IMAGES[1]}", "-n", name)
    wait_for_workloads(cluster)


def drain(cluster):
    nodes = [f"node-{n:03}" for n in range(5)]
    kinds = ("--ignore-daemonsets", "--force", "--delete-emptydir-data")
    cluster.kubectl("drain", *nodes, *kinds, f"--timeout={PATIENCE}s")
    wait_for_workloads(cluster)


def scale(cluster):
    for name in workload.NAMESPACES:
        # Past the quota of 600 pods and of CPU.
        cluster.kubectl("scale", "deployment/web-0", "--replicas=300", "-n", name)
        cluster.kubectl("scale", "deployment/web-1", "--replicas=60", "-n", name)
        cluster.kubectl("scale", "statefulset/db", "--replicas=10", "-n", name)
    cluster.kubectl("uncordon", *[f"node-{n:03}" for n in range(5)])


def tear_down(cluster):
    cluster.kubectl("delete", "namespace", *workload.NAMESPACES, f"--timeout={PATIENCE}s")
    cluster.kubectl("delete", "node", "--all", f"--timeout={PATIENCE}s")


PHASES = [bring_up, roll, drain, scale, tear_down]


def run(kind, program, folder):
    cluster = Cluster(kind, program, folder)
    states = {}
    try:
        cluster.controllers()
        resources = cluster.resources()
        before = cluster.cost()
        for phase in PHASES:
            begin = time.monotonic()
            phase(cluster)
            acted = time.monotonic() - begin
            states[phase.__name__] = settled(cluster, resources)
            now = cluster.cost()
            spent = ", ".join(f"{name} {now[name][0] - before[name][0]:.1f} s" for name in now)
            print(f"{phase.__name__}: {acted:.0f} s; CPU: {spent}", flush=True)
            before = now
        (cluster.folder / "states.json").write_text(json.dumps(states, indent=1, sort_keys=True))
        total = ", ".join(f"{name} {cpu:.1f} s, {mib} MiB" for name, (cpu, mib) in cluster.cost().items())
        print(f"all: {total}")
    finally:
        cluster.stop()


def compare(one, other):
    """Prints each difference of two runs' states; how many there are."""
    states = [json.loads((Path(folder) / "states.json").read_text()) for folder in (one, other)]
    different = 0
    for phase in (phase.__name__ for phase in PHASES):
        for part in ("counts", "statuses"):
            left, right = (state[phase][part] for state in states)
            for name in sorted(left.keys() | right.keys()):
                if left.get(name) != right.get(name):
                    different += 1
                    print(f"{phase}: {name}: {left.get(name)} and {right.get(name)}")
    print(f"{different} differences")
    return different


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["compare", one, other]:
            sys.exit(1 if compare(one, other) else 0)
        case [("keelson" | "kube-apiserver") as kind, program, folder]:
            run(kind, program, folder)
        case _:
            sys.exit(__doc__)
