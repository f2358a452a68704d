package sync

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
)

func TestAFirstPassIsSummedUp(t *testing.T) {
	at := func(namespace string) object.Ref {
		return object.Ref{Kind: object.Secret, Namespace: namespace, Name: "s"}
	}
	now := time.Unix(100, 0)
	var pass firstPass
	pass.note(at("early"), Step{Action: Create}, false, nil)
	_, ok := pass.end(now)
	require.False(t, ok, "not before it begins")

	pass.begin(now)
	pass.note(at("created"), Step{Action: Create}, false, nil)
	pass.note(at("created"), Step{Action: Leave}, true, nil) // the cache has it now
	pass.note(at("current"), Step{Action: Leave}, true, nil)
	pass.note(object.Ref{Kind: object.ConfigMap, Namespace: "current", Name: "c"}, Step{Action: Update}, true, nil)
	pass.note(at("empty"), Step{Action: Leave}, false, nil)
	pass.note(at("removed"), Step{Action: Remove}, true, nil)
	pass.note(at("kept"), Step{Action: Remove}, true, errors.New("no"))
	pass.note(at("failed"), Step{Action: Create}, false, errors.New("no"))
	sum, ok := pass.end(now.Add(3 * time.Second))
	require.True(t, ok)
	require.Equal(t, passSummary{Clones: 4, Namespaces: 3, Written: 3, Failed: 2, Took: 3 * time.Second}, sum)
	_, ok = pass.end(now)
	require.False(t, ok, "once")
}
