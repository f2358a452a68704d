package workload_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestHowFarARolloutOfACustomKindIs(t *testing.T) {
	const spec = `
metadata: {generation: 4}
spec: {replicas: 3, template: {spec: {containers: []}}}
`
	const borrowing = `
metadata: {generation: 4}
spec: {replicas: 3, workloadRef: {apiVersion: apps/v1, kind: Deployment, name: base}}
`
	argo := kinds.Known()[0]
	done := &workload.Rollout{Generation: 4, Observed: 4, Replicas: 3, Updated: 3, Available: 3}
	with := func(change func(*workload.Rollout)) *workload.Rollout { r := *done; change(&r); return &r }
	for sentence, test := range map[string]struct {
		form   *kinds.Info
		object string
		want   *workload.Rollout
	}{
		"one that is done": {
			appInfo(), spec + "status: {observedGeneration: 4, replicas: 3, updatedReplicas: 3, availableReplicas: 3}", done,
		},
		"Argo's, whose generation is a text": {
			argo, spec + "status: {observedGeneration: '4', replicas: 3, updatedReplicas: 3, availableReplicas: 3}", done,
		},
		"Argo's of old, whose generation is a hash": {
			argo, spec + "status: {observedGeneration: 6bdd4fd7c5, replicas: 3, updatedReplicas: 3, availableReplicas: 3}", nil,
		},
		"with old pods": {
			appInfo(), spec + "status: {observedGeneration: 4, replicas: 4, updatedReplicas: 1, availableReplicas: 2}",
			with(func(r *workload.Rollout) { r.Updated, r.Old, r.Available = 1, 3, 2 }),
		},
		"that nobody acted on yet": {
			appInfo(), spec + "status: {observedGeneration: 3, replicas: 3, updatedReplicas: 3, availableReplicas: 3}",
			with(func(r *workload.Rollout) { r.Observed = 3 }),
		},
		"a known kind leaves out what is zero": {
			argo, spec + "status: {observedGeneration: '4', replicas: 3}",
			with(func(r *workload.Rollout) { r.Updated, r.Old, r.Available = 0, 3, 0 }),
		},
		"of a known kind, one replica when it does not say": {
			argo, "metadata: {generation: 4}\nspec: {template: {}}\nstatus: {observedGeneration: '4'}",
			&workload.Rollout{Generation: 4, Observed: 4, Replicas: 1},
		},
		"a declared kind may have no such count": {appInfo(), spec + "status: {observedGeneration: 4, replicas: 3, availableReplicas: 3}", nil},
		"one with no status":                     {argo, spec, nil},
		"a status of another shape":              {argo, spec + "status: {observedGeneration: '4', replicas: {ready: 3}}", nil},
		"one that is paused": {
			argo, "metadata: {generation: 4}\nspec: {replicas: 3, paused: true, template: {}}\nstatus: {observedGeneration: '4', replicas: 3, updatedReplicas: 3, availableReplicas: 3}",
			with(func(r *workload.Rollout) { r.Paused = true }),
		},
		"one that waits at a step": {
			argo, spec + "status: {observedGeneration: '4', replicas: 3, updatedReplicas: 3, availableReplicas: 3, conditions: [{type: Paused, status: 'True', lastUpdateTime: x}]}",
			with(func(r *workload.Rollout) { r.Stalled = true }),
		},
		"one that went on": {
			argo, spec + "status: {observedGeneration: '4', replicas: 3, updatedReplicas: 3, availableReplicas: 3, conditions: [{type: Paused, status: 'False'}]}", done,
		},
		"one that was given up": {
			argo, spec + "status: {observedGeneration: '4', replicas: 3, updatedReplicas: 3, availableReplicas: 3, conditions: [{type: Progressing, status: 'False', reason: RolloutAborted}]}",
			with(func(r *workload.Rollout) { r.Stalled = true }),
		},
		"one whose deadline is over": {
			argo, spec + "status: {observedGeneration: '4', replicas: 3, updatedReplicas: 3, availableReplicas: 3, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}",
			with(func(r *workload.Rollout) { r.Stalled = true }),
		},
		"one of those whose Progressing is False once they are done": {
			argo, spec + "status: {observedGeneration: '4', replicas: 3, updatedReplicas: 3, availableReplicas: 3, conditions: [{type: Progressing, status: 'False', reason: AsExpected}]}", done,
		},
		"one that borrows its template speaks of what it borrows from": {
			argo, borrowing + "status: {observedGeneration: '4', workloadObservedGeneration: '7', replicas: 3, updatedReplicas: 3, availableReplicas: 3}",
			with(func(r *workload.Rollout) { r.Generation, r.Observed = 0, 7 }),
		},
		"and of nothing while it is behind itself": {
			argo, borrowing + "status: {observedGeneration: '3', workloadObservedGeneration: '7', replicas: 3, updatedReplicas: 3, availableReplicas: 3}",
			with(func(r *workload.Rollout) { r.Generation, r.Observed = 0, 0 }),
		},
		"nor does one of an Argo that does not say": {
			argo, borrowing + "status: {observedGeneration: '4', replicas: 3, updatedReplicas: 3, availableReplicas: 3}", nil,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			kept, err := workload.KeepCustom(test.form, workload.ActedOn)(reloadtest.Custom(t, test.object))
			require.NoError(t, err)
			if test.want != nil {
				require.NotNil(t, kept.Rollout)
				test.want.Template = kept.Rollout.Template
			}
			require.Equal(t, test.want, kept.Rollout)
		})
	}
}

func TestACustomTemplateIsToldFromTheLast(t *testing.T) {
	template := func(image string) uint64 {
		kept, err := workload.KeepCustom(appInfo(), workload.ActedOn)(reloadtest.Custom(t, "spec: {replicas: 1, template: {spec: {containers: [{name: a, image: "+image+"}]}}}\n"+
			"status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}"))
		require.NoError(t, err)
		return kept.Rollout.Template
	}
	require.NotZero(t, template("one"))
	require.NotEqual(t, template("one"), template("two"))
}
