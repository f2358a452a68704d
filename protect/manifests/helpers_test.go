package manifests

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const headwaterUser = "system:serviceaccount:headwater:headwater"

func newRule(name string, kind object.Kind, namespace, source string, change ...func(*spec.Rule)) spec.Rule {
	rule := spec.Rule{Base: rules.Base{Name: name, Source: rules.Source{Kind: kind, Namespace: namespace, Name: source}}}
	for _, f := range change {
		f(&rule)
	}
	rule.Default()
	return rule
}

func blogRule(change ...func(*spec.Rule)) spec.Rule {
	return newRule("blogsecret", object.Secret, "platform", "blogsecret", change...)
}

// selectingRule protects every Secret of platform with the label share=yes.
func selectingRule(change ...func(*spec.Rule)) spec.Rule {
	base, err := rules.NewBase("shared", rules.Source{
		Kind: object.Secret, Namespace: "platform", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"share": "yes"}},
	})
	if err != nil {
		panic(err)
	}
	rule := spec.Rule{Base: base}
	for _, f := range change {
		f(&rule)
	}
	rule.Default()
	return rule
}

func newWorld(change ...func(*decide.World)) decide.World {
	world := decide.World{
		Headwater:   headwaterUser,
		Terminating: func(string) bool { return false },
		HasSource:   func(spec.Rule) bool { return true },
		Holders:     func(string) []string { return nil },
		Bound: func(user decide.User, role string) bool {
			return role == "cluster-admin" && slices.Contains(user.Groups, "system:masters")
		},
	}
	for _, f := range change {
		f(&world)
	}
	return world
}
