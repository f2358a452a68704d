package sync

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/survey"
	"github.com/headwater-k8s/headwater/test/lab"
)

var (
	secretsOf    = corev1.SchemeGroupVersion.WithResource("secrets")
	configMapsOf = corev1.SchemeGroupVersion.WithResource("configmaps")
)

// backup is a file of `kubectl get -o yaml`.
type backup struct {
	of    schema.GroupVersionResource
	items []unstructured.Unstructured
}

func (e *env) dynamic() dynamic.Interface {
	e.Helper()
	client, err := dynamic.NewForConfig(e.Config("admin", "system:masters"))
	require.NoError(e, err)
	return client
}

// saved is what a person gets of Headwater's namespace; empty options are everything.
func (e *env) saved(of schema.GroupVersionResource, options metav1.ListOptions) backup {
	e.Helper()
	all, err := e.dynamic().Resource(of).Namespace(lab.Namespace).List(e.Context(), options)
	require.NoError(e, err)
	return backup{of, all.Items}
}

// restore is `kubectl create`, which sends everything but the version.
func (e *env) restore(saved backup) {
	e.Helper()
	for _, item := range saved.items {
		require.NoError(e, e.create(saved.of, item), item.GetName())
	}
}

func (e *env) create(of schema.GroupVersionResource, item unstructured.Unstructured) error {
	created := item.DeepCopy()
	created.SetResourceVersion("")
	_, err := e.dynamic().Resource(of).Namespace(item.GetNamespace()).Create(e.Context(), created, metav1.CreateOptions{})
	return err
}

