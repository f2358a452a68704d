package sync

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/test/lab"
)

func TestInvalidContentReachesNobody(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("valid-src", "valid-a", "valid-b")
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
	e.Stays(func(context.Context) error { return lab.SameData(e.Get("valid-a", "shared"), valid("info")) })
	require.Nil(t, e.Get("valid-late", "shared"))
	e.HasMetric(h, 3, "headwater_sync_clones", map[string]string{"rule": "valid", "state": "held", "reason": "Invalid"})

	write("level: 2 #")
	e.HasNote("valid-src", "shared", "Invalid", `the source's key "settings.yaml" does not match its schema at /level: type, must be string; its clones stay as they are`)
	write("level: debug #")
	for _, name := range []string{"valid-a", "valid-b", "valid-late"} {
		e.HasClone(name, "shared", valid("debug"))
	}
}
