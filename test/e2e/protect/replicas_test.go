package protect

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/test/lab"
)

const (
	webhookHost = lab.WebhookHost
	// drain is long enough for the probe to notice and for the API server to hear
	// of it, on a machine that is busy too.
	drain = "5s"
	// caSettle is how long replicas wait for the API server to hear of a new CA.
	caSettle = 1500 * time.Millisecond
)

// replicas are what a Deployment runs behind the Service.
type replicas struct {
	*env

	rules   string
	service *lab.Service
}

// behindTheService has a rule called name, whose owner may edit its Secret
// "shared" and whose mallory may not. Nothing runs yet.
func (e *env) behindTheService(name string) (r *replicas, owner, mallory kubernetes.Interface) {
	e.Helper()
	e.Namespace(name + "-src")
	for _, secret := range []string{"shared", "other"} {
		e.Secret(name+"-src", secret, map[string]string{"k": "v"})
	}
	e.ClusterRole(name+"-editor", lab.SecretsEditor())
	for _, user := range []string{name + "-owner", name + "-mallory"} {
		e.Grant("", name+"-editor", user)
	}
	return newReplicas(e, lab.Rule(name, "protect: {allow: {clusterRoles: [], users: ["+name+"-owner]}}")), e.Client(name + "-owner"), e.Client(name + "-mallory")
}

// newReplicas runs none yet.
func newReplicas(e *env, rules string) *replicas {
	e.Helper()
	e.Cleanup(func() { // once all replicas have stopped: its Service is gone, and the next test must not meet it
		webhooks := e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		require.NoError(e, lab.IgnoreGone(webhooks.Delete(context.WithoutCancel(e.Context()), protectspec.ConfigurationName, metav1.DeleteOptions{})))
	})
	service, err := lab.NewService(e.Context(), e.Admin, func(err error) { e.Log(err) })
	require.NoError(e, err)
	e.Cleanup(func() { require.NoError(e, service.Close(context.WithoutCancel(e.Context()))) })
	return &replicas{env: e, rules: rules, service: service}
}

// launch starts one more, which gets requests as soon as it is ready.
func (r *replicas) launch(args ...string) *lab.Headwater {
	r.Helper()
	address, err := r.service.FreeAddress()
	require.NoError(r, err)
	o := r.Options(r.rules)
	o.Webhook, o.Service = address, true
	o.Args = append([]string{"--webhook-drain", drain, "--webhook-ca-settle", caSettle.String()}, args...)
	one := r.Launch(o)
	r.service.Add(one)
	return one
}

// ready waits until all are ready and known to be.
func (r *replicas) ready() {
	r.Helper()
	require.NoError(r, r.service.Ready(r.Context()))
}

func (r *replicas) all() []*lab.Headwater { return r.service.All() }

// stop ends one as Kubernetes would.
func (r *replicas) stop(one *lab.Headwater) {
	one.Stop()
	r.service.Remove(one)
}
