//! Handlers of a container: probes, and what is done when it starts and before it stops.

use keelson_api::core::v1::{
    Container, ExecAction, HTTPGetAction, Lifecycle, LifecycleHandler, Probe, SleepAction, TCPSocketAction,
};

use crate::faults::{Exclusive, Faults};
use crate::names::http_header;

const ONE_HANDLER: &str = "may not specify more than 1 handler type";
const NO_HANDLER: &str = "must specify a handler type";
const ONLY_RESTARTED: &str = "may not be set for init containers without restartPolicy=Always";

/// Checks the handlers of a container that runs beside others. `grace`: seconds that the pod has to end.
pub fn check(f: &mut Faults<'_>, container: &Container, grace: Option<i64>) {
    f.some("lifecycle", container.lifecycle.as_deref(), |f, lifecycle| {
        of_lifecycle(f, lifecycle, grace);
    });
    f.some("livenessProbe", container.liveness_probe.as_deref(), succeeds_once);
    f.some(
        "readinessProbe",
        container.readiness_probe.as_deref(),
        |f, readiness| {
            probe(f, readiness);
            let seconds = readiness.termination_grace_period_seconds;
            f.at("terminationGracePeriodSeconds")
                .number(seconds, |_| false, "must not be set for readinessProbes");
        },
    );
    f.some("startupProbe", container.startup_probe.as_deref(), succeeds_once);
}

/// A container that ends before others start has no handlers.
pub fn check_none(f: &mut Faults<'_>, container: &Container) {
    for (name, is_there) in [
        ("lifecycle", container.lifecycle.is_some()),
        ("livenessProbe", container.liveness_probe.is_some()),
        ("readinessProbe", container.readiness_probe.is_some()),
        ("startupProbe", container.startup_probe.is_some()),
    ] {
        f.at(name).forbidden_if(is_there, ONLY_RESTARTED);
    }
}

fn of_lifecycle(f: &mut Faults<'_>, lifecycle: &Lifecycle, grace: Option<i64>) {
    f.some("postStart", lifecycle.post_start.as_deref(), |f, handler| {
        hook(f, handler, grace);
    });
    f.some("preStop", lifecycle.pre_stop.as_deref(), |f, handler| {
        hook(f, handler, grace);
    });
}

fn hook(f: &mut Faults<'_>, handler: &LifecycleHandler, grace: Option<i64>) {
    let mut one = Exclusive::new(ONE_HANDLER);
    one.field(f, "exec", handler.exec.as_deref(), exec);
    one.field(f, "httpGet", handler.http_get.as_deref(), http);
    one.field(f, "tcpSocket", handler.tcp_socket.as_deref(), tcp);
    one.field(f, "sleep", handler.sleep.as_deref(), |f, nap| sleep(f, nap, grace));
    f.required_if(one.found() == 0, NO_HANDLER);
}

fn succeeds_once(f: &mut Faults<'_>, of: &Probe) {
    probe(f, of);
    f.at("successThreshold")
        .invalid_if(of.success_threshold != 1, of.success_threshold, "must be 1");
}

fn probe(f: &mut Faults<'_>, probe: &Probe) {
    let handler = &probe.probe_handler;
    let mut one = Exclusive::new(ONE_HANDLER);
    one.field(f, "exec", handler.exec.as_deref(), exec);
    one.field(f, "httpGet", handler.http_get.as_deref(), http);
    one.field(f, "tcpSocket", handler.tcp_socket.as_deref(), tcp);
    one.field(f, "grpc", handler.grpc.as_deref(), |f, grpc| {
        f.at("port").port(grpc.port)
    });
    f.required_if(one.found() == 0, NO_HANDLER);
    f.at("initialDelaySeconds").non_negative(probe.initial_delay_seconds);
    f.at("timeoutSeconds").non_negative(probe.timeout_seconds);
    f.at("periodSeconds").non_negative(probe.period_seconds);
    f.at("successThreshold").non_negative(probe.success_threshold);
    f.at("failureThreshold").non_negative(probe.failure_threshold);
    let seconds = probe.termination_grace_period_seconds;
    f.at("terminationGracePeriodSeconds")
        .number(seconds, |seconds| seconds > 0, "must be greater than 0");
}

fn exec(f: &mut Faults<'_>, exec: &ExecAction) {
    f.at("command").required_if(exec.command.is_empty(), "");
}

fn http(f: &mut Faults<'_>, http: &HTTPGetAction) {
    f.at("path").filled(&http.path);
    f.at("port").port_or_name(&http.port);
    f.at("scheme").one_of(&http.scheme, &["HTTP", "HTTPS"]);
    for header in &http.http_headers {
        f.at("httpHeaders").texts(&header.name, http_header(&header.name));
    }
}

fn tcp(f: &mut Faults<'_>, tcp: &TCPSocketAction) {
    f.at("port").port_or_name(&tcp.port);
}

/// A nap ends while the pod still has time.
fn sleep(f: &mut Faults<'_>, nap: &SleepAction, grace: Option<i64>) {
    if let Some(grace) = grace.filter(|grace| !(0..=*grace).contains(&nap.seconds)) {
        let text = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        f.invalid(nap.seconds, text);
    }
}
