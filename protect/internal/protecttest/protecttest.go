// Package protecttest holds what the tests of protect share.
package protecttest

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const (
	// Canary is a value that must never leave the process.
	Canary = "s3cr3t-canary"
	// HeadwaterUser is who Headwater is to the API server.
	HeadwaterUser = "system:serviceaccount:headwater:headwater"
	// Soon bounds how long a test waits for a state.
	Soon = time.Minute
)

// NewRule returns a defaulted rule for one source, after change.
func NewRule(name string, kind object.Kind, namespace, source string, change ...func(*spec.Rule)) spec.Rule {
	rule := spec.Rule{Base: rules.Base{Name: name, Source: rules.Source{Kind: kind, Namespace: namespace, Name: source}}}
	return changed(rule, change)
}

// BlogRule protects Secret platform/blogsecret.
func BlogRule(change ...func(*spec.Rule)) spec.Rule {
	return NewRule("blogsecret", object.Secret, "platform", "blogsecret", change...)
}

// SelectingRule protects every Secret of platform with the label share=yes.
func SelectingRule(change ...func(*spec.Rule)) spec.Rule {
	base, err := rules.NewBase("shared", rules.Source{
		Kind: object.Secret, Namespace: "platform", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"share": "yes"}},
	})
	if err != nil {
		panic(err)
	}
	return changed(spec.Rule{Base: base}, change)
}

func changed(rule spec.Rule, change []func(*spec.Rule)) spec.Rule {
	for _, f := range change {
		f(&rule)
	}
	rule.Default()
	return rule
}

// Rules are those for Secret blogsecret and ConfigMap blogconfig.
func Rules() *rules.Set[spec.Rule] {
	return rules.NewSet(BlogRule(), NewRule("blogconfig", object.ConfigMap, "platform", "blogconfig"))
}

// NewSecret returns the source of BlogRule, after change. It holds Canary.
func NewSecret(change ...func(*object.Full)) *object.Full {
	secret := &object.Full{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret", UID: "uid-1", ResourceVersion: "1"},
		Kind:       object.Secret,
		Content:    object.Content{Type: "Opaque", Data: map[string][]byte{"password": []byte(Canary)}},
	}
	for _, f := range change {
		f(secret)
	}
	return secret
}

// NewNamespace returns a Namespace as a request has it.
func NewNamespace(name string) *object.Full {
	return &object.Full{ObjectMeta: metav1.ObjectMeta{Name: name}, Kind: spec.KindNamespace}
}

// SetData replaces the data of a Secret.
func SetData(value string) func(*object.Full) {
	return func(o *object.Full) { o.Content.Data = map[string][]byte{"password": []byte(value)} }
}

// Hosts are those that the webhook is served under.
func Hosts() spec.Hosts {
	return spec.Hosts{Names: []string{"headwater-webhook.headwater.svc"}, IPs: []net.IP{net.ParseIP("127.0.0.1")}}
}

// Endpoint is the webhook behind its Service.
func Endpoint(t testing.TB) spec.Endpoint {
	t.Helper()
	endpoint, err := spec.NewEndpoint("", "headwater")
	require.NoError(t, err)
	return endpoint
}

// Events are those that were recorded.
type Events []events.Event

// Record adds event.
func (e *Events) Record(event events.Event) { *e = append(*e, event) }

// RecordDenial adds event.
func (e *Events) RecordDenial(event events.Event) { e.Record(event) }

// Background runs work until the test ends, and waits for it.
func Background(t *testing.T, work func(context.Context) error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- work(t.Context()) }()
	t.Cleanup(func() { require.NoError(t, <-done) })
}

// NewClient is a fake API server whose watches begin with what is there: an informer would
// else never see what is written between its list and its watch.
func NewClient(objects ...runtime.Object) *fake.Clientset {
	client := fake.NewClientset(objects...)
	client.PrependWatchReactor("*", func(action k8stesting.Action) (bool, watch.Interface, error) {
		resource, namespace := action.GetResource(), action.GetNamespace()
		later, err := client.Tracker().Watch(resource, namespace)
		if err != nil {
			return true, nil, err
		}
		all := watch.NewRaceFreeFake()
		list, err := client.Tracker().List(resource, kindOf(resource), namespace)
		if err == nil {
			err = meta.EachListItem(list, func(object runtime.Object) error { all.Add(object); return nil })
		}
		go func() {
			for event := range later.ResultChan() {
				all.Action(event.Type, event.Object)
			}
		}()
		return true, all, err
	})
	return client
}

func kindOf(resource schema.GroupVersionResource) schema.GroupVersionKind {
	for kind := range scheme.Scheme.AllKnownTypes() {
		if plural, _ := meta.UnsafeGuessKindToResource(kind); plural == resource {
			return kind
		}
	}
	return schema.GroupVersionKind{}
}

// Writes returns the verbs of the writes to resource, or to all if it is empty.
func Writes(client *fake.Clientset, resource string) (verbs []string) {
	for _, action := range client.Actions() {
		switch action.GetVerb() {
		case "create", "update", "patch", "delete":
			if resource == "" || action.GetResource().Resource == resource {
				verbs = append(verbs, action.GetVerb())
			}
		}
	}
	return verbs
}

// Secrets as reviews have them: the source of BlogRule, before and after an edit.
const (
	OldSecretJSON = `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"platform","name":"blogsecret"},"type":"Opaque","data":{"password":"czNjcjN0LWNhbmFyeQ=="}}`
	NewSecretJSON = `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"platform","name":"blogsecret"},"type":"Opaque","data":{"password":"b3RoZXI="}}`
)

// ReviewOf builds the review of a write to the Secret by alice, with parts
// replaced.
func ReviewOf(operation, before, after string, replace ...string) string {
	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1",` +
		`"kind":{"group":"","version":"v1","kind":"Secret"},"resource":{"group":"","version":"v1","resource":"secrets"},` +
		`"name":"blogsecret","namespace":"platform","operation":"` + operation + `",` +
		`"userInfo":{"username":"alice","groups":["system:authenticated"]},"object":` + after + `,"oldObject":` + before + `,"dryRun":false,"options":null}}`
	return strings.NewReplacer(replace...).Replace(body)
}
