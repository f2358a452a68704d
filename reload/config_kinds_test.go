package reload

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/rules"
)

func TestDeclaredKindsAreChecked(t *testing.T) {
	kind := func(group, version, kind, template string) WorkloadKind {
		return WorkloadKind{CustomKind: CustomKind{Group: group, Version: version, Kind: kind}, Template: template}
	}
	for sentence, test := range map[string]struct {
		declared []WorkloadKind
		field    string // of the only fault; empty: none
		problem  string
	}{
		"a kind at its default path":   {declared: []WorkloadKind{kind("apps.kruise.io", "v1alpha1", "CloneSet", "")}},
		"a kind of the core group":     {declared: []WorkloadKind{kind("", "v1", "PodTemplate", "template")}},
		"two kinds of one name":        {declared: []WorkloadKind{kind("a.io", "v1", "App", ""), kind("b.io", "v1", "App", "spec.pod")}},
		"a built-in's name elsewhere":  {declared: []WorkloadKind{kind("apps.kruise.io", "v1beta1", "StatefulSet", "")}},
		"a path that a dot leads":      {declared: []WorkloadKind{kind("a.io", "v1", "App", ".spec.template")}},
		"a kind twice":                 {[]WorkloadKind{kind("a.io", "v1", "App", ""), kind("a.io", "v2", "App", "spec.x")}, "workloads[1].kind", ""},
		"a Deployment":                 {[]WorkloadKind{kind("apps", "v1", "Deployment", "")}, "workloads[0]", "known from the start"},
		"a Pod":                        {[]WorkloadKind{kind("", "v1", "Pod", "spec")}, "workloads[0]", "known from the start"},
		"a Rollout":                    {[]WorkloadKind{kind("argoproj.io", "v1alpha1", "Rollout", "")}, "workloads[0]", "known from the start"},
		"a Job":                        {[]WorkloadKind{kind("batch", "v1", "Job", "")}, "workloads[0]", "cannot be changed"},
		"a group that is none":         {[]WorkloadKind{kind("a/b", "v1", "App", "")}, "workloads[0].group", ""},
		"a version with its group":     {[]WorkloadKind{kind("a.io", "a.io/v1", "App", "")}, "workloads[0].version", "such as v1"},
		"no kind":                      {[]WorkloadKind{kind("a.io", "v1", "", "")}, "workloads[0].kind", "as in a manifest"},
		"a plural for a kind":          {[]WorkloadKind{kind("a.io", "v1", "apps", "")}, "workloads[0].kind", "as in a manifest"},
		"a path through a list":        {[]WorkloadKind{kind("a.io", "v1", "App", "spec.pods[0]")}, "workloads[0].template", "lists cannot be reached"},
		"a path with nothing in it":    {[]WorkloadKind{kind("a.io", "v1", "App", "spec..template")}, "workloads[0].template", "joined by dots"},
		"a path into the metadata":     {[]WorkloadKind{kind("a.io", "v1", "App", "metadata.annotations")}, "workloads[0].template", "not Headwater's"},
		"a path into the status":       {[]WorkloadKind{kind("a.io", "v1", "App", "status.template")}, "workloads[0].template", "not Headwater's"},
		"a resource that is no plural": {[]WorkloadKind{{CustomKind: CustomKind{Version: "v1", Kind: "App", Resource: "apps/scale"}}}, "workloads[0].resource", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			errs := withDefaults(Settings{Workloads: test.declared}).Validate(field.NewPath("reload"))
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

func TestPermissionsFollowTheDeclaredKinds(t *testing.T) {
	declared := []WorkloadKind{
		{CustomKind: CustomKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}},
		{CustomKind: CustomKind{Group: "example.com", Version: "v1", Kind: "Mouse", Resource: "mice"}},
	}
	known := len(permissions(withDefaults(Settings{}), rules.NewSet[Rule]()))
	added := permissions(withDefaults(Settings{Workloads: declared}), rules.NewSet[Rule]())[known:]
	require.Len(t, added, 2)
	require.Equal(t, "clonesets", added[0].Resource)
	require.Equal(t, "apps.kruise.io", added[0].Group)
	require.Equal(t, "mice", added[1].Resource)
	require.Equal(t, []string{"list", "watch", "patch"}, added[1].Verbs)
}

func TestTheResourceOfAKindIsItsPlural(t *testing.T) {
	for kind, want := range map[string]string{
		"CloneSet": "clonesets", "Gateway": "gateways", "Policy": "policies", "Ingress": "ingresses",
	} {
		require.Equal(t, want, CustomKind{Group: "example.com", Version: "v1", Kind: kind}.resource())
	}
}

func TestKindsAreToldApartByTheirGroup(t *testing.T) {
	for kind, form := range typedForms {
		require.Equal(t, kind, form.kind())
		require.Equal(t, form.GroupKind(), kind.groupKind())
	}
	require.Equal(t, KindRollout, knownForms()[0].kind())
	require.Equal(t, KindDeploymentConfig, knownForms()[1].kind())
	for _, form := range optionalForms([]WorkloadKind{{CustomKind: CustomKind{Version: "v1", Kind: "PodTemplate"}}}) {
		require.Equal(t, form.GroupKind(), form.kind().groupKind())
	}
}
