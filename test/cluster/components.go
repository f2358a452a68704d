package cluster

import (
	"path/filepath"
	"strconv"
)

const (
	serviceRange = "10.0.0.0/16"
	serviceIP    = "10.0.0.1"
	issuer       = "https://kubernetes.default.svc"

	auditPolicyFile = "audit-policy.yaml"
	auditLogFile    = "audit.log"
)

func logPath(dir, component string) string {
	return filepath.Join(dir, component+".log")
}

// args are the flags of a component. Options.Args come last, so that they win.
func (c *Cluster) args(component string) []string {
	flags := map[string]func() []string{
		Etcd:              c.etcdArgs,
		APIServer:         c.apiServerArgs,
		ControllerManager: c.controllerManagerArgs,
		Scheduler:         c.schedulerArgs,
	}
	return append(flags[component](), c.options.Args[component]...)
}

func (c *Cluster) etcdArgs() []string {
	client, peer := "http://"+address(c.ports.etcd), "http://"+address(c.ports.etcdPeer)
	return []string{
		"--name=" + c.name,
		"--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + c.name + "=" + peer,
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	}
}

func (c *Cluster) apiServerArgs() []string {
	return []string{
		"--etcd-servers=http://" + address(c.ports.etcd),
		"--bind-address=" + localhost,
		"--secure-port=" + strconv.Itoa(c.ports.apiServer),
		"--tls-cert-file=" + c.path(servingCert),
		"--tls-private-key-file=" + c.path(servingKey),
		"--cert-dir=" + c.path("certs"),
		// Otherwise the address of a network interface is looked for, which not every machine has.
		"--advertise-address=" + localhost,
		"--endpoint-reconciler-type=none",
		"--service-account-key-file=" + c.path(accountPubFile),
		"--service-account-signing-key-file=" + c.path(accountKeyFile),
		"--service-account-issuer=" + issuer,
		"--service-cluster-ip-range=" + serviceRange,
		"--token-auth-file=" + c.path(tokensFile),
		"--client-ca-file=" + c.path(caFile),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		// Otherwise it waits for a minute, when asked to end, for watches to end by themselves.
		"--shutdown-watch-termination-grace-period=2s",
		"--kubelet-preferred-address-types=InternalIP",
		// No kube-proxy runs: a webhook's Service is resolved to its EndpointSlices.
		"--enable-aggregator-routing=true",
		"--audit-policy-file=" + c.path(auditPolicyFile),
		"--audit-log-path=" + c.path(auditLogFile),
		// Otherwise History loses what is older than five minutes, which tests on a busy machine are.
		"--etcd-compaction-interval=0",
		// A request is in the log before its response ends.
		"--audit-log-mode=blocking",
		// Never rotate: a Mark is an offset.
		"--audit-log-maxsize=1000000",
	}
}

func (c *Cluster) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + c.path(kubeconfigOf(ControllerManager)),
		"--service-account-private-key-file=" + c.path(accountKeyFile),
		"--root-ca-file=" + c.path(caFile),
		"--cluster-signing-cert-file=" + c.path(caFile),
		"--cluster-signing-key-file=" + c.path(caKeyFile),
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		"--secure-port=0",
		// At the default of 20 each deleted namespace takes seconds.
		"--kube-api-qps=300",
		"--kube-api-burst=600",
		// By default it is 15 s until an autoscaler does anything.
		"--horizontal-pod-autoscaler-sync-period=1s",
		// Nodes that tests create send no heartbeats. By default, their pods become unready after 50 s.
		"--node-monitor-grace-period=24h",
	}
}

func (c *Cluster) schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + c.path(kubeconfigOf(Scheduler)),
		"--leader-elect=false",
		"--authentication-skip-lookup",
		"--secure-port=0",
	}
}
