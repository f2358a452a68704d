package lab

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
)

// RuleStatuses installs the kind and returns a client. A Headwater that runs already notices
// it only later.
func (e *Env) RuleStatuses() dynamic.ResourceInterface {
	e.Helper()
	require.NoError(e, Apply(e.Context(), e.Cluster.Config(), filepath.Join(Root(e.T), "deploy", "crd.yaml")))
	return e.Dynamic().Resource(rulestatus.GVR)
}

// RuleStatus returns what the RuleStatus of a rule says.
func RuleStatus(ctx context.Context, client dynamic.ResourceInterface, rule string) (status rulestatus.RuleStatus, err error) {
	found, err := client.Get(ctx, rule, metav1.GetOptions{})
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &status)
	}
	return status, err
}

// Reported waits until the RuleStatus of a rule shows its revisions as they are recorded:
// the commands about deliveries go by it.
func (e *Env) Reported(rule string) {
	e.Helper()
	client := e.Dynamic().Resource(rulestatus.GVR)
	e.Eventually(func(ctx context.Context) error {
		status, err := RuleStatus(ctx, client, rule)
		if err != nil {
			return err
		}
		recorded, err := e.recorded(ctx, rule)
		if err != nil {
			return err
		}
		if status.Status.History == nil {
			return fmt.Errorf("the RuleStatus of %s has no history", rule)
		}
		return shows(status.Status.History.Sources, recorded)
	})
}

// shows fails unless sources are as recorded, apart from old revisions.
func shows(sources []rulestatus.SourceHistory, recorded map[string]revisions.History) error {
	for _, one := range sources {
		for _, shown := range one.Revisions {
			is := recorded[one.Source].Numbered(shown.Number)
			if is == nil || is.Verdict != shown.Verdict || is.Stage != shown.Stage || is.Pinned != shown.Pinned || is.Paused != shown.Paused {
				return fmt.Errorf("revision %d of %s is shown as %+v and recorded as %+v", shown.Number, one.Source, shown, is)
			}
		}
	}
	for source, history := range recorded {
		at := slices.IndexFunc(sources, func(one rulestatus.SourceHistory) bool { return one.Source == source })
		if at < 0 || sources[at].Revisions[0].Number != history.Newest().Number {
			return fmt.Errorf("revision %d of %s is not shown", history.Newest().Number, source)
		}
	}
	return nil
}

// recorded returns the revisions of rule by source.
func (e *Env) recorded(ctx context.Context, rule string) (map[string]revisions.History, error) {
	byRule := metav1.ListOptions{LabelSelector: mark.Revision + "," + mark.Rule + "=" + rule}
	secrets, err := e.Admin.CoreV1().Secrets(Namespace).List(ctx, byRule)
	if err != nil {
		return nil, err
	}
	configMaps, err := e.Admin.CoreV1().ConfigMaps(Namespace).List(ctx, byRule)
	if err != nil {
		return nil, err
	}
	all := map[string]revisions.History{}
	add := func(meta metav1.ObjectMeta) {
		if revision, ok := revisions.Parse(&object.Full{ObjectMeta: meta}); ok {
			all[revision.Source.String()] = revisions.NewHistory(append(all[revision.Source.String()], revision))
		}
	}
	for _, one := range secrets.Items {
		add(one.ObjectMeta)
	}
	for _, one := range configMaps.Items {
		add(one.ObjectMeta)
	}
	return all, nil
}
