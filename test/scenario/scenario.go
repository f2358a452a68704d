// Package scenario plays Headwater's main job on a real control plane: sync,
// protect and reload of one Secret, delivery of a ConfigMap in stages, a crash and a
// restart. It stops at the first thing that is not as promised.
package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/node"
)

// The cast.
const (
	platform      = "platform"
	teamA         = "team-a"
	teamB         = "team-b"
	sourceName    = "blogsecret"
	played        = "stage" // the node, when there is no real one
	administrator = "admin"
	editor        = "jane" // may edit Secrets in platform, is not exempt
	operator      = "olga" // holds cluster-admin through a ClusterRoleBinding
)

// The workloads, all in team-a.
const (
	envWorkload     = "reads-env"
	envFromWorkload = "reads-envfrom"
	volumeWorkload  = "mounts-volume"
	idleWorkload    = "uses-nothing"
	barePod         = "bare-pod"
)

// Options say what to play with.
type Options struct {
	Cluster *cluster.Cluster
	// Binary is the built headwater, Config its configuration file, RBAC the
	// manifest with its identity and permissions.
	Binary, Config, RBAC string
	// Node is where pods run; without one they only seem to.
	Node *node.Node
	// Client is how the cast acts, for who wants to look over its shoulder; nil:
	// with nothing in between.
	Client func(user string, groups ...string) kubernetes.Interface
}

func (o Options) client(user string, groups ...string) (kubernetes.Interface, error) {
	if o.Client != nil {
		return o.Client(user, groups...), nil
	}
	client, err := kubernetes.NewForConfig(o.Cluster.ConfigFor(user, groups...))
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", user, err)
	}
	return client, nil
}

// Story is one performance. Stop ends its Headwater.
type Story struct {
	options    Options
	tell       *Narrator
	admin      kubernetes.Interface
	editor     kubernetes.Interface
	operator   kubernetes.Interface
	kubeconfig string
	config     string // a copy, to which a chapter adds a rule
	webhook    string
	headwater  *lab.Headwater
	runs       int
}

// New prepares a story on a cluster that holds nothing yet.
func New(options Options, tell *Narrator) (*Story, error) {
	s := &Story{options: options, tell: tell, kubeconfig: options.Cluster.Dir() + "/headwater.kubeconfig"}
	var err error
	if s.admin, err = options.client(administrator, "system:masters"); err != nil {
		return nil, err
	}
	if s.editor, err = options.client(editor); err != nil {
		return nil, err
	}
	if s.operator, err = options.client(operator); err != nil {
		return nil, err
	}
	if err := options.Cluster.KubeconfigFor(s.kubeconfig, lab.ServiceAccount); err != nil {
		return nil, err
	}
	if err := s.copyConfig(); err != nil {
		return nil, err
	}
	if s.webhook, err = lab.FreeAddress(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Story) copyConfig() error {
	config, err := os.ReadFile(s.options.Config)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	s.config = filepath.Join(s.options.Cluster.Dir(), "headwater.yaml")
	if err := os.WriteFile(s.config, config, 0o600); err != nil {
		return fmt.Errorf("copy the configuration: %w", err)
	}
	return nil
}

// Play plays all chapters.
func (s *Story) Play(ctx context.Context) error {
	for _, chapter := range []struct {
		title string
		play  func(context.Context) error
	}{
		{"The stage", s.setUp},
		{"Sync: one source, every namespace", s.sync},
		{"Sync: clones stay right", s.heal},
		{"Protect: only the right people touch the source", s.protect},
		{"Reload: each consumer in the cheapest way that works", s.spread},
		{"Delivery: a bad value stops at the canary", s.deliver},
		{"Trust: a crash loses nothing, a restart does nothing", s.crash},
	} {
		s.tell.Chapter(chapter.title)
		if err := chapter.play(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends Headwater, if it runs.
func (s *Story) Stop() {
	if s.headwater != nil {
		s.headwater.Stop()
	}
}

// Log is the path of the log of the Headwater that ran last.
func (s *Story) Log() string {
	if s.headwater == nil {
		return "(not started)"
	}
	return s.headwater.LogFile
}

// start starts another Headwater and waits until it is ready.
func (s *Story) start(ctx context.Context) error {
	s.runs++
	var err error
	s.headwater, err = lab.Start(lab.Options{
		Binary: s.options.Binary, Config: s.config, Kubeconfig: s.kubeconfig,
		Webhook: s.webhook, Dir: s.options.Cluster.Dir(), Name: fmt.Sprintf("headwater-%d", s.runs),
	})
	if err != nil {
		return err
	}
	return s.headwater.Ready(ctx)
}

// targets are the namespaces that must have a clone: all but kube-*, the
// source's and Headwater's own.
func (s *Story) targets(ctx context.Context) ([]string, error) {
	list, err := s.admin.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	var names []string
	for _, namespace := range list.Items {
		excluded := strings.HasPrefix(namespace.Name, "kube-") || namespace.Name == platform || namespace.Name == lab.Namespace
		if !excluded {
			names = append(names, namespace.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// cloned returns nil when every target namespace holds a clone with this
// password. It reads them one by one: a list would wait up to 100 ms for the
// API server's cache, which is more than Headwater takes.
func (s *Story) cloned(ctx context.Context, targets []string, password string) error {
	for _, namespace := range targets {
		clone, err := s.clone(ctx, namespace)
		if err != nil {
			return err
		}
		if string(clone.Data["password"]) != password {
			return fmt.Errorf("the clone in %s is not current", namespace)
		}
	}
	return nil
}

// nowhereElse returns nil when only targets, and the source's namespace, hold
// an object of that name.
func (s *Story) nowhereElse(ctx context.Context, targets []string) error {
	secrets, err := s.admin.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + sourceName})
	if err != nil {
		return fmt.Errorf("list secrets: %w", err)
	}
	for _, secret := range secrets.Items {
		if secret.Namespace != platform && !slices.Contains(targets, secret.Namespace) {
			return fmt.Errorf("there is one in %s", secret.Namespace)
		}
	}
	return nil
}

func (s *Story) clone(ctx context.Context, namespace string) (*corev1.Secret, error) {
	return s.admin.CoreV1().Secrets(namespace).Get(ctx, sourceName, metav1.GetOptions{})
}

// untilCloned waits until every target namespace is current.
func (s *Story) untilCloned(ctx context.Context, password string) error {
	targets, err := s.targets(ctx)
	if err != nil {
		return err
	}
	return s.untilClonedTo(targets, password)(ctx)
}

func (s *Story) untilClonedTo(targets []string, password string) func(context.Context) error {
	return eventually(func(ctx context.Context) error { return s.cloned(ctx, targets, password) })
}

// eventually waits for condition, as lab.Eventually does.
func eventually(condition func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return lab.Eventually(ctx, condition) }
}
