package progress

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

func TestAFirstPassIsSummedUp(t *testing.T) {
	at := func(namespace string) object.Ref {
		return object.Ref{Kind: object.Secret, Namespace: namespace, Name: "s"}
	}
	now := time.Unix(100, 0)
	var pass FirstPass
	pass.Note(at("early"), plan.Decision{Action: plan.Create}, false, nil)
	_, ok := pass.End(now)
	require.False(t, ok, "not before it begins")

	pass.Begin(now)
	pass.Note(at("created"), plan.Decision{Action: plan.Create}, false, nil)
	pass.Note(at("created"), plan.Decision{Action: plan.Leave}, true, nil) // the cache has it now
	pass.Note(at("current"), plan.Decision{Action: plan.Leave}, true, nil)
	pass.Note(object.Ref{Kind: object.ConfigMap, Namespace: "current", Name: "c"}, plan.Decision{Action: plan.Update}, true, nil)
	pass.Note(at("empty"), plan.Decision{Action: plan.Leave}, false, nil)
	pass.Note(at("removed"), plan.Decision{Action: plan.Remove}, true, nil)
	pass.Note(at("kept"), plan.Decision{Action: plan.Remove}, true, errors.New("no"))
	pass.Note(at("failed"), plan.Decision{Action: plan.Create}, false, errors.New("no"))
	sum, ok := pass.End(now.Add(3 * time.Second))
	require.True(t, ok)
	require.Equal(t, passSummary{Clones: 4, Namespaces: 3, Written: 3, Failed: 2, Took: 3 * time.Second}, sum)
	_, ok = pass.End(now)
	require.False(t, ok, "once")
}
