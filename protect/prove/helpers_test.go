package prove

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/spec"
)

type sentEvents []events.Event

func (s *sentEvents) Record(event events.Event) { *s = append(*s, event) }

// canary must never show up in anything that leaves the process.
const canary = "s3cr3t-canary"

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

func newSecret(change ...func(*object.Full)) *object.Full {
	secret := &object.Full{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret", UID: "uid-1", ResourceVersion: "1"},
		Kind:       object.Secret,
		Content:    object.Content{Type: "Opaque", Data: map[string][]byte{"password": []byte(canary)}},
	}
	for _, f := range change {
		f(secret)
	}
	return secret
}