// overwrite is what a tool does that restores also what exists. Nobody can overwrite the
// content of a revision, which is immutable.
func (e *env) overwrite(saved backup) {
	e.Helper()
	for _, item := range saved.items {
		api := e.dynamic().Resource(saved.of).Namespace(item.GetNamespace())
		e.Eventually(func(ctx context.Context) error {
			err := e.create(saved.of, item)
			if !apierrors.IsAlreadyExists(err) || item.GetLabels()[mark.Revision] != "" {
				return ignoreExists(err)
			}
			live, err := api.Get(ctx, item.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			changed := item.DeepCopy()
			changed.SetUID(live.GetUID())
			changed.SetResourceVersion(live.GetResourceVersion())
			_, err = api.Update(ctx, changed, metav1.UpdateOptions{})
			return err
		})
	}
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// reinstall deletes Headwater's namespace and installs Headwater again, without starting it.
func (e *env) reinstall() {
	e.Helper()
	namespaces := e.Admin.CoreV1().Namespaces()
	require.NoError(e, namespaces.Delete(e.Context(), lab.Namespace, metav1.DeleteOptions{}))
	e.Eventually(func(ctx context.Context) error {
		_, err := namespaces.Get(ctx, lab.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("the namespace is still being deleted"))
	})
	require.NoError(e, lab.Install(e.Context(), e.Cluster.Config(), filepath.Join(e.Dir, "rbac.yaml")))
}

// deploy/BACKUP.md, and the rotation of the digest key in deploy/RUNBOOKS.md.
func TestHeadwaterGoesOnWithARestoredBackup(t *testing.T) {
	e := ownCluster(t)
	f := newStagedIn(e, "saved", waitsForApproval, "")
	rules := f.rules + lab.ReloadRule("ran")
	consumers := e.Stage("ran")
	h := e.StartAlone(rules)
	f.delivered(1, "v")
	e.Cloned("ran", "used", "1")
	e.Deployment(consumers, "changed", lab.ByEnv("shared", "used"), nil)
	e.Deployment(consumers, "unchanged", lab.ByEnv("shared", "unused"), nil)
	before := e.Adopted(h, consumers, "changed", "unchanged")
	f.edit("w")
	f.have("w", "w", "v", "v")
	f.HasNote("saved-src", "shared", "AwaitingApproval", "")
	h.Stop()

	key := e.saved(secretsOf, metav1.ListOptions{FieldSelector: "metadata.name=" + digestkey.SecretName})
	histories := []backup{e.saved(secretsOf, metav1.ListOptions{LabelSelector: mark.Revision}), e.saved(configMapsOf, metav1.ListOptions{LabelSelector: mark.Revision})}
	require.Len(t, key.items, 1)
	require.Len(t, histories[0].items, 2)
	e.reinstall()
	e.Change("ran", "used", "2")
	e.restore(key)
	for _, one := range histories {
		e.restore(one)
	}

	h = e.StartAlone(rules)
	e.Restarted(consumers, before, "Deployment/changed")
	f.have("w", "w", "v", "v")
	f.verdict(1, revisions.Delivered)
	f.verdict(2, revisions.Delivering)
	require.NotContains(t, f.heldBy(f.name(2)), "w")
	f.steer(f.approver(), "promote")
	f.delivered(2, "w")
	e.Settled(h)

	t.Run("the digest key is rotated", func(*testing.T) {
		before, id := e.Stamps(consumers), f.Revision("saved", "2").Labels[mark.DigestKey]
		require.NotEmpty(t, id)
		h.Stop()
		require.NoError(t, e.Admin.CoreV1().Secrets(lab.Namespace).Delete(t.Context(), digestkey.SecretName, metav1.DeleteOptions{}))
		h = e.StartAlone(rules)
		f.Eventually(func(context.Context) error {
			recorded := f.Revision("saved", "3")
			return lab.ErrorIf(recorded == nil || recorded.Labels[mark.DigestKey] == id, "the content is not recorded with the new key")
		})
		f.verdict(3, revisions.Delivered)
		e.Restarted(consumers, before)
		f.have("w", "w", "w", "w")
		ignored := metav1.ListOptions{LabelSelector: mark.DigestKey + "=" + id}
		require.NoError(t, e.Admin.CoreV1().Secrets(lab.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, ignored))
		f.edit("x")
		f.have("x", "x", "w", "w")
		f.verdict(4, revisions.Delivering)
		e.Change("ran", "used", "3")
		e.Restarted(consumers, before, "Deployment/changed")
	})
}

// otherCluster returns what an installation with other content, and two more rules, leaves in
// Headwater's namespace, and its RuleStatuses. Its digest key is not among it: every tool
// refuses to overwrite one, unless a person says so.
func (f *fleet) otherCluster(rules string) (left []backup, statuses backup) {
	f.Helper()
	h := f.StartAlone(rules + lab.OneRule("elsewhere") + lab.OneRule("abroad"))
	user := f.approver()
	for number, value := range []string{"v", "w", "x"} {
		f.edit(value)
		f.SetKey("rolled-src", "shared", "k", value)
		f.have(value, value)
		f.HasClone("rolled-a", "shared", map[string]string{"k": value})
		f.Verdict("rolled", fmt.Sprint(number+1), revisions.Delivered)
		if value == "w" {
			f.HasNote("moved-src", "shared", "AwaitingApproval", "revision 2")
			f.steer(user, "promote")
			f.delivered(2, "w")
		}
	}
	f.verdict(3, revisions.Delivering)
	f.Reported("rolled")
	_, stderr, exit := f.Command(user, "rollback", "rolled", "--to", "2", "--yes")
	require.Zero(f, exit, stderr)
	f.HasClone("rolled-a", "shared", map[string]string{"k": "w"})
	f.Settled(h)
	h.Stop()
	all, err := f.dynamic().Resource(rulestatus.GVR).List(f.Context(), metav1.ListOptions{})
	require.NoError(f, err)
	withoutKey := metav1.ListOptions{FieldSelector: "metadata.name!=" + digestkey.SecretName}
	return []backup{f.saved(secretsOf, withoutKey), f.saved(configMapsOf, metav1.ListOptions{})}, backup{rulestatus.GVR, all.Items}
}

// deploy/BACKUP.md: also if a tool overwrites what this cluster has.
func TestRestoredObjectsOfAnotherClusterDoNoHarm(t *testing.T) {
	e := ownCluster(t)
	f := newStagedIn(e, "moved", waitsForApproval, "")
	require.NoError(t, lab.Apply(t.Context(), e.Cluster.Config(), filepath.Join(lab.Root(t), "deploy", "crd.yaml")))
	e.Namespaces("rolled-src", "rolled-a", "elsewhere-src", "elsewhere-a")
	for _, source := range []string{"rolled-src", "elsewhere-src"} {
		e.Secret(source, "shared", map[string]string{"k": "v"})
	}
	rules := f.rules + lab.Rule("rolled", "sync: {namespaces: {include: [rolled-a]}, history: 3}")
	left, statuses := f.otherCluster(rules)

	require.NoError(t, e.Admin.RbacV1().ClusterRoles().Delete(t.Context(), kube.OwnerName, metav1.DeleteOptions{}))
	e.reinstall()
	e = &env{lab.On(t, e.Cluster)} // whose file says nothing of the other rules
	f.env = e
	for _, prefix := range []string{"moved", "rolled"} {
		e.SetKey(prefix+"-src", "shared", "k", "here")
	}
	for _, namespace := range []string{f.name(0), f.name(1), f.name(2), f.name(3), "rolled-a", "elsewhere-a"} {
		require.NoError(t, e.Admin.CoreV1().Secrets(namespace).Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	}
	h := e.StartAlone(rules)
	f.delivered(1, "here")
	e.HasClone("rolled-a", "shared", map[string]string{"k": "here"})
	e.Verdict("rolled", "1", revisions.Delivered)

	asItWas := func(context.Context) error {
		for _, namespace := range []string{f.name(0), f.name(1), f.name(2), f.name(3), "rolled-a"} {
			if err := lab.SameData(e.Get(namespace, "shared"), map[string]string{"k": "here"}); err != nil {
				return fmt.Errorf("%s: %w", namespace, err)
			}
		}
		return nil
	}
	for range 2 { // while Headwater runs, and while it does not
		for _, one := range append(left, statuses) {
			e.overwrite(one)
		}
		e.Stays(asItWas)
		h.Stop()
	}
	h = e.StartAlone(rules)
	e.Settled(h)
	e.Stays(asItWas)
	log, err := h.Log()
	require.NoError(t, err)
	require.NotContains(t, log, "the configuration is held")
	require.Contains(t, log, "a revision was recorded with another digest key")
	e.Eventually(func(ctx context.Context) error {
		_, err := e.dynamic().Resource(rulestatus.GVR).Get(ctx, "elsewhere", metav1.GetOptions{})
		return lab.ErrorIf(!apierrors.IsNotFound(err), "the RuleStatus of another cluster's rule: %v", err)
	})
	e.Eventually(func(context.Context) error {
		is := e.Get(lab.Namespace, config.LastValidName)
		return lab.ErrorIf(is == nil || strings.Contains(string(is.Data[config.ConfigMapKey]), "name: elsewhere"), "the configuration of another cluster")
	})

	f.edit("next")
	f.have("next", "next", "here", "here")
	f.verdict(4, revisions.Delivering)
	require.NoError(t, survey.ChangeRequests(t.Context(), e.Admin, lab.Namespace, "moved", func(stored survey.Requests) {
		stored["Secret/moved-src/shared"] = delivery.Request{Verb: delivery.Promote, Revision: 4, At: time.Now().Add(-2 * time.Hour)}
	}))
	e.HasNote("moved-src", "shared", "DeliverySteered", "older than an hour")
	f.have("next", "next", "here", "here")
	for _, role := range requestConfigMaps {
		require.NoError(t, lab.BindIn(t.Context(), e.Admin, lab.Namespace, role, "moved-approver"))
	}
	f.steer("moved-approver", "promote")
	f.have("next", "next", "next", "next")
}

// deploy/RUNBOOKS.md.
func TestARecreatedServiceAccountEndsStolenTokens(t *testing.T) {
	e := ownCluster(t)
	reader := func() func(context.Context) error {
		answer, err := e.Admin.CoreV1().ServiceAccounts(lab.Namespace).CreateToken(t.Context(), "headwater", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		require.NoError(t, err)
		as := e.Cluster.Config()
		as.BearerToken = answer.Status.Token
		client, err := kubernetes.NewForConfig(as)
		require.NoError(t, err)
		return func(ctx context.Context) error {
			_, err := client.CoreV1().Secrets(lab.Namespace).List(ctx, metav1.ListOptions{})
			return err
		}
	}
	stolen := reader()
	require.NoError(t, stolen(t.Context()))
	require.NoError(t, e.Admin.CoreV1().ServiceAccounts(lab.Namespace).Delete(t.Context(), "headwater", metav1.DeleteOptions{}))
	require.NoError(t, lab.Apply(t.Context(), e.Cluster.Config(), filepath.Join(e.Dir, "rbac.yaml")))
	e.Eventually(func(ctx context.Context) error {
		err := stolen(ctx)
		return lab.ErrorIf(!apierrors.IsUnauthorized(err), "the stolen token: %v", err)
	})
	require.NoError(t, reader()(t.Context()))
}
