//go:build node

package e2e

import (
	"context"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/node"
)

const (
	platform = "platform"
	team     = "team"
)

// sharedRule clones a Secret to the team and reloads it so.
func sharedRule(reload string) string {
	return `
- name: shared
  source: {kind: Secret, namespace: platform, name: shared}
  sync: {namespaces: {include: [team]}}
  reload: ` + reload + "\n"
}

func file(path string) func(*node.Container) (string, error) {
	return func(c *node.Container) (string, error) { return c.File(path) }
}

func variable(name string) func(*node.Container) (string, error) {
	return func(c *node.Container) (string, error) { return c.Env(name) }
}

// consumers are the ways to consume a Secret: what the container of each reads,
// and whether a change takes a new one.
var consumers = map[string]struct {
	spec      corev1.PodSpec
	look      func(*node.Container) (string, error)
	restarted bool
}{
	"by-volume":    {spec: lab.ByVolume("shared"), look: file("/shared/password")},
	"by-projected": {spec: byProjected(), look: file("/shared/password")},
	"by-subpath":   {spec: bySubPath(), look: file("/password"), restarted: true},
	"by-env":       {spec: lab.ByEnv("shared", "password"), look: variable("VALUE"), restarted: true},
	"by-envfrom":   {spec: lab.ByEnvFrom("shared"), look: variable("password"), restarted: true},
}

func byProjected() corev1.PodSpec {
	spec := lab.ByVolume("shared")
	spec.Volumes[0].VolumeSource = corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "shared"},
		}}},
	}}
	return spec
}

func bySubPath() corev1.PodSpec {
	spec := lab.ByVolume("shared")
	spec.Containers[0].VolumeMounts[0].MountPath, spec.Containers[0].VolumeMounts[0].SubPath = "/password", "password"
	return spec
}

func TestEachConsumerReadsTheChangeInItsOwnWay(t *testing.T) {
	e := newEnv(t)
	e.namespace(platform)
	e.namespace(team)
	e.Secret(platform, "shared", map[string]string{"password": "first"})
	h := e.Start(sharedRule("{}"))
	for name, consumer := range consumers {
		e.deploy(team, name, consumer.spec)
	}
	before, owners := map[string]*node.Container{}, map[string]*appsv1.Deployment{}
	for name, consumer := range consumers {
		before[name] = e.reads(team, name, "first", consumer.look)
	}
	e.SettledFor(h, settle)
	for name := range consumers {
		owners[name] = e.available(name)
	}

	e.Edit(platform, "shared", func(s *corev1.Secret) { s.Data["password"] = []byte("second") })
	for name, consumer := range consumers {
		after := e.reads(team, name, "second", consumer.look)
		owner := e.available(name)
		if consumer.restarted {
			require.NotEqual(t, before[name].ID, after.ID, "%s runs a new container", name)
			require.Empty(t, e.refreshes(name), "%s is not refreshed as well", name)
			continue
		}
		require.Equal(t, before[name].ID, after.ID, "%s runs the same container", name)
		require.NotEmpty(t, e.refreshes(name), "%s was refreshed", name)
		require.Equal(t, owners[name].ResourceVersion, owner.ResourceVersion, "the owner of %s was not touched", name)
	}
}

// available is a Deployment whose rollout is over.
func (e *env) available(name string) (found *appsv1.Deployment) {
	e.Helper()
	e.Eventually(func(ctx context.Context) (err error) {
		if found, err = e.Admin.AppsV1().Deployments(team).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return lab.RolledOut(found)
	})
	return found
}

// refreshes are what the pods of a Deployment were refreshed for.
func (e *env) refreshes(name string) (all []string) {
	e.Helper()
	pods := lab.List(e, e.Admin.CoreV1().Pods(team).List, metav1.ListOptions{LabelSelector: "app=" + name})
	for _, pod := range pods.Items {
		if refresh := pod.Annotations[mark.RefreshedFor]; refresh != "" {
			all = append(all, refresh)
		}
	}
	return all
}

// server answers a POST, and keeps what its file says at that moment.
const server = `
mkdir -p /tmp/www/cgi-bin
cat >/tmp/www/cgi-bin/reload <<'END'
#!/bin/sh
echo "$REQUEST_METHOD $(cat /shared/password)" >>/tmp/told
printf 'Status: 204 No Content\r\n\r\n'
END
chmod +x /tmp/www/cgi-bin/reload
exec httpd -f -p "$0" -h /tmp/www
`

func TestAnApplicationIsToldWhenItsFileIsNew(t *testing.T) {
	e := newEnv(t)
	e.namespace(platform)
	e.namespace(team)
	e.Secret(platform, "shared", map[string]string{"password": "first"})
	address, err := lab.FreeAddress()
	require.NoError(t, err)
	_, port, _ := strings.Cut(address, ":")
	h := e.Start(sharedRule("{then: {httpPost: {port: " + port + ", path: /cgi-bin/reload}}}"))
	spec := lab.ByVolume("shared")
	spec.Containers[0].Command = []string{"sh", "-c", server, port}
	e.deploy(team, "told", spec)
	before := e.reads(team, "told", "first", file("/shared/password"))
	// A pod that is no older than what it mounts is refreshed, and told, for that.
	e.SettledFor(h, settle)
	told, err := before.File("/tmp/told")
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}

	e.Edit(platform, "shared", func(s *corev1.Secret) { s.Data["password"] = []byte("second") })
	after := e.reads(team, "told", told+"POST second\n", file("/tmp/told"))
	require.Equal(t, before.ID, after.ID, "it runs on")
}
