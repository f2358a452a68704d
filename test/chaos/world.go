package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/test/lab"
)

const (
	sourceNamespace = "chaos-src"
	// homes are namespaces that stay, and hold consumers; crowds come and go.
	home, homes, crowd = "chaos-home-", 5, "chaos-crowd-"

	shared, flags, extra = "shared", "flags", "extra"

	owner    = "chaos-owner"
	stranger = "chaos-stranger"
	mallory  = "chaos-mallory"

	// requestTimeout bounds a request while there may be nobody to answer it.
	requestTimeout = 5 * time.Second
)

const configFile = `rules:
- name: shared
  source: {kind: Secret, namespace: chaos-src, name: shared}
  sync: {namespaces: {include: ["chaos-home-*", "chaos-crowd-*"]}}
  protect: {allow: {clusterRoles: [], users: [chaos-owner]}}
  reload: {debounce: 200ms, minInterval: 0s, maxRestartsPerHour: 0}
- name: flags
  source: {kind: ConfigMap, namespace: chaos-src, name: flags}
  sync: {namespaces: {include: ["chaos-home-*", "chaos-crowd-*"]}}
` + stagedRule

const extraRule = `- name: extra
  source: {kind: ConfigMap, namespace: chaos-src, name: extra}
  sync: {namespaces: {include: ["chaos-home-*", "chaos-crowd-*"]}, onRuleRemoved: Delete}
`

const configEnd = `reload: {maxConcurrentRollouts: 0, maxConcurrentRolloutsPerNamespace: 0}
safety: {maxDeleteFraction: 1}
`

// world is what people and their controllers do, and what must be there for it.
type world struct {
	admin, owner, stranger, mallory kubernetes.Interface

	rollouts *rollouts
	stages   *stages

	site   *lab.Site
	crowd  int
	rand   *rand.Rand
	report *report

	// edits counts up, so that every edit makes data what they never were.
	edits     int
	withExtra bool
	// attempts are edits of a key of the shared Secret, made or not; scribbled
	// are those of its clone in a namespace.
	attempts, scribbled map[string]int
}

func newWorld(ctx context.Context, site *lab.Site, o options, r *report) (*world, error) {
	c := site.Cluster
	w := &world{
		site: site, crowd: o.namespaces,
		rand: rand.New(rand.NewPCG(o.seed, 2)), report: r, attempts: map[string]int{}, scribbled: map[string]int{},
	}
	for to, config := range map[*kubernetes.Interface]*rest.Config{
		&w.admin: c.Config(), &w.owner: c.ConfigFor(owner), &w.stranger: c.ConfigFor(stranger), &w.mallory: c.ConfigFor(mallory),
	} {
		config.QPS, config.Burst, config.Timeout = -1, 0, requestTimeout
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		*to = client
	}
	if err := w.configure(); err != nil {
		return nil, err
	}
	var err error
	if w.rollouts, err = newRollouts(ctx, c, w.admin); err != nil {
		return nil, err
	}
	w.stages = newStages(c, w.rollouts.next, r)
	return w, w.populate(ctx)
}

func (w *world) configure() error {
	content := configFile
	if w.withExtra {
		content += extraRule
	}
	return lab.WriteConfig(w.site.Run.Config, content+configEnd)
}

func (w *world) populate(ctx context.Context) error {
	if err := w.permit(ctx); err != nil {
		return err
	}
	for i := range homes {
		if err := w.site.Namespaces(ctx, fmt.Sprint(home, i)); err != nil {
			return err
		}
	}
	if err := w.site.Namespaces(ctx, sourceNamespace); err != nil {
		return err
	}
	if _, err := w.admin.CoreV1().Secrets(sourceNamespace).Create(ctx,
		lab.Secret(sourceNamespace, shared, map[string]string{"k": "0", "other": "0"}), metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, name := range []string{flags, extra, staged} {
		if _, err := w.admin.CoreV1().ConfigMaps(sourceNamespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": "0"},
		}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return w.deploy(ctx)
}

// permit has everybody be able to write Secrets and ConfigMaps, as far as RBAC goes.
func (w *world) permit(ctx context.Context) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "chaos-editor"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"*"}},
	}}
	if _, err := w.admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create ClusterRole: %w", err)
	}
	for _, user := range []string{owner, stranger, mallory} {
		if err := lab.Bind(ctx, w.admin, role.Name, user); err != nil {
			return err
		}
	}
	return nil
}

var rbacForbids = regexp.MustCompile(`User "[^"]+" cannot [a-z]+ resource`)

// unavailable reports whether err says that nobody could answer, and not what
// the answer was. An API server that has just started may not know of anybody's
// permissions yet.
func unavailable(err error) bool {
	if apierrors.IsForbidden(err) && rbacForbids.MatchString(err.Error()) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	code := status.Status().Code
	return code >= 500 || code == 429
}
