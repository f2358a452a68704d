package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/test/cluster"
)

// Site is a cluster with the identity and the permissions of Headwater in it. Env is a test's.
type Site struct {
	Cluster *cluster.Cluster
	// Admin may do everything. It speaks protobuf, as Headwater does.
	Admin *kubernetes.Clientset
	// Run starts Headwater there, with the environment of the chart. The configuration is in a
	// folder that nothing else is written to, as a mounted ConfigMap is.
	Run Options
}

// NewSite applies the manifest rbac. The binary may be a relative path.
func NewSite(ctx context.Context, c *cluster.Cluster, binary, rbac string) (*Site, error) {
	s := &Site{Cluster: c, Run: Options{
		Dir: c.Dir(), Config: filepath.Join(c.Dir(), "config", "headwater.yaml"), Kubeconfig: filepath.Join(c.Dir(), "headwater.kubeconfig"),
		LogLevel: "info", Env: ChartEnv(),
	}}
	connection := c.Config()
	connection.ContentType = runtime.ContentTypeProtobuf
	var err error
	if s.Admin, err = kubernetes.NewForConfig(connection); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if s.Run.Binary, err = filepath.Abs(binary); err != nil {
		return nil, fmt.Errorf("find headwater: %w", err)
	}
	if s.Run.Webhook, err = FreeAddress(); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Dir(s.Run.Config), 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for the configuration: %w", err)
	}
	if err := c.KubeconfigFor(s.Run.Kubeconfig, ServiceAccount); err != nil {
		return nil, err
	}
	return s, Install(ctx, c.Config(), rbac)
}

// Install applies the manifest rbac, and waits until the API server, which hears of it a moment
// later, lets Headwater do what it grants: without that, Headwater ends.
func Install(ctx context.Context, config *rest.Config, rbac string) error {
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	err = Eventually(ctx, func(ctx context.Context) error { return notGoing(ctx, admin, Namespace) })
	if err == nil {
		err = Apply(ctx, config, rbac)
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "headwater"}
	if err == nil {
		err = Granted(ctx, admin, "", ref, ServiceAccount)
	}
	ref.Kind = "Role"
	if err == nil {
		err = Granted(ctx, admin, Namespace, ref, ServiceAccount)
	}
	return err
}

// Configure writes the configuration of another installation, to which the file adds its head:
// what was in force before is forgotten.
func (s *Site) Configure(ctx context.Context, rules string) error {
	if err := forgetConfiguration(ctx, s.Admin); err != nil {
		return err
	}
	return WriteConfig(s.Run.Config, rules)
}

// forgetConfiguration deletes the record of the configuration that was last in force.
func forgetConfiguration(ctx context.Context, admin kubernetes.Interface) error {
	err := admin.CoreV1().Secrets(Namespace).Delete(ctx, "headwater-last-valid", metav1.DeleteOptions{})
	return IgnoreGone(err)
}

// WriteConfig writes a configuration to file, to which it adds its head; see Replace.
func WriteConfig(file, rules string) error {
	return Replace(file, "apiVersion: headwater.dev/v1alpha1\nkind: Config\n"+removingAtOnce(rules))
}

// flow and block are a sync section on one line, and on several.
var (
	flow  = regexp.MustCompile(`\bsync: \{`)
	block = regexp.MustCompile(`(?m)^( *)sync:\n( +)`)
)

// removingAtOnce has rules remove at once what they do not want any more, unless one of them says
// after what time: most tests are about something else.
func removingAtOnce(rules string) string {
	if strings.Contains(rules, "removeAfter") {
		return rules
	}
	return block.ReplaceAllString(flow.ReplaceAllString(rules, "${0}removeAfter: 0s, "), "${1}sync:\n${2}removeAfter: 0s\n${2}")
}

// Replace replaces file at once, so that nobody reads half of it.
func Replace(file, text string) error {
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

// Namespaces creates those that are not there.
func (s *Site) Namespaces(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := EnsureNamespace(ctx, s.Admin, name, nil); err != nil {
			return err
		}
	}
	return nil
}

// Start starts Headwater, and waits until it is ready.
func (s *Site) Start(ctx context.Context) (*Headwater, error) {
	h, err := Start(s.Run)
	if err != nil {
		return nil, err
	}
	return h, h.Ready(ctx)
}

// Replica is one of several, with a way of its own to the API server, which can be cut and which
// tells in the audit log whose a request was.
type Replica struct {
	*Headwater

	// Address is where its requests come from.
	Name, Address string
	Proxy         *cluster.Proxy
	options       Options
}

// Replica starts one more, by what change makes of Run.
func (s *Site) Replica(name, address string, change func(*Options) error) (*Replica, error) {
	proxy, err := s.Cluster.ProxyFrom(address)
	if err != nil {
		return nil, err
	}
	r := &Replica{Name: name, Address: address, Proxy: proxy, options: s.Run}
	r.options.Name, r.options.Kubeconfig = name, filepath.Join(s.Run.Dir, name+".kubeconfig")
	err = proxy.KubeconfigFor(r.options.Kubeconfig, ServiceAccount)
	if err == nil {
		err = change(&r.options)
	}
	if err == nil {
		err = r.Restart()
	}
	if err != nil {
		proxy.Close()
		return nil, err
	}
	return r, nil
}

// Restart starts it again, with the same options.
func (r *Replica) Restart() (err error) {
	r.Headwater, err = Start(r.options)
	return err
}

// End stops it.
func (r *Replica) End() {
	r.Stop()
	r.Proxy.Close()
}
