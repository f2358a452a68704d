package progress_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
)

func TestAFirstPassIsSummedUp(t *testing.T) {
	at := func(namespace string) object.Ref {
		return object.Ref{Kind: object.Secret, Namespace: namespace, Name: "s"}
	}
	now := time.Unix(100, 0)
	pass := progress.NewTracker(0)
	note := func(target object.Ref, action plan.Action, exists bool, err error) {
		state := plan.State{Target: target}
		if exists {
			state.Clone = object.NewDigested(metav1.ObjectMeta{}, object.Common{})
		}
		pass.Record(progress.Outcome{State: state, Decision: plan.Decision{Action: action}, Err: err}, now)
	}
	note(at("early"), plan.Create, false, nil)
	_, ok := pass.EndFirstPass(now)
	require.False(t, ok, "not before it begins")

	pass.BeginFirstPass(now)
	note(at("created"), plan.Create, false, nil)
	note(at("created"), plan.Leave, true, nil) // the cache has it now
	note(at("current"), plan.Leave, true, nil)
	note(object.Ref{Kind: object.ConfigMap, Namespace: "current", Name: "c"}, plan.Update, true, nil)
	note(at("empty"), plan.Leave, false, nil)
	note(at("removed"), plan.Remove, true, nil)
	note(at("kept"), plan.Remove, true, errors.New("no"))
	note(at("failed"), plan.Create, false, errors.New("no"))
	sum, ok := pass.EndFirstPass(now.Add(3 * time.Second))
	require.True(t, ok)
	require.Equal(t, progress.PassSummary{Clones: 4, Namespaces: 3, Written: 3, Failed: 2, Took: 3 * time.Second}, sum)
	_, ok = pass.EndFirstPass(now)
	require.False(t, ok, "once")
}
