package spec_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestDeclaredKindsAreChecked(t *testing.T) {
	kind := func(group, version, kind, template string) kinds.WorkloadKind {
		return kinds.WorkloadKind{CustomKind: kinds.CustomKind{Group: group, Version: version, Kind: kind}, Template: template}
	}
	for sentence, test := range map[string]struct {
		declared []kinds.WorkloadKind
		field    string // of the only fault; empty: none
		problem  string
	}{
		"a kind at its default path":   {declared: []kinds.WorkloadKind{kind("apps.kruise.io", "v1alpha1", "CloneSet", "")}},
		"a kind of the core group":     {declared: []kinds.WorkloadKind{kind("", "v1", "PodTemplate", "template")}},
		"two kinds of one name":        {declared: []kinds.WorkloadKind{kind("a.io", "v1", "App", ""), kind("b.io", "v1", "App", "spec.pod")}},
		"a built-in's name elsewhere":  {declared: []kinds.WorkloadKind{kind("apps.kruise.io", "v1beta1", "StatefulSet", "")}},
		"a path that a dot leads":      {declared: []kinds.WorkloadKind{kind("a.io", "v1", "App", ".spec.template")}},
		"a kind twice":                 {[]kinds.WorkloadKind{kind("a.io", "v1", "App", ""), kind("a.io", "v2", "App", "spec.x")}, "workloads[1].kind", ""},
		"a Deployment":                 {[]kinds.WorkloadKind{kind("apps", "v1", "Deployment", "")}, "workloads[0]", "without a declaration"},
		"a Pod":                        {[]kinds.WorkloadKind{kind("", "v1", "Pod", "spec")}, "workloads[0]", "without a declaration"},
		"a Rollout":                    {[]kinds.WorkloadKind{kind("argoproj.io", "v1alpha1", "Rollout", "")}, "workloads[0]", "without a declaration"},
		"a Job":                        {[]kinds.WorkloadKind{kind("batch", "v1", "Job", "")}, "workloads[0]", "cannot be changed"},
		"a group that is none":         {[]kinds.WorkloadKind{kind("a/b", "v1", "App", "")}, "workloads[0].group", ""},
		"a version with its group":     {[]kinds.WorkloadKind{kind("a.io", "a.io/v1", "App", "")}, "workloads[0].version", "such as v1"},
		"no kind":                      {[]kinds.WorkloadKind{kind("a.io", "v1", "", "")}, "workloads[0].kind", "as in a manifest"},
		"a plural for a kind":          {[]kinds.WorkloadKind{kind("a.io", "v1", "apps", "")}, "workloads[0].kind", "as in a manifest"},
		"a path through a list":        {[]kinds.WorkloadKind{kind("a.io", "v1", "App", "spec.pods[0]")}, "workloads[0].template", "lists cannot be reached"},
		"a path with nothing in it":    {[]kinds.WorkloadKind{kind("a.io", "v1", "App", "spec..template")}, "workloads[0].template", "joined by dots"},
		"a path into the metadata":     {[]kinds.WorkloadKind{kind("a.io", "v1", "App", "metadata.annotations")}, "workloads[0].template", "must not be written"},
		"a path into the status":       {[]kinds.WorkloadKind{kind("a.io", "v1", "App", "status.template")}, "workloads[0].template", "must not be written"},
		"a resource that is no plural": {[]kinds.WorkloadKind{{CustomKind: kinds.CustomKind{Version: "v1", Kind: "App", Resource: "apps/scale"}}}, "workloads[0].resource", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			errs := withDefaults(spec.Settings{Workloads: test.declared}).Validate(field.NewPath("reload"))
			if test.field == "" {
				require.Empty(t, errs)
				return
			}
			require.Len(t, errs, 1)
			require.Equal(t, "reload."+test.field, errs[0].Field)
			require.Contains(t, errs[0].Error(), test.problem)
		})
	}
}

func TestSettingsTakeEffectAsTheyAreSwapped(t *testing.T) {
	var standard spec.Settings
	standard.Default()
	require.Empty(t, standard.Validate(field.NewPath("reload")))
	inForce := live.New(standard.Compile())
	require.Equal(t, &spec.Compiled{Settings: standard, MaxRollouts: 50, MaxRolloutsPerNamespace: 10, ConfirmAfter: 2 * time.Second}, inForce.Load())

	own := spec.Settings{
		MaxConcurrentRollouts: new(0), MaxConcurrentRolloutsPerNamespace: new(3), ConfirmRefreshAfter: &metav1.Duration{},
		Windows: []spec.Window{{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}}},
	}
	own.Default()
	require.Empty(t, own.Validate(field.NewPath("reload")))
	inForce.Swap(own.Compile())
	got := inForce.Load()
	require.Len(t, got.OpenWindows, 1)
	got.OpenWindows = nil
	require.Equal(t, &spec.Compiled{Settings: own, MaxRolloutsPerNamespace: 3}, got)
}
