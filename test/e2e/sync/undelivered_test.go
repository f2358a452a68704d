package sync

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/sync/survey"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// keysWith returns the keys of all objects in etcd, deleted ones too, that contain
// value in some form.
func (f *fleet) keysWith(value string) map[string]bool {
	f.Helper()
	forms := []string{value, base64.StdEncoding.EncodeToString([]byte(value)), hex.EncodeToString([]byte(value))}
	keys := map[string]bool{}
	_, err := f.Cluster.Writes(f.Context(), 1, func(write cluster.Write) {
		for _, form := range forms {
			if bytes.Contains(write.Value, []byte(form)) {
				keys[strings.TrimPrefix(write.Key, "/registry/")] = true
			}
		}
	})
	require.NoError(f, err)
	return keys
}

// Invariant D7: the values of a Secret are in Secrets alone, and in revisions only of
// rules that keep a history.
func TestTheValuesOfASecretAreInSecretsAndRevisionsAlone(t *testing.T) {
	e := newEnv(t)
	e.Plain() // the values are no more than what is written here
	kept, plain := newFleet(e, "kept7", 2, "history: 3"), newFleet(e, "plain7", 2, "")
	user, viewer := kept.approver(), e.Viewer("kept7-viewer")
	h := e.StartAlone(kept.rules + plain.rules)
	kept.verdict(1, revisions.Delivered)
	for round := range 2 {
		value := func(f *fleet) string { return fmt.Sprintf("only in Secrets: %s, %d", f.prefix, round) }
		for _, f := range []*fleet{kept, plain} {
			f.edit(value(f))
			f.allHave(value(f))
		}
		kept.verdict(round+2, revisions.Delivered)
		var reads any
		e.Reported(kept.prefix)
		e.Answers(user, &reads, "history", kept.prefix)
		e.Answers(viewer, &reads, "diff", kept.prefix, "1", fmt.Sprint(round+2), "--config", kept.file())
		e.Settled(h)
		for _, f := range []*fleet{kept, plain} {
			want := map[string]bool{
				"secrets/" + f.prefix + "-src/shared": true, "secrets/" + f.name(0) + "/shared": true, "secrets/" + f.name(1) + "/shared": true,
			}
			for _, one := range f.revisions() {
				if string(one.Data["k"]) == value(f) {
					want["secrets/"+lab.Namespace+"/"+one.Name] = true
				}
			}
			require.Len(t, want, map[*fleet]int{kept: 4, plain: 3}[f])
			require.Equal(t, want, f.keysWith(value(f)), f.prefix)
		}
	}
}

// Invariant D9: a rule without a delivery writes what it would without any, in as many
// requests, beside a rule whose delivery is under way.
func TestARuleWithoutADeliveryCostsNothingMore(t *testing.T) {
	e := newEnv(t)
	staged, plain := newStagedIn(e, "beside9", waitsForApproval, ""), newFleet(e, "plain9", 3, "")
	h := e.StartAlone(staged.rules + plain.rules)
	staged.verdict(1, revisions.Delivered)
	staged.edit("w")
	staged.verdict(2, revisions.Delivering)
	plain.allHave("v")
	e.Settled(h)

	before := e.Cluster.Mark()
	plain.edit("w")
	plain.allHave("w")
	e.Settled(h)
	requests, err := e.Cluster.Since(t.Context(), before, func(r cluster.Request) bool {
		return r.User == lab.ServiceAccount && r.Verb != "watch" && r.Resource != "" && r.Resource != "leases" && r.Resource != "events" && r.Resource != rulestatus.Resource
	})
	require.NoError(t, err)
	var did []string
	for _, r := range requests {
		if r.Verb == "get" && r.Name == survey.RemovalsName {
			continue // a leader looks it up once, some seconds after it began
		}
		did = append(did, r.Verb+" "+r.Resource+" "+r.Namespace+"/"+r.Name)
	}
	require.ElementsMatch(t, []string{"update secrets plain9-0/shared", "update secrets plain9-1/shared", "update secrets plain9-2/shared"}, did)

	source := e.Get("plain9-src", "shared")
	for i := range plain.n {
		clone := e.Get(plain.name(i), "shared")
		require.Equal(t, map[string]string{mark.CloneLabel: "true", mark.Rule: "plain9"}, clone.Labels)
		require.Equal(t, map[string]string{
			mark.Rule: "plain9", mark.Source: "Secret/plain9-src/shared", mark.SourceUID: string(source.UID), mark.SourceVersion: source.ResourceVersion,
			mark.Target: plain.name(i) + "/shared",
		}, clone.Annotations)
		require.Equal(t, map[string][]byte{"k": []byte("w")}, clone.Data)
		require.Equal(t, corev1.SecretTypeOpaque, clone.Type)
		require.Nil(t, clone.Immutable)
	}
	require.Empty(t, plain.revisions())
}
