package sync

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/sync/survey"
	"github.com/headwater-k8s/headwater/test/e2e"
)

func TestInvalidContentReachesNobody(t *testing.T) {
	e := newEnv(t)
	for _, name := range []string{"valid-src", "valid-a", "valid-b"} {
		e.Namespace(name)
	}
	// Each document ends in a comment: the tail that values get here belongs to it.
	valid := func(level string) map[string]string {
		return map[string]string{"settings.yaml": "level: " + level + " #"}
	}
	write := func(text string) {
		e.Edit("valid-src", "shared", func(s *corev1.Secret) { s.Data = map[string][]byte{"settings.yaml": []byte(text)} })
	}
	e.Secret("valid-src", "shared", valid("info"))
	h := e.Start(`
- name: valid
  source: {kind: Secret, namespace: valid-src, name: shared}
  validate:
  - {key: settings.yaml, is: YAML}
  - {key: settings.yaml, schema: {required: [level], properties: {level: {type: string}}}}
  sync: {namespaces: {include: ["valid-*"]}}
`)
	e.HasClone("valid-a", "shared", valid("info"))
	write("level: info\nlevel: debug #")
	e.HasNote("valid-src", "shared", "Invalid", `the source's key "settings.yaml" has the same key twice in one mapping (line 2); its clones stay as they are`)
	e.HasMetric(h, 2, "headwater_sync_clones", map[string]string{"rule": "valid", "state": "held", "reason": "Invalid"})
	e.Namespace("valid-late")
	e.Holds(e2e.Settle, func(context.Context) error { return e2e.SameData(e.Get("valid-a", "shared"), valid("info")) })
	require.Nil(t, e.Get("valid-late", "shared"))

	var status inspect.Status
	e.Status(e.Viewer("valid-viewer"), &status, "--config", e.Dir+"/headwater.yaml")
	for _, rule := range status.Rules {
		if rule.Name == "valid" {
			require.Equal(t, map[survey.Status]int{survey.Held: 3}, rule.Clones)
		}
	}

	write("level: 2 #")
	e.HasNote("valid-src", "shared", "Invalid", `the source's key "settings.yaml" does not match its schema at /level: type, must be string; its clones stay as they are`)
	write("level: debug #")
	for _, name := range []string{"valid-a", "valid-b", "valid-late"} {
		e.HasClone(name, "shared", valid("debug"))
	}
}
